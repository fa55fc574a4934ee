//! Dominators: which node every path from the roots to another node must pass.

mod search;

use std::ops::Range;

use search::Searched;

use super::{Csr, ROOT, at, len32, put};
use crate::base::cancel::check_at;
use crate::base::{Array, Packed, Packing};

/// The immediate dominator of a node: the last node that every path from the roots to it passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Idom {
    /// No root reaches the node.
    Unreachable,
    /// No single node: it is a root, or different roots reach it by paths with no node in common.
    Root,
    /// This node.
    Node(u32),
}

/// The dominator tree of a graph with several roots, below one virtual root.
///
/// The tree is kept in its own preorder, where every subtree is one run of positions. Position 0 is the
/// virtual root. 10 bytes per node, and 8 for each number that a byte does not hold; sums over subtrees, groups and sets are single passes.
#[derive(Debug, Clone)]
pub struct Dominators {
    /// Node to position; 0 for nodes that no root reaches.
    position: Array<u32>,
    /// Position to node; [`ROOT`] at 0.
    order: Array<u32>,
    /// Position to the number of positions below it.
    below: Packed<u8>,
    /// Position to how far before it that of the immediate dominator is.
    up: Packed<u8>,
}

impl Dominators {
    /// Exact immediate dominators of every node that a root reaches. Roots may repeat; indices out of range are ignored.
    ///
    /// Semi-NCA, from L. Georgiadis, "Linear-Time Algorithms for Dominators and Related Problems" (Princeton, 2005),
    /// with simple path compression: O(m log n) for the semidominators, close to linear in practice. Semidominators are found among the
    /// nodes alone that more than one edge leads to; what has one predecessor is dominated by it.
    /// Besides the graph it needs at most 14 bytes per node at a time, some 30 per edge that the search met after its target, 4 per
    /// node on the longest path of the search, and 12 per node on it that has more than one way to go.
    pub fn compute(graph: &Csr, roots: &[u32]) -> Self {
        let Searched { order, parent, others } = Searched::run(graph, roots);
        let idom = search::immediate(parent, others);
        Self::in_tree_order(graph.nodes(), order, idom)
    }

    /// Renumbers from preorder of the spanning tree to preorder of the dominator tree. A dominator has a smaller number than what it
    /// dominates in both.
    fn in_tree_order(nodes: u32, mut order: Vec<u32>, mut idom: Vec<u32>) -> Self {
        let total = len32(order.len());
        let (mut below, mut up) = (Packing::zeroed(order.len()), Packing::zeroed(order.len()));
        // Of each subtree, without its top.
        let mut sizes = vec![0u32; order.len()];
        for node in (1..total).rev() {
            check_at(node);
            let more = at(&sizes, node) + 1;
            if let Some(above) = sizes.get_mut(at(&idom, node) as usize) {
                *above += more;
            }
        }
        // A node that has been placed no longer needs its size: that becomes the place of its next child; and what dominates it becomes
        // its own place.
        below.put(0, at(&sizes, 0).into());
        put(&mut sizes, 0, 1);
        put(&mut idom, 0, 0);
        for node in 1..total {
            check_at(node);
            let (above, own) = (at(&idom, node), at(&sizes, node));
            let place = at(&sizes, above);
            put(&mut sizes, above, place + own + 1);
            put(&mut sizes, node, place + 1);
            below.put(place, own.into());
            up.put(place, (place - at(&idom, above)).into());
            put(&mut idom, node, place);
        }
        drop(sizes);
        let mut position = vec![0u32; nodes as usize];
        for (number, (node, place)) in (0u32..).zip(order.iter().zip(&idom)).skip(1) {
            check_at(number);
            put(&mut position, *node, *place);
        }
        drop(idom);
        for (node, place) in (0u32..).zip(&position).filter(|(_, place)| **place != 0) {
            put(&mut order, *place, node);
        }
        Self { position: position.into(), order: order.into(), below: below.finish(), up: up.finish() }
    }

    /// What it consists of: positions, order, numbers below, ways up.
    pub(crate) fn parts(&self) -> (&Array<u32>, &Array<u32>, &Packed<u8>, &Packed<u8>) {
        (&self.position, &self.order, &self.below, &self.up)
    }

    /// The parts that it was taken [apart](Dominators::parts) into.
    pub(crate) fn of_parts(position: Array<u32>, order: Array<u32>, below: Packed<u8>, up: Packed<u8>) -> Self {
        Self { position, order, below, up }
    }

    /// The position after the subtree of the one at `position`.
    fn end(&self, position: u32) -> u32 {
        let below = self.below.get(position as usize).and_then(|n| u32::try_from(n).ok()).unwrap_or(0);
        position.saturating_add(below).saturating_add(1)
    }

    /// The position of the immediate dominator.
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

    /// The nodes that roots reach, what dominates before what it dominates: in preorder of the tree.
    pub fn reached(&self) -> &[u32] {
        self.order.get(1..).unwrap_or_default()
    }

    /// Where a node stands among [the nodes reached](Dominators::reached), from 1; `None` for an unreachable one.
    pub fn position_of(&self, node: u32) -> Option<u32> {
        self.position.get(node as usize).copied().filter(|position| *position != 0)
    }

    /// Whether every path from the roots to `node` passes `above`. A node dominates itself; unreachable nodes
    /// dominate nothing and are dominated by nothing. Constant time.
    pub fn dominates(&self, above: u32, node: u32) -> bool {
        match (self.position_of(above), self.position_of(node)) {
            (Some(above), Some(node)) => above <= node && node < self.end(above),
            _ => false,
        }
    }

    /// The number of nodes in the node's subtree, itself included; 0 for an unreachable node.
    pub fn subtree(&self, node: u32) -> u32 {
        self.position_of(node).map_or(0, |position| self.end(position) - position)
    }

    /// The dominators of a node from the immediate one upward, without the node and without the virtual root.
    pub fn chain(&self, node: u32) -> Chain<'_> {
        Chain { tree: self, position: self.position_of(node).map_or(0, |position| self.above(position)) }
    }

    /// The positions of the nodes that `node` dominates, itself first; none for an unreachable node.
    pub(crate) fn positions_below(&self, node: u32) -> Range<usize> {
        self.position_of(node).map_or(0..0, |p| p as usize..self.end(p) as usize)
    }

    /// The node at a position.
    pub(crate) fn node_at(&self, position: usize) -> Option<u32> {
        self.order.get(position).copied()
    }

    /// The nodes that `node` dominates, itself first, in preorder; none for an unreachable node.
    pub fn dominated(&self, node: u32) -> impl Iterator<Item = u32> + '_ {
        self.order.get(self.positions_below(node)).unwrap_or_default().iter().copied()
    }

    /// The nodes whose immediate dominator is `node`.
    pub fn children(&self, node: u32) -> Children<'_> {
        self.children_at(self.position_of(node))
    }

    /// The nodes that only the virtual root dominates.
    pub fn top(&self) -> Children<'_> {
        self.children_at(Some(0))
    }

    fn children_at(&self, position: Option<u32>) -> Children<'_> {
        let (next, end) = position.map_or((0, 0), |p| (p + 1, self.end(p)));
        Children { tree: self, next, end }
    }

    /// For each node the sum of `size` over all that it dominates, itself included: what would go away with it. By
    /// [position](Dominators::position_of). Sums stop at `u64::MAX`. O(n).
    pub(crate) fn retained(&self, size: impl Fn(u32) -> u64) -> Packed<u16> {
        let mut sums = Packing::zeroed(self.order.len());
        let mut sum = 0u128;
        // Nodes whose subtree is not over: position, where it ends, the sum before it.
        let mut open: Vec<(u32, u32, u128)> = Vec::new();
        let close = |sums: &mut Packing<u16>, open: &mut Vec<(u32, u32, u128)>, position: u32, sum: u128| {
            while let Some((top, _, before)) = open.pop_if(|(_, end, _)| *end <= position) {
                sums.put(top, u64::try_from(sum - before).unwrap_or(u64::MAX));
            }
        };
        for ((position, node), below) in (0u32..).zip(&*self.order).zip(self.below.iter()).skip(1) {
            check_at(position);
            close(&mut sums, &mut open, position, sum);
            let size = size(*node);
            match u32::try_from(below).unwrap_or(u32::MAX) {
                0 => sums.put(position, size),
                below => open.push((position, position.saturating_add(below).saturating_add(1), sum)),
            }
            sum += u128::from(size);
        }
        close(&mut sums, &mut open, u32::MAX, sum);
        sums.finish()
    }

    /// For every group the sum of `retained` over its members that no other member of the same group dominates. Nodes in group `groups` or
    /// above count nowhere. `met` sees each node that is reached, with its group.
    ///
    /// One pass in preorder that keeps, for each group, where the subtree of its latest counted member ends:
    /// O(n + groups) time, 4 bytes per group.
    pub(crate) fn retained_by_group(
        &self,
        group_of: impl Fn(u32) -> u32,
        groups: u32,
        retained: &Packed<u16>,
        mut met: impl FnMut(u32, u32),
    ) -> Vec<u64> {
        let mut sums = vec![0u64; groups as usize];
        let mut covered = vec![0u32; groups as usize];
        let nodes = (0u32..).zip(&*self.order).zip(self.below.iter().zip(retained.iter()));
        for ((position, node), (below, retained)) in nodes.skip(1) {
            check_at(position);
            let group = group_of(*node);
            met(*node, group);
            if let (Some(sum), Some(covered)) = (sums.get_mut(group as usize), covered.get_mut(group as usize))
                && *covered <= position
            {
                *covered = position.saturating_add(u32::try_from(below).unwrap_or(u32::MAX)).saturating_add(1);
                *sum = sum.saturating_add(retained);
            }
        }
        sums
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
