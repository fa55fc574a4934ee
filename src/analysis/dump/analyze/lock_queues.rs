//! Long queues at a lock.
//!
//! Rule: at least `queue` threads wait to enter a lock that another thread holds, or a mutex whose owner is unknown. Threads in `Monitor.Wait` are not counted,
//! because they sleep until another thread notifies them. Deadlocks and orphaned locks have their own findings.
//!
//! Objects without an owner ([`unowned`]) have a queue of at least `waits` threads. Workers that wait for work look like it, so there is a finding only for
//!
//! * a `SemaphoreSlim` whose count is 0, for which more threads wait than its highest count: it limits how many threads do something. A semaphore that
//!   counts work for workers has no highest count, or one that is at least the number of workers;
//! * a `BlockingCollection` that is full: threads that take elements do not wait for it;
//! * a `ManualResetEventSlim` (an info), in methods that are not of a library. Such an event releases all threads at once, so it is seldom a signal that there
//!   is work.
//!
//! Threads that wait for a semaphore or an event with a short timeout are not counted: they look now and then whether they shall end.
//!
//! Source: `docs/internals/locks.md`.

use std::collections::BTreeSet;

use super::Thresholds;
use super::answers::{Answers, Skip};
use super::async_waits::held_by;
use super::line::{how_many_wait, listed};
use super::orphaned::idle_holder;
use crate::analysis::threads::async_chains::is_library;
use crate::analysis::{LockKind, LockModel, LocksReport, Problem, ProblemId, ProblemSeverity, WaitKind, WaitModel};
use crate::base::{Addr, len64, thousands};

/// Longest timeout of a thread that polls an event, in milliseconds.
const LONGEST_POLL: u32 = 60_000;

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
        // A holder that waits for the same lock, as to upgrade it, waits for another holder.
        let others = || holders.iter().filter(|id| !threads.contains(id));
        let Some(first) = others().next().or(holders.first()) else {
            found.extend(unowned(report, lock, answers.thresholds()).map(|queue| finding(answers, report, &queue)));
            continue;
        };
        if count < answers.thresholds().queue {
            continue;
        }
        let blocked = report.waits.iter().find(|w| w.managed_id == Some(*first));
        let why = match blocked {
            Some(wait) => {
                let at = answers.own_method(wait).map(|m| format!(" ({m})")).unwrap_or_default();
                format!(", which is itself blocked: {}{at}", wait.kind)
            }
            None => place(answers, *first),
        };
        let named = |id: &u32| {
            let name = answers.places().ok().and_then(|places| places.of(*id)?.name.as_ref());
            name.map_or_else(|| id.to_string(), |name| format!("{id} {name:?}"))
        };
        let (also, holders): (Vec<&u32>, Vec<&u32>) = holders.iter().partition(|id| *id != first && threads.contains(id));
        let also = if also.is_empty() { String::new() } else { format!("; thread {} holds it too and waits", listed(also)) };
        let word = if holders.len() == 1 { "thread" } else { "threads" };
        let by = listed(holders.into_iter().map(named));
        let title = format!("{} for {}, held by {word} {by}{why}{also}", how_many_wait(count, "thread"), name(lock));
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

/// A queue at an object whose holder is unknown.
pub(super) struct Queue<'l> {
    lock: &'l LockModel,
    /// Managed ids of the threads.
    pub(super) threads: Vec<u32>,
    severity: ProblemSeverity,
    /// The words between `threads wait` and the object: `for`, `to add to`.
    verb: &'static str,
    /// A clause about the object.
    state: String,
}

/// Returns the queues at objects whose holders are unknown.
pub(super) fn all_unowned<'l>(report: &'l LocksReport, least: &Thresholds) -> impl Iterator<Item = Queue<'l>> {
    report.locks.iter().filter(|lock| lock.owner.is_none() && lock.readers.is_empty()).filter_map(|lock| unowned(report, lock, least))
}

/// Returns the queue at `lock`, which no thread is known to hold.
fn unowned<'l>(report: &'l LocksReport, lock: &'l LockModel, least: &Thresholds) -> Option<Queue<'l>> {
    let ids: BTreeSet<u32> = lock.waiters.iter().filter_map(|w| w.managed_id).collect();
    // A thread that waits for one of several handles may need another one.
    let of = |kind| report.waits.iter().filter(move |w| w.kind == kind && w.object == Some(lock.object));
    let waits = |kind| of(kind).filter(|w| w.managed_id.is_some_and(|id| ids.contains(&id))).collect::<Vec<&WaitModel>>();
    let (waits, least, severity, verb, state) = match lock.kind {
        LockKind::WaitHandle if lock.has_unknown_owner() => {
            (waits(WaitKind::WaitHandle), least.queue, ProblemSeverity::Warning, "for", ", whose owner is unknown".into())
        }
        LockKind::Semaphore => {
            let (most, waits) = (u64::try_from(lock.capacity?).ok()?, waits(WaitKind::Semaphore));
            let lasting = len64(waits.iter().filter(|w| lasts(w)).count());
            if lock.count != Some(0) || lasting <= most || lasting < least.waits {
                return None;
            }
            let state = format!(", whose count is 0 of {}; .NET does not record its holders", thousands(most));
            (waits, least.waits, ProblemSeverity::Warning, "for", state)
        }
        LockKind::BlockingCollection => {
            let (most, waits) = (u64::try_from(lock.capacity?).ok()?, waits(WaitKind::BlockingCollection));
            let full = lock.count.is_some_and(|n| u64::try_from(n).is_ok_and(|n| n >= most));
            if !full || waits.iter().any(|w| takes(w)) {
                return None;
            }
            (waits, least.waits, ProblemSeverity::Warning, "to add to", format!(", which is full: {} elements", thousands(most)))
        }
        LockKind::Event => {
            let waits = waits(WaitKind::Event);
            if len64(waits.iter().filter(|w| lasts(w) && !is_of_library(w)).count()) < least.waits {
                return None;
            }
            (waits, least.waits, ProblemSeverity::Info, "for", "; threads that wait for work look the same".into())
        }
        _ => return None,
    };
    let threads: Vec<u32> = waits.iter().filter_map(|w| w.managed_id).collect();
    (len64(threads.len()) >= least).then_some(Queue { lock, threads, severity, verb, state })
}

/// Whether the wait has no timeout, or a long one.
fn lasts(wait: &WaitModel) -> bool {
    wait.timeout_ms.is_none_or(|ms| ms > LONGEST_POLL)
}

/// Whether the thread is known to take elements from a collection.
fn takes(wait: &WaitModel) -> bool {
    wait.method.as_ref().is_some_and(|method| [".Take", ".TryTake"].iter().any(|name| method.contains(name)))
}

/// Whether a library called the method that waits, or if that is unknown.
fn is_of_library(wait: &WaitModel) -> bool {
    wait.method.as_ref().is_none_or(|method| is_library(method))
}

fn finding(answers: &Answers<'_>, report: &LocksReport, queue: &Queue<'_>) -> Problem {
    let Queue { lock, threads, severity, verb, state } = queue;
    let count = len64(threads.len());
    let place = held_by(answers, lock.object).map(|place| format!(" in {place}")).unwrap_or_default();
    let first = threads.first().and_then(|id| report.waits.iter().find(|w| w.managed_id == Some(*id)));
    let method = first.and_then(|wait| answers.own_method(wait));
    let at = method.as_ref().map(|m| format!("; the first is in {m}")).unwrap_or_default();
    let waits = how_many_wait(count, "thread");
    let title = format!("{waits} {verb} {}{place}{state}{at}", name(lock));
    Problem {
        count: Some(count),
        object: Some(lock.object),
        type_name: lock.type_name.clone(),
        method,
        threads: threads.clone(),
        brief: Some(format!("{waits} {verb} one {}{state}", lock.kind)),
        ..answers.finding(ProblemId::LockQueue, *severity, title, &["locks"])
    }
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

/// Names a lock: `the monitor 0x7f… (Lab.Order)`, `the wait-handle "orders" 0x7f… (System.Threading.Mutex)`.
pub(super) fn name(lock: &LockModel) -> String {
    let ty = lock.type_name.as_ref().map(|n| format!(" ({n})")).unwrap_or_default();
    let named = lock.name.as_ref().map(|name| format!(" {name:?}")).unwrap_or_default();
    format!("the {}{named} {}{ty}", lock.kind, lock.object)
}
