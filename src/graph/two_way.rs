//! A graph whose edges can be followed forwards and backwards.
//!
//! A backward search from one node usually meets few others, and reversing all edges takes longer than such a search. So the edges to the
//! nodes of each level are found by a parallel pass over all edges. When the passes have taken about as long as reversing the graph takes, the
//! graph is reversed.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use rayon::iter::{IndexedParallelIterator, ParallelIterator};
use rayon::slice::ParallelSlice;
use rustc_hash::FxHashMap;

use super::csr::Csr;
use super::{BitSet, len32};
use crate::base::Store;
use crate::base::cancel::{check, check_at};
use crate::base::missed::Carried;

/// Number of passes that take about as long as reversing the graph. With 19 million edges and two threads, a pass takes 12 to 15 ms and
/// reversing 0.25 s.
const PASSES: u32 = if cfg!(test) { 2 } else { 12 };
/// Number of edges that a thread handles at a time.
const PIECE: usize = if cfg!(test) { 40 } else { 1 << 17 };
/// Number of edges that are compared before one branch on whether any of them matches.
const TOGETHER: usize = 32;
/// Number of found edges at which a pass gives up: the next levels would be even larger, so the graph is reversed instead.
const MANY: usize = if cfg!(test) { 12 } else { 1 << 16 };

/// A graph, and its reversed graph once it is needed.
#[derive(Debug)]
pub struct TwoWay {
    graph: Csr,
    reversed: OnceLock<Csr>,
    /// Number of passes so far.
    passes: AtomicU32,
}

impl From<Csr> for TwoWay {
    fn from(graph: Csr) -> TwoWay {
        TwoWay { graph, reversed: OnceLock::new(), passes: AtomicU32::new(0) }
    }
}

impl TwoWay {
    /// Combines a graph and its reversed graph.
    pub fn with_reversed(graph: Csr, reversed: Csr) -> TwoWay {
        TwoWay { reversed: reversed.into(), ..graph.into() }
    }

    /// The graph with another store for derived arrays.
    pub(crate) fn with_store(self, store: &Store) -> TwoWay {
        let graph = self.graph.with_store(store);
        match self.reversed.into_inner() {
            Some(reversed) => TwoWay::with_reversed(graph, reversed.with_store(store)),
            None => graph.into(),
        }
    }

    /// The graph.
    pub fn graph(&self) -> &Csr {
        &self.graph
    }

    /// The reversed graph, which is made at the first call.
    pub fn reversed(&self) -> &Csr {
        if let Some(reversed) = self.reversed.get() {
            return reversed;
        }
        // The graph is not reversed within `get_or_init`, because this could deadlock: while this thread waits for rayon's pool, it may run a
        // task that also needs the reversed graph.
        let reversed = self.graph.reversed();
        self.reversed.get_or_init(|| reversed)
    }

    /// Calls `found` with the source and target of each edge to `targets`, which must be distinct. The order is that of `targets`; for each
    /// target, sources are ascending.
    pub(super) fn edges_to(&self, targets: &[u32], mut found: impl FnMut(u32, u32)) {
        let is_worth_it = || self.reversed.get().is_none() && self.passes.fetch_add(1, Ordering::Relaxed) < PASSES;
        if targets.len() < MANY
            && is_worth_it()
            && let Some(edges) = self.pass(targets)
        {
            edges.into_iter().for_each(|(_, source, target)| found(source, target));
            return;
        }
        let reversed = self.reversed();
        for target in targets {
            check_at(*target);
            reversed.successors(*target).iter().for_each(|source| found(*source, *target));
        }
    }

    /// The edges to `targets` as *(index in `targets`, source, target)*, ascending; `None` if there are [`MANY`] or more.
    fn pass(&self, targets: &[u32]) -> Option<Vec<(u32, u32, u32)>> {
        let places = match targets {
            [target] => self.places(|node| node == *target),
            _ => {
                let mut wanted = BitSet::new(self.graph.nodes());
                targets.iter().for_each(|target| {
                    wanted.set(*target);
                });
                self.places(|node| wanted.test(node))
            }
        }?;
        let numbers: FxHashMap<u32, u32> = targets.iter().copied().zip(0u32..).collect();
        let rows = self.graph.rows();
        let edge = |place: u32| {
            let target = rows.item(place);
            Some((*numbers.get(&target)?, rows.row_of(place), target))
        };
        let mut edges: Vec<(u32, u32, u32)> = places.into_iter().filter_map(edge).collect();
        edges.sort_unstable();
        Some(edges)
    }

    /// The edges whose targets are `wanted`, as indices in the array of all edges; `None` if there are [`MANY`] or more.
    fn places(&self, wanted: impl Fn(u32) -> bool + Sync) -> Option<Vec<u32>> {
        let (carried, found) = (Carried::here(), AtomicUsize::new(0));
        let piece = |(number, targets): (usize, &[u32])| {
            carried.run(|| {
                check();
                let mut places = Vec::new();
                if found.load(Ordering::Relaxed) >= MANY {
                    return places;
                }
                for (of_chunk, chunk) in (number.saturating_mul(PIECE)..).step_by(TOGETHER).zip(targets.chunks(TOGETHER)) {
                    // One branch for all edges of the chunk, because almost no target is wanted.
                    if chunk.iter().fold(false, |any, target| any | wanted(*target)) {
                        let of_chunk = (len32(of_chunk)..).zip(chunk).filter(|(_, target)| wanted(**target));
                        places.extend(of_chunk.map(|(place, _)| place));
                        if places.len() >= MANY {
                            break;
                        }
                    }
                }
                found.fetch_add(places.len(), Ordering::Relaxed);
                places
            })
        };
        let targets = self.graph.rows().items();
        let places: Vec<Vec<u32>> = targets.par_chunks(PIECE).enumerate().map(piece).collect();
        (found.into_inner() < MANY).then(|| places.concat())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn a_pass_finds_the_edges_of_the_reversed_graph(edges in prop::collection::vec((0u32..60, 0u32..60), 0..200), first in 0u32..60, step in 1u32..60) {
            let graph = TwoWay::from(Csr::from_edges(60, &edges).unwrap());
            let targets: Vec<u32> = (0..60 / step).map(|n| (first + n * step) % 60).collect();
            let reversed = graph.graph().reversed();
            let of = |n: &u32| reversed.successors(*n).to_vec();
            let expected: Vec<(u32, u32)> = targets.iter().flat_map(|n| of(n).into_iter().map(|source| (source, *n))).collect();
            let passed = graph.pass(&targets).map(|edges| edges.into_iter().map(|(_, source, target)| (source, target)).collect());
            prop_assert_eq!(passed, (expected.len() < MANY).then(|| expected.clone()));
            for _ in 0..PASSES + 2 {
                let mut found = Vec::new();
                graph.edges_to(&targets, |source, target| found.push((source, target)));
                prop_assert_eq!(&found, &expected);
            }
            prop_assert!(graph.reversed.get().is_some());
        }
    }
}
