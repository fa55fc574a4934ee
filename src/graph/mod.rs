//! Graph algorithms over dense node indices (`u32`): dominators, components, shortest paths.
//!
//! The algorithms do not know what a node represents. All are iterative, because heaps hold linked lists of millions of nodes. Memory is
//! given in bytes per node, because heaps hold tens of millions of objects.

#[cfg(test)]
mod bench;
mod bits;
mod components;
mod csr;
mod dominators;
mod offsets;
mod pieces;
mod reverse;
mod search;
#[cfg(test)]
mod tests;
mod two_way;

pub use bits::{BitIter, BitSet};
pub use components::Components;
pub(crate) use csr::check_edges;
pub use csr::{Csr, CsrBuilder, GraphError, Lengths, MAX_NODES, Rows};
pub use dominators::{Chain, Children, Dominators, GroupSum, Idom};
pub(crate) use offsets::Offsets;
pub use search::{Bfs, Closure, Rank, RootPaths, closure, paths_to_roots, reach, reachable};
pub use two_way::TwoWay;

/// The value for "no such index" in an array of indices; never a node, see [`MAX_NODES`].
const NONE: u32 = u32::MAX;
/// The virtual node with an edge to every root; never a node either.
const ROOT: u32 = u32::MAX - 1;

/// The item at `index`. Indices come from checked graphs, so they are never out of range; returning [`NONE`] then only avoids code
/// that can panic.
#[inline(always)]
fn at(list: &[u32], index: u32) -> u32 {
    list.get(index as usize).copied().unwrap_or(NONE)
}

/// Writes `value` at `index`, which is never out of range for the same reason as in [`at`].
#[inline(always)]
fn put<T>(list: &mut [T], index: u32, value: T) {
    if let Some(slot) = list.get_mut(index as usize) {
        *slot = value;
    }
}

/// Converts a length that the limits on nodes and edges keep within `u32`.
#[inline(always)]
fn len32(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(NONE)
}
