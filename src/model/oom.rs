//! Failed allocations that the GC recorded.

use serde::Serialize;

use crate::base::{Addr, named_enum};

named_enum! {
    /// Why an allocation failed (`oom_reason`, gcinterface.dac.h).
    pub open enum OomReason(i32) {
        /// No failure was recorded.
        None = "none",
        /// The budget could not be met: a bug in the GC.
        Budget = "budget",
        /// Memory could not be committed.
        CantCommit = "cant-commit",
        /// Address space could not be reserved: a bug in the GC.
        CantReserve = "cant-reserve",
        /// A large-object segment could not be allocated.
        Loh = "loh",
        /// Memory ran low during a garbage collection.
        LowMem = "low-mem",
        /// A full garbage collection could not free enough.
        UnproductiveFullGc = "unproductive-full-gc",
    }
}

named_enum! {
    /// Memory calls of the GC that can fail (`failure_get_memory`, gcinterface.dac.h).
    pub open enum FailedCall(i32) {
        /// None.
        None = "none",
        /// Reserving a segment.
        ReserveSegment = "reserve-segment",
        /// Committing the start of a segment.
        CommitSegmentBeginning = "commit-segment-beginning",
        /// Committing more of the ephemeral segment.
        CommitEphemeralSegment = "commit-ephemeral-segment",
        /// Growing the card table and related structures.
        GrowTable = "grow-table",
        /// Committing the card table and related structures.
        CommitTable = "commit-table",
    }
}

/// `oom`: the last allocation failure of each heap.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct OomReport {
    /// Whether any heap recorded a failure.
    pub any: Option<bool>,
    /// Limit on the memory that the GC commits; `null` if none was found.
    pub limit: Option<super::GcLimitModel>,
    /// Records by heap.
    pub heaps: Vec<OomModel>,
}

/// The record that a heap makes when an allocation fails. A value is `null`, and the answer partial, if the runtime does not publish it or
/// it is not in the dump.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct OomModel {
    /// The heap.
    pub heap: u64,
    /// Reason for the failure.
    pub reason: Option<OomReason>,
    /// Size in bytes that the allocator requested: the program's request rounded up, plus 32 on the LOH (measured). With the reason
    /// `budget`, a budget of the GC.
    pub alloc_size: Option<u64>,
    /// End of reserved memory when the allocation failed; usually zero.
    pub reserved: Option<Addr>,
    /// End of allocated memory when the allocation failed; usually zero.
    pub allocated: Option<Addr>,
    /// Index of the last collection.
    pub gc_index: Option<u64>,
    /// Memory call that failed.
    pub fgm: Option<FailedCall>,
    /// Size passed to that call, in bytes.
    pub size: Option<u64>,
    /// Commit space left, in MB; 0 if not queried by the GC.
    pub available_pagefile_mb: Option<u64>,
    /// Whether the allocation was on the LOH. .NET 8 to 10 always record `false` (measured).
    pub loh: Option<bool>,
    /// Description.
    pub text: String,
}

impl OomModel {
    /// Whether the heap recorded a failure, according to the reason, or else to the size.
    pub fn failed(&self) -> Option<bool> {
        let by_size = || self.alloc_size.map(|size| size != 0);
        self.reason.map(|reason| reason != OomReason::None).or_else(by_size)
    }
}
