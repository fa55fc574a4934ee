//! Segments and regions of the heap, and other GC memory.

use serde::Serialize;

use crate::base::{Addr, AddrRange, named_enum};

named_enum! {
    /// Generation or segment kind.
    pub enum Generation {
        /// The ephemeral segment of the segments build: generations 0, 1 and part of 2.
        Ephemeral = "ephemeral",
        /// Youngest generation.
        Gen0 = "gen0" | "0",
        /// Survived one collection.
        Gen1 = "gen1" | "1",
        /// Survived two collections or more.
        Gen2 = "gen2" | "2",
        /// Large object heap.
        Loh = "loh" | "3",
        /// Pinned object heap.
        Poh = "poh" | "4",
        /// Read-only objects that are never collected ("NonGC heap": literals and others).
        Frozen = "frozen",
        /// Unknown, because the heap was carved.
        Unknown = "unknown",
    }
}

/// A segment or region of the heap.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct SegmentModel {
    /// Address of the `heap_segment` structure.
    pub address: Addr,
    /// Index of the heap.
    pub heap: u64,
    /// Generation or segment kind.
    pub generation: Generation,
    /// Start of the objects.
    pub start: Addr,
    /// End of the objects; for the current allocation segment, the current end of allocation.
    pub allocated: Addr,
    /// End of the objects as stored in the `heap_segment`. In the current allocation segment it is past the current
    /// end.
    pub stored_allocated: Addr,
    /// End of the committed memory.
    pub committed: Addr,
    /// End of the reserved memory.
    pub reserved: Addr,
    /// Next segment in the list; `0x0` at the end.
    pub next: Addr,
    /// Highest address ever used; not the end of the objects.
    pub used: Option<Addr>,
    /// Objects at or above this address were allocated during the background collection; meaningless for frozen segments.
    pub background_allocated: Option<Addr>,
    /// Bytes from `start` to `allocated`.
    pub allocated_bytes: u64,
    /// Committed bytes, including the header page.
    pub committed_bytes: u64,
    /// Reserved bytes, including committed ones.
    pub reserved_bytes: u64,
    /// Captured bytes from `start` to `allocated`.
    pub captured_bytes: u64,
    /// Names of the flags that are set.
    pub flags: Vec<String>,
    /// Raw flags.
    pub flags_value: u64,
    /// Generations inside an ephemeral segment.
    pub parts: Vec<SegmentPart>,
    /// With `walk`: result of the walk.
    pub walk: Option<super::WalkModel>,
}

/// A generation inside the ephemeral segment.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct SegmentPart {
    /// `gen0`, `gen1` or `gen2`.
    pub generation: Generation,
    /// Start.
    pub start: Addr,
    /// End.
    pub end: Addr,
}

named_enum! {
    /// Size class of a region (`free_region_kind`, gcpriv.h).
    pub enum RegionSize {
        /// A small-object region.
        Basic = "basic",
        /// A large-object region, eight times the basic size.
        Large = "large",
        /// A region for a single, even larger object.
        Huge = "huge",
    }
}

/// GC memory outside the segments in use.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct RegionModel {
    /// Purpose.
    pub list: RegionListModel,
    /// Index of the heap; `null` if the memory does not belong to one heap.
    pub heap: Option<u64>,
    /// Size class of a free region.
    pub size_class: Option<RegionSize>,
    /// Address of the descriptor structure.
    pub address: Addr,
    /// Address range.
    pub range: AddrRange,
    /// Size in bytes.
    pub bytes: u64,
    /// The fields of the `heap_segment`; `null` for memory without one (bookkeeping, handle tables).
    pub segment: Option<RegionFields>,
}

/// The `heap_segment` of a region or segment that is not in use.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct RegionFields {
    /// Start of the space for objects.
    pub start: Addr,
    /// End of the objects when the region was freed.
    pub allocated: Addr,
    /// End of the committed memory.
    pub committed: Addr,
    /// End of the reserved memory.
    pub reserved: Addr,
    /// Highest address ever used.
    pub used: Option<Addr>,
    /// Next region in the list; `0x0` at the end.
    pub next: Addr,
    /// Names of the flags that are set.
    pub flags: Vec<String>,
    /// Raw flags.
    pub flags_value: u64,
}

named_enum! {
    /// Lists of GC memory outside the segments in use.
    pub enum RegionListModel {
        /// Free regions of one heap.
        Free = "free",
        /// Free regions to be decommitted.
        Decommit = "decommit",
        /// Free huge regions, shared by all heaps.
        FreeHuge = "free-huge",
        /// Small-object segments to be freed.
        FreeableSoh = "freeable-soh",
        /// Large- and pinned-object segments to be freed.
        FreeableUoh = "freeable-uoh",
        /// Card table, brick table, mark array and similar structures.
        Bookkeeping = "bookkeeping",
        /// Segment of a handle table.
        HandleTable = "handle-table",
    }
}
