use serde::Serialize;

use super::ExceptionModel;
use crate::base::{Addr, named_enum};

named_enum! {
    /// Whether the GC has to wait for a thread.
    pub enum GcMode {
        /// It runs managed code: the GC has to wait until it reaches a safe point.
        Cooperative = "cooperative",
        /// It does not touch the heap: the GC need not wait.
        Preemptive = "preemptive",
    }
}

/// `threads`: managed threads.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct ThreadsReport {
    /// Threads of the operating system in the dump, managed or not.
    pub os_threads: u64,
    /// The managed threads, in the order of the runtime's list.
    pub threads: Vec<ThreadModel>,
    /// Thread that crashed, where it is not a managed one.
    pub crashed_unmanaged: Option<u32>,
}

/// A managed thread.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct ThreadModel {
    /// Managed id; `null` where it cannot be read.
    pub managed_id: Option<u32>,
    /// Id of the operating system; `null` where the thread has not started or is gone.
    pub os_id: Option<u64>,
    /// Address of the runtime's `Thread` object.
    pub address: Addr,
    /// Name.
    pub name: Option<String>,
    /// Names of the state flags that are set.
    pub state: Vec<String>,
    /// State flags as a number.
    pub state_value: Option<u32>,
    /// Whether the GC has to wait for it.
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
    /// Exception in flight, or the last one thrown where `current` is false.
    pub exception: Option<ExceptionModel>,
    /// Exceptions in flight beneath that one: each was being handled when the next was thrown.
    pub nested_exceptions: Vec<Addr>,
}
