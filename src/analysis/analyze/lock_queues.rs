//! Long queues at a lock.
//!
//! Rule: at least `queue` threads are entering a lock that another holds. Threads in `Monitor.Wait` are not: they sleep until there is
//! something to do. Neither do events, semaphores and tasks have an owner to wait for. Locks of a deadlock, and of threads that are
//! gone, are reported as such.
//!
//! Source: `docs/internals/locks.md`.

use std::collections::BTreeSet;

use super::answers::{Answers, Skip};
use super::line::{counted, listed};
use crate::base::{Addr, len64};
use crate::model::{LockModel, LocksReport, Problem, ProblemId, ProblemSeverity, WaitKind};

pub(super) fn find(answers: &Answers<'_>) -> Result<Vec<Problem>, Skip> {
    let report = answers.locks()?;
    let dead: BTreeSet<Addr> = report.deadlocks.iter().flat_map(|d| &d.edges).map(|e| e.object).collect();
    let mut found = Vec::new();
    for lock in report.locks.iter().filter(|l| !dead.contains(&l.object)) {
        let holders: Vec<u32> =
            lock.owner.iter().chain(&lock.readers).filter(|o| o.orphaned != Some(true)).filter_map(|o| o.managed_id).collect();
        let threads = waiting(report, lock);
        // The lock may count more of them than are found.
        let count = len64(threads.len());
        let Some(first) = holders.first().filter(|_| count >= answers.thresholds().queue) else { continue };
        let blocked = report.waits.iter().find(|w| w.managed_id == Some(*first));
        let why = match blocked {
            Some(wait) => {
                let at = wait.method.as_ref().map(|m| format!(" ({m})")).unwrap_or_default();
                format!(", which is itself blocked: {}{at}", wait.kind)
            }
            None => String::new(),
        };
        let title = format!("{} wait for {}, held by thread {}{why}", counted(count, "thread"), name(lock), listed(&holders));
        found.push(Problem {
            count: Some(count),
            object: Some(lock.object),
            type_name: lock.type_name.clone(),
            method: blocked.and_then(|w| w.method.clone()),
            threads,
            ..answers.finding(ProblemId::LockQueue, ProblemSeverity::Warning, title, &["locks"])
        });
    }
    Ok(found)
}

/// Managed ids of the threads that are entering `lock`.
pub(super) fn waiting(report: &LocksReport, lock: &LockModel) -> Vec<u32> {
    let sleeps = |id: u32| report.waits.iter().any(|w| w.managed_id == Some(id) && w.kind == WaitKind::MonitorWait);
    lock.waiters.iter().filter_map(|w| w.managed_id).filter(|id| !sleeps(*id)).collect()
}

/// `the monitor 0x7f… (Lab.Order)`.
pub(super) fn name(lock: &LockModel) -> String {
    let ty = lock.type_name.as_ref().map(|n| format!(" ({n})")).unwrap_or_default();
    format!("the {} {}{ty}", lock.kind, lock.object)
}
