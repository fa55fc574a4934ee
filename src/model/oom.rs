use serde::Serialize;

use crate::base::Addr;

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
    /// Why: `none`, `budget`, `cant-commit`, `cant-reserve`, `loh`, `low-mem`, `unproductive-full-gc`.
    pub reason: String,
    /// Bytes that the allocator asked for. Not the program's request: rounded up, on the LOH 32 bytes more (measured).
    pub alloc_size: u64,
    /// Reserved end at that time; mostly zero.
    pub reserved: Addr,
    /// Allocated end at that time; mostly zero.
    pub allocated: Addr,
    /// Number of the collection.
    pub gc_index: u64,
    /// Which memory call failed: `none`, `reserve-segment`, `commit-segment-beginning`, `commit-ephemeral-segment`,
    /// `grow-table`, `commit-table`.
    pub fgm: String,
    /// Bytes of that call.
    pub size: u64,
    /// Commit space that was left, in MB; 0 where the GC did not ask.
    pub available_pagefile_mb: u64,
    /// Whether it was for the large object heap. .NET 8 to 10 leave it false even there (measured).
    pub loh: bool,
    /// In words.
    pub text: String,
}
