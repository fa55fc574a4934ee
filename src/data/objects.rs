//! Object headers, sync blocks, and the managed objects that the runtime itself uses: strings, arrays, exceptions.

use super::{Inline, data};
use crate::base::Addr;

data! {
    /// The header before an object: `ObjHeader` (syncblk.h).
    ObjectHeader {
        SyncBlockValue: u32,
    }

    /// `ArrayBase` (object.h), an array.
    Array {
        m_NumComponents: u32,
    }

    /// The managed `System.String` (object.h).
    String {
        /// Length in UTF-16 code units.
        m_StringLength: u32,
        m_FirstChar: Inline,
    }

    /// The managed `System.Exception` (object.h).
    Exception {
        _message: Addr,
        _innerException: Addr,
        /// An array of bytes. In .NET 9 and later it may be an array of objects, whose first element is that array of bytes.
        _stackTrace: Addr,
        _stackTraceString: Addr,
        _remoteStackTraceString: Addr,
        _HResult: i32,
        /// NativeAOT: an array of code addresses, and the number of entries in use.
        _corDbgStackTrace: Addr,
        _idxFirstFreeStackTraceEntry: u32,
    }

    /// `StackTraceArray::ArrayHeader` (clrex.h), at the start of the array of bytes.
    StackTraceArrayHeader {
        /// The number of elements. Since .NET 9, the upper half of the word has another use.
        Size: u32,
    }

    /// `StackTraceElement` (clrex.h).
    StackTraceElement {
        IP = "IP|Ip": Addr,
        /// Not published by .NET 11.
        SP: Addr,
        MethodDesc: Addr,
        Flags: u32,
    }

    /// `SyncTableEntry` (syncblk.h).
    SyncTableEntry {
        SyncBlock: Addr,
        /// The object. In a free entry, the word is odd.
        Object: Addr,
    }

    /// `SyncBlock` (syncblk.h).
    SyncBlock {
        LockState: u32,
        Recursion: u32,
        /// .NET 8 and 9: the owning `Thread`.
        OwnerThread: Addr,
        /// .NET 10: the managed id of the owner.
        OwnerThreadId: u32,
        /// .NET 11: a handle to the managed lock object.
        Lock: Addr,
        /// .NET 11: the thin lock that the header held before the sync block was created.
        ThinLock: u32,
        /// 0 if the hash code was never computed.
        HashCode: u32,
        /// The index in the sync table. Described by overlays only.
        Index: u32,
        /// The `Link` of the first `WaitEventLink`. Described by overlays only.
        WaitQueue: Addr,
        /// The `InteropSyncBlockInfo`.
        InteropInfo: Addr,
    }

    /// `SyncBlockCache` (syncblk.h).
    SyncBlockCache {
        FirstFreeIndex = "FirstFreeIndex|FreeSyncTableIndex": u32,
        /// The allocated size of the sync table. Described by overlays only.
        Capacity: u32,
    }
}
