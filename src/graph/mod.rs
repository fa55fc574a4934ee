//! Graph algorithms over dense node indices (`u32`): dominators, components, shortest paths.
//!
//! The algorithms do not know what a node represents. All are iterative, because a heap may contain a linked list of millions of nodes, and
//! recursion would overflow the stack. Comments state memory in bytes per node, because a heap may have tens of millions of objects.

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

/// The value for "no such index" in an array of indices. Never a node: see [`MAX_NODES`].
const NONE: u32 = u32::MAX;
/// The virtual root, which has an edge to every root. Never a node of a graph.
const ROOT: u32 = u32::MAX - 1;

/// The item at `index`. Indices come from checked graphs, so they are in range; [`NONE`] is returned only because indexing could panic.
#[inline(always)]
fn at(list: &[u32], index: u32) -> u32 {
    list.get(index as usize).copied().unwrap_or(NONE)
}

/// Writes `value` at `index`, which is in range for the same reason as in [`at`].
#[inline(always)]
fn put<T>(list: &mut [T], index: u32, value: T) {
    if let Some(slot) = list.get_mut(index as usize) {
        *slot = value;
    }
}

/// Converts a length, which fits because the numbers of nodes and edges are limited.
#[inline(always)]
fn len32(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(NONE)
}
