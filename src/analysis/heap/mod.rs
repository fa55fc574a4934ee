//! The GC's structures: the commands under "The heap" in `help`.

pub(super) mod finalizers;
pub(super) mod fragmentation;
pub(super) mod handles;
pub(super) mod heap_map;
pub(super) mod known;
pub(super) mod oom;
#[cfg(test)]
mod piece_tests;
pub(super) mod pins;
pub(super) mod segments;
pub(super) mod summary;
