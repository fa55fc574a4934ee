use serde::{Deserialize, Serialize};

use crate::base::{Addr, AddrRange, named_enum};

named_enum! {
    /// Why a range of a segment contains no object.
    pub enum GapKind {
        /// An object in allocation: memory reserved and cleared, method table not yet written.
        InAllocation = "in-allocation",
        /// Neither an object nor one in allocation.
        Corrupt = "corrupt",
        /// Not in the dump, or undecidable without memory that is not in the dump.
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
    /// Number of objects, free blocks included.
    pub objects: u64,
    /// Their size in bytes, rounded up to the alignment of the segment.
    pub bytes: u64,
    /// Number of free blocks.
    pub free_objects: u64,
    /// Their bytes.
    pub free_bytes: u64,
    /// Unused bytes of allocation contexts.
    pub context_bytes: u64,
    /// Bytes of objects in allocation: memory reserved and cleared, method table not yet written.
    pub in_allocation_bytes: u64,
    /// Corrupt bytes skipped up to the next plausible object.
    pub skipped_bytes: u64,
    /// Bytes not walked because they are not in the dump or a collection was moving them.
    pub absent_bytes: u64,
    /// Address where the walk ended early.
    pub stopped_at: Option<Addr>,
    /// Why it ended early.
    pub stopped_because: Option<String>,
    /// Ranges without objects, at most 64.
    pub gaps: Vec<WalkGap>,
}

/// A range of a segment without objects.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct WalkGap {
    /// Its address.
    pub range: AddrRange,
    /// Its size in bytes.
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
    /// Their allocated bytes.
    pub allocated_bytes: u64,
    /// Bytes of the objects and free space found, rounded up to the alignment of their segment.
    pub walked_bytes: u64,
    /// Unused bytes of allocation contexts.
    pub context_bytes: u64,
    /// Bytes of objects in allocation.
    pub in_allocation_bytes: u64,
    /// Corrupt bytes skipped.
    pub skipped_bytes: u64,
    /// Bytes not in the dump, or being moved by a collection.
    pub absent_bytes: u64,
    /// Share of the object bytes that was walked, 0 to 1.
    pub share: f64,
}
