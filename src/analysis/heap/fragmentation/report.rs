//! The report of `fragmentation`.

use serde::Serialize;

use crate::base::{Addr, Name};
use crate::model::{CoverageModel, Generation};

/// `fragmentation`: free space, and the pinned objects that block compaction.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct FragmentationReport {
    /// Free space by generation; with `heaps` by heap and generation.
    pub generations: Vec<FreeSpaceModel>,
    /// With `segments`: free space by segment, ordered by heap and generation.
    pub segments: Option<Vec<FreeSpaceModel>>,
    /// Free blocks by size, in powers of two; sizes without blocks are omitted.
    pub sizes: Vec<FreeSizeModel>,
    /// The largest free blocks.
    pub largest: Vec<FreeBlockModel>,
    /// Types of objects that handles pin, sorted by the free bytes before the objects.
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
    /// Number of free blocks; `null` if objects are missing from the dump and no free block was found.
    pub free_count: Option<u64>,
    /// Size of the free blocks in bytes; `null` as for `free_count`.
    pub free_bytes: Option<u64>,
    /// Free bytes as a share of the allocated bytes that were walked, 0 to 1; `null` as for `free_count`.
    pub share: Option<f64>,
    /// Committed but unused bytes after the last object. In an ephemeral segment they belong to the youngest
    /// generation.
    pub unused_committed_bytes: u64,
    /// Unused bytes of allocation contexts, which are neither free blocks nor objects; in an ephemeral segment they belong to the youngest
    /// generation. `null` if objects are missing from the dump and no allocation context was found.
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
    /// Size of the blocks in bytes.
    pub bytes: u64,
}

/// A free block.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct FreeBlockModel {
    /// Address.
    pub address: Addr,
    /// Size in bytes.
    pub size: u64,
    /// Generation.
    pub generation: Generation,
    /// Address of the segment.
    pub segment: Addr,
    /// The object that ends where the block starts; `null` after a segment start, an allocation context or missing memory.
    pub before: Option<NeighborModel>,
    /// The object that starts where the block ends; `null` before a segment end, an allocation context or missing memory.
    pub after: Option<NeighborModel>,
    /// Address of a pinned handle to the object after the block, or else to the one before it.
    pub pinned_by: Option<Addr>,
}

/// An object next to a free block.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct NeighborModel {
    /// The object.
    pub address: Addr,
    /// Type name of the object; `Free` for another free block.
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
    /// Method table.
    pub method_table: Addr,
    /// Number of distinct objects.
    pub count: u64,
    /// Size of the objects in bytes.
    pub bytes: u64,
    /// Bytes of the free blocks directly before these objects.
    pub free_bytes_before: u64,
}

/// Totals of `fragmentation`. A total is `null` if all data for it is missing from the dump.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct FragmentationTotals {
    /// Allocated bytes.
    pub allocated_bytes: Option<u64>,
    /// Number of free blocks.
    pub free_count: Option<u64>,
    /// Size of the free blocks in bytes.
    pub free_bytes: Option<u64>,
    /// Free bytes as a share of the allocated bytes that were walked, 0 to 1.
    pub share: Option<f64>,
    /// Committed but unused bytes after the last object of each segment.
    pub unused_committed_bytes: Option<u64>,
    /// Unused bytes of allocation contexts.
    pub context_bytes: Option<u64>,
    /// Number of pinned and async-pinned handles in use.
    pub pinned_handles: Option<u64>,
    /// Number of heap objects pinned by these handles.
    pub pinned_objects: Option<u64>,
}
