//! Allocation contexts, and what the GC publishes about a heap.

use serde::Serialize;

use super::GenerationBudget;
use crate::base::{Addr, named_enum};

named_enum! {
    /// Owner of an allocation context.
    pub enum ContextOwner {
        /// A managed thread.
        Thread = "thread",
        /// The GC, to promote objects into a generation.
        Generation = "generation",
        /// The process, during startup.
        Global = "global",
    }
}

/// An allocation context: a range that is reserved for its owner's next objects.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct AllocContextModel {
    /// Owner.
    pub owner: ContextOwner,
    /// Managed thread id, or generation.
    pub owner_id: Option<u64>,
    /// Index of the heap that contains the range; `null` without a range, or if its segment is unknown. For a generation's context, the
    /// heap of the generation.
    pub heap: Option<u64>,
    /// Server GC: index of the heap that the last range came from; `null` if the owner never had a range, or if the GC's layout is unknown.
    pub alloc_heap: Option<u64>,
    /// Server GC: index of the heap that the GC prefers for the thread, according to the processor on which the thread ran.
    pub home_heap: Option<u64>,
    /// Next free byte; `0x0` if the owner has no range, for example since the last collection.
    pub pointer: Addr,
    /// End of the range. Unformatted space for one object of minimum size follows.
    pub limit: Addr,
    /// Bytes that the owner has allocated in the SOH so far, without the unused bytes up to `limit`. `null` if the runtime does not publish
    /// them, or publishes fewer than the unused bytes.
    pub allocated_bytes: Option<u64>,
    /// Bytes that the owner has allocated in LOH and POH so far; `null` if the runtime does not publish them.
    pub allocated_bytes_uoh: Option<u64>,
}

/// A named count.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct NamedCount {
    /// Name as in SOS.
    pub name: String,
    /// The count.
    pub count: u64,
}

/// The data that `GetHeapData` of the GC contract returns. A value is `null` if the runtime does not have it or it is not in the dump.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct HeapDetail {
    /// Mark array of the background collection.
    pub mark_array: Option<Addr>,
    /// Next object to be examined by the background sweep.
    pub next_sweep_object: Option<Addr>,
    /// Lowest heap address at the start of the background collection.
    pub background_saved_lowest: Option<Addr>,
    /// Highest heap address at the start of the background collection.
    pub background_saved_highest: Option<Addr>,
    /// End of allocation in the ephemeral segment or the current region.
    pub alloc_allocated: Option<Addr>,
    /// The ephemeral segment, or the current allocation region.
    pub ephemeral_segment: Option<Addr>,
    /// Card table.
    pub card_table: Option<Addr>,
    /// Ephemeral segment saved by the background sweep (segments builds).
    pub saved_sweep_segment: Option<Addr>,
    /// Start of the ephemeral part saved by the background sweep (segments builds).
    pub saved_sweep_start: Option<Addr>,
    /// Internal root array of the GC.
    pub internal_root_array: Option<Addr>,
    /// Number of used entries of the internal root array.
    pub internal_root_array_index: Option<u64>,
    /// Whether the last heap analysis succeeded.
    pub heap_analyze_success: Option<bool>,
    /// The generation table.
    pub generation_table: Vec<GenerationTableEntry>,
    /// The finalization queue.
    pub finalize_queue: Option<FinalizeQueueModel>,
    /// Data points that the GC counts (only in builds with `GC_CONFIG_DRIVEN`).
    pub interesting_data: Option<Vec<NamedCount>>,
    /// Compaction reasons.
    pub compact_reasons: Option<Vec<NamedCount>>,
    /// Heap expansion mechanisms.
    pub expand_mechanisms: Option<Vec<NamedCount>>,
    /// Mechanism bits: one count for each bit.
    pub interesting_mechanism_bits: Option<Vec<NamedCount>>,
    /// Budget and last collection of each generation; `null` if the GC's records were not found.
    pub budgets: Option<Vec<GenerationBudget>>,
}

/// An entry of the generation table.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct GenerationTableEntry {
    /// Index of the generation.
    pub generation: u64,
    /// First segment of the generation's list.
    pub start_segment: Option<Addr>,
    /// Start of the generation (segments builds only).
    pub allocation_start: Option<Addr>,
    /// Allocation context of the generation: next free byte.
    pub context_pointer: Option<Addr>,
    /// Allocation context of the generation: end.
    pub context_limit: Option<Addr>,
    /// Allocation context of the generation: bytes allocated in the SOH so far, without the unused bytes up to its end.
    pub allocated_bytes: Option<u64>,
    /// Allocation context of the generation: bytes allocated in LOH and POH so far.
    pub allocated_bytes_uoh: Option<u64>,
}

/// The finalization queue of a heap.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct FinalizeQueueModel {
    /// Address of the `CFinalize`.
    pub address: Addr,
    /// Ends of the queue parts: POH, LOH, gen2, gen1, gen0, critical ready, ready.
    pub fill_pointers: Vec<Addr>,
    /// Number of registered objects. The first part (POH) is always empty and not counted.
    pub registered: Option<u64>,
    /// Number of objects ready for finalization.
    pub ready: Option<u64>,
}
