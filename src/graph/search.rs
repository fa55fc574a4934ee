//! Breadth-first search: shortest paths from and to roots, and reachability.

use std::collections::BTreeMap;

use super::{BitSet, Csr, NONE, ROOT, TwoWay};
use crate::base::Buffer;
use crate::base::cancel::{check, check_at};

/// A breadth-first search from several sources. Stores, for each node reached, its predecessor on a shortest path.
#[derive(Debug)]
pub struct Bfs {
    /// By node, the bitwise complement of the predecessor, or of [`ROOT`] for a source. 0, the complement of [`NONE`], means "not reached", so
    /// that a short search does not touch most pages of a large zeroed array.
    before: Buffer<u32>,
}

impl Bfs {
    /// Visits all nodes that the first group of sources reaches, then the other nodes that the second group reaches, and so on, until `meet`
    /// returns false. `meet` is called once for each node, nearest first, sources included. Its first argument is the search so far, which
    /// already has the path to the node.
    ///
    /// The path to a node is a shortest path from the first group that reaches the node; of equally long paths, the one from the earliest source
    /// of the group.
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

    /// Marks a node as reached. Returns whether it exists and is new.
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

    /// Whether the search reached the node.
    pub fn reached(&self, node: u32) -> bool {
        self.before(node) != NONE
    }

    /// The node before this one on a shortest path from a source; `None` for sources and for nodes not reached.
    pub fn parent(&self, node: u32) -> Option<u32> {
        Some(self.before(node)).filter(|before| *before < ROOT)
    }

    /// The path from the node back to its source, both included; empty if the node was not reached.
    pub fn trail(&self, node: u32) -> impl Iterator<Item = u32> + '_ {
        std::iter::successors(Some(node).filter(|n| self.reached(*n)), |n| self.parent(*n))
    }

    /// A shortest path from a source to the node, both included; empty if the node was not reached.
    pub fn path_to(&self, node: u32) -> Vec<u32> {
        let mut path: Vec<u32> = self.trail(node).collect();
        path.reverse();
        path
    }
}

/// How good a root is as an explanation: its class, where 0 is the best, and its order among roots with the same class and distance.
pub type Rank = (u8, u8);

/// The roots that reach a node.
#[derive(Debug, Default)]
pub struct RootPaths {
    /// Shortest paths from different roots to the node. Ordered by class of the root, best first, then by length, rank and node of the root.
    pub paths: Vec<Vec<u32>>,
    /// Every root that reaches the node.
    pub roots: Vec<u32>,
}

/// A breadth-first search against the direction of the edges.
struct Backwards<'g, O> {
    edges: &'g TwoWay,
    open: O,
    search: Bfs,
    /// The nodes at the current distance.
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

    /// Proceeds to the next level.
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

    /// Searches forwards from each of `roots`. Returns the roots that lead to a node that the backward search reached, and the undecided roots,
    /// whose searches were given up after too many edges. A forward search is short for most roots, while the backward search past the nearest
    /// roots meets every node that refers to a widely shared object.
    fn decide(&self, roots: impl Iterator<Item = u32>) -> (Vec<u32>, Vec<u32>) {
        let graph = self.edges.graph();
        let mut left = (graph.edges() / FORWARD_SHARE).max(FORWARD_LEAST);
        // The nodes visited from roots that are neither leading nor undecided. No such node leads to a node that the backward search reached.
        let mut seen = BitSet::new(graph.nodes());
        let (mut leading, mut undecided) = (Vec::new(), Vec::new());
        // `met` has the nodes visited from one root. `way` is the search stack: each node with the number of its edges that were followed.
        let (mut met, mut way): (Vec<u32>, Vec<(u32, usize)>) = (Vec::new(), Vec::new());
        for root in roots {
            met.clear();
            way.clear();
            if seen.set(root) {
                met.push(root);
                way.push((root, 0));
            }
            // The search from one root follows at most a quarter of the remaining edges, so that some are left for other roots.
            let most = left / 4;
            let (mut followed, mut leads) = (0u32, false);
            // The search is depth-first, because it then finds widely shared nodes at the first leaves.
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

/// Forward searches follow at most this fraction of the graph's edges (1/64), which takes a few milliseconds. A backward search takes hundreds of
/// milliseconds.
const FORWARD_SHARE: u32 = 64;
/// Minimum number of edges that forward searches may follow, for small graphs.
const FORWARD_LEAST: u32 = if cfg!(test) { 12 } else { 1 << 14 };

/// The `roots` that reach `target` along edges for which `open` returns true, and at most `limit` paths, from the roots with the best ranks.
///
/// Searches backwards and continues past roots, so a path may begin at one root and pass through another. Each node is visited once, so paths
/// may share their last nodes.
pub fn paths_to_roots(
    edges: &TwoWay,
    target: u32,
    (roots, rank): (&[u32], impl Fn(u32) -> Option<Rank>),
    open: impl Fn(u32, u32) -> bool,
    limit: usize,
) -> RootPaths {
    // Roots by class, nearest first.
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

/// Every node that the roots reach, roots included. Uses one bit per node, and memory for two levels of the search.
pub fn reachable(graph: &Csr, roots: &[u32]) -> BitSet {
    reach(graph, roots.iter().copied(), |_, _| true)
}

/// Like [`reachable`], but only along edges for which `open` returns true.
pub fn reach(graph: &Csr, starts: impl IntoIterator<Item = u32>, open: impl Fn(u32, u32) -> bool) -> BitSet {
    let mut seen = BitSet::new(graph.nodes());
    // The search is breadth-first, because the memory reads of one level do not depend on each other. This is three times as fast as a
    // depth-first search.
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

/// Count and total size of the nodes that a set of roots reaches, roots included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Closure {
    /// The number of nodes.
    pub nodes: u64,
    /// The sum of the nodes' sizes, saturating.
    pub size: u64,
}

/// Counts the nodes that the roots reach, roots included, and adds up their sizes.
pub fn closure(graph: &Csr, roots: &[u32], size: impl Fn(u32) -> u64) -> Closure {
    let seen = reachable(graph, roots);
    Closure { nodes: seen.count(), size: seen.iter().fold(0, |sum, node| sum.saturating_add(size(node))) }
}
