use serde::Serialize;

use crate::base::{Addr, Name, named_enum};

named_enum! {
    /// Kinds of locks and other things that threads wait for.
    pub enum LockKind {
        /// The monitor of an object: `lock`, `Monitor.Enter`, `Monitor.Wait`.
        Monitor = "monitor",
        /// `System.Threading.Lock`.
        Lock = "lock",
        /// `ReaderWriterLockSlim`, `ReaderWriterLock`.
        ReaderWriter = "rwlock",
        /// `SemaphoreSlim`.
        Semaphore = "semaphore-slim",
        /// `ManualResetEventSlim`.
        Event = "event-slim",
        /// `CountdownEvent`.
        Countdown = "countdown",
        /// `Barrier`.
        Barrier = "barrier",
        /// An event, mutex or semaphore of the operating system.
        WaitHandle = "wait-handle",
        /// A task.
        Task = "task",
        /// A thread, waited for by `Thread.Join`.
        Thread = "thread",
        /// `BlockingCollection`.
        BlockingCollection = "blocking-collection",
        /// The class constructor of a type, which another thread runs.
        ClassConstructor = "class-constructor",
    }
}

named_enum! {
    /// What a thread is blocked in.
    pub enum WaitKind {
        /// Entering a monitor.
        Monitor = "monitor",
        /// `Monitor.Wait`: released the monitor, waits for a pulse.
        MonitorWait = "monitor-wait",
        /// Entering a `Lock`.
        Lock = "lock",
        /// Waiting in the runtime's own condition variable.
        Condition = "condition",
        /// Entering a `ReaderWriterLockSlim` or `ReaderWriterLock` to read.
        ReadLock = "rwlock-read",
        /// Entering a `ReaderWriterLockSlim` or `ReaderWriterLock` to write.
        WriteLock = "rwlock-write",
        /// Entering a `ReaderWriterLockSlim` upgradeably.
        UpgradeableLock = "rwlock-upgradeable",
        /// Going on from the upgradeable mode to writing.
        Upgrade = "rwlock-upgrade",
        /// `SemaphoreSlim.Wait`.
        Semaphore = "semaphore-slim",
        /// `ManualResetEventSlim.Wait`.
        Event = "event-slim",
        /// `CountdownEvent.Wait`.
        Countdown = "countdown",
        /// `Barrier.SignalAndWait`.
        Barrier = "barrier",
        /// `Task.Wait`, `Task.Result`, `Task.WaitAll` and the like.
        Task = "task",
        /// A wait handle: `WaitOne`.
        WaitHandle = "wait-handle",
        /// Several wait handles: `WaitAny`, `WaitAll`.
        WaitHandles = "wait-handles",
        /// `Thread.Join`.
        Join = "join",
        /// `Thread.Sleep`.
        Sleep = "sleep",
        /// `BlockingCollection.Take`, or `Add` to one that is full.
        BlockingCollection = "blocking-collection",
        /// Waiting for the class constructor of a type, which another thread runs.
        ClassConstructor = "class-constructor",
        /// Waits for something that the dump does not tell.
        Other = "other",
    }
}

named_enum! {
    /// How it is known what a thread waits for.
    pub enum WaitEvidence {
        /// From a record that the runtime keeps.
        Exact = "exact",
        /// From the frames and values on its stack.
        Stack = "stack",
    }
}

/// `locks`: locks that are held or waited for, what each thread waits for, and deadlocks.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct LocksReport {
    /// Locks that are held or waited for: most waiters first.
    pub locks: Vec<LockModel>,
    /// With `--top`: number of locks that are not listed, if there are any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_listed: Option<u64>,
    /// The blocked threads, in the order of the runtime's list.
    pub waits: Vec<WaitModel>,
    /// Threads that wait for each other.
    pub deadlocks: Vec<DeadlockModel>,
    /// Chains of waiting threads outside deadlocks that end in something which nobody is known to own.
    pub chains: Vec<WaitChain>,
    /// Whether screens show the methods of the framework that only lead through (`--framework`).
    #[serde(skip)]
    pub framework: bool,
}

/// A lock that is held or waited for.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct LockModel {
    /// The object. Of a class constructor: the method table of the type.
    pub object: Addr,
    /// Name of its type. Of a class constructor: name of the type.
    #[serde(rename = "type")]
    pub type_name: Option<Name>,
    /// Kind.
    pub kind: LockKind,
    /// The thread that holds it; `null` if none does, or if locks of this kind have no owner.
    pub owner: Option<LockOwner>,
    /// How often the owner entered it again: 0 if it entered once. `null` if nobody holds it or its kind does not count.
    pub recursion: Option<u32>,
    /// The threads that hold it for reading.
    pub readers: Vec<LockOwner>,
    /// The threads that wait for it.
    pub waiters: Vec<WaiterModel>,
    /// Number of waiters that the lock itself counts.
    pub waiting: Option<u64>,
    /// Current count of a semaphore, countdown or barrier.
    pub count: Option<i64>,
    /// Index of the sync block of a monitor; `null` for a thin lock.
    pub sync_block: Option<u32>,
}

/// A thread that holds a lock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct LockOwner {
    /// Managed id.
    pub managed_id: Option<u32>,
    /// OS id; `null` if no thread that is known has the id.
    pub os_id: Option<u64>,
    /// Whether no living thread has the id: the lock will not be released. `null` if no thread was found, but not all of them are
    /// known, or no thread ever had the id.
    pub orphaned: Option<bool>,
}

/// A thread that waits for a lock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct WaiterModel {
    /// Managed id.
    pub managed_id: Option<u32>,
    /// How that is known.
    pub evidence: WaitEvidence,
}

/// A blocked thread.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct WaitModel {
    /// Managed id.
    pub managed_id: Option<u32>,
    /// OS id.
    pub os_id: Option<u64>,
    /// Name of the thread.
    pub name: Option<Name>,
    /// What it is blocked in.
    pub kind: WaitKind,
    /// The object that it waits for, or the method table of the type whose class constructor it waits for; `null` if it waits for none, or it is
    /// not known.
    pub object: Option<Addr>,
    /// Name of its type.
    #[serde(rename = "type")]
    pub type_name: Option<Name>,
    /// Further objects, of a wait for several.
    pub others: Vec<Addr>,
    /// How that is known.
    pub evidence: WaitEvidence,
    /// Timeout in milliseconds; `null` if there is none, or the dump does not tell.
    pub timeout_ms: Option<u32>,
    /// The innermost method outside `System.Threading`, as the compiler named it.
    pub method: Option<Name>,
    /// Form of the method's name for people: `Lab.Program.Main.b__3_0 (lambda)`.
    pub display: Option<Name>,
    /// Address of its `MethodDesc`.
    pub method_desc: Option<Addr>,
    /// Path of the source file when it was compiled; `null` without a PDB that has the line.
    pub file: Option<String>,
    /// Line in that file, from 1.
    pub line: Option<u32>,
}

/// What a thread waits for, and who holds it.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct ThreadWait {
    /// What it is blocked in.
    pub kind: WaitKind,
    /// The object, or the method table of the type whose class constructor it waits for; `null` if it waits for none, or it is
    /// not known.
    pub object: Option<Addr>,
    /// Name of its type.
    #[serde(rename = "type")]
    pub type_name: Option<Name>,
    /// How that is known.
    pub evidence: WaitEvidence,
    /// Timeout in milliseconds; `null` if there is none, or the dump does not tell.
    pub timeout_ms: Option<u32>,
    /// The threads that hold it; empty if nobody does, or locks of its kind have no owner.
    pub owners: Vec<LockOwner>,
}

/// Threads that wait for each other.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct DeadlockModel {
    /// Managed ids.
    pub threads: Vec<u32>,
    /// Who waits for whom.
    pub edges: Vec<WaitEdge>,
    /// Whether an edge is not certain, or has a timeout.
    pub possible: bool,
    /// Managed ids of the threads that wait for one of them, directly or not.
    pub victims: Vec<u32>,
    /// What its threads were doing.
    pub stacks: Vec<BlockedStack>,
}

named_enum! {
    /// Why a thread waits for another.
    pub enum WaitEdgeKind {
        /// It holds the lock.
        Holds = "holds",
        /// It runs the task, or a method that the task awaits.
        Runs = "runs",
        /// It is the thread that is joined.
        Joined = "joined",
        /// The other runs the class constructor.
        ClassConstructor = "class-constructor",
    }
}

/// A thread waits for what another holds, runs or is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct WaitEdge {
    /// Managed id of the thread that waits.
    pub from: u32,
    /// Managed id of the thread that it waits for.
    pub to: u32,
    /// The lock, task or thread object, or the method table of the type whose class constructor runs.
    pub object: Addr,
    /// Why it waits for that thread.
    pub kind: WaitEdgeKind,
    /// Name of its type.
    #[serde(rename = "type")]
    pub type_name: Option<Name>,
}

/// The innermost frames of a thread.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct BlockedStack {
    /// Managed id.
    pub managed_id: u32,
    /// Methods for people, innermost first.
    pub frames: Vec<String>,
}

/// Threads that wait, one for the other, for something that nobody is known to own.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct WaitChain {
    /// Managed ids: each waits for a lock that the next one holds.
    pub threads: Vec<u32>,
    /// What the last one is blocked in.
    pub kind: WaitKind,
    /// What the last one waits for.
    pub object: Option<Addr>,
    /// Name of its type.
    #[serde(rename = "type")]
    pub type_name: Option<Name>,
    /// Managed ids of the threads that hold a reference to it on their stacks, and may release it.
    pub candidates: Vec<u32>,
}
