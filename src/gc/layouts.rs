//! Offsets and locations of the GC contract's items, bound once.

use crate::base::Addr;
use crate::contract::descriptor::layout;
use crate::contract::{ContractError, Descriptor};

layout! {
    /// Segment or region (`heap_segment`).
    pub(super) struct SegmentLayout : "HeapSegment" {
        allocated: req "Allocated",
        committed: req "Committed",
        reserved: req "Reserved",
        used: opt "Used",
        mem: req "Mem",
        flags: req "Flags",
        next: req "Next",
        background_allocated: opt "BackgroundAllocated",
        heap: opt "Heap",
    }
}

layout! {
    /// An entry of the generation table.
    pub(super) struct GenerationLayout : "Generation" {
        context: opt "AllocationContext",
        start_segment: req "StartSegment",
        // Segments builds only; absent in regions builds.
        allocation_start: opt "AllocationStart",
    }
}

layout! {
    /// Record of a failed allocation. Previews of .NET 11 spelled it `OOMHistory`.
    pub(super) struct OomLayout : "OomHistory|OOMHistory" {
        reason: opt "Reason",
        alloc_size: opt "AllocSize",
        reserved: opt "Reserved",
        allocated: opt "Allocated",
        gc_index: opt "GcIndex",
        fgm: opt "Fgm",
        size: opt "Size",
        available_pagefile_mb: opt "AvailablePagefileMb|AvailablePagefileMB",
        loh: opt "LohP",
    }
}

impl OomLayout {
    /// The fields that the descriptor does not have.
    pub(super) fn undescribed(&self) -> Vec<&'static str> {
        let fields = [
            ("Reason", self.reason),
            ("AllocSize", self.alloc_size),
            ("Reserved", self.reserved),
            ("Allocated", self.allocated),
            ("GcIndex", self.gc_index),
            ("Fgm", self.fgm),
            ("Size", self.size),
            ("AvailablePagefileMb", self.available_pagefile_mb),
            ("LohP", self.loh),
        ];
        fields.into_iter().filter(|(_, offset)| offset.is_none()).map(|(name, _)| name).collect()
    }
}

layout! {
    pub(super) struct MapLayout : "HandleTableMap" {
        buckets: req "BucketsPtr",
        next: req "Next",
    }
}

layout! {
    pub(super) struct BucketLayout : "HandleTableBucket" {
        table: req "Table",
    }
}

layout! {
    pub(super) struct TableLayout : "HandleTable" {
        segments: req "SegmentList",
    }
}

layout! {
    pub(super) struct TableSegmentLayout : "TableSegment" {
        next: req "NextSegment",
        allocation: req "RgAllocation",
        tail: req "RgTail",
        user_data: req "RgUserData",
        value: req "RgValue",
    }
}

layout! {
    pub(super) struct CardTableInfoLayout : "CardTableInfo" {
        recount: req "Recount",
        size: req "Size",
        next: req "NextCardTable",
    }
}

layout! {
    /// What the GC keeps of a generation to decide when to collect it (`dynamic_data`, gcpriv.h).
    pub(super) struct DynamicLayout : "GCDynamicData" {
        budget_left: req "NewAllocation",
        budget: req "DesiredAllocation",
        size_before: req "BeginDataSize",
        survived: req "SurvivedSize",
        pinned_survived: req "PinnedSurvivedSize",
        size_after: req "CurrentSize",
        collection_count: req "CollectionCount",
        promoted: req "PromotedSize",
        fragmentation: req "Fragmentation",
        gc_clock: req "GcClock",
        elapsed: req "GcElapsedTime",
        static_data: req "StaticData",
    }
}

layout! {
    /// Settings of the current or last collection (`gc_mechanisms`, gcpriv.h).
    pub(super) struct MechanismsLayout : "GCMechanisms" {
        index: req "GcIndex",
        condemned: req "CondemnedGeneration",
        promotion: req "Promotion",
        compaction: req "Compaction",
        loh_compaction: req "LohCompaction",
        concurrent: req "Concurrent",
        demotion: req "Demotion",
        elevation_reduced: req "ElevationReduced",
        // Read only to tell the settings from something else.
        heap_expansion: req "HeapExpansion",
        card_bundles: req "CardBundles",
        lock_elevation: req "ShouldLockElevation",
        minimal: req "MinimalGc",
        found_finalizers: req "FoundFinalizers",
        background: req "Background",
        reason: req "Reason",
        pause_mode: req "PauseMode",
        entry_load: req "EntryMemoryLoad",
        entry_available: req "EntryAvailablePhysicalMem",
        exit_load: req "ExitMemoryLoad",
    }
}

layout! {
    /// Figures of a finished collection (`last_recorded_gc_info`, gcpriv.h).
    pub(super) struct RecordLayout : "GCRecord" {
        index: req "Index",
        committed: req "TotalCommitted",
        promoted: req "Promoted",
        pinned: req "PinnedObjects",
        finalization: req "FinalizePromotedObjects",
        pauses: req "PauseDurations",
        pause_percentage: req "PausePercentage",
        generations: req "Generations",
        heap_size: req "HeapSize",
        fragmentation: req "Fragmentation",
        memory_load: req "MemoryLoad",
        condemned: req "CondemnedGeneration",
        compaction: req "Compaction",
        concurrent: req "Concurrent",
    }
}

layout! {
    /// A generation of a [`RecordLayout`] (`recorded_generation_info`, gcpriv.h).
    pub(super) struct RecordedGenerationLayout : "GCRecordedGeneration" {
        size_before: req "SizeBefore",
        fragmentation_before: req "FragmentationBefore",
        size_after: req "SizeAfter",
        fragmentation_after: req "FragmentationAfter",
    }
}

/// Layouts of what the GC keeps of its collections.
pub(super) struct RecordLayouts {
    pub(super) dynamic: DynamicLayout,
    pub(super) dynamic_size: u64,
    pub(super) static_size: u64,
    pub(super) mechanisms: MechanismsLayout,
    pub(super) mechanisms_size: u64,
    pub(super) record: RecordLayout,
    pub(super) record_size: u64,
    pub(super) pauses: u64,
    pub(super) recorded: RecordedGenerationLayout,
    pub(super) recorded_size: u64,
}

impl RecordLayouts {
    pub(super) fn bind(d: &Descriptor) -> Result<RecordLayouts, ContractError> {
        Ok(RecordLayouts {
            dynamic: DynamicLayout::bind(d)?,
            dynamic_size: d.size_of("GCDynamicData")?,
            static_size: d.size_of("GCStaticData")?,
            mechanisms: MechanismsLayout::bind(d)?,
            mechanisms_size: d.size_of("GCMechanisms")?,
            record: RecordLayout::bind(d)?,
            record_size: d.size_of("GCRecord")?,
            pauses: d.number("GCRecordPauses")?.min(2),
            recorded: RecordedGenerationLayout::bind(d)?,
            recorded_size: d.size_of("GCRecordedGeneration")?,
        })
    }
}

/// Layouts and constants of handle tables.
pub(super) struct HandleLayouts {
    pub(super) map_at: Addr,
    pub(super) map: MapLayout,
    pub(super) bucket: BucketLayout,
    pub(super) table: TableLayout,
    pub(super) segment: TableSegmentLayout,
    pub(super) buckets_per_map: u64,
    pub(super) blocks: u64,
    pub(super) per_block: u64,
    pub(super) types: u64,
    pub(super) segment_bytes: u64,
    pub(super) block_invalid: u64,
    pub(super) destroyed: u64,
}

impl HandleLayouts {
    /// Handle types of .NET 8, the internal one included. No later release has fewer.
    const FEWEST_TYPES: u64 = 12;

    pub(super) fn bind(d: &Descriptor) -> Result<HandleLayouts, ContractError> {
        let types = d.number("HandleMaxInternalTypes")?;
        if types < Self::FEWEST_TYPES {
            let why = format!("{types} handle types are fewer than any runtime has");
            return Err(ContractError::Unusable { item: "global HandleMaxInternalTypes".into(), why });
        }
        Ok(HandleLayouts {
            map_at: d.pointer("HandleTableMap")?,
            map: MapLayout::bind(d)?,
            bucket: BucketLayout::bind(d)?,
            table: TableLayout::bind(d)?,
            segment: TableSegmentLayout::bind(d)?,
            buckets_per_map: d.number("InitialHandleTableArraySize")?,
            blocks: d.number("HandleBlocksPerSegment")?,
            per_block: d.number("HandlesPerBlock")?,
            types,
            segment_bytes: d.number("HandleSegmentSize").unwrap_or(0x10000),
            block_invalid: d.number("BlockInvalid")?,
            destroyed: d.number("DebugDestroyedHandleValue").unwrap_or(0),
        })
    }
}

/// Location of a per-heap item: a global variable with workstation GC, a field of `gc_heap` with server GC.
#[derive(Clone, Copy, Debug)]
pub(super) enum Place {
    Global(Addr),
    Field(u64),
}

impl Place {
    /// Address of the item for the heap at `heap`.
    pub(super) fn of(self, heap: Option<Addr>) -> Option<Addr> {
        match self {
            Place::Global(a) => Some(a),
            Place::Field(offset) => heap.map(|h| h.plus(offset)),
        }
    }
}

macro_rules! places {
    ($($field:ident : $name:literal),* $(,)?) => {
        /// Locations of all per-heap items; `None` if this build lacks the item.
        pub(super) struct Places {
            $(pub(super) $field: Option<Place>,)*
            /// Items that the descriptor has, but in a form that cannot be used, by field.
            unusable: Vec<(&'static str, ContractError)>,
        }

        impl Places {
            pub(super) fn bind(d: &Descriptor, server: bool) -> Places {
                let mut unusable = Vec::new();
                $(let $field = place(d, server, $name).unwrap_or_else(|e| {
                    unusable.push((stringify!($field), e));
                    None
                });)*
                Places { $($field,)* unusable }
            }

            /// Those of `fields`, or of all, that cannot be used.
            pub(super) fn unusable<'p>(&'p self, fields: Option<&'p [&str]>) -> impl Iterator<Item = &'p ContractError> {
                self.unusable.iter().filter(move |(name, _)| fields.is_none_or(|f| f.contains(name))).map(|(_, e)| e)
            }
        }
    };
}

places! {
    mark_array: "MarkArray",
    next_sweep_object: "NextSweepObj",
    background_saved_lowest: "BackgroundMinSavedAddr",
    background_saved_highest: "BackgroundMaxSavedAddr",
    alloc_allocated: "AllocAllocated",
    ephemeral_segment: "EphemeralHeapSegment",
    card_table: "CardTable",
    finalize_queue: "FinalizeQueue",
    generation_table: "GenerationTable",
    saved_sweep_segment: "SavedSweepEphemeralSeg",
    saved_sweep_start: "SavedSweepEphemeralStart",
    oom: "OomData|OOMData",
    internal_root_array: "InternalRootArray",
    internal_root_array_index: "InternalRootArrayIndex",
    heap_analyze_success: "HeapAnalyzeSuccess",
    interesting_data: "InterestingData",
    compact_reasons: "CompactReasons",
    expand_mechanisms: "ExpandMechanisms",
    interesting_mechanism_bits: "InterestingMechanismBits",
    freeable_soh: "FreeableSohSegment",
    freeable_uoh: "FreeableUohSegment",
    free_regions: "FreeRegions",
}

/// Workstation globals are named like the server fields, prefixed with `GCHeap`. `OomData`, the arrays and the generation
/// table are embedded: the *address* is the item (contract `GC` reads a pointer there, which is wrong in every dump measured).
///
/// # Errors
/// [`ContractError::Unusable`].
fn place(d: &Descriptor, server: bool, names: &str) -> Result<Option<Place>, ContractError> {
    let found = if server {
        d.offset("GCHeap", names).map(Place::Field)
    } else {
        let globals: Vec<String> = names.split('|').map(|n| format!("GCHeap{n}")).collect();
        d.pointer(&globals.join("|")).map(Place::Global)
    };
    match found {
        Ok(Place::Global(a)) if a.is_null() => Ok(None),
        Ok(place) => Ok(Some(place)),
        Err(e @ ContractError::Unusable { .. }) => Err(e),
        Err(_) => Ok(None),
    }
}
