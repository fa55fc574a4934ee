//! Threads that wait for each other.
//!
//! Rule: threads wait in a cycle, each for a lock that the next thread holds, or for a task or class constructor that it runs, or that only its
//! `SynchronizationContext` or `TaskScheduler` would run: then a thread may wait for itself. The finding is critical if each wait is certain and is known to have no timeout.
//!
//! Source: `docs/internals/locks.md`.

use super::answers::{Answers, Skip};
use super::line::{counted, listed};
use super::requests::served;
use crate::analysis::{Problem, ProblemId, ProblemSeverity, WaitEdge, WaitEdgeKind};
use crate::base::{Name, len64, verb};

/// Waits named in the title.
const MAX_EDGES: usize = 4;

pub(super) fn find(answers: &Answers<'_>) -> Result<Vec<Problem>, Skip> {
    let found = answers.locks()?.deadlocks.iter().map(|d| {
        let severity = if d.possible { ProblemSeverity::Warning } else { ProblemSeverity::Critical };
        let waits = match (d.threads.as_slice(), d.possible) {
            ([_], true) => "hread {} may wait for itself",
            ([_], false) => "hread {} waits for itself",
            (_, true) => "hreads {} may wait for each other",
            (_, false) => "hreads {} wait for each other",
        };
        let waits = waits.replace("{}", &listed(&d.threads));
        let edge = |e: &WaitEdge| {
            let name = e.type_name.as_ref().map(|n| format!("{n} ")).unwrap_or_default();
            if e.kind == WaitEdgeKind::ClassConstructor {
                return format!("{} for the class constructor of {name}that {} runs", e.from, e.to);
            }
            if e.kind == WaitEdgeKind::Context {
                let context = e.context_type.as_ref().map_or("context", Name::shown);
                return format!("{} for {name}{}, which waits to run on the {context} of {}", e.from, e.object, e.to);
            }
            format!("{} for {name}{} of {}", e.from, e.object, e.to)
        };
        let edges: Vec<String> = d.edges.iter().take(MAX_EDGES).map(edge).collect();
        let more = if d.edges.len() > MAX_EDGES { ", …" } else { "" };
        let victims = match len64(d.victims.len()) {
            0 => String::new(),
            n => format!("; {} {} for them", counted(n, "other thread"), verb(n, "wait")),
        };
        // A class whose constructor does not return blocks every other thread that needs the class.
        let constructor = d.edges.iter().find(|e| e.kind == WaitEdgeKind::ClassConstructor).and_then(|e| e.type_name.as_ref());
        let of = constructor.map_or_else(
            || "T".into(),
            |name| {
                let stopped = len64(d.threads.len()).saturating_add(len64(d.victims.len()));
                format!("Deadlock of the static constructor {name}..cctor, {}: t", counted(stopped, "thread"))
            },
        );
        let title = format!("{of}{waits}: {}{more}{victims}", edges.join(", ")) + &served(answers, &d.threads);
        let own = match (d.threads.as_slice(), d.edges.first().and_then(|e| e.context_type.as_ref())) {
            ([thread], Some(context)) => Some((thread, context)),
            _ => None,
        };
        Problem {
            count: Some(len64(d.threads.len())),
            object: d.edges.first().map(|e| e.object),
            type_name: d.edges.first().and_then(|e| e.type_name.clone()),
            threads: d.threads.clone(),
            brief: own.map(|(thread, context)| {
                let waits = if d.possible { "may wait" } else { "waits" };
                format!("Thread {thread} {waits} for what its own {context} would have to run")
            }),
            ..answers.finding(ProblemId::Deadlock, severity, title, &["locks"])
        }
    });
    Ok(found.collect())
}
