use std::sync::Arc;

use serde::Serialize;

use super::{ExceptionModel, ThreadWait};
use crate::base::{Addr, Name, named_enum};

named_enum! {
    /// GC mode of a thread.
    pub enum GcMode {
        /// Runs managed code: the GC must wait until it reaches a safe point.
        Cooperative = "cooperative",
        /// Does not access the heap: the GC need not wait.
        Preemptive = "preemptive",
    }
}

/// `threads`: managed threads.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct ThreadsReport {
    /// Number of OS threads in the dump, managed or not.
    pub os_threads: u64,
    /// The managed threads, in the order of the runtime's thread list.
    pub threads: Vec<ThreadModel>,
    /// OS id of the crashed thread, if it is not a managed one.
    pub crashed_unmanaged: Option<u32>,
}

/// A managed thread.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct ThreadModel {
    /// Managed id; `null` if it cannot be read.
    pub managed_id: Option<u32>,
    /// OS id; `null` if the thread has not started or has exited.
    pub os_id: Option<u64>,
    /// Address of its `Thread`.
    pub address: Addr,
    /// Name.
    pub name: Option<Name>,
    /// Names of the state flags that are set.
    pub state: Vec<String>,
    /// Raw state flags.
    pub state_value: Option<u32>,
    /// GC mode.
    pub gc_mode: Option<GcMode>,
    /// Whether this thread crashed.
    pub crashed: bool,
    /// Whether it is the finalizer thread.
    pub finalizer: bool,
    /// Next free byte of its allocation context.
    pub alloc_pointer: Option<Addr>,
    /// End of its allocation context.
    pub alloc_limit: Option<Addr>,
    /// The managed `Thread` object.
    pub object: Option<Addr>,
    /// Exception in flight, or the last one thrown if its `current` is false.
    pub exception: Option<Arc<ExceptionModel>>,
    /// What it waits for; `null` if it is not blocked, or unless asked for (`--waits`).
    pub waits_for: Option<Box<ThreadWait>>,
    /// Number of monitors that it holds, each once however often it entered: thin locks and sync blocks, as `locks` finds them. `null`
    /// where monitors cannot be told, or unless asked for (`--waits`).
    pub locks_held: Option<u64>,
    /// Nested exceptions in flight below it: each was being handled when the next was thrown.
    pub nested_exceptions: Vec<Addr>,
}
