//! Threads, and what the runtime keeps for each.

use super::{Inline, Word, data};
use crate::base::Addr;

data! {
    /// `Thread` (threads.h), the runtime's side of a managed thread.
    Thread {
        /// Null in the last one.
        LinkNext: Addr,
        /// The managed id.
        Id: u32,
        /// The id of the operating system: a `size_t`, of which 32 bits are used.
        OSId: Word,
        State: u32,
        /// 1 in cooperative mode.
        PreemptiveGCDisabled: u32,
        /// A handle to the managed `Thread`.
        ExposedObject = "ExposedObject|GCHandle": Addr,
        /// A handle.
        LastThrownObject: Addr,
        /// The innermost exception in flight.
        ExceptionTracker: Addr,
        /// The highest address of the stack.
        CachedStackBase: Addr,
        CachedStackLimit: Addr,
        /// The innermost `Frame`.
        Frame: Addr,
        /// .NET 11.
        GCFrame: Inline,
        /// The innermost item that the thread is blocked in, for debuggers. Of the overlays.
        DebugBlockingItem: Addr,
        /// .NET 8: the `ThreadLocalBlock`s of modules, and their number.
        ThreadLocalBlockTable: Addr,
        ThreadLocalBlockSize: u32,
        /// .NET 9 and later: `ThreadLocalData`.
        ThreadLocalDataPtr: Addr,
        /// .NET 8, NativeAOT: the allocation context.
        AllocContext: Inline,
        /// .NET 9 and later.
        RuntimeThreadLocals: Addr,
        /// NativeAOT: the array of blocks of thread statics.
        ThreadLocalStatics: Addr,
        /// NativeAOT: the blocks of modules that have just one.
        InlinedThreadLocalStatics: Addr,
    }

    /// NativeAOT: a block of thread statics of a module that has just one.
    InlinedThreadStaticRoot {
        Statics: Addr,
        Next: Addr,
    }

    /// `ThreadStore` (threads.h).
    ThreadStore {
        /// Leads to the first `Thread`, or to the link in it.
        FirstThreadLink: Addr,
        /// Not in NativeAOT.
        ThreadCount: u32,
    }

    /// `RuntimeThreadLocals` (threads.h).
    RuntimeThreadLocals {
        AllocContext: Inline,
    }

    /// `ee_alloc_context` (gcheaputilities.h); .NET 10 and later embed the GC's context in one of the VM, earlier ones do not.
    EEAllocContext {
        GCAllocationContext: Inline,
    }

    /// `gc_alloc_context` (gcinterface.h).
    GCAllocContext {
        /// The next free byte.
        Pointer: Addr,
        Limit: Addr,
        AllocBytes: u64,
        /// Bytes allocated in LOH and POH.
        AllocBytesLoh: u64,
    }

    /// The fields of server GC in an allocation context (`alloc_heap`, `home_heap` in gcenv.h). No release publishes them.
    GCAllocContextHeaps {
        AllocHeap: Addr,
        HomeHeap: Addr,
    }

    /// An exception in flight (`ExInfo` in exinfo.h): up to .NET 10 a handle to the object, in .NET 11 and in NativeAOT the object itself.
    ExceptionInfo = "ExceptionInfo|ExInfo" {
        ThrownObject: Addr,
        PreviousNestedInfo: Addr,
    }

    /// `IdDispenser` (threads.h): the table of managed ids.
    IdDispenser {
        /// The `Thread` of each id.
        IdToThread: Addr,
        HighestId: u32,
    }

    /// `DebugBlockingItem` (threads.h), on the stack of the blocked thread.
    DebugBlockingItem {
        /// The `SyncBlock`.
        Lock: Addr,
        AppDomain: Addr,
        /// 0 enters the monitor, 1 waits.
        Kind: u32,
        /// In milliseconds; -1 for none.
        Timeout: u32,
    }

    /// `WaitEventLink` (threads.h): a thread in the queue of a sync block.
    WaitEventLink {
        Thread: Addr,
        /// Leads to the `Link` of the next one.
        Link: Addr,
    }
}
