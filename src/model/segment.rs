use serde::Serialize;

use crate::base::{Addr, AddrRange, named_enum};

named_enum! {
    /// Generation or kind of a segment.
    pub enum Generation {
        /// The segments build's one segment with generations 0, 1 and part of 2.
        Ephemeral = "ephemeral",
        /// Youngest.
        Gen0 = "gen0" | "0",
        /// Survived one collection.
        Gen1 = "gen1" | "1",
        /// Survived two.
        Gen2 = "gen2" | "2",
        /// Large objects.
        Loh = "loh" | "3",
        /// Pinned objects.
        Poh = "poh" | "4",
        /// Read-only, never collected ("NonGC heap": literals and the like).
        Frozen = "frozen",
    }
}

/// A segment or region of the heap.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct SegmentModel {
    /// Address of its `heap_segment` structure.
    pub address: Addr,
    /// Index of the heap that it belongs to.
    pub heap: u64,
    /// Generation or kind.
    pub generation: Generation,
    /// First object.
    pub start: Addr,
    /// End of the objects. For the segment that is being allocated from, the GC's current allocation end.
    pub allocated: Addr,
    /// End of the committed memory.
    pub committed: Addr,
    /// End of the reserved memory.
    pub reserved: Addr,
    /// Highest address ever used, no end marker.
    pub used: Option<Addr>,
    /// Objects allocated behind this address are younger than the background collection; garbage on frozen segments.
    pub background_allocated: Option<Addr>,
    /// Bytes from `start` to `allocated`.
    pub allocated_bytes: u64,
    /// Bytes committed, the segment's own header page included.
    pub committed_bytes: u64,
    /// Bytes reserved, committed ones included.
    pub reserved_bytes: u64,
    /// Bytes from `start` to `allocated` that are in the dump.
    pub captured_bytes: u64,
    /// Names of the flags that are set.
    pub flags: Vec<String>,
    /// The flags as a number.
    pub flags_value: u64,
    /// Generations inside an ephemeral segment.
    pub parts: Vec<SegmentPart>,
    /// With `--walk`: what a walk through its objects met.
    pub walk: Option<super::WalkModel>,
}

/// A generation inside the ephemeral segment.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct SegmentPart {
    /// Which one: `gen0`, `gen1`, `gen2`.
    pub generation: Generation,
    /// Where it begins.
    pub start: Addr,
    /// Where it ends.
    pub end: Addr,
}

/// `segments`: every segment or region.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct SegmentsReport {
    /// Segments in the order of heaps and generations.
    pub segments: Vec<SegmentModel>,
    /// With `--free`: memory that the GC holds outside of segments in use.
    pub regions: Option<Vec<RegionModel>>,
}

named_enum! {
    /// Size class of a region (`free_region_kind`, gcpriv.h).
    pub enum RegionSize {
        /// A region of small objects.
        Basic = "basic",
        /// A region of large objects: eight times as large.
        Large = "large",
        /// A region for a single object that is larger.
        Huge = "huge",
    }
}

/// Memory of the GC outside of the segments in use.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct RegionModel {
    /// What it is for.
    pub list: RegionListModel,
    /// Heap that it belongs to, where it belongs to one.
    pub heap: Option<u64>,
    /// Size class of a free region.
    pub size_class: Option<RegionSize>,
    /// Address of the structure that describes it.
    pub address: Addr,
    /// Where it lies.
    pub range: AddrRange,
    /// Its bytes.
    pub bytes: u64,
}

named_enum! {
    /// Lists of memory that the GC holds outside of the segments in use.
    pub enum RegionListModel {
        /// Free regions of one heap.
        Free = "free",
        /// Free regions that will be decommitted.
        Decommit = "decommit",
        /// Free huge regions, shared by all heaps.
        FreeHuge = "free-huge",
        /// Small-object segments that will be freed.
        FreeableSoh = "freeable-soh",
        /// Large- and pinned-object segments that will be freed.
        FreeableUoh = "freeable-uoh",
        /// Card table, brick table, mark array and so on.
        Bookkeeping = "bookkeeping",
        /// A segment of a handle table.
        HandleTable = "handle-table",
    }
}
