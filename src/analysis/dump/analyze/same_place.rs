//! Many threads at one place.
//!
//! Rule: at least `threads` threads have the same methods on their stacks from the program's innermost method outwards. Threads of other findings are left out:
//! deadlocked and queued threads, threads that wait for tasks, and threads of a starved pool. A program may have as many idle worker threads, so the
//! finding is informational.
//!
//! Source: the stacks that `stacks --merge` folds.

use std::collections::{BTreeMap, BTreeSet};

use super::answers::{Answers, Skip};
use super::line::counted;
use super::lock_queues::{all_unowned, waiting};
use super::places::ThreadPlace;
use crate::analysis::{Problem, ProblemId, ProblemSeverity, WaitKind, WaitModel};
use crate::base::{Count, Name, be, len64};

/// Most findings.
const MAX_FOUND: usize = 3;

pub(super) fn find(answers: &Answers<'_>) -> Result<Vec<Problem>, Skip> {
    let least = answers.thresholds().threads;
    let mut places: BTreeMap<(&Name, u64), Vec<&ThreadPlace>> = BTreeMap::new();
    for thread in &answers.places()?.threads {
        if let Some(place) = thread.own.as_ref().zip(thread.place) {
            places.entry(place).or_default().push(thread);
        }
    }
    places.retain(|_, threads| len64(threads.len()) >= least);
    if places.is_empty() {
        return Ok(Vec::new());
    }
    let (locks, known) = (answers.locks()?, reported(answers)?);
    let waits: BTreeMap<u32, &WaitModel> = locks.waits.iter().filter_map(|w| Some((w.managed_id?, w))).collect();
    let mut found = Vec::new();
    for ((method, _), mut threads) in places {
        threads.retain(|t| t.managed_id.is_none_or(|id| !known.contains(&id)));
        let count = len64(threads.len());
        if count < least {
            continue;
        }
        let ids: Vec<u32> = threads.iter().filter_map(|t| t.managed_id).collect();
        let mut kinds: BTreeMap<&str, u64> = BTreeMap::new();
        ids.iter().for_each(|id| kinds.entry(waits.get(id).map_or("not blocked", |w| w.kind.name())).or_default().bump());
        let most = kinds.into_iter().max_by_key(|(_, n)| *n).map(|(kind, _)| match kind {
            "not blocked" => " (not blocked)".into(),
            kind => format!(" (blocked: {kind})"),
        });
        let name = threads.iter().find_map(|t| t.name.as_ref()).map(|name| format!(", such as {name:?}")).unwrap_or_default();
        let title = format!("{} {} at the same place in {method}{}{name}", counted(count, "thread"), be(count), most.unwrap_or_default());
        let command = ["stacks", "--merge"];
        let problem = answers.finding(ProblemId::SamePlace, ProblemSeverity::Info, title, &command);
        found.push(Problem { count: Some(count), method: Some(method.clone()), threads: ids, ..problem });
    }
    found.sort_by_key(|p| std::cmp::Reverse(p.count));
    found.truncate(MAX_FOUND);
    Ok(found)
}

/// Returns the managed ids of the threads that other findings already report.
fn reported(answers: &Answers<'_>) -> Result<BTreeSet<u32>, Skip> {
    let report = answers.locks()?;
    let dead = report.deadlocks.iter().flat_map(|d| d.threads.iter().chain(&d.victims)).copied();
    let mut threads: BTreeSet<u32> = dead.collect();
    let owned = report.locks.iter().filter(|l| l.owner.is_some() || !l.readers.is_empty());
    threads.extend(owned.flat_map(|lock| waiting(report, lock)));
    threads.extend(all_unowned(report, answers.thresholds()).flat_map(|queue| queue.threads));
    let for_tasks: Vec<u32> = report.waits.iter().filter(|w| w.kind == WaitKind::Task).filter_map(|w| w.managed_id).collect();
    if len64(for_tasks.len()) >= answers.thresholds().waits {
        threads.extend(for_tasks);
    }
    if let Some(pool) = answers.pool().ok().filter(|pool| pool.starved) {
        threads.extend(pool.workers.iter().filter_map(|w| w.managed_id));
    }
    Ok(threads)
}
