//! Immediate dominators: depth-first search, semidominators, nearest common ancestors.

use rayon::slice::ParallelSliceMut;

use super::super::{BitSet, Csr, NONE, ROOT, at, len32, put};
use crate::base::cancel::check_at;

/// What the depth-first search leaves behind. All numbers but `order`'s items are preorder numbers, 0 the virtual root.
pub(super) struct Searched {
    /// Preorder number to node.
    pub(super) order: Vec<u32>,
    /// Parent in the spanning tree.
    pub(super) parent: Vec<u32>,
    /// Edges to nodes that were found before, but the one from the parent: source and target.
    pub(super) others: Vec<Edge>,
}

/// An edge, as the number of its source above that of its target: they sort by source.
pub(super) type Edge = u64;

fn edge(source: u32, target: u32) -> Edge {
    u64::from(source) << 32 | u64::from(target)
}

fn ends(edge: Edge) -> (u32, u32) {
    let half = |half: u64| u32::try_from(half).unwrap_or(NONE);
    (half(edge >> 32), half(edge & u64::from(u32::MAX)))
}

impl Searched {
    pub(super) fn run(graph: &Csr, roots: &[u32]) -> Self {
        let nodes = graph.nodes();
        let rows = graph.rows();
        // 0: not found yet.
        let mut number = vec![0u32; nodes as usize];
        let room = || Vec::with_capacity(nodes as usize + 1);
        let (mut order, mut parent) = (room(), room());
        order.push(ROOT);
        parent.push(0);
        let mut others: Vec<Edge> = Vec::new();
        // Only nodes that still have edges to follow wait here.
        let mut waiting: Vec<(u32, u32, u32)> = Vec::new();
        for root in roots.iter().copied().filter(|root| *root < nodes) {
            // The virtual root's edge to `root`, as a row of its own.
            let (mut source, mut target, mut next, mut end) = (0, root, 0, 0);
            loop {
                let known = at(&number, target);
                if known == 0 {
                    if next < end {
                        // A read whose result is not used yet: memory fetches the next target while this one is followed.
                        let soon = rows.item(next);
                        std::hint::black_box((at(&number, soon), rows.span(soon).0));
                        waiting.push((source, next, end));
                    }
                    let new = len32(order.len());
                    check_at(new);
                    put(&mut number, target, new);
                    order.push(target);
                    parent.push(source);
                    source = new;
                    (next, end) = rows.span(target);
                } else if source != known && at(&parent, known) != source {
                    others.push(edge(source, known));
                }
                if next >= end {
                    match waiting.pop() {
                        Some(place) => (source, next, end) = place,
                        None => break,
                    }
                }
                target = rows.item(next);
                next += 1;
            }
        }
        Self { order, parent, others }
    }
}

/// The nodes that more than one edge leads to, numbered in preorder: only these can have a dominator other than their parent.
struct Joins {
    /// Preorder numbers, ascending.
    nodes: Vec<u32>,
    /// The smallest number from which a path leads to the node on which all others, but its ends, have larger ones: its semidominator.
    semi: Vec<u32>,
    /// Paths that lead to the node from others of these: the node, and where the path leaves the spanning tree.
    paths: Vec<Edge>,
    /// The nearest of these among the node's ancestors; [`NONE`] if there is none.
    above: Vec<u32>,
}

impl Joins {
    /// A pass in preorder that knows the path from the virtual root to each node. Numbers rise on that path, and a node with a number
    /// between two neighbours of it hangs below the upper one. So the nearest common ancestor of an edge's ends is the last node on the
    /// path to its source that has a number not above the target's.
    fn of(parent: &[u32], mut others: Vec<Edge>) -> Joins {
        others.par_sort_unstable();
        let mut is_join = BitSet::new(len32(parent.len()));
        others.iter().for_each(|edge| {
            is_join.set(ends(*edge).1);
        });
        let nodes: Vec<u32> = is_join.iter().collect();
        let mut semi: Vec<u32> = nodes.iter().map(|node| at(parent, *node)).collect();
        let mut above = vec![NONE; nodes.len()];
        let mut paths = Vec::new();
        let (mut path, mut joins_on_path): (Vec<u32>, Vec<u32>) = Default::default();
        let (mut next_join, mut rest) = (0u32, others.iter().copied().peekable());
        for (node, up) in (0u32..).zip(parent) {
            if rest.peek().is_none() && next_join as usize == nodes.len() {
                break;
            }
            check_at(node);
            // The virtual root, which is first, has no parent.
            while path.last().is_some_and(|last| last != up) {
                let left = path.pop();
                joins_on_path.pop_if(|join| left == Some(at(&nodes, *join)));
            }
            path.push(node);
            if at(&nodes, next_join) == node {
                put(&mut above, next_join, joins_on_path.last().copied().unwrap_or(NONE));
                joins_on_path.push(next_join);
                next_join += 1;
            }
            while let Some(other) = rest.next_if(|other| ends(*other).0 == node) {
                let target = ends(other).1;
                let Ok(join) = nodes.binary_search(&target) else { continue };
                let common = path.partition_point(|on| *on <= target).checked_sub(1).and_then(|i| path.get(i)).copied().unwrap_or(0);
                if let Some(semi) = semi.get_mut(join) {
                    // Of an edge down from an ancestor, that is the ancestor itself.
                    *semi = common.min(node).min(*semi);
                }
                // Others that lead into the path between them may offer a better one.
                if let Some(last) = joins_on_path.last().filter(|last| at(&nodes, **last) > target) {
                    paths.push(edge(len32(join), *last));
                }
            }
        }
        paths.par_sort_unstable();
        Joins { nodes, semi, paths, above }
    }

    /// Completes the semidominators, from the last node to the first.
    fn settle(&mut self) {
        let mut links: Vec<Link> = self.above.iter().map(|above| Link { ancestor: *above, label: NONE }).collect();
        let mut path = Vec::new();
        let mut rest = self.paths.iter().rev().copied().peekable();
        for join in (0..len32(self.nodes.len())).rev() {
            check_at(join);
            let mut best = at(&self.semi, join);
            while let Some(edge) = rest.next_if(|edge| ends(*edge).0 == join) {
                best = best.min(eval(&mut links, &mut path, ends(edge).1, join));
            }
            put(&mut self.semi, join, best);
            if let Some(link) = links.get_mut(join as usize) {
                link.label = best;
            }
        }
    }
}

/// A node of the link-eval forest: the nearest linked ancestor known, and the smallest semidominator on the way to it.
#[derive(Clone, Copy)]
struct Link {
    ancestor: u32,
    label: u32,
}

/// The smallest semidominator on the path of joins from `join` up to, not including, the first one not above `limit`.
/// Compresses the path; `path` is scratch.
fn eval(links: &mut [Link], path: &mut Vec<u32>, join: u32, limit: u32) -> u32 {
    let link = |links: &[Link], n: u32| links.get(n as usize).copied().unwrap_or(Link { ancestor: NONE, label: NONE });
    let more = |ancestor: u32| ancestor != NONE && ancestor > limit;
    let mut top = join;
    let mut above = link(links, top);
    while more(above.ancestor) {
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

/// The immediate dominator of each node, by preorder numbers, in place of its parent.
pub(super) fn immediate(mut parent: Vec<u32>, others: Vec<Edge>) -> Vec<u32> {
    let mut joins = Joins::of(&parent, others);
    joins.settle();
    // The dominator is the nearest common ancestor, in the tree made so far, of the parent and the semidominator.
    for (node, semi) in joins.nodes.iter().zip(&joins.semi) {
        check_at(*node);
        let mut dominator = at(&parent, *node);
        while dominator > *semi {
            dominator = at(&parent, dominator);
        }
        put(&mut parent, *node, dominator);
    }
    parent
}
