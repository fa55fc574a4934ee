//! Dominators: which node every path from the roots to another node must pass.

use super::{Csr, NONE, ROOT, at, len32, put};
use crate::base::cancel::check_at;

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
/// virtual root. 16 bytes per node; sums over subtrees, groups and sets are single passes without a stack.
#[derive(Debug, Clone)]
pub struct Dominators {
    /// Node to position; [`NONE`] for nodes that no root reaches.
    position: Vec<u32>,
    /// Position to node; [`ROOT`] at 0.
    order: Vec<u32>,
    /// Position to the position after its subtree.
    end: Vec<u32>,
    /// Position to the position of the immediate dominator.
    idom: Vec<u32>,
}

/// What the depth-first search leaves behind. All numbers but `order`'s items are preorder numbers, 0 the virtual root.
struct Searched {
    /// Preorder number to node.
    order: Vec<u32>,
    /// Parent in the spanning tree.
    parent: Vec<u32>,
    /// The smallest predecessor that is an ancestor.
    semi: Vec<u32>,
    /// First entry in `others` for each number.
    first: Vec<u32>,
    /// Edges from larger to smaller numbers, as `(source, next entry of the same target)`.
    others: Vec<(u32, u32)>,
}

impl Searched {
    /// Depth-first search. Tree edges and forward edges are settled on the spot, as they only offer an ancestor
    /// as semidominator; only cross and back edges are kept. In a heap they are few, so that no reversed graph is needed.
    fn run(graph: &Csr, roots: &[u32]) -> Self {
        let nodes = graph.nodes();
        let rows = graph.rows();
        let mut number = vec![NONE; nodes as usize];
        let room = || Vec::with_capacity(nodes as usize + 1);
        let (mut order, mut parent, mut semi, mut first) = (room(), room(), room(), room());
        order.push(ROOT);
        parent.push(0);
        semi.push(0);
        first.push(NONE);
        let mut others: Vec<(u32, u32)> = Vec::new();
        // Only nodes that still have edges to follow wait here.
        let mut waiting: Vec<(u32, u32, u32)> = Vec::new();
        for root in roots.iter().copied().filter(|root| *root < nodes) {
            // The virtual root's edge to `root`, as a row of its own.
            let (mut source, mut target, mut edge, mut end) = (0, root, 0, 0);
            loop {
                let known = at(&number, target);
                if known == NONE {
                    if edge < end {
                        // A read whose result is not used yet: memory fetches the next target while this one is followed.
                        let soon = rows.item(edge);
                        std::hint::black_box((at(&number, soon), rows.span(soon).0));
                        waiting.push((source, edge, end));
                    }
                    let new = len32(order.len());
                    check_at(new);
                    put(&mut number, target, new);
                    order.push(target);
                    parent.push(source);
                    semi.push(source);
                    first.push(NONE);
                    source = new;
                    (edge, end) = rows.span(target);
                } else if source < known {
                    if let Some(best) = semi.get_mut(known as usize) {
                        *best = source.min(*best);
                    }
                } else if source > known
                    && let Some(head) = first.get_mut(known as usize)
                {
                    let next = std::mem::replace(head, len32(others.len()));
                    others.push((source, next));
                }
                if edge == end {
                    match waiting.pop() {
                        Some(place) => (source, edge, end) = place,
                        None => break,
                    }
                }
                target = rows.item(edge);
                edge += 1;
            }
        }
        Self { order, parent, semi, first, others }
    }
}

/// A node of the link-eval forest: the nearest linked ancestor known, and the smallest semidominator on the way to it.
#[derive(Clone, Copy)]
struct Link {
    ancestor: u32,
    label: u32,
}

/// The smallest semidominator on the tree path from `node` up to, not including, the first number not above `limit`.
/// Compresses the path; `path` is scratch.
fn eval(links: &mut [Link], path: &mut Vec<u32>, node: u32, limit: u32) -> u32 {
    let link = |links: &[Link], n: u32| links.get(n as usize).copied().unwrap_or(Link { ancestor: 0, label: NONE });
    let mut top = node;
    let mut above = link(links, top);
    while above.ancestor > limit {
        path.push(top);
        top = above.ancestor;
        above = link(links, top);
    }
    let mut best = above.label;
    while let Some(below) = path.pop() {
        if let Some(slot) = links.get_mut(below as usize) {
            best = best.min(slot.label);
            *slot = Link { ancestor: above.ancestor, label: best };
        }
    }
    best
}

impl Dominators {
    /// Exact immediate dominators of every node that a root reaches. Roots may repeat; indices out of range are ignored.
    ///
    /// Semi-NCA, from L. Georgiadis, "Linear-Time Algorithms for Dominators and Related Problems" (Princeton, 2005),
    /// with simple path compression: O(m log n) for the semidominators, close to linear in practice.
    /// Besides the graph it needs at most 24 bytes per node at a time, 8 per cross or back edge, and 12 per node on the
    /// search path that has more than one way to go.
    pub fn compute(graph: &Csr, roots: &[u32]) -> Self {
        let Searched { order, mut parent, mut semi, first, others } = Searched::run(graph, roots);
        let mut links: Vec<Link> = parent.iter().map(|p| Link { ancestor: *p, label: 0 }).collect();
        let mut path = Vec::new();
        for node in (1..len32(order.len())).rev() {
            check_at(node);
            let mut best = at(&semi, node);
            let mut entry = at(&first, node);
            while let Some((source, next)) = others.get(entry as usize) {
                best = best.min(eval(&mut links, &mut path, *source, node));
                entry = *next;
            }
            put(&mut semi, node, best);
            if let Some(link) = links.get_mut(node as usize) {
                link.label = best;
            }
        }
        drop((links, path, first, others));
        // The dominator is the nearest common ancestor, in the tree made so far, of the parent and the semidominator.
        for node in 1..len32(order.len()) {
            check_at(node);
            let mut dominator = at(&parent, node);
            let limit = at(&semi, node);
            while dominator > limit {
                dominator = at(&parent, dominator);
            }
            put(&mut parent, node, dominator);
        }
        Self::in_tree_order(graph.nodes(), order, parent, semi)
    }

    /// Renumbers from preorder of the spanning tree to preorder of the dominator tree; `size` is any array of the length of
    /// `order`. A dominator has a smaller number than what it dominates in both.
    ///
    /// One array of the result is made after the other, so that at most six are there at a time.
    fn in_tree_order(nodes: u32, mut order: Vec<u32>, idom: Vec<u32>, mut size: Vec<u32>) -> Self {
        let total = len32(order.len());
        let all = || (1..total).inspect(|node| check_at(*node));
        // Of each subtree.
        size.fill(1);
        for node in all().rev() {
            let below = at(&size, node);
            if let Some(above) = size.get_mut(at(&idom, node) as usize) {
                *above += below;
            }
        }
        // Where a node's next child goes; in the end, the position after its subtree.
        let mut next = vec![1u32; order.len()];
        for node in all() {
            let above = at(&idom, node);
            let place = at(&next, above);
            put(&mut next, above, place + at(&size, node));
            put(&mut next, node, place + 1);
        }
        let place = |node: u32| at(&next, node) - at(&size, node);
        let mut idoms = vec![0u32; order.len()];
        all().for_each(|node| put(&mut idoms, place(node), place(at(&idom, node))));
        drop(idom);
        let mut position = vec![NONE; nodes as usize];
        all().for_each(|number| put(&mut position, at(&order, number), place(number)));
        let mut end = vec![total; order.len()];
        all().for_each(|node| put(&mut end, place(node), at(&next, node)));
        drop((next, size));
        for (node, place) in (0u32..).zip(&position).filter(|(_, place)| **place != NONE) {
            put(&mut order, *place, node);
        }
        Self { position, order, end, idom: idoms }
    }

    /// The immediate dominator of a node.
    pub fn idom(&self, node: u32) -> Idom {
        match self.position_of(node) {
            None => Idom::Unreachable,
            Some(position) => match at(&self.order, at(&self.idom, position)) {
                ROOT => Idom::Root,
                above => Idom::Node(above),
            },
        }
    }

    /// Whether a root reaches the node.
    pub fn is_reachable(&self, node: u32) -> bool {
        self.position_of(node).is_some()
    }

    /// Whether every path from the roots to `node` passes `above`. A node dominates itself; unreachable nodes
    /// dominate nothing and are dominated by nothing. Constant time.
    pub fn dominates(&self, above: u32, node: u32) -> bool {
        match (self.position_of(above), self.position_of(node)) {
            (Some(above), Some(node)) => above <= node && node < at(&self.end, above),
            _ => false,
        }
    }

    /// The number of nodes in the node's subtree, itself included; 0 for an unreachable node.
    pub fn subtree(&self, node: u32) -> u32 {
        self.position_of(node).map_or(0, |position| at(&self.end, position) - position)
    }

    /// The dominators of a node from the immediate one upward, without the node and without the virtual root.
    pub fn chain(&self, node: u32) -> Chain<'_> {
        Chain { tree: self, position: self.position_of(node).map_or(0, |position| at(&self.idom, position)) }
    }

    /// The nodes that `node` dominates, itself first, in preorder; none for an unreachable node.
    pub fn dominated(&self, node: u32) -> impl Iterator<Item = u32> + '_ {
        let own = self.position_of(node).and_then(|p| self.order.get(p as usize..at(&self.end, p) as usize));
        own.unwrap_or_default().iter().copied()
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
        let (next, end) = position.map_or((0, 0), |p| (p + 1, at(&self.end, p)));
        Children { tree: self, next, end }
    }

    /// For each node the sum of `size` over all that it dominates, itself included: what would go away with it.
    /// 0 for nodes that no root reaches. Sums stop at `u64::MAX`. O(n).
    pub fn retained(&self, size: impl Fn(u32) -> u64) -> Vec<u64> {
        let mut sums = vec![0u64; self.position.len()];
        for (node, above) in self.order.iter().zip(&self.idom).skip(1).rev() {
            check_at(*node);
            let Some(slot) = sums.get_mut(*node as usize) else { continue };
            *slot = slot.saturating_add(size(*node));
            let sum = *slot;
            if let Some(slot) = sums.get_mut(at(&self.order, *above) as usize) {
                *slot = slot.saturating_add(sum);
            }
        }
        sums
    }

    /// [`Self::retained_of_set`] for every group at once: for each group the sum of `retained` over its members that
    /// no other member of the same group dominates. Nodes in group `groups` or above count nowhere.
    ///
    /// One pass in preorder that keeps, for each group, where the subtree of its latest counted member ends:
    /// O(n + groups) time, 4 bytes per group.
    pub fn retained_by_group(&self, group_of: impl Fn(u32) -> u32, groups: u32, retained: &[u64]) -> Vec<u64> {
        let mut sums = vec![0u64; groups as usize];
        let mut covered = vec![0u32; groups as usize];
        for ((position, node), end) in (0u32..).zip(&self.order).zip(&self.end).skip(1) {
            check_at(position);
            let group = group_of(*node) as usize;
            if let (Some(sum), Some(covered)) = (sums.get_mut(group), covered.get_mut(group))
                && *covered <= position
            {
                *covered = *end;
                *sum = sum.saturating_add(retained.get(*node as usize).copied().unwrap_or(0));
            }
        }
        sums
    }

    fn position_of(&self, node: u32) -> Option<u32> {
        self.position.get(node as usize).copied().filter(|position| *position != NONE)
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
        self.position = at(&self.tree.idom, self.position);
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
        self.next = at(&self.tree.end, self.next);
        Some(node)
    }
}
