//! Common complaints: a crash, a hang, memory. For each, the answer names its finding, or the next command to run.
//!
//! Only answers that the findings have already computed are used, so these lines cost nothing.

use std::collections::BTreeMap;

use super::answers::{Answers, Cached, Received};
use super::clause::beginning;
use super::line::{command_line, counted, in_units};
use super::native::{NATIVE, bytes_of};
use super::places::ThreadPlace;
use crate::analysis::{AnalyzeReport, Complaint, ProblemId, RequestDirection, RequestModel, RuleNeed, TimerModel, Triage};
use crate::base::{Count, Name, be, len64, thousands, verb};

/// Most characters of a text. The complaint and the text fit a line of 80 columns.
pub(super) const MAX_TEXT: usize = 71;
/// Milliseconds of delay after which a late timer is reported.
const LATE_MS: i64 = 1_000;
/// Fewest characters of a text before a command.
const LEAST_TEXT: usize = 20;

pub(super) fn triage(answers: &Answers<'_>, report: &AnalyzeReport) -> Vec<Triage> {
    let row = |complaint: Complaint| {
        let found = report.findings.iter().enumerate().find(|(_, f)| f.complaint() == Some(complaint));
        if let Some((index, finding)) = found {
            let is_long = finding.title.chars().nth(MAX_TEXT).is_some();
            let text = finding.brief.as_ref().filter(|_| is_long).unwrap_or(&finding.title);
            let (text, command) = (beginning(text, MAX_TEXT), finding.command.clone());
            return Triage { complaint, found: u64::try_from(index).ok(), text, command, short_command: String::new() };
        }
        let (text, words) = next(complaint, answers, report);
        let short_command = command_line(words.iter().copied(), "DUMP");
        let text = beginning(&text, MAX_TEXT.saturating_sub(short_command.len().saturating_add(2)).max(LEAST_TEXT));
        Triage { complaint, found: None, text, command: answers.command_line(words), short_command }
    };
    Complaint::ALL.into_iter().map(row).collect()
}

/// Returns the text for a complaint without a finding, and the next command.
fn next(complaint: Complaint, answers: &Answers<'_>, report: &AnalyzeReport) -> (String, &'static [&'static str]) {
    let (main, all): (ProblemId, &'static [&'static str]) = match complaint {
        Complaint::Crash => (ProblemId::Crash, &["info"]),
        Complaint::Hang if answers.runtime.thread_list().is_err() => (ProblemId::Deadlock, &["info"]),
        Complaint::Hang => (ProblemId::Deadlock, &["threads"]),
        Complaint::Memory => (ProblemId::Suspects, &["memory"]),
    };
    if let Some(skipped) = report.skipped.iter().find(|s| s.id == main && s.needs != Some(RuleNeed::Graph)) {
        return (format!("unknown: {}", skipped.reason), all);
    }
    let only = &answers.query.only;
    if !only.is_empty() && !only.contains(&main) {
        return ("not inspected".into(), &["analyze"]);
    }
    let heap = got(&answers.heap).is_some_and(|heap| heap.no_heap().is_none());
    match complaint {
        Complaint::Crash => crash(answers, report, heap),
        Complaint::Hang => hang(answers, report, heap),
        Complaint::Memory => memory(answers, report, heap),
    }
}

/// Whether a check found nothing, but its answer is partial or missing.
fn is_unsure(report: &AnalyzeReport, id: ProblemId) -> bool {
    report.uncertain.iter().chain(&report.skipped).any(|check| check.id == id)
}

fn crash(answers: &Answers<'_>, report: &AnalyzeReport, heap: bool) -> (String, &'static [&'static str]) {
    let found = |id: ProblemId| report.findings.iter().find(|f| f.id == id);
    if let Some(finding) = found(ProblemId::UnobservedExceptions) {
        let tasks = counted(finding.count.unwrap_or_default(), "faulted task");
        return (format!("no crash recorded; {tasks}"), &["async", "--faulted"]);
    }
    if let Some(finding) = found(ProblemId::Exceptions) {
        let name = finding.type_name.as_ref().map_or("exceptions", Name::shown).rsplit('.').next().unwrap_or_default();
        let count = thousands(finding.count.unwrap_or_default());
        return (format!("no crash recorded; {count} × {name}"), &["exceptions", "--stat"]);
    }
    let threads = got(&answers.threads).map(|t| t.threads.as_slice()).unwrap_or_default();
    let thrown = threads.iter().filter(|t| t.exception.as_ref().is_some_and(|e| e.current)).count();
    match len64(thrown) {
        0 if is_unsure(report, ProblemId::Exceptions) => ("no crash recorded; exceptions are known in part".into(), &["exceptions"]),
        0 if heap => ("no crash recorded".into(), &["exceptions"]),
        0 => ("no crash recorded".into(), &["info"]),
        n => (format!("no crash recorded; {} in flight", counted(n, "exception")), &["threads"]),
    }
}

fn hang(answers: &Answers<'_>, report: &AnalyzeReport, heap: bool) -> (String, &'static [&'static str]) {
    let unsure = is_unsure(report, ProblemId::Deadlock) || is_unsure(report, ProblemId::LockQueue);
    let none = if unsure { "deadlocks are known in part" } else { "no deadlock or lock queue" };
    let pending = got(&answers.chains).map_or(0, |c| c.totals.methods);
    let waits = got(&answers.locks).map(|l| l.waits.as_slice()).unwrap_or_default();
    let runs = |t: &&ThreadPlace| t.in_method && t.own.is_some() && !waits.iter().any(|w| w.managed_id == t.managed_id);
    let running: Vec<&ThreadPlace> = got(&answers.places).map(|p| p.threads.iter().filter(runs).collect()).unwrap_or_default();
    if let Some(own) = running.first().and_then(|t| t.own.as_ref()) {
        return (format!("{} in {}", is_running(len64(running.len())), short(own.shown())), &["stacks", "--merge"]);
    }
    if let Some(late) = late_timers(answers) {
        return late;
    }
    let http = got(&answers.http).map(|http| http.requests.as_slice()).unwrap_or_default();
    let out = len64(http.iter().filter(|r| r.direction == RequestDirection::Outgoing).count());
    match (out, pending, len64(waits.len())) {
        (0, 0, 0) if answers.runtime.thread_list().is_err() => ("unknown: the threads cannot be read".into(), &["info"]),
        (0, 0, 0) if !answers.runtime.descriptor().has_code_tables() => (none.into(), &["threads"]),
        (0, 0, 0) if unsure => (none.into(), &["locks"]),
        (0, 0, 0) if heap => ("no deadlock, lock queue or blocked thread".into(), &["stacks", "--merge"]),
        (0, 0, 0) => (none.into(), &["stacks", "--merge"]),
        (0, 0, n) => (format!("{none}; {}", counted(n, "blocked thread")), &["locks"]),
        (0, 1, _) => (format!("{none}; 1 async method waits"), &["async"]),
        (0, n, _) => (format!("{none}; {} async methods wait", thousands(n)), &["async"]),
        (n, ..) => (format!("{}{}", counted(n, "HTTP request"), host(http)), &["requests"]),
    }
}

/// Returns a text about timers that were due long ago, and the command that lists them.
pub(super) fn late_timers(answers: &Answers<'_>) -> Option<(String, &'static [&'static str])> {
    let report = got(&answers.timers)?;
    let is_late = |t: &&TimerModel| t.late && t.due_in_ms.is_some_and(|ms| ms <= -LATE_MS);
    let most = report.timers.iter().filter(is_late).filter_map(|t| t.due_in_ms).min()?;
    let late = len64(report.timers.iter().filter(is_late).count());
    let seconds = most.unsigned_abs() / 1000;
    let most = if late == 1 { format!("{seconds} s") } else { format!("up to {seconds} s") };
    Some((format!("{} {} late by {most}", counted(late, "timer"), be(late)), &["timers"]))
}

/// Shortens the name of a method: `Program.Fetch` for `Lab.Program.Fetch(System.String)`.
fn short(method: &str) -> String {
    let name = method.split(['(', '<', '[']).next().unwrap_or_default();
    let mut parts: Vec<&str> = name.rsplitn(3, '.').take(2).collect();
    parts.reverse();
    parts.join(".")
}

/// Returns a clause with the server of most outgoing requests.
fn host(requests: &[RequestModel]) -> String {
    let mut hosts: BTreeMap<&str, u64> = BTreeMap::new();
    let uris = requests.iter().filter(|r| r.direction == RequestDirection::Outgoing).filter_map(|r| r.uri.as_deref());
    for uri in uris {
        let Some((_, rest)) = uri.split_once("://") else { continue };
        hosts.entry(rest.split(['/', '?', '#']).next().unwrap_or_default()).or_default().bump();
    }
    let most = hosts.into_iter().max_by_key(|(_, n)| *n);
    most.map(|(host, _)| format!(" to {host}")).unwrap_or_default()
}

/// `1 thread runs`, `2 threads run`.
fn is_running(n: u64) -> String {
    format!("{} {}", counted(n, "thread"), verb(n, "run"))
}

fn memory(answers: &Answers<'_>, report: &AnalyzeReport, heap: bool) -> (String, &'static [&'static str]) {
    if !heap {
        return ("objects are not in the dump".into(), &["memory"]);
    }
    // The committed bytes are known even if most of the heap's memory is not in the dump.
    let Ok(generations) = answers.generations() else { return ("the size of the heap is unknown".into(), &["memory"]) };
    let heap = generations.totals.committed;
    if is_unsure(report, ProblemId::NativeMemory) {
        return (format!("GC heap {}, native unknown", in_units(heap)), &["memory"]);
    }
    let native = got(&answers.memory).map_or(0, |memory| bytes_of(memory, &NATIVE));
    let text = format!("GC heap {}, native {}", in_units(heap), in_units(native));
    (text, if native > heap.saturating_mul(2) { &["memory"] } else { &["stat"] })
}

/// An answer that a finding has already computed.
fn got<T>(cell: &Cached<T>) -> Option<&T> {
    cell.get().and_then(|answer| answer.as_ref().ok()).map(|Received { data, .. }| data)
}
