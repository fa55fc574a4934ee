//! Failed allocations.
//!
//! Rule: a heap has recorded a failed allocation. The title compares the requested size with the state of the heap: its limit, committed bytes, free
//! space between objects, and garbage. Much garbage means that a collection would have helped.
//!
//! Source: `oom_history` of each heap; generations, fragmentation, the graph.

use super::answers::{Answers, Skip};
use super::line::{in_units, percent};
use crate::analysis::{Problem, ProblemId, ProblemSeverity};
use crate::base::{len64, share};
use crate::model::OomModel;

pub(super) fn find(answers: &Answers<'_>) -> Result<Vec<Problem>, Skip> {
    let report = answers.oom()?;
    let failed: Vec<&OomModel> = report.heaps.iter().filter(|h| h.failed() == Some(true)).collect();
    let Some(last) = failed.iter().max_by_key(|h| h.gc_index) else { return Ok(Vec::new()) };
    let mut title = last.text.clone();
    // Values that cannot be determined are left out of the title. A note has the reason.
    if let Some(heap) = answers.generations().ok().filter(|_| report.limit.is_none()) {
        title.push_str(&format!("; heap: {} committed", in_units(heap.totals.committed)));
    }
    let whole = answers.fragmentation().ok().filter(|f| f.coverage.absent_bytes == 0);
    if let Some((free, part)) = whole.and_then(|f| f.totals.free_bytes.zip(f.totals.share)) {
        title.push_str(&format!(", {} free ({})", in_units(free), percent(part)));
    }
    if answers.query.graph
        && whole.is_some()
        && let Ok(retained) = answers.with_roots()
    {
        let garbage = retained.totals.bytes.saturating_sub(retained.totals.reachable_bytes);
        let part = share(garbage, retained.totals.bytes).unwrap_or(0.0);
        title.push_str(&format!(", {} garbage ({} of the objects)", in_units(garbage), percent(part)));
    }
    let count = Some(len64(failed.len()));
    let finding = answers.finding(ProblemId::Oom, ProblemSeverity::Critical, title, &["heap", "--detail"]);
    Ok(vec![Problem { count, bytes: last.alloc_size, ..finding }])
}
