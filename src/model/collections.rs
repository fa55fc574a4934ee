//! Garbage collections: reasons, latency modes, records of the GC, and budgets of generations.

use serde::Serialize;

use super::segment::Generation;
use crate::base::named_enum;

named_enum! {
    /// Reason for starting a collection (`gc_reason`, gc.h).
    pub enum GcReason {
        /// The budget of gen0 was exceeded.
        AllocSoh = "alloc-soh",
        /// `GC.Collect`.
        Induced = "induced",
        /// The machine was low on memory.
        LowMemory = "low-memory",
        /// Not used.
        Empty = "empty",
        /// The budget of LOH or POH was exceeded.
        AllocLoh = "alloc-loh",
        /// Space for a small object ran out.
        OutOfSpaceSoh = "out-of-space-soh",
        /// Space for a large or pinned object ran out.
        OutOfSpaceLoh = "out-of-space-loh",
        /// `GC.Collect`, not forced.
        InducedNotForced = "induced-not-forced",
        /// GC stress.
        Stress = "stress",
        /// The machine was low on memory; the collection is blocking.
        LowMemoryBlocking = "low-memory-blocking",
        /// `GC.Collect`, compacting.
        InducedCompacting = "induced-compacting",
        /// The host was low on memory.
        LowMemoryHost = "low-memory-host",
        /// A provisional collection became a full one.
        ProvisionalFull = "provisional-full",
        /// The host was low on memory; the collection is blocking.
        LowMemoryHostBlocking = "low-memory-host-blocking",
        /// Tuning of background collections, SOH.
        BackgroundTuningSoh = "background-tuning-soh",
        /// Tuning of background collections, LOH.
        BackgroundTuningLoh = "background-tuning-loh",
        /// A step of a background collection.
        BackgroundStepping = "background-stepping",
        /// `GC.Collect`, aggressive.
        InducedAggressive = "induced-aggressive",
    }
}

named_enum! {
    /// Latency mode of the GC (`gc_pause_mode`, gcpriv.h; `GCSettings.LatencyMode`).
    pub enum GcLatencyMode {
        /// No background collections.
        Batch = "batch",
        /// Background collections.
        Interactive = "interactive",
        /// Full collections only when memory is low.
        LowLatency = "low-latency",
        /// Blocking full collections only when memory is low.
        SustainedLowLatency = "sustained-low-latency",
        /// Inside `GC.TryStartNoGCRegion`.
        NoGc = "no-gc",
    }
}

named_enum! {
    /// Kinds of collections; the GC records the last one of each kind.
    pub enum CollectionKind {
        /// Collection of gen0 or gen1.
        Ephemeral = "ephemeral",
        /// Collection of all generations with the program stopped.
        FullBlocking = "full-blocking",
        /// Collection of all generations while the program runs.
        Background = "background",
    }
}

/// Records that the GC keeps about its collections.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct CollectionsModel {
    /// Number of collections of gen0, gen1 and gen2, as `GC.CollectionCount` returns it. A collection of a generation is also one of every
    /// younger generation.
    pub counts: Vec<u64>,
    /// Settings of the current collection, or of the one that ended last; `null` before the first one.
    pub last: Option<LastCollection>,
    /// The last finished collection of each kind, and the last two background collections, newest first: the data of `GC.GetGCMemoryInfo`.
    pub recorded: Vec<RecordedCollection>,
}

/// Settings of a collection (`gc_mechanisms`, gcpriv.h). Settings that are made while the collection runs are `null` until it has ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct LastCollection {
    /// Index, counted from 1.
    pub index: u64,
    /// The condemned generation: the oldest one collected.
    pub generation: u64,
    /// Reason for starting the collection.
    pub reason: GcReason,
    /// Whether the collection compacted; otherwise it swept.
    pub compacting: Option<bool>,
    /// Whether the collection compacted the LOH.
    pub loh_compacting: Option<bool>,
    /// Whether the collection was a background collection.
    pub concurrent: bool,
    /// Whether survivors were promoted.
    pub promotion: Option<bool>,
    /// Whether survivors were demoted.
    pub demotion: Option<bool>,
    /// Whether the collection was reduced from gen2 to gen1, because earlier full collections freed little.
    pub elevation_reduced: Option<bool>,
    /// Latency mode.
    pub latency_mode: GcLatencyMode,
    /// Memory load of the machine before the collection, in percent.
    pub entry_memory_load: u64,
    /// Available physical memory before the collection, in bytes.
    pub entry_available_bytes: u64,
    /// Memory load of the machine after the collection, in percent; 0 if not determined.
    pub exit_memory_load: Option<u64>,
}

impl LastCollection {
    /// Returns the settings of a collection that has not ended. Settings that it makes while it runs still have their initial values and
    /// become `None`.
    pub(crate) fn unfinished(self) -> LastCollection {
        LastCollection {
            compacting: None,
            loh_compacting: None,
            promotion: None,
            demotion: None,
            elevation_reduced: None,
            exit_memory_load: None,
            ..self
        }
    }
}

/// Figures of a finished collection (`last_recorded_gc_info`, gcpriv.h).
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct RecordedCollection {
    /// Kind of the collection.
    pub kind: CollectionKind,
    /// Index, counted from 1.
    pub index: u64,
    /// The condemned generation.
    pub generation: u64,
    /// Whether the collection compacted; otherwise it swept.
    pub compacting: bool,
    /// Pauses in microseconds: two for a background collection, one for others.
    pub pauses_us: Vec<u64>,
    /// Percentage of the time since process start during which the program was paused, rounded down to hundredths.
    pub pause_percent: f64,
    /// Bytes promoted.
    pub promoted_bytes: u64,
    /// Pinned objects found.
    pub pinned_objects: u64,
    /// Objects found ready for finalization.
    pub finalization_pending: u64,
    /// Size of all generations after the collection, in bytes, fragmentation included.
    pub heap_bytes: u64,
    /// Fragmentation after the collection, in bytes.
    pub fragmented_bytes: u64,
    /// Committed memory after the collection, in bytes.
    pub committed_bytes: u64,
    /// Memory load of the machine, in percent.
    pub memory_load: u64,
    /// Sizes by generation: gen0, gen1, gen2, LOH, POH.
    pub generations: Vec<RecordedGeneration>,
}

/// A generation before and after a collection, summed over all heaps. Sizes are in bytes and include fragmentation.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct RecordedGeneration {
    /// The generation.
    pub generation: Generation,
    /// Size before.
    pub size_before: u64,
    /// Fragmentation before.
    pub fragmentation_before: u64,
    /// Size after.
    pub size_after: u64,
    /// Fragmentation after.
    pub fragmentation_after: u64,
}

/// The allocation budget of a generation of a heap, and the generation's last collection (`dynamic_data`, gcpriv.h). Sizes are in bytes.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct GenerationBudget {
    /// The generation.
    pub generation: Generation,
    /// Number of collections of this generation.
    pub collections: u64,
    /// Index of the last collection of this generation; `null` for LOH and POH, because the GC does not record it.
    pub last_collection: Option<u64>,
    /// Duration of the last collection in microseconds.
    pub last_duration_us: Option<u64>,
    /// The budget: bytes to allocate until the next collection.
    pub budget: u64,
    /// Rest of the budget; negative if exceeded.
    pub budget_left: i64,
    /// Size of the objects before the last collection.
    pub size_before: u64,
    /// Size of the survivors of the last collection.
    pub survived: u64,
    /// Size of the survivors in pinned plugs.
    pub pinned_survived: u64,
    /// Size of the objects after the last collection.
    pub size_after: u64,
    /// Size of the objects that the last collection promoted.
    pub promoted: u64,
    /// Fragmentation after the last collection.
    pub fragmentation: u64,
}
