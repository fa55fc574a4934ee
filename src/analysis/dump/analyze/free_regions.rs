//! Committed memory in free regions.
//!
//! Rule: free regions have most of the bytes that the GC has committed, and at least 32 times `bytes`. The GC keeps fewer bytes for its next
//! allocations.
//!
//! Source: the GC's lists of free regions, as `memory` shows them.

use super::Thresholds;
use super::answers::{Answers, Skip};
use super::line::{in_units, percent};
use crate::analysis::{MemoryKind, Problem, ProblemId, ProblemSeverity};
use crate::base::{share, total};

/// Smallest number of bytes, as a multiple of the threshold.
const LARGE: u64 = 32;
/// Smallest share of the GC's committed bytes that is in free regions.
const MOST: f64 = 0.75;

pub(super) fn find(answers: &Answers<'_>, least: &Thresholds) -> Result<Vec<Problem>, Skip> {
    let kinds = &answers.memory()?.kinds;
    let of = |kind: MemoryKind| kinds.iter().filter(move |k| k.kind == kind);
    let free = total(of(MemoryKind::GcFree).map(|k| k.accessible_bytes));
    let used = total(of(MemoryKind::GcHeap).map(|k| k.accessible_bytes));
    let part = share(free, free.saturating_add(used)).unwrap_or(0.0);
    if free < least.bytes.saturating_mul(LARGE) || part < MOST {
        return Ok(Vec::new());
    }
    let ranges = total(of(MemoryKind::GcFree).map(|k| k.ranges));
    let title = format!(
        "{} are committed in free regions ({} of the memory that the GC has committed, {} in use): the GC returns them over time, or all at once in \
         GC.Collect(2, GCCollectionMode.Aggressive); DOTNET_GCConserveMemory makes it keep less",
        in_units(free),
        percent(part),
        in_units(used)
    );
    Ok(vec![Problem {
        count: Some(ranges),
        bytes: Some(free),
        share: Some(part),
        ..answers.finding(ProblemId::FreeRegions, ProblemSeverity::Info, title, &["memory"])
    }])
}
