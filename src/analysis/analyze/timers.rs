//! Timers, and registrations with sources of cancellation, without end.
//!
//! Rule: at least `timers` timers are active, or a source has as many registrations. Each keeps its callback, and what that refers to,
//! until it fires, is disposed of or the source is gone. A server with so many requests under way has as many.
//!
//! Source: `docs/internals/pool.md`; `inspect --only registrations`.

use super::answers::{Answers, Skip};
use super::line::counted;
use crate::base::hash::Map;
use crate::base::{Count, Name, thousands};
use crate::model::{InspectionId, Problem, ProblemId, ProblemSeverity};

pub(super) fn timers(answers: &Answers<'_>) -> Result<Vec<Problem>, Skip> {
    let report = answers.timers()?;
    if report.active < answers.thresholds().timers {
        return Ok(Vec::new());
    }
    let mut callbacks: Map<&str, (u64, &Name)> = Map::default();
    let due = report.timers.iter().filter(|t| t.due_ms.is_some());
    due.filter_map(|t| t.callback.as_ref()).for_each(|callback| callbacks.entry(callback.shown()).or_insert((0, callback)).0.bump());
    let most = callbacks.into_values().max_by_key(|(n, name)| (*n, name.shown()));
    let which = most.map(|(n, name)| format!(", {} of them for {name}", thousands(n))).unwrap_or_default();
    let title = format!("{} are active{which}", counted(report.active, "timer"));
    Ok(vec![Problem {
        count: Some(report.active),
        method: most.map(|(_, name)| name.clone()),
        ..answers.finding(ProblemId::Timers, ProblemSeverity::Warning, title, &["timers"])
    }])
}

pub(super) fn registrations(answers: &Answers<'_>) -> Result<Vec<Problem>, Skip> {
    let rows = &answers.inspection(InspectionId::Registrations)?.rows;
    let found = rows.iter().filter(|r| r.count >= answers.thresholds().timers).map(|row| {
        let at = row.object.map(|o| format!(" {o}")).unwrap_or_default();
        let title = format!("The cancellation source{at} has {}", counted(row.count, "registration"));
        Problem {
            count: Some(row.count),
            object: row.object,
            type_name: row.type_name.clone(),
            ..answers.finding(ProblemId::Registrations, ProblemSeverity::Warning, title, &["inspect", "--only", "registrations"])
        }
    });
    Ok(found.collect())
}
