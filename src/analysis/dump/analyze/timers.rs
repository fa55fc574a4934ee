//! Very many timers, or registrations with cancellation sources.
//!
//! Rule: at least `timers` timers are active, or a source has as many registrations. Each of them keeps its callback, and the objects that the
//! callback refers to, alive. A server with as many requests in progress has as many timers. What timers retain is known if suspects were looked for as
//! well: counting timers does not need the graph of the heap.
//!
//! Source: `docs/internals/pool.md`; `inspect --only registrations`.

use super::answers::{Answers, Skip};
use super::events::{holder, retained, retained_of, retains};
use super::line::{counted, in_units, percent};
use crate::analysis::{InspectionId, Problem, ProblemId, ProblemSeverity};
use crate::base::hash::Map;
use crate::base::{Addr, Count, Name, be, thousands, verb};

/// The prefix of the callback of a cancellation source with a timeout.
const TIMEOUT: &str = "System.Threading.CancellationTokenSource.TimerCallback(";

pub(super) fn timers(answers: &Answers<'_>) -> Result<Vec<Problem>, Skip> {
    let report = answers.timers()?;
    if report.active < answers.thresholds().timers {
        return Ok(Vec::new());
    }
    let mut callbacks: Map<&str, (u64, &Name)> = Map::default();
    let due = report.timers.iter().filter(|t| t.due_ms.is_some());
    due.filter_map(|t| t.callback.as_ref()).for_each(|callback| callbacks.entry(callback.shown()).or_insert((0, callback)).0.bump());
    let most = callbacks.into_values().max_by_key(|(n, name)| (*n, name.shown()));
    let is_timeout = most.is_some_and(|(_, name)| name.shown().starts_with(TIMEOUT));
    let title = match most {
        Some((n, _)) if is_timeout => format!(
            "{} with a timeout {} not disposed of: each keeps its timer and its registered callbacks alive until the timeout is due ({} in all)",
            counted(n, "CancellationTokenSource"),
            if n == 1 { "was" } else { "were" },
            counted(report.active, "active timer")
        ),
        Some((n, name)) => format!("{} {} active, {} of them for {name}", counted(report.active, "timer"), be(report.active), thousands(n)),
        None => format!("{} {} active", counted(report.active, "timer"), be(report.active)),
    };
    let active: Vec<Addr> = report.timers.iter().filter(|t| t.due_ms.is_some()).map(|t| t.object).collect();
    let retained = answers.retained.get().and_then(|answer| retained_of(answers, &active, &answer.as_ref().ok()?.data));
    let title = format!("{title}{}", retains(if is_timeout { "the timers retain" } else { "they retain" }, retained));
    let (bytes, share) = retained.unzip();
    Ok(vec![Problem {
        count: Some(report.active),
        bytes,
        share,
        // The title of timeouts begins with what should have been disposed of.
        brief: retained.filter(|_| !is_timeout).map(|of| format!("{} {}", counted(report.active, "timer"), brief(report.active, of))),
        method: most.map(|(_, name)| name.clone()),
        ..answers.finding(ProblemId::Timers, ProblemSeverity::Warning, title, &["timers"])
    }])
}

/// Returns the end of a line about what `count` things retain.
fn brief(count: u64, (bytes, share): (u64, f64)) -> String {
    format!("{} {} ({})", verb(count, "retain"), in_units(bytes), percent(share))
}

pub(super) fn registrations(answers: &Answers<'_>) -> Result<Vec<Problem>, Skip> {
    let rows = &answers.inspection(InspectionId::Registrations)?.rows;
    let found = rows.iter().filter(|r| r.count >= answers.thresholds().timers).map(|row| {
        let at = row.object.map(|o| format!(" {o}")).unwrap_or_default();
        let held = row.object.and_then(|object| holder(answers, object)).map(|by| format!(", held by {by},")).unwrap_or_default();
        let sources = answers.timers().map(|report| report.cancellations.as_slice()).unwrap_or_default();
        let callbacks = sources.iter().find(|c| Some(c.object) == row.object).and_then(|c| c.callbacks.first());
        let most = callbacks.map(|c| format!(", {} of them for {}", thousands(c.count), c.callback)).unwrap_or_default();
        let retained = row.object.and_then(|object| retained(answers, object));
        let (bytes, share) = retained.unzip();
        let registrations = counted(row.count, "registration");
        let title = format!("The cancellation source{at}{held} has {registrations}{most}{}", retains("it retains", retained));
        Problem {
            count: Some(row.count),
            bytes,
            share,
            brief: retained.map(|of| format!("{registrations} of one cancellation source {}", brief(row.count, of))),
            object: row.object,
            type_name: row.type_name.clone(),
            ..answers.finding(ProblemId::Registrations, ProblemSeverity::Warning, title, &["inspect", "--only", "registrations"])
        }
    });
    Ok(found.collect())
}
