//! What the runtime keeps for objects beside their fields.

use super::{Inline, data};
use crate::base::Addr;

data! {
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
