use serde::Serialize;

use crate::base::{Addr, Name, named_enum};

named_enum! {
    /// How bad a finding is.
    pub enum ProblemSeverity {
        /// The process has ended, cannot go on, or cannot be judged.
        Critical = "critical",
        /// Something holds it up or takes its memory.
        Warning = "warning",
        /// Worth knowing.
        Info = "info",
    }
}

named_enum! {
    /// What `analyze` looks for, in order of importance. `count`, `bytes` and `share` of a finding say what is told here.
    pub enum ProblemId {
        /// The process ended with a signal or an exception that nobody handled.
        Crash = "crash",
        /// An allocation failed: `bytes` were asked for, on `count` heaps.
        Oom = "oom",
        /// A garbage collection was running. Critical if it was moving objects, or if the process ended within a blocking one.
        GcInProgress = "gc-in-progress",
        /// `bytes` of the heap are neither objects nor free; `verify` finds `count` errors.
        Damage = "damage",
        /// `count` threads wait for each other. A warning if one of the waits is not certain, or has a timeout.
        Deadlock = "deadlock",
        /// A lock is held by a thread that is gone; `count` threads wait for it. A warning if none does.
        OrphanedLock = "orphaned-lock",
        /// The finalizer's thread is blocked, or too slow: `count` objects are ready for finalization.
        StuckFinalizer = "stuck-finalizer",
        /// `count` items wait for threads of the thread pool, none of which is free. Critical if all are blocked.
        PoolStarvation = "pool-starvation",
        /// `count` threads wait for a lock that another thread holds.
        LockQueue = "lock-queue",
        /// `count` threads are blocked until tasks are complete.
        SyncOverAsync = "sync-over-async",
        /// `count` incoming HTTP requests are not answered for long.
        Requests = "requests",
        /// `count` asynchronous methods wait for one promise, semaphore or custom awaitable, or for each other. A warning for the latter, and
        /// where threads wait for each other or the thread pool is starved.
        AsyncWaits = "async-waits",
        /// `count` threads have the same frames, from a method of the program's own outwards.
        SamePlace = "same-place",
        /// `count` connection pools of `HttpClient` are for one server.
        ConnectionPools = "connection-pools",
        /// `count` faulted tasks have an exception that was not observed.
        UnobservedExceptions = "unobserved-exceptions",
        /// `count` exceptions of one type, thrown by one method, are on the heap.
        Exceptions = "exceptions",
        /// A container retains `bytes` more than in an earlier dump, the `share` of what the heap held then; `count` objects more of the
        /// type that accumulates there.
        Growth = "growth",
        /// `bytes` of the heap are free, the `share` of what is allocated; `count` pinned objects block compaction.
        Fragmentation = "fragmentation",
        /// `count` objects outside of gen0 are garbage, `bytes` in all, and most of the heap is: the `share` of the objects' bytes.
        Garbage = "garbage",
        /// `bytes` are committed in `count` ranges of free regions, the `share` of what the GC has committed.
        FreeRegions = "free-regions",
        /// `bytes` of memory are neither the GC's nor of files, stacks or the runtime's own heaps: the `share` of what the process can access.
        NativeMemory = "native-memory",
        /// One object, or `count` objects of a type, retain `bytes`, the `share` of the reachable bytes.
        Suspects = "suspects",
        /// `count` handlers of an event have targets that nothing else holds.
        EventLeaks = "event-leaks",
        /// `count` timers are active.
        Timers = "timers",
        /// A cancellation source has `count` registrations.
        Registrations = "registrations",
        /// A load context was asked to unload and is still there.
        LoadContexts = "load-contexts",
        /// The process has `count` assemblies without a file.
        DynamicAssemblies = "dynamic-assemblies",
        /// The process has `count` GC handles.
        Handles = "handles",
        /// `count` strings have the text of others: `bytes` are wasted, the `share` of what is allocated.
        EqualStrings = "equal-strings",
        /// As `equal-strings`, of arrays of references that are mostly null.
        SparseArrays = "sparse-arrays",
        /// As `equal-strings`, of collections with much more room than elements.
        OversizedCollections = "oversized-collections",
        /// As `equal-strings`, of collections without an element.
        EmptyCollections = "empty-collections",
        /// As `equal-strings`, of arrays of plain values with equal contents.
        EqualArrays = "equal-arrays",
        /// As `equal-strings`, of arrays of zeros.
        ZeroArrays = "zero-arrays",
        /// As `equal-strings`, of arrays that end in zeros.
        ZeroTails = "zero-tails",
        /// `count` commands cannot answer in full: something is not in the dump.
        MissingParts = "missing-parts",
    }
}

named_enum! {
    /// Reasons for which people open a dump.
    pub enum Complaint {
        /// The process ended.
        Crash = "crash",
        /// The process does not answer.
        Hang = "hang",
        /// The process takes much memory.
        Memory = "memory",
    }
}

impl Problem {
    /// The complaint that the finding may explain.
    pub fn complaint(&self) -> Option<Complaint> {
        match self.id {
            ProblemId::Crash | ProblemId::Damage => Some(Complaint::Crash),
            // Another collection is not a trouble.
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
            // No operation that failed has ended the process.
            ProblemId::UnobservedExceptions | ProblemId::Exceptions | ProblemId::MissingParts => None,
            _ => Some(Complaint::Memory),
        }
    }
}

/// `analyze`: what is wrong with the process, the most important first.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct AnalyzeReport {
    /// The findings.
    pub findings: Vec<Problem>,
    /// Problems that would be findings without a threshold, most bytes first: a large share of a small heap, or a suspect that `retained` lists
    /// although its share is smaller than that of a finding.
    pub below: Vec<BelowThreshold>,
    /// What was looked for.
    pub inspected: Vec<ProblemId>,
    /// Of these, what was not found, but may be in what the dump lacks.
    pub uncertain: Vec<SkippedProblem>,
    /// What could not be looked for, or was not asked for.
    pub skipped: Vec<SkippedProblem>,
    /// Numbers of the process that changed from dump to dump, if more than two are compared.
    pub trends: Vec<super::DiffMeasure>,
    /// Each complaint with its finding, or where to look next: always three.
    pub triage: Vec<Triage>,
}

/// A complaint, and what the dump says of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct Triage {
    /// The complaint.
    pub complaint: Complaint,
    /// Index in `findings` of the most important finding that may explain it; `null` without one.
    pub found: Option<u64>,
    /// The beginning of that finding's title, or what the dump says instead.
    pub text: String,
    /// Command line that shows more.
    pub command: String,
    /// The command line without options, with `DUMP` for the path of the dump.
    #[serde(skip)]
    pub short_command: String,
}

/// A finding. Numbers are those of its [`ProblemId`]; `null` where it has none.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct Problem {
    /// What was found.
    pub id: ProblemId,
    /// How bad it is.
    pub severity: ProblemSeverity,
    /// A line of text.
    pub title: String,
    /// Number of objects, threads, items.
    pub count: Option<u64>,
    /// Bytes.
    pub bytes: Option<u64>,
    /// Share, 0 to 1.
    pub share: Option<f64>,
    /// The object: exception, lock, holder.
    pub object: Option<Addr>,
    /// Name of its type; for strings and arrays, that of the worst ones.
    #[serde(rename = "type")]
    pub type_name: Option<Name>,
    /// The method that threw, crashed, or waits, as the compiler named it.
    pub method: Option<Name>,
    /// Form of the method's name for people: `Lab.Program.Main.b__3_0 (lambda)`.
    pub display: Option<Name>,
    /// Managed ids of the threads concerned.
    pub threads: Vec<u32>,
    /// Command line that shows more.
    pub command: String,
}

/// Something that a threshold keeps from being a finding.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct BelowThreshold {
    /// The finding that it would be.
    #[serde(flatten)]
    pub problem: Problem,
    /// The threshold: fewest bytes; `null` if there are enough.
    pub least_bytes: Option<u64>,
    /// The threshold: smallest share, 0 to 1; `null` if it is large enough.
    pub least_share: Option<f64>,
}

/// Something that was not looked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct SkippedProblem {
    /// What.
    pub id: ProblemId,
    /// Why not.
    pub reason: String,
}
