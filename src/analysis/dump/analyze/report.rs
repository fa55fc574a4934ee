//! The report of `analyze`.

use std::path::PathBuf;

use serde::Serialize;

use crate::analysis::DiffMeasure;
use crate::base::{Addr, Name, named_enum};

named_enum! {
    /// Severity of a finding.
    pub enum ProblemSeverity {
        /// The process has ended, cannot make progress, or its state cannot be judged.
        Critical = "critical",
        /// Something delays the process or takes its memory.
        Warning = "warning",
        /// Worth knowing.
        Info = "info",
    }
}

named_enum! {
    /// The problems that `analyze` looks for, most important first. Each description uses the `count`, `bytes` and `share` of the finding.
    pub enum ProblemId {
        /// The process ended with a signal or an unhandled exception.
        Crash = "crash",
        /// An allocation of `bytes` failed on `count` heaps.
        Oom = "oom",
        /// A garbage collection was running. Critical if it was moving objects, or if the process ended during a blocking collection.
        GcInProgress = "gc-in-progress",
        /// `bytes` of the heap are neither objects nor free space, and `verify` finds `count` errors.
        Damage = "damage",
        /// `count` threads wait for each other. Only a warning if one of the waits is uncertain or has a timeout.
        Deadlock = "deadlock",
        /// A lock is held by a thread that has ended, and `count` threads wait for the lock. Only a warning if `count` is 0.
        OrphanedLock = "orphaned-lock",
        /// The finalizer thread is blocked or too slow: `count` objects are ready for finalization.
        StuckFinalizer = "stuck-finalizer",
        /// `count` items wait for a thread of the thread pool, and all threads are busy. Critical if all threads are blocked.
        PoolStarvation = "pool-starvation",
        /// `count` threads wait for a lock that another thread holds, for a semaphore that admits no more, or to add to a full collection. Info: they wait for
        /// one event.
        LockQueue = "lock-queue",
        /// `count` threads are blocked until a task completes.
        SyncOverAsync = "sync-over-async",
        /// `count` incoming HTTP requests are stuck: they have been unanswered for a long time, or many of them wait for the same object.
        Requests = "requests",
        /// `count` asynchronous methods wait for a promise, semaphore, custom awaitable or full channel, or for each other. A warning if they wait for
        /// each other, or if a deadlock, a starved thread pool or unanswered requests were also found.
        AsyncWaits = "async-waits",
        /// `count` threads have the same frames from a method of the program outwards.
        SamePlace = "same-place",
        /// `count` connection pools of `HttpClient` connect to the same server.
        ConnectionPools = "connection-pools",
        /// `count` faulted tasks have an unobserved exception.
        UnobservedExceptions = "unobserved-exceptions",
        /// The heap has `count` exceptions of the same type that the same method threw.
        Exceptions = "exceptions",
        /// A container retains `bytes` more than in an earlier dump, a `share` of the heap's size then. It holds `count` more objects of
        /// the type that accumulates in it.
        Growth = "growth",
        /// `bytes` of the heap are free, a `share` of the allocated bytes, and `count` pinned objects block compaction.
        Fragmentation = "fragmentation",
        /// `count` objects of `bytes` outside of gen0 are garbage. Garbage is most of the heap: a `share` of the bytes of the objects.
        Garbage = "garbage",
        /// `bytes` are committed in `count` ranges of free regions, a `share` of the bytes that the GC has committed.
        FreeRegions = "free-regions",
        /// `bytes`, a `share` of the memory that the process can access, belong neither to the GC nor to files, stacks or the runtime's own
        /// heaps.
        NativeMemory = "native-memory",
        /// An object or `count` objects of a type retain `bytes`, a `share` of the reachable bytes.
        Suspects = "suspects",
        /// `count` handlers of an event have targets that only the event holds.
        EventLeaks = "event-leaks",
        /// `count` timers are active. They retain `bytes`, a `share` of the reachable bytes.
        Timers = "timers",
        /// A cancellation source has `count` registrations.
        Registrations = "registrations",
        /// A load context was asked to unload and is still alive.
        LoadContexts = "load-contexts",
        /// The process has `count` assemblies without a file.
        DynamicAssemblies = "dynamic-assemblies",
        /// The process has `count` GC handles.
        Handles = "handles",
        /// `count` strings have the same text as others. They waste `bytes`, a `share` of the allocated bytes.
        EqualStrings = "equal-strings",
        /// Like `equal-strings`, for arrays of references that are mostly null.
        SparseArrays = "sparse-arrays",
        /// Like `equal-strings`, for collections with much more capacity than elements.
        OversizedCollections = "oversized-collections",
        /// Like `equal-strings`, for empty collections.
        EmptyCollections = "empty-collections",
        /// Like `equal-strings`, for arrays of plain values with equal contents.
        EqualArrays = "equal-arrays",
        /// Like `equal-strings`, for arrays of zeros.
        ZeroArrays = "zero-arrays",
        /// Like `equal-strings`, for arrays that end in zeros.
        ZeroTails = "zero-tails",
        /// `count` commands cannot answer completely, because data is missing from the dump.
        MissingParts = "missing-parts",
    }
}

named_enum! {
    /// Reasons to open a dump.
    pub enum Complaint {
        /// The process ended.
        Crash = "crash",
        /// The process does not respond.
        Hang = "hang",
        /// The process uses too much memory.
        Memory = "memory",
    }
}

impl Problem {
    /// Returns the complaint that the finding may explain.
    pub fn complaint(&self) -> Option<Complaint> {
        match self.id {
            ProblemId::Crash | ProblemId::Damage => Some(Complaint::Crash),
            // A collection with a lower severity does not explain a crash.
            ProblemId::GcInProgress => (self.severity == ProblemSeverity::Critical).then_some(Complaint::Crash),
            ProblemId::Deadlock
            | ProblemId::OrphanedLock
            | ProblemId::StuckFinalizer
            | ProblemId::PoolStarvation
            | ProblemId::LockQueue
            | ProblemId::SyncOverAsync
            | ProblemId::Requests
            | ProblemId::AsyncWaits
            | ProblemId::SamePlace
            | ProblemId::ConnectionPools => Some(Complaint::Hang),
            // These did not end the process.
            ProblemId::UnobservedExceptions | ProblemId::Exceptions | ProblemId::MissingParts => None,
            _ => Some(Complaint::Memory),
        }
    }
}

/// `analyze`: the problems of the process, most important first.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct AnalyzeReport {
    /// The findings.
    pub findings: Vec<Problem>,
    /// Problems that would be findings without a threshold, most bytes first. Examples are a large share of a small heap, or a suspect with
    /// a small share.
    pub below: Vec<BelowThreshold>,
    /// The problems that were looked for.
    pub inspected: Vec<ProblemId>,
    /// Problems in `inspected` that were not found but may exist, because a part of the process is missing from the dump.
    pub uncertain: Vec<SkippedProblem>,
    /// Problems that could not be looked for, or were not requested.
    pub skipped: Vec<SkippedProblem>,
    /// If more than two dumps are compared: measures of the process that changed from dump to dump.
    pub trends: Vec<DiffMeasure>,
    /// One row for each of the three complaints: its finding, or the command to run next.
    pub triage: Vec<Triage>,
    /// Problems with findings of which only a part of the process could be inspected.
    #[serde(skip)]
    pub(crate) inspected_in_part: Vec<ProblemId>,
    /// The earlier dumps that growth was looked for in.
    #[serde(skip)]
    pub(crate) since: Vec<PathBuf>,
}

impl AnalyzeReport {
    /// Whether all that the rule of the finding needs could be inspected.
    pub(crate) fn is_certain(&self, finding: &Problem) -> bool {
        self.inspected.contains(&finding.id)
            && !self.inspected_in_part.contains(&finding.id)
            && !self.uncertain.iter().any(|u| u.id == finding.id)
    }
}

/// A complaint, and the finding of the dump that may explain it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct Triage {
    /// The complaint.
    pub complaint: Complaint,
    /// Index in `findings` of the most important finding that may explain the complaint; `null` if no finding does.
    pub found: Option<u64>,
    /// Beginning of that finding's title, or a text that says what the dump shows instead.
    pub text: String,
    /// Command line that shows more.
    pub command: String,
    /// The command line without options, with `DUMP` as the path of the dump, for screens that the command line does not fit.
    #[serde(skip)]
    pub short_command: String,
}

/// A finding. For the meaning of `count`, `bytes` and `share` see [`ProblemId`]; they are `null` if the problem does not have them.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct Problem {
    /// Problem that was found.
    pub id: ProblemId,
    /// Severity.
    pub severity: ProblemSeverity,
    /// Title: one line of text.
    pub title: String,
    /// The title in a few words, for narrow places.
    #[serde(skip)]
    pub brief: Option<String>,
    /// Number of objects, threads or items.
    pub count: Option<u64>,
    /// Size in bytes.
    pub bytes: Option<u64>,
    /// Share, 0 to 1.
    pub share: Option<f64>,
    /// The object: an exception, lock or holder.
    pub object: Option<Addr>,
    /// Type name of the object; for wasted strings, arrays and collections, the type that wastes most.
    #[serde(rename = "type")]
    pub type_name: Option<Name>,
    /// The method that threw, crashed, or waits, as the compiler named it.
    pub method: Option<Name>,
    /// Form of the method's name for people: `Lab.Program.Main.b__3_0 (lambda)`.
    pub display: Option<Name>,
    /// Managed ids of the affected threads.
    pub threads: Vec<u32>,
    /// Command line that shows more.
    pub command: String,
}

/// A problem that is not a finding because of a threshold.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct BelowThreshold {
    /// The finding that it would be without the threshold.
    #[serde(flatten)]
    pub problem: Problem,
    /// Smallest number of bytes of a finding; `null` if the problem has as many.
    pub least_bytes: Option<u64>,
    /// Smallest share of a finding, 0 to 1; `null` if the problem has as large a share.
    pub least_share: Option<f64>,
}

/// A problem that was not inspected.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct SkippedProblem {
    /// The problem.
    pub id: ProblemId,
    /// Why it was not inspected.
    pub reason: String,
    /// The part that the query did not give, if that is the reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub needs: Option<RuleNeed>,
}

named_enum! {
    /// A part that a rule of `analyze` needs, and a query may leave out.
    pub enum RuleNeed {
        /// The graph of the heap.
        Graph = "graph",
        /// An earlier dump of the process.
        EarlierDump = "earlier-dump",
    }
}
