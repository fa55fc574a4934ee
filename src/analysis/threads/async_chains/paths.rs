//! Paths from roots to outermost waiters.

use super::graph::{Graph, NodeIndex};
use crate::base::{Budget, len64};

/// A path from a root outwards.
#[derive(Debug)]
pub(super) struct Path {
    /// The root of the path.
    pub(super) root: NodeIndex,
    /// Whether the root is part of a cycle.
    pub(super) cycle: bool,
    /// Nodes, innermost first.
    pub(super) nodes: Vec<NodeIndex>,
    /// Index of the first node that is also on an earlier path.
    pub(super) visited: usize,
}

/// Bytes of memory charged for a frame, and for a chain in addition to its frames.
const FRAME: u64 = 128;
const CHAIN: u64 = 256;

/// Finds all paths. All waiters of a node are followed only once; a later path through the node continues with its first waiter. This way, there are
/// not more paths than edges.
struct Finder<'g> {
    graph: &'g Graph,
    budget: &'g Budget,
    visited: Vec<bool>,
    found: Vec<Path>,
}

/// All paths in `graph`, in the order of roots.
pub(super) fn paths(graph: &Graph, budget: &Budget) -> Vec<Path> {
    let mut finder = Finder { graph, budget, visited: vec![false; graph.nodes.len()], found: Vec::new() };
    let all = || (0..graph.nodes.len()).filter_map(|i| NodeIndex::try_from(i).ok());
    for root in all().filter(|i| graph.incoming(*i) == 0) {
        if !finder.visit(root) || !finder.from(root, false) {
            return finder.found;
        }
    }
    // A node that was not reached from a root is on a cycle, or is reachable from one.
    let leading = graph.reversed();
    for start in all() {
        if finder.is_visited(start) {
            continue;
        }
        let root = finder.on_cycle(start, &leading);
        if !finder.visit(root) || !finder.from(root, true) {
            break;
        }
    }
    finder.found
}

impl Finder<'_> {
    fn is_visited(&self, node: NodeIndex) -> bool {
        usize::try_from(node).ok().and_then(|i| self.visited.get(i)).copied().unwrap_or(true)
    }

    fn visit(&mut self, node: NodeIndex) -> bool {
        match usize::try_from(node).ok().and_then(|i| self.visited.get_mut(i)) {
            Some(seen) => !std::mem::replace(seen, true),
            None => false,
        }
    }

    /// Returns a node of a cycle from which `start` is reachable, found by following edges backwards until a node repeats.
    fn on_cycle(&self, start: NodeIndex, leading: &[(NodeIndex, NodeIndex)]) -> NodeIndex {
        let mut seen = vec![start];
        let mut known = crate::base::hash::Set::from_iter([start]);
        while let Some(at) = seen.last() {
            let from = leading.partition_point(|(to, _)| to < at);
            let before = leading.iter().skip(from).take_while(|(to, _)| to == at).map(|(_, from)| *from).find(|n| !self.is_visited(*n));
            match before {
                Some(before) if known.insert(before) => seen.push(before),
                Some(before) => return before,
                None => return *at,
            }
        }
        start
    }

    /// Whether the root is also the first frame of its chains, such as a method that a thread runs.
    fn is_frame(&self, root: NodeIndex, cycle: bool) -> bool {
        cycle || self.graph.node(root).is_some_and(|n| n.kind.is_method())
    }

    /// Adds the paths from `root`. Returns whether there was room for all.
    fn from(&mut self, root: NodeIndex, cycle: bool) -> bool {
        let graph = self.graph;
        let mut path: Vec<NodeIndex> = Vec::new();
        if self.is_frame(root, cycle) {
            path.push(root);
        }
        let mut stack = vec![(graph.waiters(root), false)];
        while let Some((waiters, followed)) = stack.last_mut() {
            let Some(next) = waiters.next() else {
                // If no waiter was followed, the path ends at an outermost node.
                let leaf = !*followed;
                stack.pop();
                if leaf && !path.is_empty() && !self.add(root, cycle, path.clone(), path.len()) {
                    return false;
                }
                if !stack.is_empty() {
                    path.pop();
                }
                continue;
            };
            *followed = true;
            if self.visit(next) {
                path.push(next);
                stack.push((graph.waiters(next), false));
                continue;
            }
            let mut whole = path.clone();
            let visited = whole.len();
            let mut seen: crate::base::hash::Set<NodeIndex> = path.iter().copied().collect();
            let mut at = Some(next).filter(|n| seen.insert(*n));
            while let Some(node) = at {
                whole.push(node);
                at = graph.waiters(node).next().filter(|n| seen.insert(*n));
            }
            if !whole.is_empty() && !self.add(root, cycle, whole, visited) {
                return false;
            }
        }
        true
    }

    fn add(&mut self, root: NodeIndex, cycle: bool, nodes: Vec<NodeIndex>, visited: usize) -> bool {
        let room = self.budget.memory(len64(nodes.len()).saturating_mul(FRAME).saturating_add(CHAIN));
        if room {
            self.found.push(Path { root, cycle, nodes, visited });
        }
        room
    }
}
