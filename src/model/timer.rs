use serde::Serialize;

use crate::base::{Addr, Name, named_enum};

named_enum! {
    /// What a timer is for.
    pub enum TimerKind {
        /// `System.Threading.Timer`, or what is built upon it.
        Timer = "timer",
        /// `Task.Delay`.
        Delay = "delay",
        /// A `CancellationTokenSource` that cancels after a time.
        Cancellation = "cancellation",
        /// `PeriodicTimer`.
        Periodic = "periodic",
    }
}

/// `timers`: timers, registered waits, and callbacks of cancellation.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct TimersReport {
    /// Timers that are due some time.
    pub active: u64,
    /// Of these, those that are late.
    pub late: u64,
    /// Active timers in queues whose turn has come and that wait for a thread of the thread pool: none of them is called until one is free.
    pub held_up: u64,
    /// The latest `Environment.TickCount64` that a timer was started at: the dump was written then, or later.
    pub latest_tick_ms: Option<u64>,
    /// That tick in UTC, by `clock`.
    pub latest_utc: Option<String>,
    /// What turns ticks into times; `null` if the process made no timer, or the dump does not tell.
    pub clock: Option<TimerClock>,
    /// The timers, by due time. Those that are in no queue come last: never started, or disposed.
    pub timers: Vec<TimerModel>,
    /// With `--top`: number of timers that are not listed, if there are any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_listed: Option<u64>,
    /// Waits of `ThreadPool.RegisterWaitForSingleObject`.
    pub waits: Vec<RegisteredWait>,
    /// Sources of cancellation with callbacks, most callbacks first.
    pub cancellations: Vec<CancellationModel>,
}

/// The tick and the time at which the process made its first timer: `TimerQueue.s_tickCountToTimeMap`, which the library keeps for
/// debuggers. If the clock was set since, times are off by as much.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct TimerClock {
    /// `Environment.TickCount64`.
    pub tick_ms: u64,
    /// The time at that tick, ISO 8601.
    pub utc: String,
}

/// A timer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct TimerModel {
    /// The `TimerQueueTimer`.
    pub object: Addr,
    /// When it is due, in milliseconds as `Environment.TickCount64` counts; `null` if it is in no queue.
    pub due_ms: Option<u64>,
    /// The same in UTC, ISO 8601, by the report's `clock`; `null` without one.
    pub due_utc: Option<String>,
    /// Milliseconds from `latest_tick_ms` until then; less than zero if it was due before. The time left was not longer.
    pub due_in_ms: Option<i64>,
    /// Milliseconds that it was set to when it was started last; `null` if it was never started, or stopped.
    pub set_ms: Option<u64>,
    /// Milliseconds between two calls; `null` if it is called once.
    pub period_ms: Option<u64>,
    /// What it is for.
    pub kind: TimerKind,
    /// The method that is called, or what waits. As the compiler named it.
    pub callback: Option<Name>,
    /// Form of the method's name for people: `Lab.Program.Main.b__3_0 (lambda)`.
    pub display: Option<Name>,
    /// The state that is passed to the callback: of other kinds than `timer`, what the timer belongs to.
    pub state: Option<Addr>,
    /// Type of the state.
    pub state_type: Option<Name>,
    /// Whether it was disposed.
    pub canceled: Option<bool>,
    /// Callbacks that run at this moment.
    pub running: Option<u32>,
    /// Whether it was due and is not called: its queue waits for a thread of the thread pool, or another timer was started a tenth of a second
    /// after that time, or later. `false` may mean that the dump does not show it.
    pub late: bool,
}

/// A registered wait.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct RegisteredWait {
    /// The `RegisteredWaitHandle`.
    pub object: Addr,
    /// What it waits for.
    pub handle: Option<Addr>,
    /// Milliseconds that it waits; `null` for ever.
    pub timeout_ms: Option<u64>,
    /// Whether it goes on to wait after a call.
    pub repeating: Option<bool>,
    /// The method that is called, as the compiler named it.
    pub callback: Option<Name>,
    /// Form of the method's name for people: `Lab.Program.Main.b__3_0 (lambda)`.
    pub display: Option<Name>,
}

/// A source of cancellation with callbacks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct CancellationModel {
    /// The `CancellationTokenSource`.
    pub object: Addr,
    /// Its type.
    #[serde(rename = "type")]
    pub type_name: Option<Name>,
    /// Number of callbacks.
    pub count: u64,
    /// The callbacks by method, most frequent first.
    pub callbacks: Vec<CallbackCount>,
}

/// A method, and how often it is registered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct CallbackCount {
    /// The method, as the compiler named it.
    pub callback: Name,
    /// Form of that name for people.
    pub display: Name,
    /// Number of registrations.
    pub count: u64,
}
