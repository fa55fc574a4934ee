//! The report of `heap`.

use serde::Serialize;

use crate::analysis::HeapMapModel;
use crate::base::Addr;
use crate::model::{AllocContextModel, CarvedModel, CollectionsModel, Generation, HeapDetail, SegmentPart};

/// `heap`: the heaps by generation.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct HeapReport {
    /// The heaps; with `heap`, only that one.
    pub heaps: Vec<HeapModel>,
    /// Totals of these heaps.
    pub totals: HeapTotals,
    /// With `detail`: records that the GC keeps about its collections; `null` if they were not found.
    pub collections: Option<CollectionsModel>,
    /// With `map`: a map of the contents of the heaps' memory.
    pub map: Option<HeapMapModel>,
    /// Allocation contexts: ranges that are reserved for threads and not yet filled with objects. Contexts without a range and without
    /// allocated bytes are omitted, except the global one.
    pub allocation_contexts: Vec<AllocContextModel>,
    /// How the heap was carved; absent if it was not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub carved: Option<CarvedModel>,
}

/// A heap.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct HeapModel {
    /// Index.
    pub index: u64,
    /// Address of the `gc_heap`; `null` with workstation GC, whose single heap is kept in global variables.
    pub address: Option<Addr>,
    /// Generations that have segments.
    pub generations: Vec<GenerationModel>,
    /// Totals of the generations.
    pub totals: HeapTotals,
    /// With `detail`: everything else that the GC publishes about the heap.
    pub detail: Option<HeapDetail>,
}

/// A generation of a heap.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct GenerationModel {
    /// Generation or segment kind.
    pub generation: Generation,
    /// Number of segments or regions.
    pub segments: u64,
    /// Allocated bytes: objects and the free space between them.
    pub allocated: u64,
    /// Committed bytes.
    pub committed: u64,
    /// Reserved bytes, including committed ones.
    pub reserved: u64,
    /// Share of the allocated bytes of all heaps, 0 to 1.
    pub share: f64,
    /// Generations within the ephemeral segment.
    pub parts: Vec<SegmentPart>,
}

/// Totals.
#[derive(Clone, Copy, Debug, Default, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct HeapTotals {
    /// Number of segments or regions.
    pub segments: u64,
    /// Allocated bytes: objects and the free space between them.
    pub allocated: u64,
    /// Committed bytes.
    pub committed: u64,
    /// Reserved bytes, including committed ones.
    pub reserved: u64,
}
