use serde::Serialize;

use crate::base::{Addr, AddrRange, named_enum};

named_enum! {
    /// Why a stretch of a segment holds no object.
    pub enum GapKind {
        /// An object was being allocated: its space is taken and cleared, its method table not yet written.
        InAllocation = "in-allocation",
        /// What lies there is no object and cannot become one.
        Corrupt = "corrupt",
        /// It is not in the dump, or what tells whether it is an object is not.
        Absent = "absent",
    }
}

/// What a walk through the objects of one segment met.
#[derive(Clone, Debug, Default, Serialize, schemars::JsonSchema)]
pub struct WalkModel {
    /// Address of the segment's structure.
    pub segment: Addr,
    /// Whether the walk ended exactly at the segment's end.
    pub complete: bool,
    /// Objects, free ones included.
    pub objects: u64,
    /// Their bytes, rounded up to the alignment of the segment.
    pub bytes: u64,
    /// Stretches of free space.
    pub free_objects: u64,
    /// Their bytes.
    pub free_bytes: u64,
    /// Bytes of allocation contexts: handed to a thread and not yet filled.
    pub context_bytes: u64,
    /// Bytes of objects in allocation: space taken and cleared, method table not yet written.
    pub in_allocation_bytes: u64,
    /// Bytes that made no sense and were skipped to the next plausible object.
    pub skipped_bytes: u64,
    /// Bytes that were not walked because they are not in the dump or a collection was moving them.
    pub absent_bytes: u64,
    /// Where the walk ended early.
    pub stopped_at: Option<Addr>,
    /// Why it ended early.
    pub stopped_because: Option<String>,
    /// Stretches that are no objects, at most 64.
    pub gaps: Vec<WalkGap>,
}

/// A stretch of a segment that holds no object.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct WalkGap {
    /// Where it lies.
    pub range: AddrRange,
    /// Its bytes.
    pub bytes: u64,
    /// Why it holds none.
    pub kind: GapKind,
}

/// How much of the heap a walk reached.
#[derive(Clone, Debug, Default, Serialize, schemars::JsonSchema)]
pub struct CoverageModel {
    /// Whether every walked segment was walked to its end without a gap that makes no sense.
    pub complete: bool,
    /// Segments walked.
    pub segments: u64,
    /// Bytes allocated in them.
    pub allocated_bytes: u64,
    /// Bytes of the objects met, rounded up to the alignment of their segment, free space included.
    pub walked_bytes: u64,
    /// Bytes of allocation contexts: handed to a thread and not yet filled.
    pub context_bytes: u64,
    /// Bytes of objects in allocation.
    pub in_allocation_bytes: u64,
    /// Bytes that made no sense and were skipped.
    pub skipped_bytes: u64,
    /// Bytes that are not in the dump, or that a collection was moving.
    pub absent_bytes: u64,
    /// Bytes walked of those that hold objects, 0 to 1.
    pub share: f64,
}
