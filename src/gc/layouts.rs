//! Offsets and places of the GC contract, bound once.

use crate::base::Addr;
use crate::contract::descriptor::layout;
use crate::contract::{ContractError, Descriptor};

layout! {
    /// A segment or region (`heap_segment`).
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
        // Only in segments builds: its absence tells regions.
        allocation_start: opt "AllocationStart",
    }
}

layout! {
    /// What was recorded about an allocation that failed. Previews of .NET 11 spelled it `OOMHistory`.
    pub(super) struct OomLayout : "OomHistory|OOMHistory" {
        reason: req "Reason",
        alloc_size: req "AllocSize",
        reserved: opt "Reserved",
        allocated: opt "Allocated",
        gc_index: opt "GcIndex",
        fgm: opt "Fgm",
        size: opt "Size",
        available_pagefile_mb: opt "AvailablePagefileMb|AvailablePagefileMB",
        loh: opt "LohP",
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

/// Everything about handle tables.
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
    pub(super) fn bind(d: &Descriptor) -> Result<HandleLayouts, ContractError> {
        Ok(HandleLayouts {
            map_at: d.pointer("HandleTableMap")?,
            map: MapLayout::bind(d)?,
            bucket: BucketLayout::bind(d)?,
            table: TableLayout::bind(d)?,
            segment: TableSegmentLayout::bind(d)?,
            buckets_per_map: d.number("InitialHandleTableArraySize")?,
            blocks: d.number("HandleBlocksPerSegment")?,
            per_block: d.number("HandlesPerBlock")?,
            types: d.number("HandleMaxInternalTypes")?,
            segment_bytes: d.number("HandleSegmentSize").unwrap_or(0x10000),
            block_invalid: d.number("BlockInvalid")?,
            destroyed: d.number("DebugDestroyedHandleValue").unwrap_or(0),
        })
    }
}

/// Where an item of a heap lies: with workstation GC in a global variable, with server GC inside the heap's structure.
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
        /// Places of all per-heap items; `None` where this build has no such item.
        pub(super) struct Places {
            $(pub(super) $field: Option<Place>),*
        }

        impl Places {
            pub(super) fn bind(d: &Descriptor, server: bool) -> Places {
                Places { $($field: place(d, server, $name)),* }
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

/// The workstation globals have the names of the server fields with `GCHeap` in front. Note that `OomData`, the arrays
/// and the generation table are embedded: their *address* is the item (contract `GC` reads a pointer there; measured wrong).
fn place(d: &Descriptor, server: bool, names: &str) -> Option<Place> {
    if server {
        return d.offset("GCHeap", names).ok().map(Place::Field);
    }
    let found = names.split('|').find_map(|n| d.pointer(&format!("GCHeap{n}")).ok());
    found.filter(|a| !a.is_null()).map(Place::Global)
}
