//! `analyze`: the findings of a dump, most important first. Each kind of finding has a file with its rule.
//!
//! The rules use the answers of other analyses, each of which runs at most once ([`Answers`]), and pick the results that are worth a line.
//! Thresholds ([`Thresholds`]) are absolute and relative, because neither a small heap nor a small part of a large one is a problem.

mod answers;
mod async_waits;
mod clause;
mod collecting;
mod connection_pools;
mod crash;
mod damage;
mod deadlocks;
mod dynamic;
mod events;
mod exceptions;
mod finalizer;
mod fragmentation;
mod free_regions;
mod garbage;
mod growth;
mod handles;
#[cfg(test)]
mod incomplete_tests;
mod line;
mod load_contexts;
mod lock_queues;
mod missing;
mod native;
mod nested;
mod oom;
mod orphaned;
mod places;
mod report;
mod requests;
mod same_place;
mod starvation;
mod suspects;
mod sync_over_async;
#[cfg(test)]
mod tests;
mod timers;
mod triage;
mod waste;

pub use report::*;

use std::cmp::Reverse;

use crate::analysis::SUSPECT_SHARE;
use crate::analysis::Trend;
use crate::base::{Answer, Missing, Name};
use crate::session::{GraphSource, Runtime};
pub(in crate::analysis) use answers::{Answers, Skip};
pub(crate) use line::{command_line, shell_line};
pub(in crate::analysis) use native::{NATIVE, bytes_of};

/// The limits at which a problem becomes a finding.
#[derive(Clone, Copy, Debug)]
pub struct Thresholds {
    /// Fewest bytes that are free, wasted or retained. Fewer bytes are not a problem, whatever their share.
    pub bytes: u64,
    /// Smallest growth of a container's retained size since an earlier dump, in bytes.
    pub gain: u64,
    /// Smallest growth of a container's retained size, as a share (0 to 1) of the bytes of the earlier heap.
    pub growth: f64,
    /// Smallest share (0 to 1) of the reachable bytes that a suspect retains.
    pub share: f64,
    /// Smallest share (0 to 1) of the allocated bytes that are wasted, such as by equal strings or sparse arrays.
    pub waste: f64,
    /// Smallest share (0 to 1) of the allocated bytes that are free.
    pub free: f64,
    /// Fewest threads that wait for one lock that another thread holds.
    pub queue: u64,
    /// Fewest objects ready for finalization while the finalizer thread is not blocked.
    pub ready: u64,
    /// Fewest handlers of one event whose targets nothing else holds.
    pub handlers: u64,
    /// Fewest active timers, or registrations of one cancellation source.
    pub timers: u64,
    /// Fewest GC handles.
    pub handles: u64,
    /// Fewest incoming HTTP requests that are stuck.
    pub requests: u64,
    /// Fewest chains of asynchronous methods, or threads, that wait for one object without an owner.
    pub waits: u64,
    /// Fewest threads at the same place in the code.
    pub threads: u64,
    /// Fewest connection pools of `HttpClient` for one server.
    pub pools: u64,
    /// Fewest exceptions of one type that one method has thrown, or faulted tasks with an unobserved exception.
    pub exceptions: u64,
    /// Smallest share (0 to 1) of the objects' bytes that are garbage outside of gen0.
    pub garbage: f64,
    /// Fewest assemblies without a file.
    pub dynamic: u64,
}

impl Default for Thresholds {
    /// Rules of thumb:
    ///
    /// * 1 MiB: a .NET process starts with more than that, so that a smaller saving does not matter.
    /// * 64 KiB and a twentieth of the heap more than before: an idle process gains less, from lazy loading and caching.
    /// * A fifth of the reachable bytes: Eclipse MAT's default for leak suspects.
    /// * A tenth of the heap: the size of a heap varies by more than that.
    /// * A quarter free: the GC leaves less unless something keeps it from compacting, or garbage was just swept.
    /// * 3 waiters: two threads meet at a lock by chance; a queue that is forming soon has three.
    /// * 10,000 objects ready: the finalizer thread finalizes more than that in a tenth of a second.
    /// * 100 handlers: an event with more is meant for many subscribers, or subscribers are never removed.
    /// * 1,000 timers or registrations: most servers have fewer requests in progress.
    /// * 10,000 handles: the runtime itself uses some hundreds, and the GC visits each handle.
    /// * 3 requests: a single request that takes long may be a report or an upload.
    /// * 10 chains: an idle program has fewer loops that wait for one event, such as the end of the process.
    /// * 25 threads at one place: more than the worker threads of most programs.
    /// * 20 connection pools for one server: `IHttpClientFactory` keeps a handler for some minutes, one for each client name.
    /// * 100 exceptions of a kind: they soon become garbage, and a program that fails now and then has only a few.
    /// * Half of the objects' bytes outside of gen0: a generation doubles before the GC collects it again.
    /// * 100 assemblies without a file: serializers, proxies and expressions of a program create some dozens.
    fn default() -> Thresholds {
        Thresholds {
            bytes: 1 << 20,
            gain: 64 << 10,
            growth: 0.05,
            share: 0.2,
            waste: 0.1,
            free: 0.25,
            queue: 3,
            ready: 10_000,
            handlers: 100,
            timers: 1_000,
            handles: 10_000,
            requests: 3,
            waits: 10,
            threads: 25,
            pools: 20,
            exceptions: 100,
            garbage: 0.5,
            dynamic: 100,
        }
    }
}

/// Options of [`analyze`].
#[derive(Clone, Debug)]
pub struct AnalyzeQuery {
    /// Only these findings; all if empty.
    pub only: Vec<ProblemId>,
    /// Whether to build the graph of the heap, which some findings need, such as suspects and garbage.
    pub graph: bool,
    /// The limits at which a problem becomes a finding.
    pub thresholds: Thresholds,
    /// Options that the suggested command lines repeat, such as `--modules` with its folder.
    pub options: Vec<String>,
}

impl Default for AnalyzeQuery {
    /// Everything, with the usual thresholds.
    fn default() -> AnalyzeQuery {
        AnalyzeQuery { only: Vec::new(), graph: true, thresholds: Thresholds::default(), options: Vec::new() }
    }
}

/// Finds the problems of the process, and its growth since the earlier dumps `before`, which are in the order of time. Problems that cannot be
/// determined are listed with the reason, and make the answer partial.
pub fn analyze(runtime: &Runtime, before: &[&dyn GraphSource], query: &AnalyzeQuery) -> Answer<AnalyzeReport> {
    let notes = runtime.begin();
    let answers = Answers::new(runtime, before, query, &notes);
    let report = findings(&answers);
    drop(answers);
    notes.finish(report)
}

/// Applies all requested rules to `answers`.
pub(in crate::analysis) fn findings(answers: &Answers<'_>) -> AnalyzeReport {
    let query = answers.query;
    let mut report = AnalyzeReport {
        findings: Vec::new(),
        below: Vec::new(),
        inspected: Vec::new(),
        uncertain: Vec::new(),
        skipped: Vec::new(),
        trends: Vec::new(),
        triage: Vec::new(),
        inspected_in_part: Vec::new(),
        since: answers.before.iter().map(|before| before.facts().path.clone()).collect(),
    };
    let usual = |id: ProblemId| query.only.is_empty() && (id != ProblemId::Growth || !answers.before.is_empty());
    for id in ProblemId::ALL.into_iter().filter(|id| usual(*id) || query.only.contains(id)) {
        answers.take_loss();
        if collecting::doubts(id) && collecting::moving(answers) {
            answers.notes.add(Missing::Answer, None, format!("objects are not inspected: {}", collecting::DOUBTED));
            report.skipped.push(SkippedProblem { id, reason: collecting::DOUBTED.into(), needs: None });
            continue;
        }
        match find(id, answers, &query.thresholds) {
            Ok(found) => {
                report.below.extend(below(id, answers, &found));
                match answers.take_loss() {
                    Some(reason) if found.is_empty() => report.uncertain.push(SkippedProblem { id, reason, needs: None }),
                    Some(_) => report.inspected_in_part.push(id),
                    None => {}
                }
                report.findings.extend(found.into_iter().map(|f| Problem { display: f.method.as_ref().map(Name::display), ..f }));
                report.inspected.push(id);
            }
            Err(Skip { reason, needs }) => report.skipped.push(SkippedProblem { id, reason, needs }),
        }
    }
    let events: Vec<Problem> =
        report.findings.iter().filter(|f| matches!(f.id, ProblemId::EventLeaks | ProblemId::Registrations)).cloned().collect();
    let explained = |f: &Problem| f.id == ProblemId::Suspects && events.iter().any(|event| events::explains(answers, event, f));
    report.findings.retain(|f| !explained(f));
    report.below.sort_by_key(|b| (Reverse(b.problem.bytes), b.problem.id, b.problem.object));
    report.findings.sort_by_key(|f| {
        // Growth keeps the order of `diff`: first the holders that gather objects of the program's own types.
        let numbers = (f.id != ProblemId::Growth).then_some((Reverse(f.bytes), f.id, Reverse(f.count), f.object));
        (f.severity, rank(f.id), numbers)
    });
    if answers.before.len() > 1
        && let Ok(diff) = answers.diff()
    {
        report.trends = diff.summary.iter().filter(|m| m.trend.is_some_and(|t| t != Trend::Steady)).cloned().collect();
    }
    report.triage = triage::triage(answers, &report);
    report
}

/// Returns problems below a threshold that are not in `found`. In a small heap, even a large share is below an absolute threshold.
fn below(id: ProblemId, answers: &Answers<'_>, found: &[Problem]) -> Vec<BelowThreshold> {
    let usual = answers.thresholds();
    let share = match id {
        ProblemId::Suspects => usual.share.min(SUSPECT_SHARE),
        // Every process has some native memory, garbage and free regions.
        ProblemId::Garbage | ProblemId::FreeRegions | ProblemId::NativeMemory => return Vec::new(),
        _ if rank(id) == ProblemId::Fragmentation => usual.share,
        _ => return Vec::new(),
    };
    // A dump without a heap has only a few objects, whose shares say nothing.
    if answers.heap().is_ok_and(|heap| heap.no_heap().is_some()) {
        return Vec::new();
    }
    // Missing parts were already reported for the finding.
    let all = find(id, answers, &Thresholds { bytes: 1, share, ..*usual }).unwrap_or_default();
    let is_new = |p: &Problem| !found.iter().any(|f| (f.object, &f.type_name) == (p.object, &p.type_name));
    let below = all.into_iter().filter(is_new).map(|problem| BelowThreshold {
        least_bytes: problem.bytes.is_none_or(|n| n < usual.bytes).then_some(usual.bytes),
        least_share: (id == ProblemId::Suspects && problem.share.is_none_or(|n| n < usual.share)).then_some(usual.share),
        problem,
    });
    below.collect()
}

fn find(id: ProblemId, answers: &Answers<'_>, least: &Thresholds) -> Result<Vec<Problem>, Skip> {
    match id {
        ProblemId::Crash => crash::find(answers),
        ProblemId::Oom => oom::find(answers),
        ProblemId::GcInProgress => collecting::find(answers),
        ProblemId::Damage => damage::find(answers),
        ProblemId::Deadlock => deadlocks::find(answers),
        ProblemId::OrphanedLock => orphaned::find(answers),
        ProblemId::StuckFinalizer => finalizer::find(answers),
        ProblemId::PoolStarvation => starvation::find(answers),
        ProblemId::LockQueue => lock_queues::find(answers),
        ProblemId::SyncOverAsync => sync_over_async::find(answers),
        ProblemId::Requests => requests::find(answers),
        ProblemId::AsyncWaits => async_waits::find(answers),
        ProblemId::SamePlace => same_place::find(answers),
        ProblemId::ConnectionPools => connection_pools::find(answers),
        ProblemId::UnobservedExceptions => exceptions::unobserved(answers),
        ProblemId::Exceptions => exceptions::thrown(answers),
        ProblemId::Growth => growth::find(answers),
        ProblemId::Fragmentation => fragmentation::find(answers, least),
        ProblemId::Garbage => garbage::find(answers, least),
        ProblemId::FreeRegions => free_regions::find(answers, least),
        ProblemId::NativeMemory => native::find(answers, least),
        ProblemId::Suspects => suspects::find(answers, least),
        ProblemId::EventLeaks => events::find(answers),
        ProblemId::Timers => timers::timers(answers),
        ProblemId::Registrations => timers::registrations(answers),
        ProblemId::LoadContexts => load_contexts::find(answers),
        ProblemId::DynamicAssemblies => dynamic::find(answers),
        ProblemId::Handles => handles::find(answers),
        ProblemId::MissingParts => missing::find(answers),
        ProblemId::EqualStrings
        | ProblemId::SparseArrays
        | ProblemId::OversizedCollections
        | ProblemId::EmptyCollections
        | ProblemId::EqualArrays
        | ProblemId::ZeroArrays
        | ProblemId::ZeroTails => waste::find(answers, least, id),
    }
}

/// The sort key of a kind among findings of one severity. Memory findings sort together, most bytes first.
fn rank(id: ProblemId) -> ProblemId {
    match id {
        ProblemId::Garbage
        | ProblemId::FreeRegions
        | ProblemId::NativeMemory
        | ProblemId::Suspects
        | ProblemId::EventLeaks
        | ProblemId::Registrations
        | ProblemId::EqualStrings
        | ProblemId::SparseArrays
        | ProblemId::OversizedCollections
        | ProblemId::EmptyCollections
        | ProblemId::EqualArrays
        | ProblemId::ZeroArrays
        | ProblemId::ZeroTails => ProblemId::Fragmentation,
        id => id,
    }
}
