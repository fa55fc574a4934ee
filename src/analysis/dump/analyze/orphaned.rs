//! Locks whose owner has ended.
//!
//! Rule: the owner of a lock is a thread id that no living thread has, and all threads are known. The lock is never released, which is critical if
//! threads wait for it.
//!
//! Source: `docs/internals/locks.md`.

use super::answers::{Answers, Skip};
use super::line::how_many_wait;
use super::lock_queues::{name, waiting};
use crate::analysis::{LockModel, Problem, ProblemId, ProblemSeverity};
use crate::base::len64;

pub(super) fn find(answers: &Answers<'_>) -> Result<Vec<Problem>, Skip> {
    let report = answers.locks()?;
    let orphaned = report.locks.iter().filter(|l| l.owner.as_ref().is_some_and(|o| o.orphaned == Some(true)));
    let found = orphaned.map(|lock| {
        let threads = waiting(report, lock);
        let count = len64(threads.len());
        let severity = if count > 0 { ProblemSeverity::Critical } else { ProblemSeverity::Warning };
        let title = format!("{} is held by {}, which has ended; {} for it", name(lock), owner(lock), how_many_wait(count, "thread"));
        Problem {
            count: Some(count),
            object: Some(lock.object),
            type_name: lock.type_name.clone(),
            threads,
            ..answers.finding(ProblemId::OrphanedLock, severity, title, &["locks"])
        }
    });
    Ok(found.collect())
}

/// Names the owner of a lock. A `Lock` of .NET 9 and 10 has the OS id of a thread that has ended.
fn owner(lock: &LockModel) -> String {
    match lock.owner.as_ref().map(|owner| (owner.managed_id, owner.os_id)) {
        Some((Some(id), _)) => format!("thread {id}"),
        Some((None, Some(os_id))) => format!("the thread with the OS id {os_id}"),
        _ => "a thread".into(),
    }
}
