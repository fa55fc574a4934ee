//! A thread pool without a free thread.
//!
//! Rule: items wait, every thread of the pool is busy, and either the pool may not add threads or all of its threads are blocked. It is critical if
//! all threads are blocked, because no item runs before a thread is released.
//!
//! Source: `docs/internals/pool.md`.

use std::collections::BTreeMap;

use super::answers::{Answers, Skip};
use super::async_waits::{clause, most_common, roots_of_threads};
use super::line::{counted, how_many_wait};
use super::requests::served;
use crate::analysis::{AsyncRoot, AsyncRootKind, Problem, ProblemId, ProblemSeverity, WaitKind};
use crate::base::{Count, Name, be, len64};

/// Kind and description of a wait, and what its task waits for.
type Place<'a> = (&'a str, String, Option<(AsyncRootKind, &'a Name)>);

pub(super) fn find(answers: &Answers<'_>) -> Result<Vec<Problem>, Skip> {
    let pool = answers.pool()?;
    if !pool.starved {
        return Ok(Vec::new());
    }
    let blocked = pool.workers.iter().filter(|w| w.blocked_by.is_some());
    // By kind and description of the wait, and by what a task waits for: the number of threads, the method of one of them, and the roots. For a task,
    // its asynchronous method is more helpful than the method that waits, which may have been generated at run time.
    let roots = roots_of_threads(answers);
    let mut places: BTreeMap<Place<'_>, (u64, Option<&Name>, Vec<&AsyncRoot>)> = BTreeMap::new();
    for worker in blocked.clone() {
        let task = worker.type_name.as_ref().filter(|name| worker.wait == Some(WaitKind::Task) && name.shown() != name.as_str());
        let root = worker.managed_id.and_then(|id| roots?.get(&id)).filter(|_| task.is_some());
        let what = match (task, &worker.method) {
            (Some(task), _) => format!(" {task}"),
            (None, Some(method)) => format!(" in {method}"),
            (None, None) => String::new(),
        };
        let key = (worker.wait.map_or("other", WaitKind::name), what, root.map(|root| (root.kind, &root.label)));
        let (count, _, of) = places.entry(key).or_insert_with(|| (0, worker.method.as_ref(), Vec::new()));
        count.bump();
        of.extend(root);
    }
    let most = places.iter().max_by_key(|(_, (n, _, _))| *n);
    let at = most.map(|((kind, what, _), (n, _, of))| {
        let root = most_common(of.iter().copied()).map(|root| format!(", which {}", clause(root, answers))).unwrap_or_default();
        format!(" (most: {n} × {kind}{what}{root})")
    });
    let (all, blocked) = (len64(pool.workers.len()), len64(blocked.count()));
    let severity = if all > 0 && blocked == all { ProblemSeverity::Critical } else { ProblemSeverity::Warning };
    let max = pool.max.map(|n| format!(" of at most {n}")).unwrap_or_default();
    let threads: Vec<u32> = pool.workers.iter().filter_map(|w| w.managed_id).collect();
    let title = format!(
        "The thread pool is starved: {} for {}{max}, {blocked} of them blocked{}{}{}",
        how_many_wait(pool.pending, "item"),
        counted(all, "thread"),
        at.unwrap_or_default(),
        served(answers, &threads),
        late_timers(answers)
    );
    Ok(vec![Problem {
        count: Some(pool.pending),
        method: most.and_then(|(_, (_, method, _))| method.cloned()),
        threads,
        ..answers.finding(ProblemId::PoolStarvation, severity, title, &["pool"])
    }])
}

/// Returns a clause about timers whose callbacks are delayed: `; 14 timers are held up`.
fn late_timers(answers: &Answers<'_>) -> String {
    let late = answers.timers().map(|timers| timers.held_up.max(timers.late)).unwrap_or_default();
    if late == 0 { String::new() } else { format!("; {} {} held up", counted(late, "timer"), be(late)) }
}
