//! Structures of the GC: heaps, segments, handle tables, records of collections.

use super::{Inline, Word, data};
use crate::base::Addr;

data! {
    /// `gc_heap` (gcpriv.h). With workstation GC its fields are global variables, whose names begin with `GCHeap`.
    GCHeap {
        MarkArray: Addr,
        NextSweepObj: Addr,
        BackgroundMinSavedAddr: Addr,
        BackgroundMaxSavedAddr: Addr,
        AllocAllocated: Addr,
        EphemeralHeapSegment: Addr,
        /// The card table, biased so that address 0 has index 0.
        CardTable: Addr,
        /// A `CFinalize`.
        FinalizeQueue: Addr,
        /// An array of `Generation`.
        GenerationTable: Inline,
        SavedSweepEphemeralSeg: Addr,
        SavedSweepEphemeralStart: Addr,
        /// An `OomHistory`.
        OomData = "OomData|OOMData": Inline,
        InternalRootArray: Addr,
        InternalRootArrayIndex: Word,
        HeapAnalyzeSuccess: i32,
        InterestingData: Inline,
        CompactReasons: Inline,
        ExpandMechanisms: Inline,
        InterestingMechanismBits: Inline,
        /// The first `HeapSegment`.
        FreeableSohSegment: Addr,
        FreeableUohSegment: Addr,
        /// An array of `RegionFreeList`, one for each kind of region.
        FreeRegions: Inline,
    }

    /// `GCHeap` of the server GC (gcimpl.h), to which allocation contexts point. Described by overlays only.
    GCHeapInstance {
        /// The `gc_heap`.
        GCHeap: Addr,
    }

    /// `heap_segment` (gcpriv.h): a segment or region.
    HeapSegment {
        Allocated: Addr,
        Committed: Addr,
        Reserved: Addr,
        Used: Addr,
        Mem: Addr,
        Flags: Word,
        Next: Addr,
        BackgroundAllocated: Addr,
        /// Server GC: the `gc_heap`.
        Heap: Addr,
    }

    /// `generation` (gcpriv.h).
    Generation {
        /// A `GCAllocContext`.
        AllocationContext: Inline,
        /// The first `HeapSegment`.
        StartSegment: Addr,
        /// Absent in builds with regions.
        AllocationStart: Addr,
    }

    /// `region_free_list` (gcpriv.h).
    RegionFreeList {
        /// The first `HeapSegment`.
        HeadFreeRegion: Addr,
    }

    /// `CFinalize` (gcpriv.h): a finalization queue.
    CFinalize {
        /// Boundaries between the parts of the queue.
        FillPointers: Inline,
    }

    /// `oom_history` (gcinterface.dac.h): a failed allocation. Previews of .NET 11 spelled it `OOMHistory`.
    OomHistory = "OomHistory|OOMHistory" {
        Reason: i32,
        AllocSize: Word,
        Reserved: Addr,
        Allocated: Addr,
        GcIndex: Word,
        Fgm: i32,
        Size: Word,
        AvailablePagefileMb = "AvailablePagefileMb|AvailablePagefileMB": Word,
        LohP: u32,
    }

    /// `card_table_info` (gcpriv.h): the header of the bookkeeping memory.
    CardTableInfo {
        Recount: u32,
        Size: Word,
        /// Points to the end of the next header.
        NextCardTable: Addr,
    }

    /// `HandleTableMap` (objecthandle.h).
    HandleTableMap {
        BucketsPtr: Addr,
        Next: Addr,
    }

    /// `HandleTableBucket` (objecthandle.h).
    HandleTableBucket {
        /// An array of `HandleTable`s: one with workstation GC, one for each processor with server GC.
        Table: Addr,
    }

    /// `HandleTable` (handletablepriv.h).
    HandleTable {
        SegmentList: Addr,
    }

    /// `TableSegment` (handletablepriv.h).
    TableSegment {
        NextSegment: Addr,
        /// For each block, the next block of the same handle type.
        RgAllocation: Inline,
        /// For each handle type, the last block.
        RgTail: Inline,
        /// For each block, the block that holds the secondary values of its handles.
        RgUserData: Inline,
        /// The handle slots.
        RgValue: Inline,
    }

    /// `dynamic_data` (gcpriv.h): the figures by which the GC decides when to collect a generation. Only overlays describe this structure and the
    /// structures that follow.
    GCDynamicData {
        NewAllocation: Word,
        DesiredAllocation: Word,
        BeginDataSize: Word,
        SurvivedSize: Word,
        PinnedSurvivedSize: Word,
        CurrentSize: Word,
        CollectionCount: Word,
        PromotedSize: Word,
        Fragmentation: Word,
        GcClock: Word,
        GcElapsedTime: Word,
        /// A pointer to `GCStaticData`.
        StaticData: Word,
    }

    /// `static_data` (gcpriv.h).
    GCStaticData {}

    /// `gc_mechanisms` (gcpriv.h): the settings of the current or last collection.
    GCMechanisms {
        GcIndex: Word,
        CondemnedGeneration: u32,
        Promotion: u32,
        Compaction: u32,
        LohCompaction: u32,
        Concurrent: u32,
        Demotion: u32,
        ElevationReduced: u32,
        HeapExpansion: u32,
        CardBundles: u32,
        ShouldLockElevation: u32,
        MinimalGc: u32,
        FoundFinalizers: u32,
        Background: u32,
        Reason: u32,
        PauseMode: u32,
        EntryMemoryLoad: u32,
        EntryAvailablePhysicalMem: u64,
        ExitMemoryLoad: u32,
    }

    /// `last_recorded_gc_info` (gcpriv.h): the figures of a finished collection.
    GCRecord {
        Index: Word,
        TotalCommitted: Word,
        Promoted: Word,
        PinnedObjects: Word,
        FinalizePromotedObjects: Word,
        /// The duration of each pause: one, or two for a background collection.
        PauseDurations: Inline,
        PausePercentage: f32,
        /// An array of `GCRecordedGeneration`.
        Generations: Inline,
        HeapSize: Word,
        Fragmentation: Word,
        MemoryLoad: u32,
        CondemnedGeneration: u8,
        Compaction: u8,
        Concurrent: u8,
    }

    /// `recorded_generation_info` (gcpriv.h).
    GCRecordedGeneration {
        SizeBefore: Word,
        FragmentationBefore: Word,
        SizeAfter: Word,
        FragmentationAfter: Word,
    }
}
