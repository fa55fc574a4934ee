//! The dominator tree of a heap: the objects and bytes that each object retains.

use std::ops::Range;
use std::sync::OnceLock;

use rayon::iter::{IntoParallelIterator, ParallelIterator};
use serde::{Deserialize, Serialize};

use super::edges::{Edges, nodes};
use crate::base::cancel::check;
use crate::base::missed::Carried;
use crate::base::{Index, IndexVec, Packed};
use crate::gc::{ObjectId, TypeIndex};
use crate::graph::{Dominators, GroupSum, Idom};
use crate::model::{ReachTotals, Sum};

/// Sums over a dominator tree, each computed on first use.
#[derive(Debug, Default)]
pub(crate) struct Sums {
    pub(super) totals: OnceLock<ReachTotals>,
    pub(super) types: OnceLock<IndexVec<TypeIndex, OfType>>,
    /// Objects with the largest retained sizes, largest first.
    pub(super) largest: OnceLock<Vec<ObjectId>>,
}

impl Sums {
    /// Creates sums from known values.
    pub(crate) fn of(totals: ReachTotals, types: IndexVec<TypeIndex, OfType>, largest: Vec<ObjectId>) -> Sums {
        Sums { totals: totals.into(), types: types.into(), largest: largest.into() }
    }
}

/// The reachable objects of a type.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct OfType {
    /// Number and size of the objects.
    pub own: Sum,
    /// Bytes that the objects retain together. If one of the objects dominates another, the bytes of the dominated object are counted once.
    pub retained: u64,
}

impl Edges {
    /// Computes the dominator tree and the retained sizes for two groups of rooted objects. An object of the second group is ignored as a root if
    /// the first group reaches the object.
    pub fn dominators(&self, groups: [&[ObjectId]; 2], size: impl Fn(ObjectId) -> u64 + Sync) -> DominatorTree {
        let [first, second] = groups.map(nodes);
        let tree = Dominators::compute(self.csr(), &[&first, &second]);
        let retained = tree.retained(|node| size(ObjectId::from_u32(node)));
        DominatorTree { tree, retained, sums: Sums::default() }
    }
}

/// The dominator tree of a heap, with retained sizes.
#[derive(Debug)]
pub struct DominatorTree {
    tree: Dominators,
    /// Retained size in bytes by position in the tree's preorder.
    retained: Packed<u16>,
    sums: Sums,
}

impl DominatorTree {
    /// Returns the tree and the retained sizes by position.
    pub(crate) fn parts(&self) -> (&Dominators, &Packed<u16>) {
        (&self.tree, &self.retained)
    }

    /// Creates a tree from its [parts](DominatorTree::parts) and known sums.
    pub(crate) fn of_parts(tree: Dominators, retained: Packed<u16>, sums: Sums) -> DominatorTree {
        DominatorTree { tree, retained, sums }
    }

    pub(crate) fn sums(&self) -> &Sums {
        &self.sums
    }

    /// Returns the retained size of an object in bytes; 0 if it is unreachable.
    pub fn retained(&self, id: ObjectId) -> u64 {
        self.tree.position_of(id.as_u32()).and_then(|at| self.retained.get(at as usize)).unwrap_or(0)
    }

    /// Returns the bytes that these objects retain together. If one of the objects dominates another, the bytes of the dominated object are counted
    /// once.
    pub(crate) fn retained_jointly(&self, ids: impl Iterator<Item = ObjectId>) -> u64 {
        let mut ranges: Vec<(Range<usize>, ObjectId)> = ids.map(|id| (self.tree.positions_below(id.as_u32()), id)).collect();
        ranges.sort_unstable_by_key(|(range, _)| range.start);
        let (mut sum, mut end) = (0u64, 0usize);
        for (range, id) in ranges {
            if range.start >= end && !range.is_empty() {
                sum = sum.saturating_add(self.retained(id));
                end = range.end;
            }
        }
        sum
    }

    /// Returns sums over the reachable objects of each of `types` types.
    pub(crate) fn sums_by_type(
        &self,
        type_of: impl Fn(ObjectId) -> Option<TypeIndex> + Sync,
        types: usize,
        size: impl Fn(ObjectId) -> u64 + Sync,
    ) -> Vec<GroupSum> {
        self.sums_by(|id| type_of(id).map(Index::as_u32), types, size)
    }

    /// Returns sums over the reachable objects of each of `groups` groups.
    pub(crate) fn sums_by(
        &self,
        group_of: impl Fn(ObjectId) -> Option<u32> + Sync,
        groups: usize,
        size: impl Fn(ObjectId) -> u64 + Sync,
    ) -> Vec<GroupSum> {
        let group = |node: u32| group_of(ObjectId::from_u32(node)).unwrap_or(u32::MAX);
        let size = |node: u32| size(ObjectId::from_u32(node));
        self.tree.by_group(group, u32::try_from(groups).unwrap_or(u32::MAX), size, &self.retained)
    }

    /// Returns the bytes that all objects of each of `types` types retain together.
    pub(crate) fn retained_by_type(&self, type_of: impl Fn(ObjectId) -> Option<TypeIndex> + Sync, types: usize) -> Vec<u64> {
        self.sums_by_type(type_of, types, |_| 0).into_iter().map(|sum| sum.retained).collect()
    }

    /// Passes the objects that `id` dominates, except `id` itself, and their retained sizes to `visit`, on all threads and in no particular order.
    /// Each piece of the tree has its own visitor. Returns the visitors.
    pub(crate) fn visit_dominated<V: Send>(
        &self,
        id: ObjectId,
        visitor: impl Fn() -> V + Sync,
        visit: impl Fn(&mut V, ObjectId, u64) + Sync,
    ) -> Vec<V> {
        let below = self.tree.positions_below(id.as_u32());
        self.by_piece(below.start.saturating_add(1)..below.end, |positions| {
            let mut own = visitor();
            self.reached_at(positions).for_each(|(id, retained)| visit(&mut own, id, retained));
            own
        })
    }

    /// Splits `positions` into pieces and calls `piece` for each, on all threads. Returns the results in the order of the pieces.
    pub(crate) fn by_piece<V: Send>(&self, positions: Range<usize>, piece: impl Fn(Range<usize>) -> V + Sync) -> Vec<V> {
        /// Number of objects in a piece: some milliseconds of work.
        const PIECE: usize = 1 << 18;
        let starts: Vec<usize> = positions.clone().step_by(PIECE).collect();
        let carried = Carried::here();
        let piece = |start: usize| {
            carried.run(|| {
                let own = piece(start..positions.end.min(start.saturating_add(PIECE)));
                check();
                own
            })
        };
        starts.into_par_iter().map(piece).collect()
    }

    /// Returns the reachable objects with their retained sizes, dominators before the objects that they dominate.
    pub(crate) fn reached(&self) -> impl Iterator<Item = (ObjectId, u64)> {
        self.reached_at(self.positions())
    }

    /// Returns the positions of all reachable objects. They begin at 1, because position 0 is the virtual root.
    pub(crate) fn positions(&self) -> Range<usize> {
        1..self.tree.reached().len().saturating_add(1)
    }

    /// Returns the objects of [`reached`](Self::reached) at these positions.
    pub(crate) fn reached_at(&self, positions: Range<usize>) -> impl Iterator<Item = (ObjectId, u64)> {
        let retained = self.retained.iter_from(positions.start);
        positions.zip(retained).filter_map(|(position, retained)| Some((ObjectId::from_u32(self.tree.node_at(position)?), retained)))
    }

    /// Whether the object is reachable from a root.
    pub fn is_reachable(&self, id: ObjectId) -> bool {
        self.tree.is_reachable(id.as_u32())
    }

    /// Returns the immediate dominator of an object; `None` if no object dominates it.
    pub fn dominator(&self, id: ObjectId) -> Option<ObjectId> {
        match self.tree.idom(id.as_u32()) {
            Idom::Node(above) => Some(ObjectId::from_u32(above)),
            _ => None,
        }
    }

    /// Whether every path from a root to `id` goes through `above`.
    pub fn dominates(&self, above: ObjectId, id: ObjectId) -> bool {
        self.tree.dominates(above.as_u32(), id.as_u32())
    }

    /// Returns the number of objects dominated by the object, including itself.
    pub fn subtree(&self, id: ObjectId) -> u64 {
        self.tree.subtree(id.as_u32()).into()
    }

    /// Returns the dominators of an object, nearest first.
    pub fn chain(&self, id: ObjectId) -> impl Iterator<Item = ObjectId> {
        self.tree.chain(id.as_u32()).map(ObjectId::from_u32)
    }

    /// Returns the objects that `id` dominates, directly or not, including itself.
    pub fn dominated(&self, id: ObjectId) -> impl Iterator<Item = ObjectId> {
        self.tree.dominated(id.as_u32()).map(ObjectId::from_u32)
    }

    /// Returns the objects that `id` dominates immediately, or for `None` the objects that no object dominates, in no particular order.
    pub fn below(&self, id: Option<ObjectId>) -> impl Iterator<Item = ObjectId> {
        id.map_or_else(|| self.tree.top(), |id| self.tree.children(id.as_u32())).map(ObjectId::from_u32)
    }
}
