//! Breadth-first search: shortest paths from and to roots, and what can be reached at all.

use std::collections::BTreeMap;

use super::{BitSet, Csr, NONE, ROOT, TwoWay};
use crate::base::Buffer;
use crate::base::cancel::{check, check_at};

/// A breadth-first search from several sources: for each node reached, the node before it on a shortest path.
#[derive(Debug)]
pub struct Bfs {
    /// The complement of the node before; of [`ROOT`] for a source. 0, the complement of [`NONE`], is "not reached",
    /// so that the pages of a large array that a short search leaves alone are never touched.
    before: Buffer<u32>,
}

impl Bfs {
    /// Searches everything that the first group of sources reaches, then what only the second reaches, and so on, until
    /// `meet` says false. It sees each node once, nearest first, sources included, and the search so far, which already knows
    /// that node's path. The path to a node is a shortest one from the first group that reaches it; of equally long ones, it
    /// is the path from the earliest source of the group.
    pub fn in_turn(graph: &Csr, groups: &[impl AsRef<[u32]>], mut meet: impl FnMut(&Self, u32) -> bool) -> Self {
        let mut search = Self { before: Buffer::zeroed(graph.store(), graph.nodes() as usize) };
        let (mut level, mut next) = (Vec::new(), Vec::new());
        for sources in groups {
            for source in sources.as_ref().iter().copied() {
                if search.reach(source, ROOT, &mut level) && !meet(&search, source) {
                    return search;
                }
            }
            while !level.is_empty() {
                check();
                for node in level.drain(..) {
                    check_at(node);
                    for target in graph.successors(node).iter().copied() {
                        if search.reach(target, node, &mut next) && !meet(&search, target) {
                            return search;
                        }
                    }
                }
                std::mem::swap(&mut level, &mut next);
            }
        }
        search
    }

    /// Marks a node as reached; true when it exists and is new.
    fn reach(&mut self, node: u32, before: u32, next: &mut Vec<u32>) -> bool {
        match self.before.get_mut(node as usize) {
            Some(stored) if *stored == 0 => {
                *stored = !before;
                next.push(node);
                true
            }
            _ => false,
        }
    }

    fn before(&self, node: u32) -> u32 {
        self.before.get(node as usize).map_or(NONE, |stored| !stored)
    }

    /// Whether the search came to the node.
    pub fn reached(&self, node: u32) -> bool {
        self.before(node) != NONE
    }

    /// The node before this one on a shortest path from a source; `None` for sources and for nodes not reached.
    pub fn parent(&self, node: u32) -> Option<u32> {
        Some(self.before(node)).filter(|before| *before < ROOT)
    }

    /// From the node back to its source, both included; empty when not reached.
    pub fn trail(&self, node: u32) -> impl Iterator<Item = u32> + '_ {
        std::iter::successors(Some(node).filter(|n| self.reached(*n)), |n| self.parent(*n))
    }

    /// A shortest path from a source to the node, both included; empty when not reached.
    pub fn path_to(&self, node: u32) -> Vec<u32> {
        let mut path: Vec<u32> = self.trail(node).collect();
        path.reverse();
        path
    }
}

/// How good a root is as an explanation: its class, of which 0 is the best, and its order among roots of its class and
/// distance.
pub type Rank = (u8, u8);

/// The roots that reach a node.
#[derive(Debug, Default)]
pub struct RootPaths {
    /// Shortest paths, each from another root and written from there to the node: the better class first, in a class the nearest root, at one
    /// distance in the order of ranks, then of nodes.
    pub paths: Vec<Vec<u32>>,
    /// Every root that reaches the node.
    pub roots: Vec<u32>,
}

/// A search against the direction of edges, level by level.
struct Backwards<'g, O> {
    edges: &'g TwoWay,
    open: O,
    search: Bfs,
    /// All nodes of one distance.
    level: Vec<u32>,
}

impl<'g, O: Fn(u32, u32) -> bool> Backwards<'g, O> {
    fn from(target: u32, edges: &'g TwoWay, open: O) -> Backwards<'g, O> {
        let graph = edges.graph();
        let mut search = Bfs { before: Buffer::zeroed(graph.store(), graph.nodes() as usize) };
        let mut level = Vec::new();
        search.reach(target, ROOT, &mut level);
        Backwards { edges, open, search, level }
    }

    /// Goes on to the next level.
    fn step(&mut self) {
        check();
        let mut next = Vec::new();
        self.edges.edges_to(&self.level, |source, target| {
            if (self.open)(source, target) {
                self.search.reach(source, target, &mut next);
            }
        });
        self.level = next;
    }

    /// Which of `roots` lead to what was reached, and which may: those are left once searches forward from them have followed too many edges.
    /// These are short for most roots, while a search backwards that goes on after the nearest ones meets whatever refers to a popular node.
    fn decide(&self, roots: impl Iterator<Item = u32>) -> (Vec<u32>, Vec<u32>) {
        let graph = self.edges.graph();
        let mut left = (graph.edges() / FORWARD_SHARE).max(FORWARD_LEAST);
        // What does not lead there is not looked at again.
        let mut seen = BitSet::new(graph.nodes());
        let (mut leading, mut undecided) = (Vec::new(), Vec::new());
        // A node, and how many of its edges were followed.
        let (mut met, mut way): (Vec<u32>, Vec<(u32, usize)>) = (Vec::new(), Vec::new());
        for root in roots {
            met.clear();
            way.clear();
            if seen.set(root) {
                met.push(root);
                way.push((root, 0));
            }
            // Some is left for others.
            let most = left / 4;
            let (mut followed, mut leads) = (0u32, false);
            // Depth first: what is referred to from everywhere is found at the first leaves.
            while let Some((node, next)) = way.last_mut() {
                if leads || followed >= most {
                    break;
                }
                check_at(followed);
                let source = *node;
                let Some(target) = graph.successors(source).get(*next).copied() else {
                    way.pop();
                    continue;
                };
                (*next, followed) = (next.saturating_add(1), followed.saturating_add(1));
                if (self.open)(source, target) {
                    leads = self.search.reached(target);
                    if seen.set(target) {
                        met.push(target);
                        way.push((target, 0));
                    }
                }
            }
            left = left.saturating_sub(followed);
            if leads {
                leading.push(root);
            } else if !way.is_empty() {
                undecided.push(root);
            } else {
                continue;
            }
            met.iter().for_each(|node| {
                seen.clear(*node);
            });
        }
        (leading, undecided)
    }
}

/// The part of all edges that searches from roots may follow beside a search backwards: some milliseconds of one that takes hundreds.
const FORWARD_SHARE: u32 = 64;
/// Edges that they may follow in a small graph.
const FORWARD_LEAST: u32 = if cfg!(test) { 12 } else { 1 << 14 };

/// The `roots` that reach `target` along edges for which `open` says so, and paths from the best of them by `rank`, at most `limit`.
///
/// Searches backwards, and goes on through roots, so a path may begin at one root and pass another. Each node is visited
/// once, so a path may join the ones before it.
pub fn paths_to_roots(
    edges: &TwoWay,
    target: u32,
    (roots, rank): (&[u32], impl Fn(u32) -> Option<Rank>),
    open: impl Fn(u32, u32) -> bool,
    limit: usize,
) -> RootPaths {
    // By class: nearest first.
    let mut met: BTreeMap<u8, Vec<u32>> = BTreeMap::new();
    let mut found = Vec::new();
    let mut search = Backwards::from(target, edges, open);
    while !search.level.is_empty() {
        let mut here: Vec<(Rank, u32)> = search.level.iter().filter_map(|node| Some((rank(*node)?, *node))).collect();
        here.sort_unstable();
        for ((class, _), node) in here {
            found.push(node);
            let of_class = met.entry(class).or_default();
            if of_class.len() < limit {
                of_class.push(node);
            }
        }
        if met.get(&0).is_some_and(|best| best.len() >= limit) {
            break;
        }
        search.step();
    }
    let paths = met.into_values().flatten().take(limit).map(|node| search.search.trail(node).collect()).collect();
    if !search.level.is_empty() {
        let others = roots.iter().copied().filter(|root| !search.search.reached(*root));
        let (leading, undecided) = search.decide(others);
        found.extend(leading);
        while !search.level.is_empty() && undecided.iter().any(|root| !search.search.reached(*root)) {
            search.step();
        }
        found.extend(undecided.into_iter().filter(|root| search.search.reached(*root)));
    }
    RootPaths { paths, roots: found }
}

/// Every node that the roots reach, themselves included. One bit per node and two levels of the search.
pub fn reachable(graph: &Csr, roots: &[u32]) -> BitSet {
    reach(graph, roots.iter().copied(), |_, _| true)
}

/// Like [`reachable`], but only along references for which `open` says so.
pub fn reach(graph: &Csr, starts: impl IntoIterator<Item = u32>, open: impl Fn(u32, u32) -> bool) -> BitSet {
    let mut seen = BitSet::new(graph.nodes());
    // Level by level and not with a stack: the reads of one level do not wait for each other, which is three times as fast.
    let mut level: Vec<u32> = starts.into_iter().filter(|start| seen.set(*start)).collect();
    let mut next = Vec::new();
    while !level.is_empty() {
        check();
        for node in level.drain(..) {
            check_at(node);
            next.extend(graph.successors(node).iter().copied().filter(|target| open(node, *target) && seen.set(*target)));
        }
        std::mem::swap(&mut level, &mut next);
    }
    seen
}

/// All that some nodes reach, counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Closure {
    /// The number of nodes.
    pub nodes: u64,
    /// The sum of their sizes; stops at `u64::MAX`.
    pub size: u64,
}

/// Counts and sums all that the roots reach, themselves included.
pub fn closure(graph: &Csr, roots: &[u32], size: impl Fn(u32) -> u64) -> Closure {
    let seen = reachable(graph, roots);
    Closure { nodes: seen.count(), size: seen.iter().fold(0, |sum, node| sum.saturating_add(size(node))) }
}
