//! Locks whose owner has ended.
//!
//! Rule: the owner of a lock is a thread id that no living thread has, or a reader-writer lock counts more readers than living threads have entered it, and all
//! threads are known. The lock is never released, which is critical if threads wait for it. The same is true of a lock that threads wait for and that a
//! worker of the pool holds which runs no work: the work that took the lock has ended.
//!
//! Source: `docs/internals/locks.md`.

use super::answers::{Answers, Skip};
use super::line::{counted, how_many_wait};
use super::lock_queues::{name, waiting};
use crate::analysis::{LockModel, LocksReport, Problem, ProblemId, ProblemSeverity};
use crate::base::len64;

pub(super) fn find(answers: &Answers<'_>) -> Result<Vec<Problem>, Skip> {
    let report = answers.locks()?;
    let orphaned = report.locks.iter().filter_map(|lock| Some((lock, holder(answers, report, lock)?)));
    let found = orphaned.map(|(lock, by)| {
        let threads = waiting(report, lock);
        let count = len64(threads.len());
        let severity = if count > 0 { ProblemSeverity::Critical } else { ProblemSeverity::Warning };
        let title = format!("{} is held {by}; {} for it", name(lock), how_many_wait(count, "thread"));
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

/// Whether a thread that has ended holds the lock.
pub(super) fn is_orphaned(lock: &LockModel) -> bool {
    lock.owner.as_ref().is_some_and(|o| o.orphaned == Some(true)) || lock.ended_readers.is_some_and(|n| n > 0)
}

/// Returns the worker of the pool that holds a lock for which threads wait, if it runs no work. No method on its stack can release the lock.
pub(super) fn idle_holder(answers: &Answers<'_>, report: &LocksReport, lock: &LockModel) -> Option<u32> {
    let is_blocked = |id: u32| report.waits.iter().any(|w| w.managed_id == Some(id));
    let holders = lock.owner.iter().chain(&lock.readers).filter_map(|o| o.managed_id);
    let mut holders = holders.filter(|id| !is_blocked(*id)).peekable();
    if holders.peek().is_none() || waiting(report, lock).is_empty() {
        return None;
    }
    let places = answers.places().ok()?;
    holders.find(|id| places.of(*id).is_some_and(|place| place.is_idle))
}

/// Says who holds a lock, if that is a thread that has ended or an idle worker of the pool.
fn holder(answers: &Answers<'_>, report: &LocksReport, lock: &LockModel) -> Option<String> {
    if is_orphaned(lock) {
        return Some(ended_holder(lock));
    }
    let id = idle_holder(answers, report, lock)?;
    Some(format!("by thread {id}, an idle thread of the pool: the work that took it has ended"))
}

/// Says that threads which have ended hold a lock.
fn ended_holder(lock: &LockModel) -> String {
    match lock.ended_readers.filter(|n| *n > 0 && lock.owner.is_none()) {
        Some(n) => format!("for reading by {}, which {} ended", counted(n, "thread"), if n == 1 { "has" } else { "have" }),
        None => format!("by {}, which has ended", owner(lock)),
    }
}

/// Names the owner of a lock. A `Lock` of .NET 9 and 10 has the OS id of a thread that has ended.
fn owner(lock: &LockModel) -> String {
    match lock.owner.as_ref().map(|owner| (owner.managed_id, owner.os_id)) {
        Some((Some(id), _)) => format!("thread {id}"),
        Some((None, Some(os_id))) => format!("the thread with the OS id {os_id}"),
        _ => "a thread".into(),
    }
}
