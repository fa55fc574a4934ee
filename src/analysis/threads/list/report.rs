//! The report of `threads`.

use std::sync::Arc;

use serde::Serialize;

use crate::analysis::{ExceptionModel, ThreadWait};
use crate::base::{Addr, Name, named_enum};
use crate::model::FaultModel;

named_enum! {
    /// GC mode of a thread.
    pub enum GcMode {
        /// The thread runs managed code. The GC must wait until the thread reaches a safepoint.
        Cooperative = "cooperative",
        /// The thread does not access the heap. The GC need not wait for it.
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
    /// Number of managed threads that are not listed, if there are any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_listed: Option<u64>,
    /// The crashed thread, if its row is not listed.
    #[serde(skip)]
    pub(crate) crashed_not_listed: Option<Box<ThreadModel>>,
    /// Whether the threads are sorted by allocated bytes.
    #[serde(skip)]
    pub by_allocated: bool,
    /// OS id of the crashed thread, if it is not a managed thread.
    pub crashed_unmanaged: Option<u32>,
    /// Location of the crash; `null` without a crash.
    pub fault: Option<FaultModel>,
    /// The suspension of all threads, if one was in progress.
    pub suspension: Option<SuspensionModel>,
}

/// A suspension of all threads that was in progress. No collection had begun; the purpose need not be a collection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct SuspensionModel {
    /// Managed id of the thread that suspends the others; `null` if it is not a managed thread, or unknown.
    pub by: Option<u32>,
    /// OS id of that thread.
    pub by_os_id: Option<u64>,
    /// Number of the last collection before the suspension; `null` before the first one, and if the records of the GC
    /// were not found.
    pub after_collection: Option<u64>,
    /// The threads that had not stopped. They ran managed code, or native code in cooperative mode.
    pub waits_for: Vec<SuspendedThread>,
}

/// A thread that a suspension waits for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct SuspendedThread {
    /// Managed id.
    pub managed_id: Option<u32>,
    /// OS id.
    pub os_id: Option<u64>,
    /// Name.
    pub name: Option<Name>,
    /// Innermost method.
    pub method: Option<Name>,
}

impl SuspensionModel {
    /// Text such as `after GC #28 it waits for thread 5 "Interface" in Cases.Busy.Interface()`. Only the first few threads are named.
    pub(crate) fn words(&self) -> String {
        /// Number of threads that are named.
        const NAMED: usize = 4;
        let thread = |t: &SuspendedThread| {
            let id = t.managed_id.map(|id| id.to_string()).or_else(|| t.os_id.map(|id| format!("OS {id}"))).unwrap_or_else(|| "?".into());
            let name = t.name.as_ref().map(|name| format!(" {name:?}")).unwrap_or_default();
            let method = t.method.as_ref().map(|method| format!(" in {method}")).unwrap_or_default();
            format!("thread {id}{name}{method}")
        };
        let mut named: Vec<String> = self.waits_for.iter().take(NAMED).map(thread).collect();
        match self.waits_for.len().saturating_sub(NAMED) {
            0 => {}
            more => named.push(format!("{more} more")),
        }
        let since = self.after_collection.map(|index| format!("after GC #{index} ")).unwrap_or_default();
        let waits = if named.is_empty() { "all threads have stopped".into() } else { format!("it waits for {}", named.join(", ")) };
        format!("{since}{waits}")
    }
}

impl ThreadModel {
    /// Bytes that the thread has allocated in SOH, LOH and POH; `None` if neither count is known.
    pub fn allocated(&self) -> Option<u64> {
        let counts = [self.allocated_bytes, self.allocated_bytes_uoh];
        counts.iter().any(Option::is_some).then(|| counts.into_iter().flatten().fold(0, u64::saturating_add))
    }
}

/// A managed thread.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct ThreadModel {
    /// Managed id; `null` if it cannot be read.
    pub managed_id: Option<u32>,
    /// OS id; `null` if the thread has not started or has exited.
    pub os_id: Option<u64>,
    /// Address of the `Thread`.
    pub address: Addr,
    /// Name.
    pub name: Option<Name>,
    /// Names of the state flags that are set.
    pub state: Vec<String>,
    /// Raw state flags.
    pub state_value: Option<u32>,
    /// GC mode.
    pub gc_mode: Option<GcMode>,
    /// Whether the thread crashed.
    pub crashed: bool,
    /// Whether the thread is the finalizer thread.
    pub finalizer: bool,
    /// Next free byte of the thread's allocation context.
    pub alloc_pointer: Option<Addr>,
    /// End of the thread's allocation context.
    pub alloc_limit: Option<Addr>,
    /// Bytes that the thread has allocated in the SOH so far, without the unused bytes up to `alloc_limit`; `null` if the runtime does not
    /// publish them.
    pub allocated_bytes: Option<u64>,
    /// Bytes that the thread has allocated in LOH and POH so far; `null` if the runtime does not publish them.
    pub allocated_bytes_uoh: Option<u64>,
    /// Server GC: index of the heap that the GC prefers for the thread, according to the processor on which the thread ran. `null` if the
    /// thread has not allocated, or if the GC's layout is unknown.
    pub home_heap: Option<u64>,
    /// The managed `Thread` object.
    pub object: Option<Addr>,
    /// Exception in flight, or the last one that was thrown; its `current` distinguishes the two.
    pub exception: Option<Arc<ExceptionModel>>,
    /// The wait that blocks the thread; `null` if it is not blocked, or without `waits`.
    pub waits_for: Option<Box<ThreadWait>>,
    /// Number of monitors that the thread holds (thin locks and sync blocks), however often each was entered. `null` if they cannot be
    /// determined, or without `waits`.
    pub locks_held: Option<u64>,
    /// Nested exceptions in flight, innermost first, without the current one. Each was thrown while the next in the list was being handled.
    pub nested_exceptions: Vec<Addr>,
}
