use serde::Serialize;

use super::WaitKind;
use crate::base::{Addr, Name, named_enum};

named_enum! {
    /// Whose thread pool a process uses.
    pub enum PoolKind {
        /// It cannot be told: the dump lacks what would.
        Unknown = "unknown",
        /// Nobody has used the thread pool.
        None = "none",
        /// That of .NET's own library.
        Portable = "portable",
        /// That of Windows: its queues are not on the heap.
        Windows = "windows",
    }
}

named_enum! {
    /// Kinds of items in the queues of the thread pool.
    pub enum PoolItemKind {
        /// A task: the delegate that it runs.
        Task = "task",
        /// An asynchronous method that is ready to go on.
        AsyncMethod = "async-method",
        /// A callback of `ThreadPool.QueueUserWorkItem`.
        Callback = "callback",
        /// Any other `IThreadPoolWorkItem`.
        WorkItem = "work-item",
    }
}

/// `pool`: the thread pool, its queues and its threads. Numbers are `null` if nobody has used the pool, or if they are not in the dump.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct PoolReport {
    /// Whose thread pool it is.
    pub kind: PoolKind,
    /// Fewest threads that the pool keeps.
    pub min: Option<u32>,
    /// Most threads that the pool may have.
    pub max: Option<u32>,
    /// Threads that process work.
    pub working: Option<u32>,
    /// Threads of the pool.
    pub existing: Option<u32>,
    /// Threads that the pool wants.
    pub goal: Option<u32>,
    /// Threads that .NET knows to be blocked.
    pub blocked: Option<u32>,
    /// Processor usage as the pool measured it last, in percent.
    pub cpu_percent: Option<u32>,
    /// Items in all queues.
    pub pending: u64,
    /// Whether items wait although every thread of the pool is busy, and none can be added or all are blocked.
    pub starved: bool,
    /// The queues with items, and those that every pool has.
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
    /// The queue.
    pub object: Addr,
    /// The thread of a local queue.
    pub managed_id: Option<u32>,
    /// Its items: those of a local queue newest last, those of others in the order in which they are taken.
    pub items: Vec<PoolItem>,
}

/// An item of a queue.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct PoolItem {
    /// The item.
    pub object: Addr,
    /// Its type.
    #[serde(rename = "type")]
    pub type_name: Option<Name>,
    /// Its kind.
    pub kind: PoolItemKind,
    /// Name of what will run, exactly: the method of a delegate, the asynchronous method, the type of any other item.
    pub description: Name,
    /// Form of that name for people.
    pub display: Name,
}

/// Equal items of a queue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct PoolGroup {
    /// The queue's name.
    pub queue: String,
    /// Kind of the items.
    pub kind: PoolItemKind,
    /// Name of what will run, exactly.
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
    /// What blocks it; `null` if it is not known to be blocked.
    pub blocked_by: Option<String>,
    /// What kind of wait that is.
    pub wait: Option<WaitKind>,
    /// The object that it waits for.
    pub object: Option<Addr>,
    /// Its type.
    #[serde(rename = "type")]
    pub type_name: Option<Name>,
    /// The method that waits, as the compiler named it: the innermost one outside of `System.Threading`. Of a thread that is not blocked, the one
    /// that it runs: the innermost of the program's own, else outside of `System.Threading`; `null` if it waits for work.
    pub method: Option<Name>,
    /// Form of the method's name for people: `Lab.Program.Main.b__3_0 (lambda)`.
    pub display: Option<Name>,
}
