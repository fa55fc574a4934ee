//! Graph algorithms over dense node indices (`u32`): dominators, components, shortest paths.
//!
//! Nothing here knows what a node stands for. Everything is iterative, because heaps hold linked lists of
//! millions of nodes, and memory is counted in bytes per node, because heaps hold tens of millions of objects.

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

/// "No such index" in an array of indices; never a node, see [`MAX_NODES`].
const NONE: u32 = u32::MAX;
/// The virtual node that points at every root; never a node either.
const ROOT: u32 = u32::MAX - 1;

/// The item at `index`. The indices used here come from checked graphs, so [`NONE`] for "out of range" is
/// never seen; the form only avoids a panicking path.
#[inline(always)]
fn at(list: &[u32], index: u32) -> u32 {
    list.get(index as usize).copied().unwrap_or(NONE)
}

/// Writes at `index`; out of range, which cannot happen as for [`at`], writes nothing.
#[inline(always)]
fn put<T>(list: &mut [T], index: u32, value: T) {
    if let Some(slot) = list.get_mut(index as usize) {
        *slot = value;
    }
}

/// A length that the limits on nodes and edges already hold within `u32`.
#[inline(always)]
fn len32(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(NONE)
}
