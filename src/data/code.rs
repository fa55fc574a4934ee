//! Structures of managed code: code ranges, method headers, tables of ReadyToRun images.

use super::{Inline, data};
use crate::base::Addr;

data! {
    /// `RangeSectionMap` (codeman.h): a five-level radix tree over addresses, with 256 entries in each table.
    RangeSectionMap {
        TopLevelData: Inline,
    }

    /// `RangeSectionFragment` (codeman.h): the part of a section that is in one entry of the map.
    RangeSectionFragment {
        /// The next fragment, with a flag in bit 0.
        Next: Addr,
        RangeBegin: Addr,
        RangeEndOpen: Addr,
        /// The section, with a flag in bit 0.
        RangeSection: Addr,
    }

    /// `RangeSection` (codeman.h).
    RangeSection {
        RangeBegin: Addr,
        RangeEndOpen: Addr,
        Flags: u32,
        /// The `Module` of a ReadyToRun image.
        R2RModule: Addr,
        /// The `CodeHeapListNode` of a JIT code heap.
        HeapList: Addr,
    }

    /// `HeapList` (codeman.h): a code heap of the JIT.
    CodeHeapListNode {
        StartAddress: Addr,
        EndAddress: Addr,
        /// The code address that the first nibble of the map describes.
        MapBase: Addr,
        /// The nibble map, which marks where methods start.
        HeaderMap: Addr,
    }

    /// `RealCodeHeader` (codeman.h). The word before the code of a method points to this header.
    RealCodeHeader {
        /// The exception clauses.
        EHInfo: Addr,
        GCInfo: Addr,
        DebugInfo: Addr,
        MethodDesc: Addr,
        NumUnwindInfos: u32,
        /// An array of `RuntimeFunction`.
        UnwindInfos: Inline,
    }

    /// `RUNTIME_FUNCTION`. The addresses are RVAs.
    RuntimeFunction {
        BeginAddress: u32,
        /// Absent on arm64.
        EndAddress: u32,
        UnwindData: u32,
    }

    /// `ReadyToRunInfo` (readytoruninfo.h): the precompiled code of an image.
    ReadyToRunInfo {
        ReadyToRunHeader: Addr,
        /// In a component of a composite image: the `ReadyToRunInfo` of the composite image.
        CompositeInfo: Addr,
        RuntimeFunctions: Addr,
        NumRuntimeFunctions: u32,
        NumHotColdMap: u32,
        /// The `ImageDataDirectory` of the thunks that resolve a call target at the first call.
        DelayLoadMethodCallThunks: Addr,
        /// The `HashMap` from entry points to MethodDescs.
        EntryPointToMethodDescMap: Inline,
    }

    /// `IMAGE_DATA_DIRECTORY`.
    ImageDataDirectory {
        VirtualAddress: u32,
        Size: u32,
    }

    /// `HashMap` (hash.h).
    HashMap {
        /// The buckets. The first bucket holds the number of the other buckets.
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
