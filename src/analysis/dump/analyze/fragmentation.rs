//! Free space between objects, and the reason why the GC does not compact it.
//!
//! Rule: at least `bytes` are free, and at least the share `free` of the allocated bytes. The GC reuses free space, but this much of it means that
//! the GC does not compact, because objects are pinned or large.
//!
//! Source: the free blocks of the heap, and the objects after them.

use super::Thresholds;
use super::answers::{Answers, Skip};
use super::line::{in_units, percent};
use crate::analysis::{PinnedTypeModel, Problem, ProblemId, ProblemSeverity};
use crate::base::{share, thousands};
use crate::model::Generation;

/// The title names a type if at least this share of the free bytes is in front of pinned objects of the type.
const PINNED: f64 = 0.1;

pub(super) fn find(answers: &Answers<'_>, least: &Thresholds) -> Result<Vec<Problem>, Skip> {
    let report = answers.fragmentation()?;
    let totals = &report.totals;
    let known = totals.free_bytes.zip(totals.share).filter(|(free, share)| *free >= least.bytes && *share >= least.free);
    let Some((free, part)) = known else { return Ok(Vec::new()) };
    answers.needs_most_objects()?;
    let most = report.generations.iter().max_by_key(|g| g.free_bytes);
    let within = most.map(|g| format!(", most in {} ({})", g.generation, percent(g.share.unwrap_or(0.0)))).unwrap_or_default();
    let of_pins = |p: &PinnedTypeModel| share(p.free_bytes_before, free).unwrap_or(0.0);
    let pinned = report.pinned.first().filter(|p| of_pins(p) >= PINNED);
    let why = match pinned {
        Some(p) => format!("{} of it before {} pinned {}", percent(of_pins(p)), thousands(p.count), p.type_name),
        None if most.is_some_and(|g| g.generation == Generation::Loh) => {
            "the GC does not compact the LOH by default; GCSettings.LargeObjectHeapCompactionMode asks for it".into()
        }
        None => "little of it before pinned objects".into(),
    };
    let of = if report.coverage.absent_bytes == 0 { "the heap" } else { "what the dump has of the heap" };
    let title = format!("{} ({} of {of}) are free between objects{within}; {why}", in_units(free), percent(part));
    Ok(vec![Problem {
        count: totals.pinned_objects,
        bytes: Some(free),
        share: Some(part),
        type_name: pinned.map(|p| p.type_name.clone()),
        ..answers.finding(ProblemId::Fragmentation, ProblemSeverity::Warning, title, &["fragmentation"])
    }])
}
