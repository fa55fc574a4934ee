//! The depth-first search.

use super::super::{Csr, NONE, at, len32, put};
use crate::base::cancel::check_at;

/// What the depth-first search leaves behind. Numbers are those of preorder, 0 the virtual root.
pub(super) struct Searched {
    /// Node to number; 0 for nodes not reached.
    pub(super) number: Vec<u32>,
    /// Parent in the spanning tree, by number.
    pub(super) parent: Vec<u32>,
    /// Edges to nodes that were found before, but the one from the parent: source and target.
    pub(super) others: Vec<Edge>,
}

/// An edge, as the number of its source above that of its target: they sort by source.
pub(super) type Edge = u64;

pub(super) fn edge(source: u32, target: u32) -> Edge {
    u64::from(source) << 32 | u64::from(target)
}

pub(super) fn ends(edge: Edge) -> (u32, u32) {
    let half = |half: u64| u32::try_from(half).unwrap_or(NONE);
    (half(edge >> 32), half(edge & u64::from(u32::MAX)))
}

impl Searched {
    /// Searches from the roots of each group in turn. Of a later group, those count that no earlier group reaches.
    pub(super) fn run(graph: &Csr, groups: &[&[u32]]) -> Self {
        let nodes = graph.nodes();
        let rows = graph.rows();
        let mut number = vec![0u32; nodes as usize];
        let mut parent = Vec::with_capacity(nodes as usize + 1);
        parent.push(0);
        let mut others: Vec<Edge> = Vec::new();
        // Only nodes that still have edges to follow wait here.
        let mut waiting: Vec<(u32, u32, u32)> = Vec::new();
        for group in groups {
            let new: Vec<u32> = group.iter().copied().filter(|root| at(&number, *root) == 0).collect();
            for root in new {
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
                        let new = len32(parent.len());
                        check_at(new);
                        put(&mut number, target, new);
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
        }
        Self { number, parent, others }
    }
}
