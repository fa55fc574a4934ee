//! Threads that are blocked until asynchronous methods have ended.
//!
//! Rule: at least `waits` threads are in `Task.Wait`, `Task.Result` or a similar method, outside of deadlocks, and the thread pool is not starved.
//! The finding names the most common object that the tasks wait for.
//!
//! Source: the waits that `locks` shows, and the chains of `async`.

use std::collections::{BTreeMap, BTreeSet};

use super::answers::{Answers, Skip};
use super::async_waits::{clause, most_common, roots_of_threads};
use super::line::counted;
use super::requests::served;
use crate::analysis::{Problem, ProblemId, ProblemSeverity, WaitKind, WaitModel};
use crate::base::{Count, Name, be, len64, thousands};

pub(super) fn find(answers: &Answers<'_>) -> Result<Vec<Problem>, Skip> {
    let blocked = blocked(answers)?;
    if len64(blocked.len()) < answers.thresholds().waits || answers.pool().is_ok_and(|pool| pool.starved) {
        return Ok(Vec::new());
    }
    // The waiting method, and the asynchronous method that it waits for.
    let mut places: BTreeMap<(Option<Name>, Option<&Name>), u64> = BTreeMap::new();
    blocked.iter().for_each(|wait| places.entry((answers.own_method(wait), task(wait))).or_default().bump());
    let most = places.into_iter().max_by_key(|(_, n)| *n);
    let at = most.as_ref().map(|((method, task), n)| {
        let within = method.as_ref().map(|m| format!(" in {m}")).unwrap_or_default();
        let of = task.map(|task| format!(" for {task}")).unwrap_or_default();
        format!(": {}{within}{of}", if *n == len64(blocked.len()) { "all".into() } else { thousands(*n) })
    });
    // The most common root of the chains that these threads wait for.
    let roots = roots_of_threads(answers);
    let ids: Vec<u32> = blocked.iter().filter_map(|w| w.managed_id).collect();
    let on = most_common(ids.iter().filter_map(|id| roots?.get(id)));
    let on = on.map(|root| format!("; the innermost method {}", clause(root, answers)));
    let count = len64(blocked.len());
    let (at, on) = (at.unwrap_or_default(), on.unwrap_or_default());
    let title = format!("{} {} blocked until tasks are complete{at}{on}{}", counted(count, "thread"), be(count), served(answers, &ids));
    Ok(vec![Problem {
        count: Some(count),
        object: blocked.first().and_then(|w| w.object),
        type_name: blocked.first().and_then(|w| w.type_name.clone()),
        method: most.and_then(|((method, _), _)| method),
        threads: ids,
        ..answers.finding(ProblemId::SyncOverAsync, ProblemSeverity::Warning, title, &["locks"])
    }])
}

/// The threads that wait for tasks, without those in a deadlock.
fn blocked<'a>(answers: &'a Answers<'_>) -> Result<Vec<&'a WaitModel>, Skip> {
    let report = answers.locks()?;
    let dead: BTreeSet<u32> = report.deadlocks.iter().flat_map(|d| d.threads.iter().chain(&d.victims)).copied().collect();
    let waits = report.waits.iter().filter(|w| w.kind == WaitKind::Task && !w.managed_id.is_some_and(|id| dead.contains(&id)));
    Ok(waits.collect())
}

/// The asynchronous method whose task a thread waits for.
pub(super) fn task(wait: &WaitModel) -> Option<&Name> {
    wait.type_name.as_ref().filter(|name| name.shown() != name.as_str())
}

impl Answers<'_> {
    /// The innermost method of the program on the stack of a blocked thread, or else the method that waits.
    pub(super) fn own_method(&self, wait: &WaitModel) -> Option<Name> {
        let place = self.places().ok().and_then(|p| p.of(wait.managed_id?));
        place.and_then(|place| place.own.clone()).or_else(|| wait.method.clone())
    }
}
