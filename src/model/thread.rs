use serde::Serialize;

use super::ExceptionModel;
use crate::base::Addr;

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
    /// `cooperative` (running managed code, the GC has to wait) or `preemptive`.
    pub gc_mode: Option<String>,
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
