//! Very many GC handles.
//!
//! Rule: at least `handles` of them. Each is a root or a weak reference that every collection visits; those that are not freed leak
//! what they hold.
//!
//! Source: the handle tables.

use super::answers::{Answers, Skip};
use super::line::counted;
use crate::base::thousands;
use crate::model::{Problem, ProblemId, ProblemSeverity};

pub(super) fn find(answers: &Answers<'_>) -> Result<Vec<Problem>, Skip> {
    let report = answers.handles()?;
    if report.total < answers.thresholds().handles {
        return Ok(Vec::new());
    }
    let most = report.counts.iter().max_by_key(|c| c.count);
    let which = most.map(|c| format!(", {} of them {}", thousands(c.count), c.kind)).unwrap_or_default();
    let title = format!("{}{which}", counted(report.total, "GC handle"));
    Ok(vec![Problem {
        count: Some(report.total),
        ..answers.finding(ProblemId::Handles, ProblemSeverity::Warning, title, &["handles", "--by", "object-type"])
    }])
}
