//! Immediate dominators from the spanning tree: semidominators, nearest common ancestors.

use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};

use rayon::iter::{IntoParallelIterator, ParallelIterator};
use rayon::slice::ParallelSliceMut;

use super::super::bits::{BitSet, Ranks};
use super::super::{NONE, at, len32, put};
use super::pieces;
use super::search::{Edge, edge, ends};
use crate::base::cancel::check_at;
use crate::base::missed::Carried;

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

/// What a piece of the preorder says of joins.
struct Piece {
    /// For each join in it.
    above: Vec<u32>,
    paths: Vec<Edge>,
}

impl Joins {
    fn of(parent: &[u32], mut others: Vec<Edge>) -> Joins {
        others.par_sort_unstable();
        let mut is_join = BitSet::new(len32(parent.len()));
        others.iter().for_each(|edge| {
            is_join.set(ends(*edge).1);
        });
        let nodes: Vec<u32> = is_join.iter().collect();
        let joins = Ranks::of(&is_join);
        let semi: Vec<AtomicU32> = nodes.iter().map(|node| at(parent, *node).into()).collect();
        let carried = Carried::here();
        let piece = |numbers| carried.run(|| Joins::piece(numbers, parent, &others, (&joins, &nodes), &semi));
        let found: Vec<Piece> = pieces(len32(parent.len())).into_par_iter().map(piece).collect();
        let (mut above, mut paths) = (Vec::with_capacity(nodes.len()), Vec::new());
        for piece in found {
            above.extend(piece.above);
            paths.extend(piece.paths);
        }
        paths.par_sort_unstable();
        Joins { nodes, semi: semi.into_iter().map(AtomicU32::into_inner).collect(), paths, above }
    }

    /// A pass in preorder that knows the path from the virtual root to each node. Numbers rise on that path, and a node with a number
    /// between two neighbours of it hangs below the upper one. So the nearest common ancestor of an edge's ends is the last node on the
    /// path to its source that has a number not above the target's.
    fn piece(numbers: Range<u32>, parent: &[u32], others: &[Edge], (joins, nodes): (&Ranks<'_>, &[u32]), semi: &[AtomicU32]) -> Piece {
        let up = |node: &u32| Some(at(parent, *node)).filter(|up| up < node);
        // The way down to the first one; the virtual root has none.
        let mut path: Vec<u32> = std::iter::successors(up(&numbers.start), up).collect();
        path.reverse();
        let mut joins_on_path: Vec<u32> = path.iter().filter(|node| joins.has(**node)).map(|node| joins.before(*node)).collect();
        let mut next_join = joins.before(numbers.start);
        let last_join = joins.before(numbers.end);
        let (mut above, mut paths) = (Vec::new(), Vec::new());
        let first = others.partition_point(|other| ends(*other).0 < numbers.start);
        let end = others.partition_point(|other| ends(*other).0 < numbers.end);
        let mut rest = others.get(first..end).unwrap_or_default().iter().copied().peekable();
        let parents = parent.get(numbers.start as usize..).unwrap_or_default();
        for (node, up) in numbers.zip(parents) {
            if rest.peek().is_none() && next_join == last_join {
                break;
            }
            check_at(node);
            // The virtual root, which is first, has no parent.
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
            while let Some(other) = rest.next_if(|other| ends(*other).0 == node) {
                let target = ends(other).1;
                let join = joins.before(target);
                let common = path.partition_point(|on| *on <= target).checked_sub(1).and_then(|i| path.get(i)).copied().unwrap_or(0);
                if let Some(semi) = semi.get(join as usize) {
                    // Of an edge down from an ancestor, that is the ancestor itself.
                    semi.fetch_min(common.min(node), Ordering::Relaxed);
                }
                // Others that lead into the path between them may offer a better one.
                if let Some(last) = joins_on_path.last().filter(|last| at(nodes, **last) > target) {
                    paths.push(edge(join, *last));
                }
            }
        }
        Piece { above, paths }
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
