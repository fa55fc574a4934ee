use std::fmt;

use serde::Serialize;

use crate::base::{Addr, AddrRange};

/// Generation or kind of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Generation {
    /// The segments build's one segment with generations 0, 1 and part of 2.
    Ephemeral,
    /// Youngest.
    Gen0,
    /// Survived one collection.
    Gen1,
    /// Survived two.
    Gen2,
    /// Large objects.
    Loh,
    /// Pinned objects.
    Poh,
    /// Read-only, never collected ("NonGC heap": literals and the like).
    Frozen,
}

impl Generation {
    /// Every value, in the order in which they are shown.
    pub const ALL: [Generation; 7] =
        [Generation::Ephemeral, Generation::Gen0, Generation::Gen1, Generation::Gen2, Generation::Loh, Generation::Poh, Generation::Frozen];

    /// Name, as in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Generation::Ephemeral => "ephemeral",
            Generation::Gen0 => "gen0",
            Generation::Gen1 => "gen1",
            Generation::Gen2 => "gen2",
            Generation::Loh => "loh",
            Generation::Poh => "poh",
            Generation::Frozen => "frozen",
        }
    }
}

impl fmt::Display for Generation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
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

/// Memory of the GC outside of the segments in use.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct RegionModel {
    /// What it is for.
    pub list: RegionListModel,
    /// Heap that it belongs to, where it belongs to one.
    pub heap: Option<u64>,
    /// Size class of a free region: `basic`, `large`, `huge`.
    pub size_class: Option<String>,
    /// Address of the structure that describes it.
    pub address: Addr,
    /// Where it lies.
    pub range: AddrRange,
    /// Its bytes.
    pub bytes: u64,
}

/// Lists of memory that the GC holds outside of the segments in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RegionListModel {
    /// Free regions of one heap.
    Free,
    /// Free regions that will be decommitted.
    Decommit,
    /// Free huge regions, shared by all heaps.
    FreeHuge,
    /// Small-object segments that will be freed.
    FreeableSoh,
    /// Large- and pinned-object segments that will be freed.
    FreeableUoh,
    /// Card table, brick table, mark array and so on.
    Bookkeeping,
    /// A segment of a handle table.
    HandleTable,
}

impl RegionListModel {
    /// Name, as in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            RegionListModel::Free => "free",
            RegionListModel::Decommit => "decommit",
            RegionListModel::FreeHuge => "free-huge",
            RegionListModel::FreeableSoh => "freeable-soh",
            RegionListModel::FreeableUoh => "freeable-uoh",
            RegionListModel::Bookkeeping => "bookkeeping",
            RegionListModel::HandleTable => "handle-table",
        }
    }
}
