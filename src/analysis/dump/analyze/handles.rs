//! Very many GC handles.
//!
//! Rule: the number of GC handles is at least the threshold `handles`. Every collection visits each handle, and a strong handle that is not freed
//! leaks its object. Handles that the runtime or its library creates for itself, such as for locks of sync blocks, are not counted, because they
//! are freed with their objects.
//!
//! Source: the handle tables.

use super::answers::{Answers, Skip};
use super::line::counted;
use crate::analysis::{HandleStat, Problem, ProblemId, ProblemSeverity};
use crate::base::{thousands, total};
use crate::model::HandleKind;

pub(super) fn find(answers: &Answers<'_>) -> Result<Vec<Problem>, Skip> {
    let report = answers.handles()?;
    let own = total(report.uses.iter().map(|u| u.count));
    let all = report.total.saturating_sub(own);
    if all < answers.thresholds().handles {
        return Ok(Vec::new());
    }
    let count = |c: &HandleStat| if c.kind == HandleKind::Strong { c.count.saturating_sub(own) } else { c.count };
    let most = report.counts.iter().map(|c| (count(c), c.kind)).max_by_key(|(n, _)| *n);
    let which = most.map(|(n, kind)| format!(", {} of them {kind}", thousands(n))).unwrap_or_default();
    let title = format!("{}{which}", counted(all, "GC handle"));
    Ok(vec![Problem {
        count: Some(all),
        ..answers.finding(ProblemId::Handles, ProblemSeverity::Warning, title, &["handles", "--by", "object-type"])
    }])
}
