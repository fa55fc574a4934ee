//! Reverses the edges of a large graph on all threads.
//!
//! Writing each edge directly into the row of its target would access the array of all edges at random, and that array does not fit in a
//! cache. So each thread first distributes the edges of its share of the sources to buckets, each for a range of targets. Each bucket fits in
//! the cache, where it is then sorted.

use std::iter::Zip;
use std::ops::Range;
use std::slice::IterMut;

use rayon::iter::{IntoParallelIterator, ParallelIterator};

use super::csr::{Csr, Rows};
use super::offsets::{Offsets, OffsetsBuilder};
use super::pieces::pieces;
use crate::base::Buffer;
use crate::base::cancel::{check, check_at};
use crate::base::missed::Carried;

/// Maximum number of buckets. A thread writes to all of them in turn, and too many places in memory would not stay in the cache.
const BUCKETS: u32 = 512;
/// Base 2 logarithm of the minimum number of targets of a bucket.
const SMALLEST: u32 = if cfg!(test) { 3 } else { 12 };
/// Base 2 logarithm of the maximum number of targets of a bucket, which are numbered with 16 bits.
const LARGEST: u32 = u16::BITS;
/// Minimum number of edges for which buckets are faster than [`Rows::sorted`]. The number is small in tests, whose graphs are small.
const LEAST: u32 = if cfg!(test) { 8 } else { 1 << 20 };

/// The slots in one bucket for the edges from one share of the sources: source, and target relative to the bucket's first target.
type Places<'p> = Zip<IterMut<'p, u32>, IterMut<'p, u16>>;

impl Csr {
    /// The graph with every edge reversed; the successors of a node are in increasing order.
    pub fn reversed(&self) -> Csr {
        let edges = (0..self.nodes()).flat_map(|source| {
            check_at(source);
            self.successors(source).iter().map(move |target| (*target, source))
        });
        let rows = reversed(self).unwrap_or_else(|| Rows::sorted(self.store(), self.nodes(), edges));
        Csr::of_rows(rows).with_store(self.store())
    }
}

/// The rows of the reversed graph, with ascending sources in each row. `None` if [`Rows::sorted`] is better, because there is one thread, the
/// graph is small, or its arrays are in files. Uses two bytes per edge besides the result.
fn reversed(graph: &Csr) -> Option<Rows> {
    let (nodes, edges) = (graph.nodes(), graph.edges());
    if rayon::current_num_threads() == 1 || edges < LEAST || graph.store().is_in_files() {
        return None;
    }
    let shift = (u32::BITS - nodes.leading_zeros()).saturating_sub(BUCKETS.ilog2()).clamp(SMALLEST, LARGEST);
    let buckets = (nodes.saturating_sub(1) >> shift) + 1;
    let bucket_of = |target: u32| (target >> shift) as usize;
    let in_bucket = |target: u32| u16::try_from(target & ((1 << shift) - 1)).unwrap_or_default();
    let carried = Carried::here();

    let shares = pieces(nodes);
    let count = |sources: Range<u32>| {
        carried.run(|| {
            check();
            let mut counts = vec![0u32; buckets as usize];
            for target in graph.rows().items_of(sources) {
                if let Some(count) = counts.get_mut(bucket_of(*target)) {
                    *count += 1;
                }
            }
            counts
        })
    };
    let counts: Vec<Vec<u32>> = shares.clone().into_par_iter().map(count).collect();
    let of_bucket = |bucket: usize| counts.iter().filter_map(move |of_share| of_share.get(bucket).copied());
    let totals: Vec<u32> = (0..buckets as usize).map(|bucket| of_bucket(bucket).fold(0, u32::saturating_add)).collect();

    // Edges are ordered by bucket, and within a bucket by share, so the sources in a bucket are ascending.
    let (mut items, mut targets) = (Buffer::zeroed(graph.store(), edges as usize), vec![0u16; edges as usize]);
    let mut places: Vec<Vec<Places<'_>>> = shares.iter().map(|_| Vec::with_capacity(buckets as usize)).collect();
    let (mut rest, mut rest_of_targets): (&mut [u32], &mut [u16]) = (&mut items, &mut targets);
    for bucket in 0..buckets as usize {
        for (count, places) in of_bucket(bucket).zip(&mut places) {
            let sources = rest.split_off_mut(..count as usize).unwrap_or_default();
            places.push(sources.iter_mut().zip(rest_of_targets.split_off_mut(..count as usize).unwrap_or_default()));
        }
    }
    let share = |(sources, mut places): (Range<u32>, Vec<Places<'_>>)| {
        carried.run(|| {
            for from in sources {
                check_at(from);
                for to in graph.successors(from) {
                    if let Some((source, target)) = places.get_mut(bucket_of(*to)).and_then(Iterator::next) {
                        (*source, *target) = (from, in_bucket(*to));
                    }
                }
            }
        });
    };
    shares.into_iter().zip(places).collect::<Vec<_>>().into_par_iter().for_each(share);

    let (mut rest, mut rest_of_targets): (&mut [u32], &[u16]) = (&mut items, &targets);
    let (mut start, mut tasks) = (0u32, Vec::with_capacity(totals.len()));
    for (bucket, total) in (0u32..).zip(totals) {
        let sources = rest.split_off_mut(..total as usize).unwrap_or_default();
        let targets = rest_of_targets.split_off(..total as usize).unwrap_or_default();
        let first = bucket << shift;
        tasks.push((first..nodes.min(first.saturating_add(1 << shift)), start, sources, targets));
        start = start.saturating_add(total);
    }
    let sort = |scratch: &mut Scratch, (rows, start, sources, targets)| {
        carried.run(|| {
            check();
            scratch.sort(rows, start, sources, targets)
        })
    };
    let parts: Vec<OffsetsBuilder> = tasks.into_par_iter().map_init(Scratch::default, sort).collect();
    Some(Rows::of_parts(Offsets::joined(graph.store(), parts), items.freeze()))
}

/// Buffers that a thread reuses to sort buckets.
#[derive(Default)]
struct Scratch {
    /// The number of edges of each row, and later the place of the row's next edge.
    places: Vec<u32>,
    /// The sources of the bucket before they are sorted.
    sources: Vec<u32>,
}

impl Scratch {
    /// Sorts `sources` by target, and returns the offsets of the bucket's `rows`, the first of which begins at `start` in the array of all edges.
    fn sort(&mut self, rows: Range<u32>, start: u32, sources: &mut [u32], targets: &[u16]) -> OffsetsBuilder {
        let Scratch { places, sources: unsorted } = self;
        places.clear();
        places.resize(rows.len(), 0);
        for target in targets {
            if let Some(count) = places.get_mut(usize::from(*target)) {
                *count += 1;
            }
        }
        let mut offsets = OffsetsBuilder::part(rows, start);
        let mut end = 0;
        for place in &mut *places {
            let length = std::mem::replace(place, end);
            offsets.push(length);
            end = end.saturating_add(length);
        }
        unsorted.clear();
        unsorted.extend_from_slice(sources);
        for (target, source) in targets.iter().zip(unsorted) {
            if let Some(place) = places.get_mut(usize::from(*target)) {
                super::put(sources, *place, *source);
                *place = place.saturating_add(1);
            }
        }
        offsets
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::base::Store;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn equals_a_sort_of_all_edges(edges in prop::collection::vec((0u32..9000, 0u32..9000), 8..400), last in 0u32..400) {
            // Up to 400 edges have the same target, so the length of its row may not fit in a byte.
            let edges: Vec<(u32, u32)> = edges.into_iter().chain((0..last).map(|i| (i, last))).collect();
            let graph = Csr::from_edges(9000, &edges).unwrap();
            let turned = (0..9000).flat_map(|source| graph.successors(source).iter().map(move |target| (*target, source)));
            let two = rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
            prop_assert_eq!(two.install(|| reversed(&graph)).unwrap(), Rows::sorted(&Store::default(), 9000, turned));
        }
    }
}
