//! A thread pool without a free thread.
//!
//! Rule: items wait, every thread of the pool is busy, and either the pool may not add threads or all of them are blocked: critical then,
//! as nothing will go on before one is released.
//!
//! Source: `docs/internals/pool.md`.

use std::collections::BTreeMap;

use super::answers::{Answers, Skip};
use super::line::counted;
use crate::base::{Count, len64};
use crate::model::{Problem, ProblemId, ProblemSeverity};

pub(super) fn find(answers: &Answers<'_>) -> Result<Vec<Problem>, Skip> {
    let pool = answers.pool()?;
    if !pool.starved {
        return Ok(Vec::new());
    }
    let blocked = pool.workers.iter().filter(|w| w.blocked_by.is_some());
    let mut places: BTreeMap<(&str, Option<&str>), u64> = BTreeMap::new();
    for worker in blocked.clone() {
        places.entry((worker.wait.map_or("other", |w| w.name()), worker.method.as_deref())).or_default().bump();
    }
    let most = places.iter().max_by_key(|(_, n)| **n);
    let at = most.map(|((kind, method), n)| {
        let method = method.map(|m| format!(" in {m}")).unwrap_or_default();
        format!(" (most: {n} × {kind}{method})")
    });
    let (all, blocked) = (len64(pool.workers.len()), len64(blocked.count()));
    let severity = if all > 0 && blocked == all { ProblemSeverity::Critical } else { ProblemSeverity::Warning };
    let max = pool.max.map(|n| format!(" of at most {n}")).unwrap_or_default();
    let title = format!(
        "The thread pool is starved: {} for {}{max}, {blocked} of them blocked{}",
        if pool.pending == 1 { "1 item waits".into() } else { format!("{} wait", counted(pool.pending, "item")) },
        counted(all, "thread"),
        at.unwrap_or_default()
    );
    Ok(vec![Problem {
        count: Some(pool.pending),
        method: most.and_then(|((_, method), _)| method.map(str::to_string)),
        threads: pool.workers.iter().filter_map(|w| w.managed_id).collect(),
        ..answers.finding(ProblemId::PoolStarvation, severity, title, &["pool"])
    }])
}
