//! The report of `timers`.

use serde::Serialize;

use crate::base::{Addr, Name, named_enum};

named_enum! {
    /// Kinds of timers.
    pub enum TimerKind {
        /// `System.Threading.Timer`, or a timer class that uses it.
        Timer = "timer",
        /// `Task.Delay`.
        Delay = "delay",
        /// A `CancellationTokenSource` that cancels after a time.
        Cancellation = "cancellation",
        /// `PeriodicTimer`.
        Periodic = "periodic",
    }
}

/// `timers`: timers, registered waits, and cancellation callbacks.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct TimersReport {
    /// Number of timers with a due time.
    pub active: u64,
    /// Number of these timers that are late.
    pub late: u64,
    /// Number of active timers in queues that wait for a thread of the thread pool. Their callbacks do not run until a thread is free.
    pub held_up: u64,
    /// The latest `Environment.TickCount64` at which a timer was started. The dump was written at that time or later.
    pub latest_tick_ms: Option<u64>,
    /// That tick in UTC, by `clock`.
    pub latest_utc: Option<String>,
    /// Clock that converts ticks to times; `null` if the process created no timer, or if it cannot be determined.
    pub clock: Option<TimerClock>,
    /// The timers, by due time. Timers that were never started or are disposed come last.
    pub timers: Vec<TimerModel>,
    /// Number of timers that are not listed, if there are any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_listed: Option<u64>,
    /// Waits of `ThreadPool.RegisterWaitForSingleObject`.
    pub waits: Vec<RegisteredWait>,
    /// Cancellation sources with callbacks, most callbacks first.
    pub cancellations: Vec<CancellationModel>,
}

/// The tick and the time at which the process created its first timer (`TimerQueue.s_tickCountToTimeMap`). If the clock was changed later,
/// all computed times differ by that change.
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
    /// Due time, in milliseconds of `Environment.TickCount64`; `null` if the timer is not in a queue.
    pub due_ms: Option<u64>,
    /// Due time in UTC, ISO 8601, computed with the report's `clock`; `null` without a clock.
    pub due_utc: Option<String>,
    /// Milliseconds from `latest_tick_ms` to the due time; negative if the due time is earlier. The remaining time was at most this long.
    pub due_in_ms: Option<i64>,
    /// Milliseconds to which the timer was last set; `null` if it was never started, or was stopped.
    pub set_ms: Option<u64>,
    /// Milliseconds between two calls; `null` if the timer fires once.
    pub period_ms: Option<u64>,
    /// Kind.
    pub kind: TimerKind,
    /// The method that the timer calls, or the method that waits for the timer, as the compiler named it.
    pub callback: Option<Name>,
    /// Form of the method's name for people: `Lab.Program.Main.b__3_0 (lambda)`.
    pub display: Option<Name>,
    /// The state object passed to the callback. For kinds other than `timer`, the object that the timer belongs to.
    pub state: Option<Addr>,
    /// Type of the state.
    pub state_type: Option<Name>,
    /// Whether the timer was disposed.
    pub canceled: Option<bool>,
    /// Number of callbacks running now.
    pub running: Option<u32>,
    /// Whether the timer is overdue. Either its queue waits for a thread of the thread pool, or another timer was started at least 0.1
    /// seconds after the due time. `false` is not a proof that the timer is on time.
    pub late: bool,
}

/// A registered wait.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct RegisteredWait {
    /// The `RegisteredWaitHandle`.
    pub object: Addr,
    /// The wait handle.
    pub handle: Option<Addr>,
    /// Timeout in milliseconds; `null` if absent.
    pub timeout_ms: Option<u64>,
    /// Whether the wait continues after a call of the method.
    pub repeating: Option<bool>,
    /// The method that is called, as the compiler named it.
    pub callback: Option<Name>,
    /// Form of the method's name for people: `Lab.Program.Main.b__3_0 (lambda)`.
    pub display: Option<Name>,
}

/// A cancellation source with callbacks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct CancellationModel {
    /// The `CancellationTokenSource`.
    pub object: Addr,
    /// Type name of the object.
    #[serde(rename = "type")]
    pub type_name: Option<Name>,
    /// Number of callbacks.
    pub count: u64,
    /// The callbacks by method, most frequent first.
    pub callbacks: Vec<CallbackCount>,
}

/// A method, and the number of its registrations.
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
