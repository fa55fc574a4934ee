//! Storage of static fields: of types, modules and threads.

use super::{Inline, Word, data};
use crate::base::Addr;

data! {
    /// .NET 8: `DomainLocalModule` (appdomain.hpp): the statics of a module.
    DomainLocalModule {
        /// Entries of generic and collectible types, each a pointer and flags.
        DynamicTable: Addr,
        DynamicCount: Word,
        GCStatics: Addr,
        ModuleIndex: Word,
        /// A byte of flags for each row of TypeDef.
        DataBlob: Inline,
    }

    /// .NET 8: `ThreadLocalModule` (threadstatics.h): the thread statics of a module.
    ThreadLocalModule {
        DynamicTable: Addr,
        DynamicCount: Word,
        GCStaticsHandle: Addr,
    }

    /// .NET 8: `EEClassOptionalFields` (class.h).
    EEClassOptionalFields {
        /// The index of a collectible type in the dynamic tables.
        ModuleDynamicID: u32,
    }

    /// .NET 9 and later: `DynamicStaticsInfo` (methodtable.h), before the end of the auxiliary data.
    DynamicStaticsInfo {
        /// Both pointers have bit 0 set until the class constructor has run.
        GCStatics: Word,
        NonGCStatics: Word,
    }

    /// .NET 9 and later: `ThreadStaticsInfo` (methodtable.h).
    ThreadStaticsInfo {
        NonGCTlsIndex: u32,
        GCTlsIndex: u32,
    }

    /// .NET 9 and later: `ThreadLocalData` (threadstatics.h).
    ThreadLocalData {
        /// An array of objects.
        NonCollectibleTlsArrayData: Addr,
        NonCollectibleTlsDataCount: u32,
        /// An array of handles.
        CollectibleTlsArrayData: Addr,
        CollectibleTlsDataCount: u32,
        /// Entries that are not in the array yet. Published by .NET 10 and later.
        InFlightData: Addr,
    }

    /// `InFlightTLSData` (threadstatics.h).
    InFlightTLSData {
        Next: Addr,
        TlsIndex: u32,
        /// A handle.
        TLSData: Addr,
    }
}
