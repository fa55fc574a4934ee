use serde::Serialize;

use crate::base::{Addr, Name, named_enum};

named_enum! {
    /// `Task.Status`, spelled as in .NET.
    pub enum TaskStatus {
        /// Created, not started.
        Created = "Created",
        /// A promise or the continuation of another task; something else starts it.
        WaitingForActivation = "WaitingForActivation",
        /// Scheduled.
        WaitingToRun = "WaitingToRun",
        /// The delegate was invoked.
        Running = "Running",
        /// The delegate has returned, but attached child tasks have not completed.
        WaitingForChildrenToComplete = "WaitingForChildrenToComplete",
        /// Completed.
        RanToCompletion = "RanToCompletion",
        /// Completed by cancellation.
        Canceled = "Canceled",
        /// Completed by an exception.
        Faulted = "Faulted",
    }
}

named_enum! {
    /// Kinds of roots of chains: the thing that a chain of asynchronous methods waits for.
    pub enum AsyncRootKind {
        /// A task that code completes: a `TaskCompletionSource`, or a library's promise.
        Promise = "promise",
        /// `Task.Delay`, or a tick of a `PeriodicTimer`.
        Timer = "timer",
        /// A `SemaphoreSlim`. It has no owner.
        Semaphore = "semaphore",
        /// An operation of a channel.
        Channel = "channel",
        /// An operation of a socket.
        Socket = "socket",
        /// Another object that calls back: an `IValueTaskSource` or a custom awaitable.
        Source = "source",
        /// The thread pool: the method is ready and in a queue.
        Queue = "queue",
        /// A thread that runs the method, and is blocked in `Wait` or `Result`.
        Thread = "thread",
        /// A thread that runs the method or the delegate, or is about to run it.
        Running = "running",
        /// Each other: a cycle.
        Cycle = "cycle",
        /// Nothing: nothing can resume the method.
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
    /// Waiting methods as chains: one chain for each way from a root to an outermost waiter. With `merged`, equal chains
    /// are listed once.
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
    /// Whether screens show the methods of the framework, which are folded otherwise (`--framework`).
    #[serde(skip)]
    pub framework: bool,
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
    /// The innermost method of the program itself in most chains, else of a library.
    pub innermost: Option<Name>,
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
    /// Suspended methods: an awaiter is set, or there is a continuation.
    pub suspended: u64,
    /// Suspended methods whose awaiter and the awaited object's list of continuations refer to each other.
    pub confirmed: u64,
    /// Suspended methods whose awaiter and the awaited object's list of continuations do not refer to each other.
    pub contradicted: u64,
    /// Methods that nothing can resume: no awaiter, no object that would call back, in no queue, not running.
    pub abandoned: u64,
    /// Faulted tasks whose exceptions were not observed.
    pub unobserved: u64,
    /// Completed tasks that still have continuations: completion is in progress.
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

/// Methods that wait for each other, and what the innermost one waits for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct AsyncChain {
    /// Root of the chain.
    pub root: AsyncRoot,
    /// Number of equal chains; objects are those of the first chain.
    pub count: u64,
    /// Frames, from the innermost one, which waits for the root, outwards.
    pub frames: Vec<AsyncFrame>,
}

/// Root of a chain: what the innermost method waits for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct AsyncRoot {
    /// Kind.
    pub kind: AsyncRootKind,
    /// The semaphore, channel, socket or timer; otherwise the same as `node`.
    pub object: Option<Addr>,
    /// The task or source that calls back; the method itself if it waits for no object.
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
    /// The asynchronous method, or what a task or callback runs, as the compiler named it; `null` for other tasks.
    pub method: Option<Name>,
    /// Form of the method's name for people: `Lab.Program.Main.b__3_0 (lambda)`.
    pub display: Option<Name>,
    /// Text for people: the method, or else what is known about the frame.
    pub label: Name,
    /// The module whose file has the method's name (`--modules`): the code is precompiled, and that part of the image is not in the dump. `null`
    /// otherwise.
    pub file: Option<String>,
    /// `<>1__state` of the method: number of the `await` at which it is suspended, -1 if it runs. For a runtime-async method, the number of its
    /// suspension point, `null` if it runs.
    pub state: Option<i32>,
    /// The task, box, continuation, or event that a thread waits for; for a running runtime-async method, its task.
    pub object: Addr,
    /// Type; `null` if unknown.
    #[serde(rename = "type")]
    pub type_name: Option<Name>,
    /// Status of the task; `null` if the object is not a task.
    pub status: Option<TaskStatus>,
    /// Whether the method is `async void`: it cannot be awaited.
    pub async_void: bool,
    /// Managed id of a thread that has the object on its stack: it is blocked waiting for it, or runs the method.
    pub thread: Option<u32>,
    /// Whether the frame is also part of an earlier chain, which lists its further waiters.
    pub visited: bool,
    /// Whether it is of the framework, or a task between methods.
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
    /// Managed ids of the threads that wait here, or that run the method.
    pub threads: Vec<u32>,
    /// Whether an earlier row lists the waiters.
    pub visited: bool,
    /// Whether it is of the framework, or a task between methods.
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
    /// The asynchronous method that the task belongs to, or what it runs, as the compiler named it.
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
    /// The asynchronous method, or what the task runs, as the compiler named it.
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
    /// The asynchronous method, or what the waiter runs, as the compiler named it.
    pub method: Option<Name>,
    /// Form of the method's name for people: `Lab.Program.Main.b__3_0 (lambda)`.
    pub display: Option<Name>,
}
