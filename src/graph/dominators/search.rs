//! The depth-first search.

use std::ops::Range;

use rayon::slice::ParallelSliceMut;

use super::super::{Csr, NONE, at, put};
use crate::base::cancel::check_at;
use crate::base::{Buffer, Store};

/// The result of the depth-first search. Nodes are numbered in preorder; the virtual root is 0.
pub(super) struct Searched {
    /// Number by node; 0 for nodes not reached.
    pub(super) number: Buffer<u32>,
    /// Parent in the spanning tree by number.
    pub(super) parent: Buffer<u32>,
    /// The edges that are not in the spanning tree.
    pub(super) others: Others,
}

/// The edges that are not in the spanning tree, ordered by source but not by target.
pub(super) struct Others {
    /// Edges to nodes that were found before the source, which are found in order.
    earlier: Buffer<Edge>,
    /// Edges to nodes that were found below the source. They are few, and sorted afterwards.
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

/// An edge: the number of its source in the high half and that of its target in the low half, so that edges sort by source.
pub(super) type Edge = u64;

pub(super) fn edge(source: u32, target: u32) -> Edge {
    u64::from(source) << 32 | u64::from(target)
}

pub(super) fn ends(edge: Edge) -> (u32, u32) {
    let half = |half: u64| u32::try_from(half).unwrap_or(NONE);
    (half(edge >> 32), half(edge & u64::from(u32::MAX)))
}

impl Searched {
    /// Searches from the roots of each group in turn. Roots that an earlier group reaches are ignored.
    pub(super) fn run(graph: &Csr, groups: &[&[u32]]) -> Self {
        let (nodes, store) = (graph.nodes() as usize, graph.store());
        let rows = graph.rows();
        let (mut numbers, mut parents) = (Buffer::<u32>::zeroed(store, nodes), Buffer::<u32>::zeroed(store, nodes + 1));
        let (number, parent): (&mut [u32], &mut [u32]) = (&mut numbers, &mut parents);
        // The virtual root has number 0.
        let mut found = 1;
        let (mut earlier, mut later): (Buffer<Edge>, Buffer<Edge>) = (Buffer::new(store), Buffer::new(store));
        // The search stack: only nodes that still have edges to follow.
        let mut waiting: Vec<(u32, u32, u32)> = Vec::new();
        for group in groups {
            let new: Vec<u32> = group.iter().copied().filter(|root| at(number, *root) == 0).collect();
            for root in new {
                // Starts with a separate row for the virtual root's edge to `root`.
                let (mut source, mut target, mut next, mut end) = (0, root, 0, 0);
                loop {
                    let known = at(number, target);
                    if known == 0 {
                        if next < end {
                            // A prefetch: the next target is read from memory while this one is followed.
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
                        // All edges of a node are checked at once, so that memory reads overlap and sources are in order.
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
