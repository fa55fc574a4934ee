//! Damage of the heap.
//!
//! Rule: the walk had to skip bytes to find the next object, or `verify` finds errors after a crash within a blocking collection that had moved
//! nothing. A crash of the collector is most often a sign of a corrupted heap. While a collection moves objects, the state of the heap cannot be
//! determined. A carved heap has errors where the search for objects was mistaken.
//!
//! Source: the coverage of the walk for `fragmentation`; `verify`.

use super::answers::{Answers, Skip};
use super::line::{counted, one_line};
use crate::analysis::{Problem, ProblemId, ProblemSeverity};
use crate::base::be;
use crate::model::GcPhase;

pub(super) fn find(answers: &Answers<'_>) -> Result<Vec<Problem>, Skip> {
    let gc = answers.runtime.gc();
    if gc.as_ref().is_ok_and(|gc| gc.carved().is_some()) {
        return Err(Skip::because("the heap was carved out of memory, and its errors may be mistakes of the search"));
    }
    let skipped = answers.fragmentation()?.coverage.skipped_bytes;
    let moving = gc.as_ref().is_ok_and(|gc| gc.facts().moves_objects());
    let in_collection = answers.runtime.file().crash.is_some() && gc.is_ok_and(|gc| gc.facts().phase == Some(GcPhase::Marking));
    if moving || skipped == 0 && !in_collection {
        return Ok(Vec::new());
    }
    let report = answers.verify()?;
    let errors = report.totals.errors;
    if skipped == 0 && errors == 0 {
        return Ok(Vec::new());
    }
    let first = report.findings.first().filter(|_| errors > 0);
    let detail = first.map(|first| format!("; {}, the first: {}", counted(errors, "error"), one_line(&first.message))).unwrap_or_default();
    Ok(vec![Problem {
        count: Some(errors),
        bytes: Some(skipped),
        object: first.and_then(|f| f.object),
        type_name: first.and_then(|f| f.type_name.clone()),
        ..answers.finding(ProblemId::Damage, ProblemSeverity::Critical, title(skipped, &detail), &["verify"])
    }])
}

/// The title; `detail` has the number of errors and the first of them. Without skipped bytes, only these show the damage.
pub(super) fn title(skipped: u64, detail: &str) -> String {
    match skipped {
        0 => format!("The heap is corrupt{detail}"),
        n => format!("The heap is corrupt: {} of it {} neither objects nor free space{detail}", counted(n, "byte"), be(n)),
    }
}
