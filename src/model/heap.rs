use serde::Serialize;

use super::segment::{Generation, SegmentPart};
use crate::base::{Addr, named_enum};

/// `heap`: each heap by generation.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct HeapReport {
    /// The heaps.
    pub heaps: Vec<HeapModel>,
    /// Sums over all heaps.
    pub totals: HeapTotals,
    /// Allocation contexts: stretches of the youngest generation handed to a thread, not yet filled with objects.
    pub allocation_contexts: Vec<AllocContextModel>,
}

/// A heap.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct HeapModel {
    /// Its number.
    pub index: u64,
    /// Address of its `gc_heap` structure; `null` with workstation GC, whose one heap is in global variables.
    pub address: Option<Addr>,
    /// Its generations, those without a segment left out.
    pub generations: Vec<GenerationModel>,
    /// Sums over its generations.
    pub totals: HeapTotals,
    /// With `--detail`: everything else that the GC publishes about it.
    pub detail: Option<HeapDetail>,
}

/// A generation of a heap.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct GenerationModel {
    /// Which one.
    pub generation: Generation,
    /// Number of segments or regions.
    pub segments: u64,
    /// Bytes of objects, free space between them included.
    pub allocated: u64,
    /// Bytes committed.
    pub committed: u64,
    /// Bytes reserved, committed ones included.
    pub reserved: u64,
    /// Part of the allocated bytes of all heaps, 0 to 1.
    pub share: f64,
    /// The ephemeral segment's generations.
    pub parts: Vec<SegmentPart>,
}

/// Sums.
#[derive(Clone, Copy, Debug, Default, Serialize, schemars::JsonSchema)]
pub struct HeapTotals {
    /// Number of segments or regions.
    pub segments: u64,
    /// Bytes of objects, free space between them included.
    pub allocated: u64,
    /// Bytes committed.
    pub committed: u64,
    /// Bytes reserved, committed ones included.
    pub reserved: u64,
}

named_enum! {
    /// Whose an allocation context is.
    pub enum ContextOwner {
        /// A managed thread's.
        Thread = "thread",
        /// The GC's own, for promoting objects into a generation.
        Generation = "generation",
        /// The process's, of early start-up.
        Global = "global",
    }
}

/// A stretch of memory that was handed to an allocator and not yet filled.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct AllocContextModel {
    /// Whose it is.
    pub owner: ContextOwner,
    /// Managed thread id, or number of the generation.
    pub owner_id: Option<u64>,
    /// Heap, for a generation's context.
    pub heap: Option<u64>,
    /// Next free byte.
    pub pointer: Addr,
    /// End of the stretch; the smallest object's size behind it is unformatted as well.
    pub limit: Addr,
    /// Bytes allocated by its owner in the small object heap so far.
    pub allocated_bytes: Option<u64>,
    /// Bytes allocated by its owner in the other heaps so far.
    pub allocated_bytes_uoh: Option<u64>,
}

/// A count with its name.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct NamedCount {
    /// Name, as SOS prints it.
    pub name: String,
    /// The count.
    pub count: u64,
}

/// Everything that GetHeapData of the GC contract returns. `null` means not in this build or not in the dump.
#[derive(Clone, Debug, Default, Serialize, schemars::JsonSchema)]
pub struct HeapDetail {
    /// Mark array of the background collection.
    pub mark_array: Option<Addr>,
    /// Next object that the background sweep will look at.
    pub next_sweep_object: Option<Addr>,
    /// Lowest address when the background collection began.
    pub background_saved_lowest: Option<Addr>,
    /// Highest address when the background collection began.
    pub background_saved_highest: Option<Addr>,
    /// End of allocation in the ephemeral segment or the current region.
    pub alloc_allocated: Option<Addr>,
    /// The ephemeral segment, or the region that is being allocated from.
    pub ephemeral_segment: Option<Addr>,
    /// Card table.
    pub card_table: Option<Addr>,
    /// Ephemeral segment saved by the background sweep (segments builds).
    pub saved_sweep_segment: Option<Addr>,
    /// Start of the ephemeral part saved by the background sweep (segments builds).
    pub saved_sweep_start: Option<Addr>,
    /// Array of roots that the GC keeps for itself.
    pub internal_root_array: Option<Addr>,
    /// Entries in use of that array.
    pub internal_root_array_index: Option<u64>,
    /// Whether the last heap analysis succeeded.
    pub heap_analyze_success: Option<bool>,
    /// The generation table.
    pub generation_table: Vec<GenerationTableEntry>,
    /// The finalization queue.
    pub finalize_queue: Option<FinalizeQueueModel>,
    /// Interesting data points (only counted by GCs built with `GC_CONFIG_DRIVEN`).
    pub interesting_data: Option<Vec<NamedCount>>,
    /// Why collections compacted.
    pub compact_reasons: Option<Vec<NamedCount>>,
    /// How the heap was expanded.
    pub expand_mechanisms: Option<Vec<NamedCount>>,
    /// Bits of mechanisms, one word per bit name.
    pub interesting_mechanism_bits: Option<Vec<NamedCount>>,
}

/// An entry of the generation table.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct GenerationTableEntry {
    /// Generation number: 0 to 2, 3 = LOH, 4 = POH.
    pub generation: u64,
    /// First segment of its list.
    pub start_segment: Option<Addr>,
    /// Where the generation begins (segments builds only).
    pub allocation_start: Option<Addr>,
    /// Its own allocation context: next free byte.
    pub context_pointer: Option<Addr>,
    /// Its own allocation context: end.
    pub context_limit: Option<Addr>,
}

/// The finalization queue of a heap.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct FinalizeQueueModel {
    /// Address of the `CFinalize` structure.
    pub address: Addr,
    /// Ends of the queue's parts: POH, LOH, gen2, gen1, gen0, critical ready, ready.
    pub fill_pointers: Vec<Addr>,
    /// Objects with a finalizer that are not ready, from the second part on (the first, POH, is always empty).
    pub registered: Option<u64>,
    /// Objects whose finalizer is due.
    pub ready: Option<u64>,
}
