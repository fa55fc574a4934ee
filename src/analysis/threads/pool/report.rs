//! The report of `pool`.

use serde::Serialize;

use crate::analysis::WaitKind;
use crate::base::{Addr, Name, named_enum};

named_enum! {
    /// Implementations of the thread pool.
    pub enum PoolKind {
        /// Unknown, because data is missing from the dump.
        Unknown = "unknown",
        /// The thread pool has not been used.
        None = "none",
        /// The managed thread pool of .NET.
        Portable = "portable",
        /// The thread pool of Windows. Its queues are not on the heap.
        Windows = "windows",
    }
}

named_enum! {
    /// Kinds of items in the queues of the thread pool.
    pub enum PoolItemKind {
        /// A task that runs a delegate.
        Task = "task",
        /// An asynchronous method that is ready to continue.
        AsyncMethod = "async-method",
        /// A callback of `ThreadPool.QueueUserWorkItem`.
        Callback = "callback",
        /// Any other `IThreadPoolWorkItem`.
        WorkItem = "work-item",
    }
}

/// `pool`: the thread pool, its queues and its threads. Numbers are `null` if the pool has not been used, or if they are not in the dump.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct PoolReport {
    /// Implementation of the thread pool.
    pub kind: PoolKind,
    /// Minimum number of threads.
    pub min: Option<u32>,
    /// Maximum number of threads.
    pub max: Option<u32>,
    /// Number of threads that process work.
    pub working: Option<u32>,
    /// Number of threads of the pool.
    pub existing: Option<u32>,
    /// Number of threads that the pool wants.
    pub goal: Option<u32>,
    /// Number of threads that .NET has recorded as blocked.
    pub blocked: Option<u32>,
    /// Processor usage as last measured by the pool, in percent.
    pub cpu_percent: Option<u32>,
    /// Number of items in all queues.
    pub pending: u64,
    /// Whether items wait although all threads of the pool are busy. In addition, the pool must not be able to add a thread, or all threads
    /// must be blocked.
    pub starved: bool,
    /// The queues with items, and the queues that every pool has.
    pub queues: Vec<PoolQueue>,
    /// Equal items of a queue.
    pub groups: Vec<PoolGroup>,
    /// The threads that take items from the queues.
    pub workers: Vec<PoolWorker>,
}

/// A queue of the thread pool.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct PoolQueue {
    /// `global`, `high priority`, `low priority`, `assignable`, or `local` with the thread.
    pub name: String,
    /// The queue object.
    pub object: Addr,
    /// Managed id of the thread that owns a local queue.
    pub managed_id: Option<u32>,
    /// Items, in the order in which threads take them; in a local queue, the newest last.
    pub items: Vec<PoolItem>,
}

/// An item of a queue.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct PoolItem {
    /// The item.
    pub object: Addr,
    /// Type name of the item.
    #[serde(rename = "type")]
    pub type_name: Option<Name>,
    /// Kind.
    pub kind: PoolItemKind,
    /// Exact name of the code that will run: the method of a delegate, the asynchronous method, or the type of any other item.
    pub description: Name,
    /// Form of that name for people.
    pub display: Name,
}

/// Equal items of a queue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct PoolGroup {
    /// Name of the queue.
    pub queue: String,
    /// Kind of the items.
    pub kind: PoolItemKind,
    /// Exact name of the code that will run.
    pub description: Name,
    /// Form of that name for people.
    pub display: Name,
    /// Number of items.
    pub count: u64,
}

/// A thread of the thread pool.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct PoolWorker {
    /// Managed id.
    pub managed_id: Option<u32>,
    /// OS id.
    pub os_id: Option<u64>,
    /// Call or lock that blocks the thread; `null` if the thread is not known to be blocked.
    pub blocked_by: Option<String>,
    /// Kind of the wait.
    pub wait: Option<WaitKind>,
    /// The object that the thread waits for.
    pub object: Option<Addr>,
    /// Type name of the object.
    #[serde(rename = "type")]
    pub type_name: Option<Name>,
    /// The method that waits or runs, as the compiler named it; `null` if the thread waits for work. It is the innermost one outside of
    /// `System.Threading`, but on a thread that is not blocked, a method of the program takes precedence.
    pub method: Option<Name>,
    /// Form of the method's name for people: `Lab.Program.Main.b__3_0 (lambda)`.
    pub display: Option<Name>,
}
