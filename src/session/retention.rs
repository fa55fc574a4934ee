//! Sums over a dominator tree that several questions need: made once, kept with it.

use std::sync::OnceLock;

use super::{DominatorTree, HeapGraph};
use crate::base::cancel::check_at;
use crate::base::{Count, Index, IndexVec};
use crate::gc::{ObjectId, TypeIndex};
use crate::model::{ReachTotals, Sum};

/// Objects with the largest retained sizes that are kept.
const LARGEST: usize = 10_000;

/// Kept sums.
#[derive(Debug, Default)]
pub(super) struct Sums {
    totals: OnceLock<ReachTotals>,
    types: OnceLock<IndexVec<TypeIndex, OfType>>,
    largest: OnceLock<Vec<ObjectId>>,
}

/// The reachable objects of a type.
#[derive(Clone, Copy, Debug, Default)]
pub struct OfType {
    /// Their number and bytes.
    pub own: Sum,
    /// Bytes that they jointly retain.
    pub retained: u64,
}

impl DominatorTree {
    /// All objects and references of the graph, and those that roots reach.
    pub fn totals(&self, graph: &HeapGraph) -> &ReachTotals {
        self.sums().totals.get_or_init(|| {
            let (objects, references) = (u64::from(graph.len()), u64::from(graph.edges.references()));
            let mut totals = ReachTotals { objects, references, ..ReachTotals::default() };
            for id in graph.ids() {
                check_at(id.as_u32());
                let size = graph.size(id);
                totals.bytes.grow(size);
                if self.is_reachable(id) {
                    totals.reachable_objects.bump();
                    totals.reachable_bytes.grow(size);
                }
            }
            totals
        })
    }

    /// The reachable objects by type.
    pub fn by_type(&self, graph: &HeapGraph) -> &IndexVec<TypeIndex, OfType> {
        self.sums().types.get_or_init(|| {
            let retained = self.retained_by_type(|id| graph.type_index(id), graph.types.len());
            let mut types: IndexVec<TypeIndex, OfType> =
                retained.into_iter().map(|retained| OfType { retained, ..OfType::default() }).collect();
            types.grow_to(graph.types.len());
            for id in graph.ids().filter(|id| self.is_reachable(*id)) {
                check_at(id.as_u32());
                if let Some(ty) = graph.type_index(id).and_then(|t| types.get_mut(t)) {
                    ty.own.add(graph.size(id));
                }
            }
            types
        })
    }

    /// The reachable objects with the largest retained sizes, of those `among` which to look or of all, at most `most`, the largest
    /// first.
    pub fn largest(&self, graph: &HeapGraph, among: Option<Vec<ObjectId>>, most: usize) -> Vec<ObjectId> {
        match among {
            Some(among) => self.select(among.into_iter(), most),
            None if most > LARGEST => self.select(graph.ids(), most),
            None => {
                let largest = self.sums().largest.get_or_init(|| self.select(graph.ids(), LARGEST));
                largest.iter().take(most).copied().collect()
            }
        }
    }

    fn select(&self, among: impl Iterator<Item = ObjectId>, most: usize) -> Vec<ObjectId> {
        let wanted = |id: &ObjectId| {
            check_at(id.as_u32());
            self.is_reachable(*id)
        };
        let mut ids: Vec<ObjectId> = among.filter(wanted).collect();
        let key = |id: &ObjectId| (std::cmp::Reverse(self.retained(*id)), *id);
        if ids.len() > most {
            // Only the top rows need sorting.
            ids.select_nth_unstable_by_key(most, key);
            ids.truncate(most);
        }
        ids.sort_unstable_by_key(key);
        ids
    }
}
