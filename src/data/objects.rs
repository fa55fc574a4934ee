//! Headers, sync blocks, and the objects that the runtime itself knows: strings, arrays, exceptions.

use super::{Inline, data};
use crate::base::Addr;

data! {
    /// The header before an object (syncblk.h).
    ObjectHeader {
        SyncBlockValue: u32,
    }

    /// An array (object.h).
    Array {
        m_NumComponents: u32,
    }

    /// The managed `System.String` (object.h).
    String {
        /// In UTF-16 code units.
        m_StringLength: u32,
        m_FirstChar: Inline,
    }

    /// The managed `System.Exception` (object.h).
    Exception {
        _message: Addr,
        _innerException: Addr,
        /// An array of bytes; .NET 9 and later: or an array of objects, of which that is the first.
        _stackTrace: Addr,
        _stackTraceString: Addr,
        _remoteStackTraceString: Addr,
        _HResult: i32,
        /// NativeAOT: an array of code addresses, and how many of them are in use.
        _corDbgStackTrace: Addr,
        _idxFirstFreeStackTraceEntry: u32,
    }

    /// `StackTraceArray::ArrayHeader` (clrex.h), at the start of the bytes.
    StackTraceArrayHeader {
        /// The number of elements. The upper half of the word has another use since .NET 9.
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
        /// A free entry has an odd word.
        Object: Addr,
    }

    /// `SyncBlock` (syncblk.h).
    SyncBlock {
        LockState: u32,
        Recursion: u32,
        /// .NET 8 and 9: the `Thread`.
        OwnerThread: Addr,
        /// .NET 10: the managed id.
        OwnerThreadId: u32,
        /// .NET 11: a handle to the lock, which is an object.
        Lock: Addr,
        /// .NET 11: the thin lock of the header from which the block was made.
        ThinLock: u32,
        /// 0: never computed.
        HashCode: u32,
        /// The place in the sync table. Of the overlays.
        Index: u32,
        /// The `Link` of the first `WaitEventLink`. Of the overlays.
        WaitQueue: Addr,
        /// `InteropSyncBlockInfo`.
        InteropInfo: Addr,
    }

    /// `SyncBlockCache` (syncblk.h).
    SyncBlockCache {
        FirstFreeIndex = "FirstFreeIndex|FreeSyncTableIndex": u32,
        /// Of the overlays.
        Capacity: u32,
    }
}
