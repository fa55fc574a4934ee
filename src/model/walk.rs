//! Results of heap walks: gaps and coverage.

use serde::{Deserialize, Serialize};

use crate::base::{Addr, AddrRange, named_enum};

named_enum! {
    /// Reasons why a range of a segment contains no object.
    pub enum GapKind {
        /// An object that was being allocated: memory reserved and cleared, method table not yet written.
        InAllocation = "in-allocation",
        /// Neither an object nor memory of an object that was being allocated.
        Corrupt = "corrupt",
        /// Memory that is not in the dump, or that cannot be identified because other memory is missing.
        Absent = "absent",
    }
}

/// Result of walking one segment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct WalkModel {
    /// Address of the segment.
    pub segment: Addr,
    /// Whether the walk ended exactly at the segment end.
    pub complete: bool,
    /// Number of objects; free blocks are counted apart.
    pub objects: u64,
    /// Size of these objects in bytes, rounded up to the alignment of the segment.
    pub bytes: u64,
    /// Number of free blocks.
    pub free_objects: u64,
    /// Size of the free blocks in bytes.
    pub free_bytes: u64,
    /// Unused bytes of allocation contexts.
    pub context_bytes: u64,
    /// Bytes of objects that were being allocated: memory reserved and cleared, method table not yet written.
    pub in_allocation_bytes: u64,
    /// Corrupt bytes that were skipped up to the next plausible object.
    pub skipped_bytes: u64,
    /// Bytes that were not walked because they are not in the dump or a collection was moving them.
    pub absent_bytes: u64,
    /// Address where the walk ended early.
    pub stopped_at: Option<Addr>,
    /// Why the walk ended early.
    pub stopped_because: Option<String>,
    /// Ranges without objects, at most 64.
    pub gaps: Vec<WalkGap>,
}

impl WalkModel {
    /// This result of a walk, in which free blocks are objects, with the free blocks counted apart.
    pub(crate) fn with_free_apart(mut self) -> WalkModel {
        self.objects = self.objects.saturating_sub(self.free_objects);
        self.bytes = self.bytes.saturating_sub(self.free_bytes);
        self
    }
}

/// A range of a segment without objects.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct WalkGap {
    /// Address range.
    pub range: AddrRange,
    /// Size in bytes.
    pub bytes: u64,
    /// The reason.
    pub kind: GapKind,
}

/// Coverage of a heap walk.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct CoverageModel {
    /// Whether every segment was walked to its end without corrupt gaps.
    pub complete: bool,
    /// Number of segments walked.
    pub segments: u64,
    /// Allocated bytes of these segments.
    pub allocated_bytes: u64,
    /// Bytes of the objects and free space found, rounded up to the alignment of their segment.
    pub walked_bytes: u64,
    /// Unused bytes of allocation contexts.
    pub context_bytes: u64,
    /// Bytes of objects that were being allocated.
    pub in_allocation_bytes: u64,
    /// Corrupt bytes skipped.
    pub skipped_bytes: u64,
    /// Bytes not in the dump, or being moved by a collection.
    pub absent_bytes: u64,
    /// Share of the object bytes that were walked, 0 to 1.
    pub share: f64,
}
