//! The depth-first search that numbers nodes for the computation of dominators.

use std::ops::Range;

use rayon::slice::ParallelSliceMut;

use super::super::{Csr, NONE, at, put};
use crate::base::cancel::check_at;
use crate::base::{Buffer, Store};

/// The result of the depth-first search. Nodes are numbered in preorder; the virtual root is 0.
pub(super) struct Searched {
    /// Number by node; 0 for nodes not reached.
    pub(super) number: Buffer<u32>,
    /// Number of the parent in the spanning tree, by number.
    pub(super) parent: Buffer<u32>,
    /// The edges that are not in the spanning tree.
    pub(super) others: Others,
}

/// The edges that are not in the spanning tree. Both lists are ordered by source.
pub(super) struct Others {
    /// Edges to nodes that the search reached before the source. The search finds these edges in the order of their sources.
    earlier: Buffer<Edge>,
    /// Edges to nodes that the search reached below the source. These edges are few, and are sorted after the search.
    later: Buffer<Edge>,
}

impl Others {
    pub(super) fn store(&self) -> &Store {
        self.earlier.store()
    }

    /// All edges.
    pub(super) fn iter(&self) -> impl Iterator<Item = Edge> {
        self.earlier.iter().chain(self.later.iter()).copied()
    }

    /// The edges of these sources.
    pub(super) fn of(&self, sources: &Range<u32>) -> OthersOf<'_> {
        let part = |edges: &'_ [Edge]| -> Range<usize> {
            let before = |source: u32| edges.partition_point(|other| ends(*other).0 < source);
            before(sources.start)..before(sources.end)
        };
        let [earlier, later] = [&*self.earlier, &*self.later].map(|edges| edges.get(part(edges)).unwrap_or_default());
        OthersOf { earlier, later }
    }
}

/// Edges of consecutive sources, taken in order of the sources.
pub(super) struct OthersOf<'o> {
    earlier: &'o [Edge],
    later: &'o [Edge],
}

impl OthersOf<'_> {
    pub(super) fn is_empty(&self) -> bool {
        self.earlier.is_empty() && self.later.is_empty()
    }

    /// Takes the next edge of `source` and returns its target.
    #[inline(always)]
    pub(super) fn next_of(&mut self, source: u32) -> Option<u32> {
        [&mut self.earlier, &mut self.later].into_iter().find_map(|edges| {
            let (edge, rest) = edges.split_first()?;
            let (from, target) = ends(*edge);
            (from == source).then(|| {
                *edges = rest;
                target
            })
        })
    }
}

/// An edge: the number of the source in the high half and the number of the target in the low half, so that edges sort by source.
pub(super) type Edge = u64;

pub(super) fn edge(source: u32, target: u32) -> Edge {
    u64::from(source) << 32 | u64::from(target)
}

pub(super) fn ends(edge: Edge) -> (u32, u32) {
    let half = |half: u64| u32::try_from(half).unwrap_or(NONE);
    (half(edge >> 32), half(edge & u64::from(u32::MAX)))
}

impl Searched {
    /// Searches from the roots of each group in turn. A root that an earlier group reaches is ignored.
    pub(super) fn run(graph: &Csr, groups: &[&[u32]]) -> Self {
        let (nodes, store) = (graph.nodes() as usize, graph.store());
        let rows = graph.rows();
        let (mut numbers, mut parents) = (Buffer::<u32>::zeroed(store, nodes), Buffer::<u32>::zeroed(store, nodes + 1));
        let (number, parent): (&mut [u32], &mut [u32]) = (&mut numbers, &mut parents);
        // The virtual root has number 0.
        let mut found = 1;
        let (mut earlier, mut later): (Buffer<Edge>, Buffer<Edge>) = (Buffer::new(store), Buffer::new(store));
        // The search stack, with only those nodes that have edges left to follow: number, next edge, end of the edges.
        let mut waiting: Vec<(u32, u32, u32)> = Vec::new();
        for group in groups {
            let new: Vec<u32> = group.iter().copied().filter(|root| at(number, *root) == 0).collect();
            for root in new {
                // The first step follows the edge from the virtual root to `root`, after which this source has no more edges.
                let (mut source, mut target, mut next, mut end) = (0, root, 0, 0);
                loop {
                    let known = at(number, target);
                    if known == 0 {
                        if next < end {
                            // Prefetch: the processor loads the data of the next target while this one is followed.
                            let soon = rows.item(next);
                            std::hint::black_box((at(number, soon), rows.span(soon).0));
                            waiting.push((source, next, end));
                        }
                        let new = found;
                        found += 1;
                        check_at(new);
                        put(number, target, new);
                        put(parent, new, source);
                        source = new;
                        (next, end) = rows.span(target);
                        // All edges of a node are checked at once, so that memory reads overlap and `earlier` is in order of sources.
                        for place in next..end {
                            check_at(place);
                            let known = at(number, rows.item(place));
                            if known != 0 && known != source {
                                earlier.push(edge(source, known));
                            }
                        }
                    } else if known > source && at(parent, known) != source {
                        later.push(edge(source, known));
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
        parents.truncate(found as usize);
        later.par_sort_unstable();
        Self { number: numbers, parent: parents, others: Others { earlier, later } }
    }
}
