//! Sums over a dominator tree that several answers need, each computed once.

use super::dominators::{DominatorTree, OfType};
use super::graph::HeapGraph;
use crate::base::cancel::check_at;
use crate::base::{Index, IndexVec};
use crate::gc::{ObjectId, TypeIndex};
use crate::model::{ReachTotals, Sum};

/// Number of objects with the largest retained sizes that are cached.
const LARGEST: usize = 10_000;

impl DominatorTree {
    /// Returns totals of all objects and references in the graph, and of the reachable ones.
    pub fn totals(&self, graph: &HeapGraph) -> &ReachTotals {
        self.sums().totals.get_or_init(|| {
            let (objects, references) = (u64::from(graph.len()), u64::from(graph.edges.references()));
            let of = self.by_type(graph).iter().map(|of| of.own);
            let reachable = Sum::of(of);
            ReachTotals { objects, references, bytes: graph.bytes(), reachable_objects: reachable.count, reachable_bytes: reachable.bytes }
        })
    }

    /// Returns sums of the reachable objects by type.
    pub fn by_type(&self, graph: &HeapGraph) -> &IndexVec<TypeIndex, OfType> {
        self.sums().types.get_or_init(|| {
            let sums = self.sums_by_type(|id| graph.type_index(id), graph.types.len(), |id| graph.size(id));
            sums.into_iter().map(|sum| OfType { own: Sum { count: sum.nodes, bytes: sum.size }, retained: sum.retained }).collect()
        })
    }

    /// Returns the `most` reachable objects with the largest retained sizes, largest first. Selects from `among`, or for `None` from all objects.
    pub fn largest(&self, among: Option<Vec<ObjectId>>, most: usize) -> Vec<ObjectId> {
        match among {
            Some(among) => {
                let reachable = among.into_iter().filter(|id| self.is_reachable(*id));
                select(reachable.map(|id| (id, self.retained(id))), most)
            }
            None if most > LARGEST => select(self.reached(), most),
            None => self.most().iter().take(most).copied().collect(),
        }
    }

    /// Returns the cached list of the reachable objects with the largest retained sizes, largest first.
    pub(crate) fn most(&self) -> &[ObjectId] {
        self.sums().largest.get_or_init(|| {
            let found = self.by_piece(self.positions(), |positions| best(self.reached_at(positions), LARGEST));
            select(found.into_iter().flatten(), LARGEST)
        })
    }
}

/// Returns the `most` objects with the largest retained sizes, largest first.
fn select(objects: impl Iterator<Item = (ObjectId, u64)>, most: usize) -> Vec<ObjectId> {
    best(objects, most).into_iter().map(|(id, _)| id).collect()
}

/// Like [`select`], but returns the retained sizes as well.
fn best(objects: impl Iterator<Item = (ObjectId, u64)>, most: usize) -> Vec<(ObjectId, u64)> {
    let key = |(id, retained): &(ObjectId, u64)| (std::cmp::Reverse(*retained), *id);
    let mut best: Vec<(ObjectId, u64)> = Vec::new();
    // Objects that retain fewer bytes than this cannot be in the result.
    let mut least = 0;
    for (id, retained) in objects {
        check_at(id.as_u32());
        if retained < least {
            continue;
        }
        best.push((id, retained));
        if best.len() >= most.saturating_mul(2) {
            best.select_nth_unstable_by_key(most, key);
            best.truncate(most);
            least = best.iter().map(|(_, retained)| *retained).min().unwrap_or(0);
        }
    }
    best.sort_unstable_by_key(key);
    best.truncate(most);
    best
}
