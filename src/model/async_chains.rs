use serde::Serialize;

use crate::base::{Addr, Name, named_enum};

named_enum! {
    /// `Task.Status`, spelled as in .NET.
    pub enum TaskStatus {
        /// Made, not started.
        Created = "Created",
        /// A promise, or the continuation of another task: started by something else.
        WaitingForActivation = "WaitingForActivation",
        /// Scheduled.
        WaitingToRun = "WaitingToRun",
        /// Its delegate was invoked.
        Running = "Running",
        /// Its delegate has returned, attached child tasks have not completed.
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
    /// What a chain of asynchronous methods hangs on.
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
        /// Another object that calls back: an `IValueTaskSource`, or a custom awaitable.
        Source = "source",
        /// The thread pool: ready, and in a queue.
        Queue = "queue",
        /// A thread that runs the method, and is blocked in `Wait` or `Result`.
        Thread = "thread",
        /// A thread that runs the method or the delegate, or is about to.
        Running = "running",
        /// Each other: a cycle.
        Cycle = "cycle",
        /// Nothing: no one can go on with the method.
        Abandoned = "abandoned",
        /// Not known.
        Unknown = "unknown",
    }
}

/// `async`: what asynchronous methods wait for.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct AsyncReport {
    /// Numbers of tasks and methods, whatever is listed.
    pub totals: AsyncTotals,
    /// Tasks by status.
    pub statuses: Vec<TaskStatusCount>,
    /// What methods wait for: one for each way from a root to an outermost waiter. With `merged`, equal ones once.
    pub chains: Vec<AsyncChain>,
    /// Whether equal chains are merged.
    pub merged: bool,
    /// The chains as trees, merged; `null` unless `merged`.
    pub tree: Option<Vec<AsyncRow>>,
    /// Number of trees listed, if not all are.
    pub shown: Option<u64>,
    /// Tasks; `null` unless asked for.
    pub tasks: Option<Vec<TaskModel>>,
    /// The chains by the object that they hang on, those with most chains first.
    #[serde(skip)]
    pub roots: Vec<AsyncRootSum>,
    /// Whether screens show the methods of the framework that only lead through (`--framework`).
    #[serde(skip)]
    pub framework: bool,
}

/// The chains that hang on one object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AsyncRootSum {
    /// The object.
    pub root: AsyncRoot,
    /// Number of chains.
    pub chains: u64,
    /// Number of asynchronous methods in them.
    pub methods: u64,
    /// Number of asynchronous methods in the longest.
    pub longest: u64,
    /// The innermost method of the program itself in most of them, else of a library.
    pub innermost: Option<Name>,
}

/// Numbers of tasks and asynchronous methods.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct AsyncTotals {
    /// Tasks on the heap.
    pub tasks: u64,
    /// Those that have not completed.
    pub pending: u64,
    /// Asynchronous methods that have not completed.
    pub methods: u64,
    /// Methods with an awaiter that is set, or a continuation: suspended in an `await`.
    pub suspended: u64,
    /// Those for which the awaiter and the awaited object's list of continuations name each other.
    pub confirmed: u64,
    /// Those for which they do not.
    pub contradicted: u64,
    /// Those that nobody can go on with: no awaiter, no one that would call back, in no queue, not running.
    pub abandoned: u64,
    /// Faulted tasks whose exceptions nobody has looked at.
    pub unobserved: u64,
    /// Completed tasks that still have continuations: half-way through completion.
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

/// Methods that wait for each other, and what they hang on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct AsyncChain {
    /// What everything hangs on.
    pub root: AsyncRoot,
    /// Number of equal chains; objects are those of the first one.
    pub count: u64,
    /// From the innermost, which waits for the root, outwards.
    pub frames: Vec<AsyncFrame>,
}

/// What a chain hangs on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct AsyncRoot {
    /// Its kind.
    pub kind: AsyncRootKind,
    /// The semaphore, channel, socket, timer; else as `node`.
    pub object: Option<Addr>,
    /// The task or source that calls back; for methods that wait for no object, the method.
    pub node: Option<Addr>,
    /// Type of `object`; `null` if unknown.
    #[serde(rename = "type")]
    pub type_name: Option<Name>,
    /// In words.
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
    /// The row for people: the method, else what is known in its place.
    pub label: Name,
    /// The module whose file would name the method (`--modules`): its code is precompiled, and the dump does not have what the image says of
    /// it. `null` otherwise.
    pub file: Option<String>,
    /// `<>1__state` of the method: number of the `await` where it is suspended, -1 if it runs. Of a method of runtime async the number of the
    /// place where it is suspended, `null` if it runs.
    pub state: Option<i32>,
    /// The task, box, continuation, or event that a thread waits for; of a method of runtime async that runs, its task.
    pub object: Addr,
    /// Its type; `null` if unknown.
    #[serde(rename = "type")]
    pub type_name: Option<Name>,
    /// Status of the task; `null` for what is no task.
    pub status: Option<TaskStatus>,
    /// Whether it is `async void`: nobody can await it.
    pub async_void: bool,
    /// Managed id of a thread whose stack has the object: one that is blocked in a wait for it, or that runs the method.
    pub thread: Option<u32>,
    /// Whether it is part of an earlier chain, too: further waiters are told there.
    pub visited: bool,
    /// Whether it is of the framework, or a task between methods.
    #[serde(skip)]
    pub framework: bool,
}

/// A row of the merged trees: a root, or what waits for the row above it.
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
    /// Managed ids of the threads that wait here, or run it.
    pub threads: Vec<u32>,
    /// Whether what waits for it is told in an earlier row.
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
    /// Its type.
    #[serde(rename = "type")]
    pub type_name: Option<Name>,
    /// Its status.
    pub status: TaskStatus,
    /// The asynchronous method that it belongs to, or what it runs, as the compiler named it.
    pub method: Option<Name>,
    /// Form of the method's name for people: `Lab.Program.Main.b__3_0 (lambda)`.
    pub display: Option<Name>,
    /// Exceptions of a faulted task.
    pub exceptions: Vec<TaskExceptionModel>,
    /// Whether nobody has looked at the exceptions; `null` if there are none.
    pub unobserved: Option<bool>,
}

/// An exception of a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct TaskExceptionModel {
    /// The exception.
    pub object: Addr,
    /// Its type.
    #[serde(rename = "type")]
    pub type_name: Option<Name>,
    /// Its message; `null` if unset.
    pub message: Option<String>,
}

/// What is known of a task or of the box of an asynchronous method.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct TaskPart {
    /// Its status; `null` for a box that is no task.
    pub status: Option<TaskStatus>,
    /// The asynchronous method, or what the task runs, as the compiler named it.
    pub method: Option<Name>,
    /// Form of the method's name for people: `Lab.Program.Main.b__3_0 (lambda)`.
    pub display: Option<Name>,
    /// `<>1__state` of the method.
    pub state: Option<i32>,
    /// What the method awaits.
    pub awaits: Vec<Addr>,
    /// What waits for it: methods, tasks, events of blocked threads, callbacks.
    pub waiters: Vec<TaskWaiter>,
    /// Exceptions of a faulted task.
    pub exceptions: Vec<TaskExceptionModel>,
    /// Whether nobody has looked at the exceptions; `null` if there are none.
    pub unobserved: Option<bool>,
}

/// Something that waits for a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct TaskWaiter {
    /// The object.
    pub object: Addr,
    /// Its type.
    #[serde(rename = "type")]
    pub type_name: Option<Name>,
    /// The asynchronous method, or what it runs, as the compiler named it.
    pub method: Option<Name>,
    /// Form of the method's name for people: `Lab.Program.Main.b__3_0 (lambda)`.
    pub display: Option<Name>,
}
