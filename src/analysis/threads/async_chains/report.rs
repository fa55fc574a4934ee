//! The report of `async_chains`.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::base::{Addr, Name, named_enum};
use crate::model::TaskStatus;

named_enum! {
    /// Kinds of roots of chains. The root is the object that a chain of asynchronous methods waits for.
    pub enum AsyncRootKind {
        /// A task that code completes: a `TaskCompletionSource`, or a library's promise.
        Promise = "promise",
        /// `Task.Delay`, or a tick of a `PeriodicTimer`.
        Timer = "timer",
        /// A `SemaphoreSlim`, which has no owner.
        Semaphore = "semaphore",
        /// An operation of a channel.
        Channel = "channel",
        /// An operation of a socket.
        Socket = "socket",
        /// Another object that calls back: an `IValueTaskSource` or a custom awaitable.
        Source = "source",
        /// The thread pool: the method is ready to run and in a queue.
        Queue = "queue",
        /// A `SynchronizationContext` or `TaskScheduler`: the method or task is ready to run and in its queue.
        Context = "context",
        /// A thread that runs the method and is blocked in `Wait` or `Result`.
        Thread = "thread",
        /// A thread that runs the method or delegate, or is about to.
        Running = "running",
        /// A cycle: the methods wait for each other.
        Cycle = "cycle",
        /// No root: nothing can resume the method.
        Abandoned = "abandoned",
        /// Unknown.
        Unknown = "unknown",
    }
}

/// `async`: what asynchronous methods wait for.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct AsyncReport {
    /// Numbers of all tasks and methods, listed or not.
    pub totals: AsyncTotals,
    /// Tasks by status.
    pub statuses: Vec<TaskStatusCount>,
    /// Chains of waiting methods, one for each path from a root to an outermost waiter. With `merged`, equal chains are listed once.
    pub chains: Vec<AsyncChain>,
    /// Whether equal chains are merged.
    pub merged: bool,
    /// The chains as trees, merged; `null` unless `merged`.
    pub tree: Option<Vec<AsyncRow>>,
    /// Number of trees listed, if not all are.
    pub shown: Option<u64>,
    /// Tasks; `null` unless requested.
    pub tasks: Option<Vec<TaskModel>>,
    /// Chains by the object that they wait for, most chains first.
    #[serde(skip)]
    pub roots: Vec<AsyncRootSum>,
    /// A root for each thread that runs a part of a chain or waits for one, by managed id.
    #[serde(skip)]
    pub threads: BTreeMap<u32, AsyncRoot>,
}

/// Chains that wait for one object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AsyncRootSum {
    /// The object.
    pub root: AsyncRoot,
    /// Number of chains.
    pub chains: u64,
    /// Number of asynchronous methods in them.
    pub methods: u64,
    /// Number of asynchronous methods in the longest chain.
    pub longest: u64,
    /// The innermost method of the program in most chains, or of a library if the program has none in them.
    pub innermost: Option<Name>,
    /// The methods, sorted. A method has the same number in all sums of a report.
    pub(in crate::analysis) members: Vec<u32>,
}

/// Numbers of tasks and asynchronous methods.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct AsyncTotals {
    /// Tasks on the heap.
    pub tasks: u64,
    /// Tasks that have not completed.
    pub pending: u64,
    /// Asynchronous methods that have not completed.
    pub methods: u64,
    /// Suspended methods: those with an awaiter or a continuation.
    pub suspended: u64,
    /// Suspended methods for which the awaiter and the awaited object's list of continuations refer to each other.
    pub confirmed: u64,
    /// Suspended methods for which the awaiter and the awaited object's list of continuations do not refer to each other.
    pub contradicted: u64,
    /// Methods that nothing can resume: they do not run, are not in a queue, and no object would call them back.
    pub abandoned: u64,
    /// Faulted tasks whose exceptions were not observed.
    pub unobserved: u64,
    /// Completed tasks that still have continuations, because completion is in progress.
    pub completing: u64,
}

/// Number of tasks with a status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct TaskStatusCount {
    /// The status.
    pub status: TaskStatus,
    /// Number of tasks.
    pub count: u64,
}

/// A chain: methods of which each waits for the previous one, and the object that the innermost one waits for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct AsyncChain {
    /// Root of the chain.
    pub root: AsyncRoot,
    /// Number of equal chains. The objects in `root` and `frames` are those of the first one.
    pub count: u64,
    /// Frames, innermost first. The innermost one waits for the root.
    pub frames: Vec<AsyncFrame>,
}

/// Root of a chain: the object that the innermost method waits for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct AsyncRoot {
    /// Kind.
    pub kind: AsyncRootKind,
    /// The semaphore, channel, socket, timer, context or scheduler; for other kinds the same as `node`.
    pub object: Option<Addr>,
    /// The task or source that calls back, or the method itself if it does not wait for an object.
    pub node: Option<Addr>,
    /// Type of `object`; `null` if unknown.
    #[serde(rename = "type")]
    pub type_name: Option<Name>,
    /// Description.
    pub label: Name,
}

/// A method or task of a chain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct AsyncFrame {
    /// The asynchronous method, or the method that a task or callback runs, as the compiler named it; `null` for other tasks.
    pub method: Option<Name>,
    /// Form of the method's name for people: `Lab.Program.Main.b__3_0 (lambda)`.
    pub display: Option<Name>,
    /// Text for people: the method, or else a description of the frame.
    pub label: Name,
    /// The module whose file is needed for the method's name (`--modules`). `null` if the name is known, or if a file would not help.
    pub file: Option<String>,
    /// `<>1__state` of the method: the number of the `await` at which it is suspended, or -1 if it runs. For a runtime-async method, the
    /// number of the suspension point, or `null` if it runs.
    pub state: Option<i32>,
    /// The task, the box or continuation of the method, or the event that a thread waits for. For a running runtime-async method, its task.
    pub object: Addr,
    /// Type; `null` if unknown.
    #[serde(rename = "type")]
    pub type_name: Option<Name>,
    /// Status of the task; `null` if the object is not a task.
    pub status: Option<TaskStatus>,
    /// Whether the method is `async void`, so that it cannot be awaited.
    pub async_void: bool,
    /// Managed id of a thread that has the object on its stack because it runs the method or is blocked until the object completes.
    pub thread: Option<u32>,
    /// Whether the frame is also part of an earlier chain. Its further waiters are listed only there.
    pub visited: bool,
    /// Whether the frame is a method of the framework, or a task between methods.
    #[serde(skip)]
    pub framework: bool,
}

/// A row of the merged trees: a root, or a waiter of the row above it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct AsyncRow {
    /// 0 for roots.
    pub depth: u32,
    /// Number of objects.
    pub count: u64,
    /// Kind of the root; `null` for frames.
    pub root: Option<AsyncRootKind>,
    /// The root, method or task.
    pub label: Name,
    /// `<>1__state` of the method.
    pub state: Option<i32>,
    /// Status of the task.
    pub status: Option<TaskStatus>,
    /// One of the objects.
    pub example: Option<Addr>,
    /// Managed ids of all threads that wait for the objects or run the method.
    pub threads: Vec<u32>,
    /// Whether an earlier row lists the waiters.
    pub visited: bool,
    /// Whether the row is a method of the framework, or a task between methods.
    #[serde(skip)]
    pub framework: bool,
}

/// A task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct TaskModel {
    /// The task.
    pub object: Addr,
    /// Type.
    #[serde(rename = "type")]
    pub type_name: Option<Name>,
    /// Status.
    pub status: TaskStatus,
    /// The asynchronous method that the task belongs to, or the method that the task runs, as the compiler named it.
    pub method: Option<Name>,
    /// Form of the method's name for people: `Lab.Program.Main.b__3_0 (lambda)`.
    pub display: Option<Name>,
    /// Exceptions of a faulted task.
    pub exceptions: Vec<TaskExceptionModel>,
    /// Whether the exceptions were not observed; `null` if the task has none.
    pub unobserved: Option<bool>,
}

/// An exception of a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct TaskExceptionModel {
    /// The exception.
    pub object: Addr,
    /// Type.
    #[serde(rename = "type")]
    pub type_name: Option<Name>,
    /// Message; `null` if unset.
    pub message: Option<String>,
}

/// State of a task or of the box of an asynchronous method.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct TaskPart {
    /// Status; `null` for a box that is not a task.
    pub status: Option<TaskStatus>,
    /// The asynchronous method, or the method that the task runs, as the compiler named it.
    pub method: Option<Name>,
    /// Form of the method's name for people: `Lab.Program.Main.b__3_0 (lambda)`.
    pub display: Option<Name>,
    /// `<>1__state` of the method.
    pub state: Option<i32>,
    /// Objects that the method awaits.
    pub awaits: Vec<Addr>,
    /// Waiters: methods, tasks, events of blocked threads, callbacks.
    pub waiters: Vec<TaskWaiter>,
    /// Exceptions of a faulted task.
    pub exceptions: Vec<TaskExceptionModel>,
    /// Whether the exceptions were not observed; `null` if the task has none.
    pub unobserved: Option<bool>,
}

/// A waiter of a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct TaskWaiter {
    /// The object.
    pub object: Addr,
    /// Type.
    #[serde(rename = "type")]
    pub type_name: Option<Name>,
    /// The asynchronous method, or the method that the waiter runs, as the compiler named it.
    pub method: Option<Name>,
    /// Form of the method's name for people: `Lab.Program.Main.b__3_0 (lambda)`.
    pub display: Option<Name>,
}
