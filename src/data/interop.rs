//! Structures of COM interop: wrappers that represent managed objects in native code.

use super::data;
use crate::base::Addr;

data! {
    /// `InteropSyncBlockInfo` (syncblk.h).
    InteropSyncBlockInfo {
        /// The `ComCallWrapper`.
        CCW: Addr,
        /// .NET 8 and 9: the wrappers created by each `ComWrappers` instance, by the id of the instance.
        ManagedObjectComWrapperMap: Addr,
    }

    /// An entry of [`InteropSyncBlockInfo::ManagedObjectComWrapperMap`].
    ManagedObjectComWrapperMapEntry {
        /// An interface pointer of the wrapper.
        Value: Addr,
    }

    /// `ManagedObjectWrapperLayout` (interoplibabi.h).
    ManagedObjectWrapperLayout {
        /// The handle to the wrapped object. In .NET 8 and 9, an object may have several wrappers; this field shows which wrapper belongs to a
        /// handle.
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
