//! Structures of threads.

use super::{Inline, Word, data};
use crate::base::Addr;

data! {
    /// `Thread` (threads.h), the native part of a managed thread.
    Thread {
        /// The next thread; null in the last thread.
        LinkNext: Addr,
        /// The managed id.
        Id: u32,
        /// The OS thread id: a `size_t`, of which 32 bits are used.
        OSId: Word,
        State: u32,
        /// 1 in cooperative mode.
        PreemptiveGCDisabled: u32,
        /// A handle to the managed `Thread`.
        ExposedObject = "ExposedObject|GCHandle": Addr,
        /// A handle to the last exception thrown.
        LastThrownObject: Addr,
        /// The innermost exception in flight.
        ExceptionTracker: Addr,
        /// The highest address of the stack.
        CachedStackBase: Addr,
        CachedStackLimit: Addr,
        /// The innermost `Frame`.
        Frame: Addr,
        /// .NET 11: the first `GCFrame`.
        GCFrame: Inline,
        /// The innermost `DebugBlockingItem`. Described by overlays only.
        DebugBlockingItem: Addr,
        /// .NET 8: the `ThreadLocalBlock`s of modules, and their number.
        ThreadLocalBlockTable: Addr,
        ThreadLocalBlockSize: u32,
        /// .NET 9 and later: `ThreadLocalData`.
        ThreadLocalDataPtr: Addr,
        /// .NET 8, NativeAOT: the allocation context.
        AllocContext: Inline,
        /// .NET 9 and later: the `RuntimeThreadLocals`.
        RuntimeThreadLocals: Addr,
        /// NativeAOT: the array of blocks of thread statics.
        ThreadLocalStatics: Addr,
        /// NativeAOT: the thread statics of modules whose statics are inlined into the thread.
        InlinedThreadLocalStatics: Addr,
    }

    /// NativeAOT: a block of thread statics that is inlined into the thread.
    InlinedThreadStaticRoot {
        Statics: Addr,
        Next: Addr,
    }

    /// `ThreadStore` (threads.h).
    ThreadStore {
        /// Points to the first `Thread`, or to the link inside it.
        FirstThreadLink: Addr,
        /// Absent in NativeAOT.
        ThreadCount: u32,
    }

    /// `RuntimeThreadLocals` (threads.h).
    RuntimeThreadLocals {
        AllocContext: Inline,
    }

    /// `ee_alloc_context` (gcheaputilities.h), in .NET 10 and later. It contains the GC's allocation context. In earlier releases, the thread
    /// contains the GC's context directly.
    EEAllocContext {
        GCAllocationContext: Inline,
    }

    /// `gc_alloc_context` (gcinterface.h).
    GCAllocContext {
        /// The next free byte.
        Pointer: Addr,
        Limit: Addr,
        AllocBytes: u64,
        /// Bytes allocated in the LOH and the POH.
        AllocBytesLoh: u64,
    }

    /// The heaps of an allocation context with server GC (`alloc_heap`, `home_heap` in gcenv.h). No release publishes them.
    GCAllocContextHeaps {
        AllocHeap: Addr,
        HomeHeap: Addr,
    }

    /// An exception in flight (`ExInfo` in exinfo.h). Up to .NET 10, `ThrownObject` is a handle to the exception object; in .NET 11 and NativeAOT, it
    /// is the address of the exception object.
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
        /// 0 while entering the monitor, 1 in `Monitor.Wait`.
        Kind: u32,
        /// Timeout in milliseconds; -1 for none.
        Timeout: u32,
    }

    /// `WaitEventLink` (threads.h): a thread in the queue of a sync block.
    WaitEventLink {
        Thread: Addr,
        /// Points to the `Link` of the next `WaitEventLink`.
        Link: Addr,
    }
}
