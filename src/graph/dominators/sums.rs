//! Sums over the dominator tree, computed in parallel on pieces of the preorder.

use std::collections::BTreeMap;
use std::ops::Range;

use rayon::iter::{IntoParallelIterator, ParallelIterator};

use super::super::{at, len32};
use super::Dominators;
use crate::base::cancel::check_at;
use crate::base::missed::Carried;
use crate::base::{Packed, Packing};
use crate::graph::pieces::pieces;

/// Sums over the reachable nodes of one group.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct GroupSum {
    /// Number of nodes.
    pub nodes: u64,
    /// Sum of the sizes of the nodes.
    pub size: u64,
    /// Retained size of the group: the sum of the retained sizes of those nodes that no other node of the group dominates.
    pub retained: u64,
}

/// Partial sums of subtrees that extend beyond a piece: *(position of the subtree's top, sum)*.
type Parts = Vec<(u32, u128)>;

impl Dominators {
    /// The positions of the dominators of the node at `position`, from the top of the tree down, without the virtual root.
    fn above_all(&self, position: u32) -> Vec<u32> {
        let up = |at: &u32| Some(self.above(*at)).filter(|above| *above > 0 && above < at);
        let mut all: Vec<u32> = std::iter::successors(up(&position), up).collect();
        all.reverse();
        all
    }

    /// The positions of the tree, without the virtual root, split into pieces.
    fn pieces(&self) -> Vec<Range<u32>> {
        pieces(len32(self.reached().len())).into_iter().map(|piece| piece.start + 1..piece.end + 1).collect()
    }

    /// The retained size of each node, by [position](Dominators::position_of): the sum of `size` over all nodes that it dominates, itself
    /// included. Sums saturate. Takes O(n) time.
    pub(crate) fn retained(&self, size: impl Fn(u32) -> u64 + Sync) -> Packed<u16> {
        let carried = Carried::here();
        let piece = |positions| carried.run(|| self.retained_in(positions, &size));
        // With arrays in files, each piece would need its own file, so there is only one piece.
        let whole = || std::iter::once(1..len32(self.reached().len()) + 1).collect();
        let pieces = if self.store.is_in_files() { whole() } else { self.pieces() };
        let found: Vec<(Packing<u16>, Parts)> = pieces.into_par_iter().map(piece).collect();
        let mut sums = Packing::zeroed(&self.store, 1);
        sums.reserve(self.reached().len());
        let mut parts: BTreeMap<u32, u128> = BTreeMap::new();
        for (within, across) in found {
            sums.append(&within);
            across.into_iter().for_each(|(top, sum)| *parts.entry(top).or_default() += sum);
        }
        parts.into_iter().for_each(|(top, sum)| sums.put(top, u64::try_from(sum).unwrap_or(u64::MAX)));
        sums.finish()
    }

    /// The sums of the subtrees that lie within a piece, and partial sums of subtrees that extend beyond the piece.
    fn retained_in(&self, positions: Range<u32>, size: impl Fn(u32) -> u64) -> (Packing<u16>, Parts) {
        let start = positions.start;
        let mut all = Packing::zeroed(&self.store, positions.len());
        let mut sums = all.slots();
        let mut across = Parts::new();
        let mut sum = 0u128;
        // The subtrees that contain the current position: position of the top, end, and the total sum before the top.
        let mut open: Vec<(u32, u32, u128)> = self.above_all(start).into_iter().map(|top| (top, self.end(top), 0)).collect();
        let nodes = self.order.get(start as usize..).unwrap_or_default();
        for ((position, node), below) in positions.zip(nodes).zip(self.below.iter_from(start as usize)) {
            check_at(position);
            while let Some((top, _, before)) = open.pop_if(|(_, end, _)| *end <= position) {
                match top.checked_sub(start) {
                    Some(own) => sums.put(own, u64::try_from(sum - before).unwrap_or(u64::MAX)),
                    None => across.push((top, sum - before)),
                }
            }
            let size = size(*node);
            match u32::try_from(below).unwrap_or(u32::MAX) {
                0 => sums.put(position - start, size),
                below => open.push((position, position.saturating_add(below).saturating_add(1), sum)),
            }
            sum += u128::from(size);
        }
        across.extend(open.into_iter().map(|(top, _, before)| (top, sum - before)));
        (all, across)
    }

    /// The sums of each group, by number of the group. `size` and `retained` are the size and the retained size of each node. Nodes whose group
    /// is not below `groups` are ignored.
    ///
    /// A pass in preorder keeps, for each group, the end of the subtree of the member whose retained size was added last. The retained size of a
    /// member before this end is not added, because it is a part of the size added last. Takes O(n + groups) time, and 32 bytes per group and
    /// piece.
    pub(crate) fn by_group(
        &self,
        group_of: impl Fn(u32) -> u32 + Sync,
        groups: u32,
        size: impl Fn(u32) -> u64 + Sync,
        retained: &Packed<u16>,
    ) -> Vec<GroupSum> {
        let carried = Carried::here();
        let piece = |positions| carried.run(|| self.by_group_in(positions, &group_of, groups, &size, retained));
        let found: Vec<Vec<GroupSum>> = self.pieces().into_par_iter().map(piece).collect();
        let mut sums = vec![GroupSum::default(); groups as usize];
        for piece in found {
            for (sum, part) in sums.iter_mut().zip(piece) {
                sum.nodes += part.nodes;
                sum.size = sum.size.saturating_add(part.size);
                sum.retained = sum.retained.saturating_add(part.retained);
            }
        }
        sums
    }

    fn by_group_in(
        &self,
        positions: Range<u32>,
        group_of: impl Fn(u32) -> u32,
        groups: u32,
        size: impl Fn(u32) -> u64,
        retained: &Packed<u16>,
    ) -> Vec<GroupSum> {
        let start = positions.start as usize;
        // For each group: its sums, and the end of the subtree of the member whose retained size was added last.
        let mut sums = vec![(GroupSum::default(), 0u32); groups as usize];
        for top in self.above_all(positions.start) {
            if let Some((_, covered)) = sums.get_mut(group_of(at(&self.order, top)) as usize) {
                *covered = self.end(top).max(*covered);
            }
        }
        let nodes = self.order.get(start..).unwrap_or_default();
        let numbers = self.below.iter_from(start).zip(retained.iter_from(start));
        for ((position, node), (below, retained)) in positions.zip(nodes).zip(numbers) {
            check_at(position);
            let Some((sum, covered)) = sums.get_mut(group_of(*node) as usize) else { continue };
            sum.nodes += 1;
            sum.size = sum.size.saturating_add(size(*node));
            if *covered <= position {
                *covered = position.saturating_add(u32::try_from(below).unwrap_or(u32::MAX)).saturating_add(1);
                sum.retained = sum.retained.saturating_add(retained);
            }
        }
        sums.into_iter().map(|(sum, _)| sum).collect()
    }
}
