//! Free space between objects, and what keeps the GC from compacting it.
//!
//! Rule: at least `bytes` are free, and at least `free` of what is allocated. Free space in itself is reused; so much of it means that
//! the GC does not compact: because objects are pinned, or because they are large.
//!
//! Source: the free blocks of the heap, and the objects behind them.

use super::answers::{Answers, Skip};
use super::line::percent;
use crate::base::thousands;
use crate::model::{Problem, ProblemId, ProblemSeverity};

pub(super) fn find(answers: &Answers<'_>) -> Result<Vec<Problem>, Skip> {
    let report = answers.fragmentation()?;
    let (totals, least) = (&report.totals, answers.thresholds());
    if totals.free_bytes < least.bytes || totals.share < least.free {
        return Ok(Vec::new());
    }
    let most = report.generations.iter().max_by_key(|g| g.free_bytes);
    let within = most.map(|g| format!(", most in {} ({})", g.generation, percent(g.share))).unwrap_or_default();
    let pinned = report.pinned.iter().find(|p| p.free_bytes_before > 0);
    let pins = match pinned {
        Some(p) => format!("; {} pinned {} have {} before them", thousands(p.count), p.type_name, thousands(p.free_bytes_before)),
        None => "; nothing is pinned next to it".into(),
    };
    let title =
        format!("{} bytes, {} of the heap, are free between objects{within}{pins}", thousands(totals.free_bytes), percent(totals.share));
    Ok(vec![Problem {
        count: Some(totals.pinned_objects),
        bytes: Some(totals.free_bytes),
        share: Some(totals.share),
        type_name: pinned.map(|p| p.type_name.clone()),
        ..answers.finding(ProblemId::Fragmentation, ProblemSeverity::Warning, title, &["fragmentation"])
    }])
}
