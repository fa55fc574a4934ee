//! The report of `locks`.

use serde::Serialize;

use crate::base::{Addr, Name, named_enum};

named_enum! {
    /// Kinds of locks and other objects that threads wait for.
    pub enum LockKind {
        /// Monitor of an object: `lock`, `Monitor.Enter`, `Monitor.Wait`.
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
        /// Class constructor (`.cctor`) that another thread runs.
        ClassConstructor = "class-constructor",
    }
}

named_enum! {
    /// Kinds of waits.
    pub enum WaitKind {
        /// Entering a monitor.
        Monitor = "monitor",
        /// `Monitor.Wait`: the thread has released the monitor and waits for a pulse.
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
        /// Upgrading from the upgradeable mode to a write lock.
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
        /// `BlockingCollection.Take`, or `Add` to a full collection.
        BlockingCollection = "blocking-collection",
        /// Waiting until another thread has run the class constructor of a type.
        ClassConstructor = "class-constructor",
        /// Waiting for something that cannot be determined from the dump.
        Other = "other",
    }
}

named_enum! {
    /// Evidence for the object that a thread waits for.
    pub enum WaitEvidence {
        /// A record that the runtime keeps.
        Exact = "exact",
        /// The frames and values on its stack.
        Stack = "stack",
    }
}

/// `locks`: locks that are held or waited for, the waits of threads, and deadlocks.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct LocksReport {
    /// Locks that are held or waited for, most waiters first.
    pub locks: Vec<LockModel>,
    /// Number of locks that are not listed, if there are any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_listed: Option<u64>,
    /// The blocked threads, in the order of the runtime's list.
    pub waits: Vec<WaitModel>,
    /// Threads that wait for each other.
    pub deadlocks: Vec<DeadlockModel>,
    /// Chains of waiting threads that end in an object that no living thread is known to hold, or in one of several objects. Deadlocks are not included.
    pub chains: Vec<WaitChain>,
}

/// A lock that is held or waited for.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct LockModel {
    /// The lock object. For a class constructor, the method table of the type.
    pub object: Addr,
    /// Type name of the object. For a class constructor, the name of the type.
    #[serde(rename = "type")]
    pub type_name: Option<Name>,
    /// Kind.
    pub kind: LockKind,
    /// The thread that holds the lock; `null` if none does, if locks of this kind have no owner, or if the heap does not have the owner, as for mutexes
    /// of the operating system.
    pub owner: Option<LockOwner>,
    /// Number of times the owner entered the lock again: 0 if it entered once. `null` if no thread holds the lock, or if its kind has no
    /// such count.
    pub recursion: Option<u32>,
    /// The living threads that hold the lock for reading.
    pub readers: Vec<LockOwner>,
    /// Number of threads that hold the lock for reading, according to the lock itself. Absent for locks of other kinds, and if it cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reader_count: Option<u64>,
    /// Number of those threads that have ended, so that they will never release the lock. Absent as for `reader_count`, and if that is unknown: threads
    /// may be missing from the dump, or a thread is just entering or leaving a lock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_readers: Option<u64>,
    /// The threads that wait for the lock.
    pub waiters: Vec<WaiterModel>,
    /// Number of waiters according to the lock itself.
    pub waiting: Option<u64>,
    /// Current count of a semaphore, countdown or barrier; number of elements of a blocking collection.
    pub count: Option<i64>,
    /// Highest count of a semaphore, or number of elements that a blocking collection may have. Absent for locks of other kinds, without such a limit, and
    /// if it cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capacity: Option<i64>,
    /// Name of a named mutex, which several `Mutex` objects may share: `object` is the first of them. Absent for other locks, and if the heap does not have
    /// the name, as before .NET 11.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Index of the sync block of a monitor; `null` for a thin lock.
    pub sync_block: Option<u32>,
}

/// Type of the mutexes of .NET.
const MUTEX: &str = "System.Threading.Mutex";

impl LockModel {
    /// Whether threads wait for a mutex whose owner is unknown: a mutex of the operating system, or a named one that another process may hold. Unlike an
    /// event or a semaphore, a mutex for which threads wait has an owner.
    pub(crate) fn has_unknown_owner(&self) -> bool {
        let is_mutex = self.kind == LockKind::WaitHandle && self.type_name.as_ref().is_some_and(|name| *name == MUTEX);
        is_mutex && self.owner.is_none() && !self.waiters.is_empty()
    }
}

/// A thread that holds a lock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct LockOwner {
    /// Managed id.
    pub managed_id: Option<u32>,
    /// OS id; `null` if no known thread has the managed id. A `Lock` of .NET 9 and 10 stores only the OS id, so it is known of a thread that has ended.
    pub os_id: Option<u64>,
    /// Whether the owner has ended, so that the lock will never be released. `null` if that is unknown: threads may be missing from the
    /// dump, or the id is invalid.
    pub orphaned: Option<bool>,
}

/// A thread that waits for a lock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct WaiterModel {
    /// Managed id.
    pub managed_id: Option<u32>,
    /// Evidence for the wait.
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
    /// Kind of wait.
    pub kind: WaitKind,
    /// The object that the thread waits for; for a class constructor, the method table of the type. `null` without an object, or if it is
    /// unknown.
    pub object: Option<Addr>,
    /// Type name of the object.
    #[serde(rename = "type")]
    pub type_name: Option<Name>,
    /// The other objects, if it waits for several.
    pub others: Vec<Addr>,
    /// Evidence for the object.
    pub evidence: WaitEvidence,
    /// Timeout in milliseconds; `null` if absent, or if it cannot be determined.
    pub timeout_ms: Option<u32>,
    /// The innermost method outside `System.Threading`, as the compiler named it.
    pub method: Option<Name>,
    /// Form of the method's name for people: `Lab.Program.Main.b__3_0 (lambda)`.
    pub display: Option<Name>,
    /// Address of the method's `MethodDesc`.
    pub method_desc: Option<Addr>,
    /// Path of the source file at compile time; `null` without a PDB that has the line.
    pub file: Option<String>,
    /// Line in that file, from 1.
    pub line: Option<u32>,
}

/// The object that a thread waits for, and the threads that hold it.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct ThreadWait {
    /// Kind of wait.
    pub kind: WaitKind,
    /// The object; for a class constructor, the method table of the type. `null` without an object, or if it is unknown.
    pub object: Option<Addr>,
    /// Type name of the object.
    #[serde(rename = "type")]
    pub type_name: Option<Name>,
    /// Evidence for the object.
    pub evidence: WaitEvidence,
    /// Timeout in milliseconds; `null` if absent, or if it cannot be determined.
    pub timeout_ms: Option<u32>,
    /// The threads that hold the object; empty if it is free or has no owner.
    pub owners: Vec<LockOwner>,
}

/// Threads that wait for each other.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct DeadlockModel {
    /// Managed ids; one if a thread waits for what only itself would run.
    pub threads: Vec<u32>,
    /// The waits among the threads.
    pub edges: Vec<WaitEdge>,
    /// Whether the deadlock is only possible: an edge is uncertain, or has a timeout or may have one.
    pub possible: bool,
    /// Managed ids of other threads that wait for a thread of the deadlock, directly or through further threads.
    pub victims: Vec<u32>,
    /// Stacks of the deadlocked threads.
    pub stacks: Vec<BlockedStack>,
}

named_enum! {
    /// Why a thread waits for another.
    pub enum WaitEdgeKind {
        /// The other thread holds the lock.
        Holds = "holds",
        /// The other thread runs the task, or a method that the task awaits.
        Runs = "runs",
        /// The other thread runs the context or scheduler in whose queue the task is, or a method that the task awaits.
        Context = "context",
        /// The other thread is joined.
        Joined = "joined",
        /// The other thread runs the class constructor.
        ClassConstructor = "class-constructor",
    }
}

/// A wait of one thread for another: for a lock that the other holds, for code that it runs or would have to run, or for its end. A thread may wait for itself.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct WaitEdge {
    /// Managed id of the thread that waits.
    pub from: u32,
    /// Managed id of the thread that it waits for.
    pub to: u32,
    /// The lock, task or thread object, or the method table of the type whose class constructor runs.
    pub object: Addr,
    /// Why the thread waits for the other.
    pub kind: WaitEdgeKind,
    /// Type name of the object.
    #[serde(rename = "type")]
    pub type_name: Option<Name>,
    /// The `SynchronizationContext` or `TaskScheduler`, of an edge of the kind `context`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<Addr>,
    /// Type name of the context or scheduler.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context_type: Option<Name>,
}

/// The innermost frames of a thread.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct BlockedStack {
    /// Managed id.
    pub managed_id: u32,
    /// Method names for people, innermost first.
    pub frames: Vec<String>,
}

/// A chain of threads. Each waits for the next, and the last one for an object that no living thread is known to hold, or for one of several objects.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct WaitChain {
    /// Managed ids of the threads. Each waits for a lock that the next one holds.
    pub threads: Vec<u32>,
    /// Kind of wait of the last thread.
    pub kind: WaitKind,
    /// The object that the last thread waits for.
    pub object: Option<Addr>,
    /// Number of objects, if the last thread waits until one of several wait handles is signaled; `object` is the first of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub one_of: Option<u64>,
    /// The thread that holds the object. It has ended, or the last thread does not need it, since it waits for one of several objects. Absent if
    /// the owner is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<LockOwner>,
    /// Type name of that object.
    #[serde(rename = "type")]
    pub type_name: Option<Name>,
    /// Managed ids of the threads that have a reference to the object on their stacks, so that they may be the ones to release it.
    pub candidates: Vec<u32>,
}
