use serde::Serialize;

use super::segment::Generation;
use super::walk::CoverageModel;
use crate::base::{Addr, Name};

/// `fragmentation`: free space, and the pinned objects that block compaction.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct FragmentationReport {
    /// By generation; with `--heaps` by heap and generation.
    pub generations: Vec<FreeSpaceModel>,
    /// With `--segments`: by segment, ordered by heap and generation.
    pub segments: Option<Vec<FreeSpaceModel>>,
    /// Free blocks by size, in powers of two; empty sizes omitted.
    pub sizes: Vec<FreeSizeModel>,
    /// The largest free blocks.
    pub largest: Vec<FreeBlockModel>,
    /// Objects pinned by handles, by type, sorted by free bytes before them.
    pub pinned: Vec<PinnedTypeModel>,
    /// Totals of the whole heap.
    pub totals: FragmentationTotals,
    /// Coverage of the heap walk.
    pub coverage: CoverageModel,
}

/// Free space of a generation or segment.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct FreeSpaceModel {
    /// Generation.
    pub generation: Generation,
    /// Heap index; `null` if the row covers all heaps.
    pub heap: Option<u64>,
    /// Segment address; `null` if the row covers several.
    pub segment: Option<Addr>,
    /// Allocated bytes: objects, free blocks, allocation contexts.
    pub allocated_bytes: u64,
    /// Number of free blocks; `null` if the dump lacks objects, and has none of these.
    pub free_count: Option<u64>,
    /// Their bytes; `null` as for `free_count`.
    pub free_bytes: Option<u64>,
    /// Their share of the allocated bytes that were walked, 0 to 1; `null` as for `free_count`.
    pub share: Option<f64>,
    /// Committed but unused bytes after the last object. In an ephemeral segment they count for the youngest generation.
    pub unused_committed_bytes: u64,
    /// Unused bytes of allocation contexts: neither free nor objects. In an ephemeral segment they count for the youngest
    /// generation. `null` if the dump lacks objects, and none were met.
    pub context_bytes: Option<u64>,
}

/// Free blocks of one size range.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct FreeSizeModel {
    /// Lower bound of the size in bytes, a power of two; the exclusive upper bound is twice that.
    pub size_from: u64,
    /// Number of free blocks.
    pub count: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// A free block.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct FreeBlockModel {
    /// Its address.
    pub address: Addr,
    /// Its size in bytes.
    pub size: u64,
    /// Its generation.
    pub generation: Generation,
    /// Address of its segment.
    pub segment: Addr,
    /// The object that ends at its start; `null` next to a segment start, an allocation context or absent memory.
    pub before: Option<NeighborModel>,
    /// The object that starts at its end; `null` as for `before`.
    pub after: Option<NeighborModel>,
    /// Address of a pinned handle to the object after it, or else to the one before it.
    pub pinned_by: Option<Addr>,
}

/// An object next to a free block.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct NeighborModel {
    /// The object.
    pub address: Addr,
    /// Name of its type; `Free` for another free block.
    #[serde(rename = "type")]
    pub type_name: Name,
}

/// Pinned objects of one type.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct PinnedTypeModel {
    /// Name of the type.
    #[serde(rename = "type")]
    pub type_name: Name,
    /// Its method table.
    pub method_table: Addr,
    /// Number of distinct objects.
    pub count: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Bytes of the free blocks directly before these objects.
    pub free_bytes_before: u64,
}

/// Totals of `fragmentation`. `null` where the dump lacks what would tell, and has none of it.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct FragmentationTotals {
    /// Allocated bytes.
    pub allocated_bytes: Option<u64>,
    /// Number of free blocks.
    pub free_count: Option<u64>,
    /// Their bytes.
    pub free_bytes: Option<u64>,
    /// Their share of the allocated bytes that were walked, 0 to 1.
    pub share: Option<f64>,
    /// Committed but unused bytes after the last object of each segment.
    pub unused_committed_bytes: Option<u64>,
    /// Unused bytes of allocation contexts.
    pub context_bytes: Option<u64>,
    /// Number of pinned and async-pinned handles in use.
    pub pinned_handles: Option<u64>,
    /// Number of heap objects pinned by them.
    pub pinned_objects: Option<u64>,
}
