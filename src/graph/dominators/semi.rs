//! Computes immediate dominators from the spanning tree, by semidominators and nearest common ancestors.

use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};

use rayon::iter::{IntoParallelIterator, ParallelIterator};
use rayon::slice::ParallelSliceMut;

use super::super::bits::{BitSet, Ranks};
use super::super::{NONE, at, len32, put};
use super::search::{Edge, Others, edge, ends};
use crate::base::cancel::check_at;
use crate::base::missed::Carried;
use crate::base::{Buffer, Store};
use crate::graph::pieces::pieces;

/// The nodes with more than one incoming edge, called joins. Only a join can have an immediate dominator other than its parent. Joins are
/// numbered in preorder.
struct Joins {
    /// The preorder number of each join, ascending.
    nodes: Buffer<u32>,
    /// The semidominator of each join: the smallest preorder number of a node with a path to the join on which all inner nodes have larger
    /// numbers than the join.
    semi: Buffer<u32>,
    /// *(join, other)* pairs: `other` is the nearest join at or above the source of an edge to `join`. The semidominators of `other`, and of its
    /// ancestors with larger numbers than `join`, may lower the semidominator of `join`.
    paths: Buffer<Edge>,
    /// By join, the nearest join among its ancestors in the spanning tree, or [`NONE`].
    above: Buffer<u32>,
}

/// The parts of [`Joins`] found in a piece of the preorder.
struct Piece {
    /// `Joins::above` for the joins in the piece.
    above: Buffer<u32>,
    paths: Buffer<Edge>,
}

impl Joins {
    fn of(parent: &[u32], others: Others) -> Joins {
        let store = others.store().clone();
        let mut is_join = BitSet::new(len32(parent.len()));
        others.iter().for_each(|edge| {
            is_join.set(ends(edge).1);
        });
        let nodes = Buffer::collected(&store, is_join.iter());
        let joins = Ranks::of(&is_join);
        let parents = nodes.iter().map(|node| at(parent, *node));
        let carried = Carried::here();
        let (found, semi) = if store.is_in_files() {
            // A memory-mapped array cannot be written by several threads, so there is one piece.
            let mut semi = Buffer::collected(&store, parents);
            let of: &mut [u32] = &mut semi;
            let offer = |join: u32, least: u32| put(of, join, at(of, join).min(least));
            let whole = Joins::piece(&store, 0..len32(parent.len()), parent, &others, (&joins, &nodes), offer);
            (vec![whole], semi)
        } else {
            let semi: Vec<AtomicU32> = parents.map(AtomicU32::new).collect();
            let offer = |join: u32, least: u32| {
                if let Some(semi) = semi.get(join as usize) {
                    semi.fetch_min(least, Ordering::Relaxed);
                }
            };
            let piece = |numbers| carried.run(|| Joins::piece(&store, numbers, parent, &others, (&joins, &nodes), offer));
            let found: Vec<Piece> = pieces(len32(parent.len())).into_par_iter().map(piece).collect();
            let semi: Vec<u32> = semi.into_iter().map(AtomicU32::into_inner).collect();
            (found, semi.into())
        };
        let (mut above, mut paths) = (Buffer::with_capacity(&store, nodes.len()), Buffer::new(&store));
        for piece in found {
            above.extend_from_slice(&piece.above);
            paths.extend_from_slice(&piece.paths);
        }
        paths.par_sort_unstable();
        Joins { nodes, semi, paths, above }
    }

    /// Visits the nodes `numbers` in preorder and keeps the path from the virtual root to the current node. For each edge to a join, calls `offer`
    /// with the join and the number of the nearest common ancestor of source and target.
    ///
    /// Numbers ascend on the path, and a node whose number is between those of two neighbors on the path is in the subtree of the upper neighbor.
    /// So the nearest common ancestor is the last node on the path to the source with a number of at most the target's number.
    fn piece(
        store: &Store,
        numbers: Range<u32>,
        parent: &[u32],
        others: &Others,
        (joins, nodes): (&Ranks<'_>, &[u32]),
        mut offer: impl FnMut(u32, u32),
    ) -> Piece {
        let up = |node: &u32| Some(at(parent, *node)).filter(|up| up < node);
        // The path to the first node; empty for the virtual root.
        let mut path: Vec<u32> = std::iter::successors(up(&numbers.start), up).collect();
        path.reverse();
        let mut joins_on_path: Vec<u32> = path.iter().filter(|node| joins.has(**node)).map(|node| joins.before(*node)).collect();
        let mut next_join = joins.before(numbers.start);
        let last_join = joins.before(numbers.end);
        let (mut above, mut paths) = (Buffer::new(store), Buffer::new(store));
        let mut rest = others.of(&numbers);
        let parents = parent.get(numbers.start as usize..).unwrap_or_default();
        for (node, up) in numbers.zip(parents) {
            if rest.is_empty() && next_join == last_join {
                break;
            }
            check_at(node);
            // At the virtual root, which comes first and has no parent, the path is empty.
            while path.last().is_some_and(|last| last != up) {
                let left = path.pop();
                joins_on_path.pop_if(|join| left == Some(at(nodes, *join)));
            }
            path.push(node);
            if next_join < last_join && at(nodes, next_join) == node {
                above.push(joins_on_path.last().copied().unwrap_or(NONE));
                joins_on_path.push(next_join);
                next_join += 1;
            }
            while let Some(target) = rest.next_of(node) {
                let join = joins.before(target);
                let common = path.partition_point(|on| *on <= target).checked_sub(1).and_then(|i| path.get(i)).copied().unwrap_or(0);
                // If the source is an ancestor of the join, the source is the common ancestor.
                offer(join, common.min(node));
                // Joins on the path below the common ancestor may have a smaller semidominator.
                if let Some(last) = joins_on_path.last().filter(|last| at(nodes, **last) > target) {
                    paths.push(edge(join, *last));
                }
            }
        }
        Piece { above, paths }
    }

    /// Completes the semidominators by following `paths`, from the last join to the first.
    fn settle(&mut self) {
        let mut all_links = Buffer::collected(self.above.store(), self.above.iter().map(|above| [*above, NONE]));
        let links: &mut [Link] = &mut all_links;
        let semi: &mut [u32] = &mut self.semi;
        let mut path = Vec::new();
        let mut rest = self.paths.iter().rev().copied().peekable();
        for join in (0..len32(self.nodes.len())).rev() {
            check_at(join);
            let mut best = at(semi, join);
            while let Some(edge) = rest.next_if(|edge| ends(*edge).0 == join) {
                best = best.min(eval(links, &mut path, ends(edge).1, join));
            }
            put(semi, join, best);
            if let Some([_, label]) = links.get_mut(join as usize) {
                *label = best;
            }
        }
    }
}

/// A join in the link-eval forest: an ancestor in the forest, and the smallest semidominator on the path up to, but not including, that ancestor.
type Link = [u32; 2];

/// The smallest semidominator on the path of joins from `join` up to, but not including, the first join with a number of at most `limit`.
/// Compresses the path. `path` is a buffer that callers reuse.
fn eval(links: &mut [Link], path: &mut Vec<u32>, join: u32, limit: u32) -> u32 {
    let link = |links: &[Link], n: u32| links.get(n as usize).copied().unwrap_or([NONE, NONE]);
    let more = |ancestor: u32| ancestor != NONE && ancestor > limit;
    let mut top = join;
    let [mut ancestor, mut best] = link(links, top);
    while more(ancestor) {
        path.push(top);
        top = ancestor;
        [ancestor, best] = link(links, top);
    }
    while let Some(below) = path.pop() {
        if let Some(slot) = links.get_mut(below as usize) {
            let [_, label] = *slot;
            best = best.min(label);
            *slot = [ancestor, best];
        }
    }
    best
}

/// Replaces the parent of each node in the spanning tree with its immediate dominator. Nodes are given by preorder number.
pub(super) fn immediate(mut parents: Buffer<u32>, others: Others) -> Buffer<u32> {
    let parent: &mut [u32] = &mut parents;
    let mut joins = Joins::of(parent, others);
    joins.settle();
    // The immediate dominator is the nearest common ancestor of parent and semidominator in the tree built so far.
    for (node, semi) in joins.nodes.iter().zip(joins.semi.iter()) {
        check_at(*node);
        let mut dominator = at(parent, *node);
        while dominator > *semi {
            dominator = at(parent, dominator);
        }
        put(parent, *node, dominator);
    }
    parents
}
