//! Long queues at a lock.
//!
//! Rule: at least `queue` threads wait to enter a lock that another thread holds. Threads in `Monitor.Wait` are not counted, because they sleep until
//! another thread notifies them. Events, semaphores and tasks do not have an owner. Deadlocks and orphaned locks have their own findings.
//!
//! Source: `docs/internals/locks.md`.

use std::collections::BTreeSet;

use super::answers::{Answers, Skip};
use super::line::{how_many_wait, listed};
use super::orphaned::idle_holder;
use crate::analysis::{LockModel, LocksReport, Problem, ProblemId, ProblemSeverity, WaitKind};
use crate::base::{Addr, len64};

pub(super) fn find(answers: &Answers<'_>) -> Result<Vec<Problem>, Skip> {
    let report = answers.locks()?;
    let dead: BTreeSet<Addr> = report.deadlocks.iter().flat_map(|d| &d.edges).map(|e| e.object).collect();
    let mut found = Vec::new();
    let is_left = |l: &LockModel| l.ended_readers.is_some_and(|n| n > 0) || idle_holder(answers, report, l).is_some();
    for lock in report.locks.iter().filter(|l| !dead.contains(&l.object) && !is_left(l)) {
        let holders: Vec<u32> =
            lock.owner.iter().chain(&lock.readers).filter(|o| o.orphaned != Some(true)).filter_map(|o| o.managed_id).collect();
        let threads = waiting(report, lock);
        // The lock's own count of waiters may be higher than the number of threads found.
        let count = len64(threads.len());
        let Some(first) = holders.first().filter(|_| count >= answers.thresholds().queue) else { continue };
        let blocked = report.waits.iter().find(|w| w.managed_id == Some(*first));
        let why = match blocked {
            Some(wait) => {
                let at = answers.own_method(wait).map(|m| format!(" ({m})")).unwrap_or_default();
                format!(", which is itself blocked: {}{at}", wait.kind)
            }
            None => place(answers, *first),
        };
        let named = answers.places().ok().filter(|_| holders.len() == 1).and_then(|p| p.of(*first)?.name.as_ref());
        let named = named.map(|name| format!(" {name:?}")).unwrap_or_default();
        let title = format!("{} for {}, held by thread {}{named}{why}", how_many_wait(count, "thread"), name(lock), listed(&holders));
        found.push(Problem {
            count: Some(count),
            object: Some(lock.object),
            type_name: lock.type_name.clone(),
            method: blocked.and_then(|w| answers.own_method(w)).or_else(|| answers.places().ok()?.of(*first)?.own.clone()),
            threads,
            ..answers.finding(ProblemId::LockQueue, ProblemSeverity::Warning, title, &["locks"])
        });
    }
    Ok(found)
}

/// Describes the location of a thread that holds a lock and is not blocked. The thread may be in native code that does not return.
pub(super) fn place(answers: &Answers<'_>, managed_id: u32) -> String {
    let Some(place) = answers.places().ok().and_then(|places| places.of(managed_id)) else { return String::new() };
    let Some(innermost) = &place.innermost else { return String::new() };
    let own = place.own.as_ref().filter(|own| *own != innermost).map(|own| format!(", called by {own}")).unwrap_or_default();
    format!(", which is in {innermost}{own}")
}

/// Managed ids of the threads that wait to enter `lock`.
pub(super) fn waiting(report: &LocksReport, lock: &LockModel) -> Vec<u32> {
    let sleeps = |id: u32| report.waits.iter().any(|w| w.managed_id == Some(id) && w.kind == WaitKind::MonitorWait);
    lock.waiters.iter().filter_map(|w| w.managed_id).filter(|id| !sleeps(*id)).collect()
}

/// Names a lock: `the monitor 0x7f… (Lab.Order)`.
pub(super) fn name(lock: &LockModel) -> String {
    let ty = lock.type_name.as_ref().map(|n| format!(" ({n})")).unwrap_or_default();
    format!("the {} {}{ty}", lock.kind, lock.object)
}
