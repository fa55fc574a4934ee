//! A finalizer thread that makes no progress.
//!
//! Rule: the thread is blocked in managed code, which it runs only for a finalizer. This is critical if objects wait for finalization. Otherwise, at
//! least `ready` objects wait, because they are created faster than they are finalized.
//!
//! Source: the finalization queues; `docs/internals/locks.md` for the wait of the thread.

use super::answers::{Answers, Skip};
use super::line::how_many_wait;
use crate::analysis::{LocksReport, Problem, ProblemId, ProblemSeverity};

pub(super) fn find(answers: &Answers<'_>) -> Result<Vec<Problem>, Skip> {
    let (report, locks) = (answers.finalizers()?, answers.locks()?);
    let count = report.ready.saturating_add(report.critical);
    let id = report.thread.as_ref().and_then(|t| t.managed_id);
    let finding = |severity, title: String| Problem {
        count: (report.is_counted || count > 0).then_some(count),
        threads: id.into_iter().collect(),
        ..answers.finding(ProblemId::StuckFinalizer, severity, title, &["finalizers"])
    };
    if let Some(wait) = locks.waits.iter().find(|w| id.is_some() && w.managed_id == id) {
        let (severity, queued) = match count {
            0 if report.is_counted => (ProblemSeverity::Warning, "no object waits for finalization yet".into()),
            0 => (ProblemSeverity::Critical, "how many objects wait for finalization is unknown".into()),
            n => (ProblemSeverity::Critical, format!("{} for finalization", how_many_wait(n, "object"))),
        };
        let at = wait.method.as_ref().map(|m| format!(" in {m}")).unwrap_or_default();
        let lock = locks.locks.iter().find(|lock| Some(lock.object) == wait.object && lock.waiters.iter().any(|w| w.managed_id == id));
        let holder = lock.and_then(|lock| lock.owner.as_ref()?.managed_id);
        let held = holder.map(|id| format!(" that thread {id}{} holds", why(answers, locks, id))).unwrap_or_default();
        let title = format!("The finalizer thread is blocked{at} ({}{held}): {queued}", wait.kind);
        return Ok(vec![Problem {
            object: wait.object,
            type_name: wait.type_name.clone(),
            method: wait.method.clone(),
            ..finding(severity, title)
        }]);
    }
    if count < answers.thresholds().ready {
        return Ok(Vec::new());
    }
    Ok(vec![finding(
        ProblemSeverity::Warning,
        format!("{} for finalization: the finalizer thread is too slow", how_many_wait(count, "object")),
    )])
}

/// The name of a thread and its wait: ` "file writer" (sleep)`.
fn why(answers: &Answers<'_>, locks: &LocksReport, id: u32) -> String {
    let name = answers.places().ok().and_then(|p| p.of(id)?.name.as_ref()).map(|name| format!(" {name:?}")).unwrap_or_default();
    let wait = locks.waits.iter().find(|w| w.managed_id == Some(id)).map(|w| format!(" ({})", w.kind)).unwrap_or_default();
    format!("{name}{wait}")
}
