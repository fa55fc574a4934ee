use serde::Serialize;

use crate::base::{Addr, named_enum};

named_enum! {
    /// Why an allocation failed (`oom_reason`, gcinterface.dac.h).
    pub open enum OomReason(i32) {
        /// No out-of-memory is recorded.
        None = "none",
        /// The budget could not be met: a bug in the GC.
        Budget = "budget",
        /// Memory could not be committed.
        CantCommit = "cant-commit",
        /// Address space could not be reserved: a bug in the GC.
        CantReserve = "cant-reserve",
        /// There was no memory for a segment of large objects.
        Loh = "loh",
        /// Memory ran low during a garbage collection.
        LowMem = "low-mem",
        /// A full garbage collection would not have freed enough.
        UnproductiveFullGc = "unproductive-full-gc",
    }
}

named_enum! {
    /// Which memory call of the GC failed (`failure_get_memory`, gcinterface.dac.h).
    pub open enum FailedCall(i32) {
        /// None.
        None = "none",
        /// Reserving a segment.
        ReserveSegment = "reserve-segment",
        /// Committing the beginning of a segment.
        CommitSegmentBeginning = "commit-segment-beginning",
        /// Committing more of the ephemeral segment.
        CommitEphemeralSegment = "commit-ephemeral-segment",
        /// Growing the card table and what belongs to it.
        GrowTable = "grow-table",
        /// Committing the card table and what belongs to it.
        CommitTable = "commit-table",
    }
}

/// `oom`: the last managed out-of-memory of each heap.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct OomReport {
    /// Whether any heap recorded one.
    pub any: Option<bool>,
    /// By heap.
    pub heaps: Vec<OomModel>,
}

/// What a heap recorded when an allocation failed.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct OomModel {
    /// The heap.
    pub heap: u64,
    /// Why.
    pub reason: OomReason,
    /// Bytes that the allocator asked for. Not the program's request: rounded up, on the LOH 32 bytes more (measured).
    pub alloc_size: u64,
    /// Reserved end at that time; mostly zero.
    pub reserved: Addr,
    /// Allocated end at that time; mostly zero.
    pub allocated: Addr,
    /// Number of the collection.
    pub gc_index: u64,
    /// Which memory call failed.
    pub fgm: FailedCall,
    /// Bytes of that call.
    pub size: u64,
    /// Commit space that was left, in MB; 0 where the GC did not ask.
    pub available_pagefile_mb: u64,
    /// Whether it was for the large object heap. .NET 8 to 10 leave it false even there (measured).
    pub loh: bool,
    /// In words.
    pub text: String,
}
