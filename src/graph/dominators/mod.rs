//! Dominators: a node dominates another if every path from the roots to the other passes through it.

mod search;
mod semi;
mod sums;

use std::ops::Range;

use rayon::iter::{IntoParallelRefMutIterator, ParallelIterator};
use search::Searched;
pub use sums::GroupSum;

use super::{Csr, ROOT, at, len32, put};
use crate::base::cancel::check_at;
use crate::base::{Array, Buffer, Packed, Packing, Store};

/// The immediate dominator of a node: the nearest of the other nodes through which every path from the roots to the node passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Idom {
    /// No root reaches the node.
    Unreachable,
    /// The virtual root: the node is a root, or no other node is on every path from the roots.
    Root,
    /// This node.
    Node(u32),
}

/// The dominator tree of a graph with several roots, which are below one virtual root.
///
/// The tree is stored in preorder, where every subtree is a range of positions. Position 0 is the virtual root. The tree uses 10 bytes per
/// node, and 8 for each size or distance that does not fit in a byte. A sum over all subtrees or groups is a single pass.
#[derive(Debug, Clone)]
pub struct Dominators {
    /// Position by node; 0 for nodes that no root reaches.
    position: Array<u32>,
    /// Node by position; [`ROOT`] at 0.
    order: Array<u32>,
    /// Number of positions in the subtree below a node, by position.
    below: Packed<u8>,
    /// Distance back to the position of the immediate dominator, by position.
    up: Packed<u8>,
    /// The store for derived arrays.
    store: Store,
}

impl Dominators {
    /// Computes the immediate dominator of every node that a root reaches. A root that an earlier group reaches is ignored, and so are repeated
    /// roots and indices out of range.
    ///
    /// Uses the algorithm Semi-NCA, from L. Georgiadis, "Linear-Time Algorithms for Dominators and Related Problems" (Princeton, 2005), with
    /// simple path compression: O(m log n) for the semidominators, close to linear in practice. Semidominators are computed only for nodes with
    /// more than one incoming edge; the immediate dominator of a node with one predecessor is that predecessor. The depth-first search uses one
    /// thread. The other steps use all threads, except those that must visit the nodes in order.
    ///
    /// Besides the graph, the computation needs at most 14 bytes per node at a time and about 30 bytes per edge outside of the spanning tree. For
    /// each node on the longest path of the search, it needs 4 bytes per thread, and 12 bytes more if the node has edges left to follow.
    pub fn compute(graph: &Csr, groups: &[&[u32]]) -> Self {
        let Searched { number, parent, others } = Searched::run(graph, groups);
        let idom = semi::immediate(parent, others);
        Self::in_tree_order(number, idom)
    }

    /// Converts preorder numbers in the spanning tree to preorder numbers in the dominator tree. In both, a node has a smaller number than the
    /// nodes that it dominates.
    fn in_tree_order(mut number: Buffer<u32>, mut idoms: Buffer<u32>) -> Self {
        let (total, store) = (len32(idoms.len()), number.store().clone());
        let (mut all_below, mut all_up) = (Packing::zeroed(&store, idoms.len()), Packing::zeroed(&store, idoms.len()));
        let (mut below, mut up) = (all_below.slots(), all_up.slots());
        // The number of nodes below each node.
        let mut all_sizes = Buffer::<u32>::zeroed(&store, idoms.len());
        let (idom, sizes): (&mut [u32], &mut [u32]) = (&mut idoms, &mut all_sizes);
        for node in (1..total).rev() {
            check_at(node);
            let more = at(sizes, node) + 1;
            if let Some(above) = sizes.get_mut(at(idom, node) as usize) {
                *above += more;
            }
        }
        // Once a node has a position, its slot in `sizes` contains the position of its next child, and its slot in `idom` contains its own
        // position.
        below.put(0, at(sizes, 0).into());
        put(sizes, 0, 1);
        put(idom, 0, 0);
        for node in 1..total {
            check_at(node);
            let (above, own) = (at(idom, node), at(sizes, node));
            let place = at(sizes, above);
            put(sizes, above, place + own + 1);
            put(sizes, node, place + 1);
            below.put(place, own.into());
            up.put(place, (place - at(idom, above)).into());
            put(idom, node, place);
        }
        drop(all_sizes);
        let position: &mut [u32] = &mut number;
        position.par_iter_mut().for_each(|node| *node = at(idom, *node));
        let order = idom;
        put(order, 0, ROOT);
        for (node, place) in (0u32..).zip(&*position).filter(|(_, place)| **place != 0) {
            put(order, *place, node);
        }
        Self { position: number.freeze(), order: idoms.freeze(), below: all_below.finish(), up: all_up.finish(), store }
    }

    /// The arrays of the tree: positions, order, sizes below, distances up.
    pub(crate) fn parts(&self) -> (&Array<u32>, &Array<u32>, &Packed<u8>, &Packed<u8>) {
        (&self.position, &self.order, &self.below, &self.up)
    }

    /// Assembles a tree from its [parts](Dominators::parts).
    pub(crate) fn of_parts(position: Array<u32>, order: Array<u32>, below: Packed<u8>, up: Packed<u8>) -> Self {
        Self { position, order, below, up, store: Store::default() }
    }

    /// Whether the arrays have the lengths that a graph with `nodes` nodes requires. Arrays read from a file may be invalid.
    pub(crate) fn is_of(&self, nodes: u32) -> bool {
        let positions = self.order.len();
        let fit = (1..=nodes as usize + 1).contains(&positions) && self.position.len() == nodes as usize;
        fit && self.below.is_of(positions) && self.up.is_of(positions)
    }

    /// The number of positions: one per node that roots reach, and one for the virtual root.
    pub(crate) fn positions(&self) -> usize {
        self.order.len()
    }

    /// The end of the subtree at `position`.
    fn end(&self, position: u32) -> u32 {
        let below = self.below.get(position as usize).and_then(|n| u32::try_from(n).ok()).unwrap_or(0);
        position.saturating_add(below).saturating_add(1)
    }

    /// The position of the immediate dominator of the node at `position`.
    fn above(&self, position: u32) -> u32 {
        let up = self.up.get(position as usize).and_then(|n| u32::try_from(n).ok()).filter(|up| *up > 0).unwrap_or(position);
        position.saturating_sub(up)
    }

    /// The immediate dominator of a node.
    pub fn idom(&self, node: u32) -> Idom {
        match self.position_of(node) {
            None => Idom::Unreachable,
            Some(position) => match at(&self.order, self.above(position)) {
                ROOT => Idom::Root,
                above => Idom::Node(above),
            },
        }
    }

    /// Whether a root reaches the node.
    pub fn is_reachable(&self, node: u32) -> bool {
        self.position_of(node).is_some()
    }

    /// The nodes that roots reach, in preorder of the tree: dominators come before the nodes that they dominate.
    pub fn reached(&self) -> &[u32] {
        self.order.get(1..).unwrap_or_default()
    }

    /// The position of a node among [the nodes reached](Dominators::reached), from 1; `None` for an unreachable node.
    pub fn position_of(&self, node: u32) -> Option<u32> {
        self.position.get(node as usize).copied().filter(|position| *position != 0)
    }

    /// Whether every path from the roots to `node` passes through `above`. A node dominates itself; unreachable nodes neither dominate nor are
    /// dominated. Takes constant time.
    pub fn dominates(&self, above: u32, node: u32) -> bool {
        match (self.position_of(above), self.position_of(node)) {
            (Some(above), Some(node)) => above <= node && node < self.end(above),
            _ => false,
        }
    }

    /// The number of nodes in the node's subtree, the node included; 0 for an unreachable node.
    pub fn subtree(&self, node: u32) -> u32 {
        self.position_of(node).map_or(0, |position| self.end(position) - position)
    }

    /// The dominators of a node from the immediate one upward, without the node itself and the virtual root.
    pub fn chain(&self, node: u32) -> Chain<'_> {
        Chain { tree: self, position: self.position_of(node).map_or(0, |position| self.above(position)) }
    }

    /// The positions of the nodes that `node` dominates, starting with its own position; empty for an unreachable node.
    pub(crate) fn positions_below(&self, node: u32) -> Range<usize> {
        self.position_of(node).map_or(0..0, |p| p as usize..self.end(p) as usize)
    }

    /// The node at a position.
    pub(crate) fn node_at(&self, position: usize) -> Option<u32> {
        self.order.get(position).copied()
    }

    /// The nodes that `node` dominates, itself first, in preorder; empty for an unreachable node.
    pub fn dominated(&self, node: u32) -> impl Iterator<Item = u32> + '_ {
        self.order.get(self.positions_below(node)).unwrap_or_default().iter().copied()
    }

    /// The nodes whose immediate dominator is `node`.
    pub fn children(&self, node: u32) -> Children<'_> {
        self.children_at(self.position_of(node))
    }

    /// The nodes whose immediate dominator is the virtual root.
    pub fn top(&self) -> Children<'_> {
        self.children_at(Some(0))
    }

    fn children_at(&self, position: Option<u32>) -> Children<'_> {
        let (next, end) = position.map_or((0, 0), |p| (p + 1, self.end(p)));
        Children { tree: self, next, end }
    }
}

/// The dominators of a node, from the nearest upward.
#[derive(Debug, Clone)]
pub struct Chain<'a> {
    tree: &'a Dominators,
    position: u32,
}

impl Iterator for Chain<'_> {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        let node = self.tree.order.get(self.position as usize).copied().filter(|node| *node != ROOT)?;
        self.position = self.tree.above(self.position);
        Some(node)
    }
}

/// The children of a node in the dominator tree.
#[derive(Debug, Clone)]
pub struct Children<'a> {
    tree: &'a Dominators,
    next: u32,
    end: u32,
}

impl Iterator for Children<'_> {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        if self.next >= self.end {
            return None;
        }
        let node = self.tree.order.get(self.next as usize).copied()?;
        self.next = self.tree.end(self.next);
        Some(node)
    }
}
