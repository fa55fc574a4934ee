//! Structures of COM interop: wrappers that represent managed objects in native code.

use super::data;
use crate::base::Addr;

data! {
    /// `InteropSyncBlockInfo` (syncblk.h).
    InteropSyncBlockInfo {
        /// The `ComCallWrapper`.
        CCW: Addr,
        /// .NET 8 and 9: the wrappers created by each `ComWrappers` instance, by its id.
        ManagedObjectComWrapperMap: Addr,
    }

    /// An entry of [`InteropSyncBlockInfo::ManagedObjectComWrapperMap`].
    ManagedObjectComWrapperMapEntry {
        /// An interface pointer of the wrapper.
        Value: Addr,
    }

    /// `ManagedObjectWrapperLayout` (interoplibabi.h).
    ManagedObjectWrapperLayout {
        /// The handle to the wrapped object. In .NET 8 and 9, it shows which of an object's wrappers belongs to a handle.
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
