//! Wrappers that represent managed objects in native code.

use super::data;
use crate::base::Addr;

data! {
    /// `InteropSyncBlockInfo` (syncblk.h).
    InteropSyncBlockInfo {
        /// `ComCallWrapper`.
        CCW: Addr,
        /// .NET 8 and 9: the wrappers of ComWrappers, by the number of the instance that made them.
        ManagedObjectComWrapperMap: Addr,
    }

    /// An element of [`InteropSyncBlockInfo::ManagedObjectComWrapperMap`].
    ManagedObjectComWrapperMapEntry {
        /// An interface of the wrapper.
        Value: Addr,
    }

    /// `ManagedObjectWrapperLayout` (interoplibabi.h).
    ManagedObjectWrapperLayout {
        /// The handle. .NET 8 and 9 find wrappers from objects, and need it as a proof.
        Target: Addr,
        RefCount: u64,
    }

    /// `ComCallWrapper` (comcallablewrapper.h).
    ComCallWrapper {
        SimpleWrapper: Addr,
    }

    /// `SimpleComCallWrapper` (comcallablewrapper.h).
    SimpleComCallWrapper {
        RefCount: u64,
        Flags: u32,
    }
}
