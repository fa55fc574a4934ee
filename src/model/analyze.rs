use serde::Serialize;

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
    /// The problems that `analyze` looks for, most important first. The description of each says what `count`, `bytes`
    /// and `share` of the finding mean.
    pub enum ProblemId {
        /// The process ended with a signal or an unhandled exception.
        Crash = "crash",
        /// An allocation failed: `bytes` were requested, on `count` heaps.
        Oom = "oom",
        /// A garbage collection was running. Critical if it was moving objects, or if the process ended within a blocking one.
        GcInProgress = "gc-in-progress",
        /// `bytes` of the heap are neither objects nor free; `verify` finds `count` errors.
        Damage = "damage",
        /// `count` threads wait for each other. A warning if one of the waits is not certain, or has a timeout.
        Deadlock = "deadlock",
        /// A lock is held by a thread that has ended; `count` threads wait for it. A warning if none does.
        OrphanedLock = "orphaned-lock",
        /// The finalizer thread is blocked or too slow: `count` objects are ready for finalization.
        StuckFinalizer = "stuck-finalizer",
        /// `count` items wait for thread-pool threads, and none is free. Critical if all are blocked.
        PoolStarvation = "pool-starvation",
        /// `count` threads wait for a lock that another thread holds.
        LockQueue = "lock-queue",
        /// `count` threads are blocked until tasks complete.
        SyncOverAsync = "sync-over-async",
        /// `count` incoming HTTP requests have been unanswered for a long time.
        Requests = "requests",
        /// `count` asynchronous methods wait for one promise, semaphore or custom awaitable, or for each other. A warning for the latter, and
        /// where threads wait for each other or the thread pool is starved.
        AsyncWaits = "async-waits",
        /// `count` threads have the same frames, from one of the program's methods outwards.
        SamePlace = "same-place",
        /// `count` connection pools of `HttpClient` connect to one server.
        ConnectionPools = "connection-pools",
        /// `count` faulted tasks have an unobserved exception.
        UnobservedExceptions = "unobserved-exceptions",
        /// `count` exceptions of one type, thrown by one method, are on the heap.
        Exceptions = "exceptions",
        /// A container retains `bytes` more than in an earlier dump, which is the `share` of the heap's size at that time; it holds `count` more
        /// objects of the type that accumulates there.
        Growth = "growth",
        /// `bytes` of the heap are free, the `share` of what is allocated; `count` pinned objects block compaction.
        Fragmentation = "fragmentation",
        /// `count` objects outside of gen0 are garbage, `bytes` in all, and most of the heap is: the `share` of the objects' bytes.
        Garbage = "garbage",
        /// `bytes` are committed in `count` ranges of free regions, the `share` of what the GC has committed.
        FreeRegions = "free-regions",
        /// `bytes` of memory belong neither to the GC nor to files, stacks or the runtime's own heaps: the `share` of the memory that the process can
        /// access.
        NativeMemory = "native-memory",
        /// One object, or `count` objects of a type, retain `bytes`, the `share` of the reachable bytes.
        Suspects = "suspects",
        /// `count` handlers of an event have targets that nothing else holds.
        EventLeaks = "event-leaks",
        /// `count` timers are active.
        Timers = "timers",
        /// A cancellation source has `count` registrations.
        Registrations = "registrations",
        /// A load context was asked to unload and is still alive.
        LoadContexts = "load-contexts",
        /// The process has `count` assemblies without a file.
        DynamicAssemblies = "dynamic-assemblies",
        /// The process has `count` GC handles.
        Handles = "handles",
        /// `count` strings have the same text as others: `bytes` are wasted, the `share` of what is allocated.
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
        /// `count` commands cannot answer completely: something is missing from the dump.
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
            // Another collection is not a problem.
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
            // No failed operation has ended the process.
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
    /// Problems that would be findings without a threshold, most bytes first: a large share of a small heap, or a suspect that `retained` lists
    /// although its share is smaller than that of a finding.
    pub below: Vec<BelowThreshold>,
    /// The problems that were looked for.
    pub inspected: Vec<ProblemId>,
    /// Problems in `inspected` that were not found, but that may be in a part of the process that is missing from the
    /// dump.
    pub uncertain: Vec<SkippedProblem>,
    /// Problems that could not be looked for, or were not requested.
    pub skipped: Vec<SkippedProblem>,
    /// Measures of the process that changed from dump to dump, if more than two are compared.
    pub trends: Vec<super::DiffMeasure>,
    /// For each complaint, its finding or where to look next: always three.
    pub triage: Vec<Triage>,
}

/// A complaint, and what the dump says about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct Triage {
    /// The complaint.
    pub complaint: Complaint,
    /// Index in `findings` of the most important finding that may explain it; `null` without one.
    pub found: Option<u64>,
    /// Beginning of that finding's title, or what the dump shows instead.
    pub text: String,
    /// Command line that shows more.
    pub command: String,
    /// The command line without options, with `DUMP` as the path of the dump.
    #[serde(skip)]
    pub short_command: String,
}

/// A finding. For the meaning of its numbers see [`ProblemId`]; `null` if it has none.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct Problem {
    /// Problem that was found.
    pub id: ProblemId,
    /// Severity.
    pub severity: ProblemSeverity,
    /// Title: one line of text.
    pub title: String,
    /// Number of objects, threads or items.
    pub count: Option<u64>,
    /// Size in bytes.
    pub bytes: Option<u64>,
    /// Share, 0 to 1.
    pub share: Option<f64>,
    /// The object: an exception, lock or holder.
    pub object: Option<Addr>,
    /// Type name of the object; for strings and arrays, of the worst ones.
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
    /// Threshold: smallest number of bytes; `null` if it is reached.
    pub least_bytes: Option<u64>,
    /// Threshold: smallest share, 0 to 1; `null` if it is reached.
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
}
