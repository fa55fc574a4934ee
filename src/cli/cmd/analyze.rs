//! `analyze`: arguments with the thresholds of its findings, and the findings that fail a build.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use super::super::args::{DumpArg, size};
use super::super::command::{At, Command, Example, Group, example};
use super::super::exit::{Exit, UsageError};
use crate::analysis::{self, AnalyzeQuery, Thresholds};
use crate::analysis::{AnalyzeReport, Problem, ProblemId, ProblemSeverity};
use crate::base::Answer;

/// Findings about the process: what is wrong, most important first, each with the command that shows more.
///
/// gcdump looks for crashes, failed allocations, deadlocks, queues at locks, a stuck finalizer, a starved thread pool, threads that
/// block until tasks complete, unanswered requests, asynchronous methods that wait for the same object, threads in the same place,
/// exceptions, fragmentation, garbage, free regions, native memory, suspects, event leaks, timers, load contexts, dynamic assemblies,
/// handles, wasted memory, damage, and parts that are missing from the dump. A healthy process has no findings: a problem must be large
/// in absolute terms as well as in relation to the heap. The last three lines summarize the state of the process as a crash, as a hang
/// and as a memory problem, or name the command to run next.
#[derive(Debug, Args)]
pub(in crate::cli) struct Analyze {
    /// An earlier dump of the process, or a .gcdump file. Containers that hold more since then are findings. Give several, oldest first, to
    /// distinguish steady growth from sizes that rise and fall.
    #[arg(long, value_name = "BEFORE")]
    since: Vec<PathBuf>,

    /// Look only for this problem (repeatable).
    #[arg(long, value_enum, ignore_case = true, value_name = "ID")]
    only: Vec<ProblemId>,

    /// Exit with code 1 if there is such a finding: an id, or a severity (info, warning or critical) for that and all worse ones
    /// (repeatable). A partial answer exits with code 5 all the same.
    #[arg(long, value_parser = FailOn::parse, value_name = "SEVERITY|ID")]
    fail_on: Vec<FailOn>,

    /// Do not build the graph of the heap. Suspects are not looked for, nor is garbage after a failed allocation.
    #[arg(long)]
    no_graph: bool,

    /// Fewest bytes that are retained, wasted or free (suffixes K, M, G).
    #[arg(long, value_name = "BYTES", value_parser = size, default_value = "1M")]
    min_bytes: u64,

    /// Fewest bytes that something holds more than in the earlier dump (suffixes K, M, G).
    #[arg(long, value_name = "BYTES", value_parser = size, default_value = "64K")]
    min_gain: u64,

    /// Smallest share of the earlier dump's heap that these are.
    #[arg(long, value_name = "PERCENT", default_value_t = 5.0)]
    min_growth: f64,

    /// Smallest share of the reachable bytes that a suspect retains.
    #[arg(long, value_name = "PERCENT", default_value_t = 20.0)]
    min_share: f64,

    /// Smallest share of the heap that is wasted.
    #[arg(long, value_name = "PERCENT", default_value_t = 10.0)]
    min_waste: f64,

    /// Smallest share of the heap that is free.
    #[arg(long, value_name = "PERCENT", default_value_t = 25.0)]
    min_free: f64,

    /// Fewest threads that wait for one lock that another thread holds.
    #[arg(long, value_name = "N", default_value_t = Thresholds::default().queue)]
    min_queue: u64,

    /// Fewest objects ready for finalization, if the finalizer thread is not blocked.
    #[arg(long, value_name = "N", default_value_t = Thresholds::default().ready)]
    min_ready: u64,

    /// Fewest handlers of an event whose targets nothing else holds.
    #[arg(long, value_name = "N", default_value_t = Thresholds::default().handlers)]
    min_handlers: u64,

    /// Fewest timers, or registrations of one cancellation source.
    #[arg(long, value_name = "N", default_value_t = Thresholds::default().timers)]
    min_timers: u64,

    /// Fewest GC handles.
    #[arg(long, value_name = "N", default_value_t = Thresholds::default().handles)]
    min_handles: u64,

    /// Fewest incoming HTTP requests that are not answered for long.
    #[arg(long, value_name = "N", default_value_t = Thresholds::default().requests)]
    min_requests: u64,

    /// Fewest chains of asynchronous methods that hang on one promise, semaphore, custom awaitable or full channel, and threads that are blocked until
    /// tasks are complete, or by one semaphore, event or full collection.
    #[arg(long, value_name = "N", default_value_t = Thresholds::default().waits)]
    min_waits: u64,

    /// Fewest threads at one place.
    #[arg(long, value_name = "N", default_value_t = Thresholds::default().threads)]
    min_threads: u64,

    /// Fewest connection pools of `HttpClient` for one server.
    #[arg(long, value_name = "N", default_value_t = Thresholds::default().pools)]
    min_pools: u64,

    /// Fewest exceptions of one type that one method has thrown, and faulted tasks whose exceptions were not observed.
    #[arg(long, value_name = "N", default_value_t = Thresholds::default().exceptions)]
    min_exceptions: u64,

    /// Smallest share of the objects' bytes that are garbage outside of gen0.
    #[arg(long, value_name = "PERCENT", default_value_t = 50.0)]
    min_garbage: f64,

    /// Fewest assemblies without a file.
    #[arg(long, value_name = "N", default_value_t = Thresholds::default().dynamic)]
    min_dynamic: u64,

    #[command(flatten)]
    dump: DumpArg,
}

/// A finding that makes the exit code 1.
#[derive(Clone, Copy, Debug)]
enum FailOn {
    Severity(ProblemSeverity),
    Id(ProblemId),
}

impl FailOn {
    fn parse(text: &str) -> Result<FailOn, String> {
        let severity = text.parse().map(FailOn::Severity);
        severity
            .or_else(|_| text.parse().map(FailOn::Id))
            .map_err(|e: crate::base::UnknownName| format!("{e}; severities are {}", ProblemSeverity::NAMES.join(", ")))
    }

    fn fits(self, finding: &Problem) -> bool {
        match self {
            FailOn::Severity(least) => finding.severity <= least,
            FailOn::Id(id) => finding.id == id,
        }
    }
}

impl Command for Analyze {
    const NAME: &'static str = "analyze";
    const GROUP: Group = Group::Dump;
    const EXAMPLES: &'static [Example] = &[
        example("analyze DUMP", "what is wrong, most important first"),
        example("analyze DUMP --since BEFORE", "also what holds more than in an earlier dump"),
        example("analyze --no-graph --only deadlock --only lock-queue DUMP", "some findings"),
        example("analyze --fail-on critical --fail-on suspects DUMP", "a check for CI: exit code 1 on such findings"),
    ];
    type Report = AnalyzeReport;

    fn dump(&self) -> Result<Option<PathBuf>> {
        Ok(self.dump.path())
    }

    fn further(&self) -> &[PathBuf] {
        &self.since
    }

    fn answer(&self, at: &At<'_>) -> Result<Answer<AnalyzeReport>> {
        let of_growth = |on: &FailOn| matches!(on, FailOn::Id(ProblemId::Growth));
        if self.since.is_empty() && (self.only.contains(&ProblemId::Growth) || self.fail_on.iter().any(of_growth)) {
            return Err(UsageError("growth needs an earlier dump: --since BEFORE".into()).into());
        }
        let thresholds = Thresholds {
            bytes: self.min_bytes,
            gain: self.min_gain,
            growth: self.min_growth / 100.0,
            share: self.min_share / 100.0,
            waste: self.min_waste / 100.0,
            free: self.min_free / 100.0,
            queue: self.min_queue,
            ready: self.min_ready,
            handlers: self.min_handlers,
            timers: self.min_timers,
            handles: self.min_handles,
            requests: self.min_requests,
            waits: self.min_waits,
            threads: self.min_threads,
            pools: self.min_pools,
            exceptions: self.min_exceptions,
            garbage: self.min_garbage / 100.0,
            dynamic: self.min_dynamic,
        };
        let query = AnalyzeQuery { only: self.only.clone(), graph: !self.no_graph, thresholds, options: at.config.repeated() };
        let sources = (1..=self.since.len()).map(|i| at.source_at(i)).collect::<Result<Vec<_>>>()?;
        let before: Vec<_> = sources.iter().map(AsRef::as_ref).collect();
        Ok(analysis::analyze(&at.runtime()?, &before, &query))
    }

    fn suggests(&self, report: &AnalyzeReport) -> bool {
        !report.findings.is_empty() || !report.triage.is_empty()
    }

    fn exit(&self, report: &AnalyzeReport, exit: Exit) -> Exit {
        let failing = || report.findings.iter().filter(|f| self.fail_on.iter().any(|on| on.fits(f)));
        exit.negative_if(failing().next().is_some()).negative_for_certain_if(failing().any(|f| report.is_certain(f)))
    }
}
