use serde::Serialize;

use super::segment::Generation;
use super::walk::CoverageModel;
use crate::base::Addr;

/// `fragmentation`: where free space lies, and what keeps it apart.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct FragmentationReport {
    /// By generation; with `--heaps` by heap and generation.
    pub generations: Vec<FreeSpaceModel>,
    /// With `--segments`: by segment, in the order of heaps and generations.
    pub segments: Option<Vec<FreeSpaceModel>>,
    /// Free blocks by size, by powers of two; sizes without a block are left out.
    pub sizes: Vec<FreeSizeModel>,
    /// The largest free blocks.
    pub largest: Vec<FreeBlockModel>,
    /// Objects that pinned handles hold in place, by type, those with the most free space in front of them first.
    pub pinned: Vec<PinnedTypeModel>,
    /// Sums over the whole heap.
    pub totals: FragmentationTotals,
    /// How much of the heap was walked.
    pub coverage: CoverageModel,
}

/// Free space of a generation or segment.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct FreeSpaceModel {
    /// Which generation.
    pub generation: Generation,
    /// Which heap; `null` where the row stands for all heaps.
    pub heap: Option<u64>,
    /// Which segment: address of its structure; `null` where the row stands for several.
    pub segment: Option<Addr>,
    /// Bytes allocated: objects, free blocks, allocation contexts.
    pub allocated_bytes: u64,
    /// Free blocks.
    pub free_count: u64,
    /// Their bytes.
    pub free_bytes: u64,
    /// Their part of the allocated bytes, 0 to 1.
    pub share: f64,
    /// Bytes committed behind the end of the objects. In an ephemeral segment they are the youngest generation's.
    pub unused_committed_bytes: u64,
    /// Bytes of allocation contexts: handed to a thread and not yet filled; neither free nor objects. In an ephemeral segment
    /// they are the youngest generation's.
    pub context_bytes: u64,
}

/// Free blocks of about one size.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct FreeSizeModel {
    /// Smallest size in bytes, a power of two; the largest is one byte less than twice as much.
    pub size_from: u64,
    /// Free blocks.
    pub count: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// A free block.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct FreeBlockModel {
    /// Where it lies.
    pub address: Addr,
    /// Its bytes.
    pub size: u64,
    /// Its generation.
    pub generation: Generation,
    /// Its segment: address of the structure.
    pub segment: Addr,
    /// What ends where it begins; `null` where the segment, an allocation context or memory that is not in the dump does.
    pub before: Option<NeighbourModel>,
    /// What begins where it ends; `null` as for `before`.
    pub after: Option<NeighbourModel>,
    /// A pinned handle to the object behind it, or else to the one in front of it: address of the handle.
    pub pinned_by: Option<Addr>,
}

/// An object beside a free block.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct NeighbourModel {
    /// The object.
    pub address: Addr,
    /// Name of its type; `Free` for another free block.
    #[serde(rename = "type")]
    pub type_name: String,
}

/// Pinned objects of one type.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct PinnedTypeModel {
    /// Name of the type.
    #[serde(rename = "type")]
    pub type_name: String,
    /// Its method table.
    pub method_table: Addr,
    /// Objects, each once however many handles it has.
    pub count: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Bytes of free blocks that end where these objects begin.
    pub free_bytes_before: u64,
}

/// Sums of `fragmentation`.
#[derive(Clone, Debug, Default, Serialize, schemars::JsonSchema)]
pub struct FragmentationTotals {
    /// Bytes allocated.
    pub allocated_bytes: u64,
    /// Free blocks.
    pub free_count: u64,
    /// Their bytes.
    pub free_bytes: u64,
    /// Their part of the allocated bytes, 0 to 1.
    pub share: f64,
    /// Bytes committed behind the end of the objects of each segment.
    pub unused_committed_bytes: u64,
    /// Bytes of allocation contexts: handed to a thread and not yet filled.
    pub context_bytes: u64,
    /// Pinned and async-pinned handles that are in use.
    pub pinned_handles: u64,
    /// Objects of the heap that they hold in place.
    pub pinned_objects: u64,
}
