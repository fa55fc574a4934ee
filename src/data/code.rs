//! Code: its ranges, its headers, the tables of images.

use super::{Inline, data};
use crate::base::Addr;

data! {
    /// `RangeSectionMap` (codeman.h): tables of 256 entries by address, five levels deep.
    RangeSectionMap {
        TopLevelData: Inline,
    }

    /// `RangeSectionFragment` (codeman.h): a part of a section in one entry of the map.
    RangeSectionFragment {
        /// With a flag in bit 0.
        Next: Addr,
        RangeBegin: Addr,
        RangeEndOpen: Addr,
        /// With a flag in bit 0.
        RangeSection: Addr,
    }

    /// `RangeSection` (codeman.h).
    RangeSection {
        RangeBegin: Addr,
        RangeEndOpen: Addr,
        Flags: u32,
        /// The `Module` of an image.
        R2RModule: Addr,
        /// The `CodeHeapListNode` of a code heap.
        HeapList: Addr,
    }

    /// `HeapList` (codeman.h): a code heap of the JIT.
    CodeHeapListNode {
        StartAddress: Addr,
        EndAddress: Addr,
        /// The code of the first nibble of the map.
        MapBase: Addr,
        /// The nibble map.
        HeaderMap: Addr,
    }

    /// `RealCodeHeader` (codeman.h), which the word before a method points to.
    RealCodeHeader {
        /// The exception clauses.
        EHInfo: Addr,
        GCInfo: Addr,
        DebugInfo: Addr,
        MethodDesc: Addr,
        NumUnwindInfos: u32,
        /// `RuntimeFunction`s.
        UnwindInfos: Inline,
    }

    /// `RUNTIME_FUNCTION`. Its addresses are RVAs.
    RuntimeFunction {
        BeginAddress: u32,
        /// Not on arm64.
        EndAddress: u32,
        UnwindData: u32,
    }

    /// `ReadyToRunInfo` (readytoruninfo.h): the compiled code of an image.
    ReadyToRunInfo {
        ReadyToRunHeader: Addr,
        /// That of the composite image, for one of its components.
        CompositeInfo: Addr,
        RuntimeFunctions: Addr,
        NumRuntimeFunctions: u32,
        NumHotColdMap: u32,
        /// `ImageDataDirectory`: the thunks that load the target of a call.
        DelayLoadMethodCallThunks: Addr,
        /// A `HashMap`.
        EntryPointToMethodDescMap: Inline,
    }

    /// `IMAGE_DATA_DIRECTORY`.
    ImageDataDirectory {
        VirtualAddress: u32,
        Size: u32,
    }

    /// `HashMap` (hash.h).
    HashMap {
        /// The first one holds the number of the others.
        Buckets: Addr,
    }

    /// `Bucket` (hash.h).
    Bucket {
        Keys: Inline,
        Values: Inline,
    }

    /// `PatchpointInfo` (patchpointinfo.h).
    PatchpointInfo {
        LocalCount: u32,
    }
}
