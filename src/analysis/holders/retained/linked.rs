//! Linked structures: lists, trees, chains of continuations or chunks. Their bytes accumulate in all of their objects, of which each dominates only a
//! few, so they are described by the types of all dominated objects.
//!
//! An object is linked to one of the same type directly (`Node`), or over a few objects of other types (`Node` → `List<Node>` → `Node[]` → `Node`).

use std::cmp::Reverse;

use rustc_hash::FxHashMap;

use super::{BELOW, MAX_CHAIN, Retained};
use crate::analysis::TypeBytes;
use crate::base::{Addr, share};
use crate::gc::{ObjectId, TypeIndex};
use crate::model::Sum;
use crate::session::Namer;

/// Maximum number of steps from an object of a linked structure to the next object of the same type.
const PERIOD: usize = 4;
/// Maximum share (0 to 1) of a structure's bytes that its last followed object retains, for the bytes to be spread over the structure.
const SPREAD: f64 = 0.5;
/// Minimum number of objects of one type on the way through a structure over which the bytes are spread.
const REPEATS: usize = 3;

impl Retained<'_> {
    /// Returns the index on `way` of the first object of the linked structure in which the bytes accumulate; `None` if they do not accumulate in one.
    /// `way` and `children`: what [`Retained::accumulation`] returned.
    pub(super) fn linked(&self, way: &[ObjectId], children: &[ObjectId]) -> Option<usize> {
        let types: Vec<Option<TypeIndex>> = way.iter().map(|id| self.graph.type_index(*id)).collect();
        let first_of = |ty: Option<TypeIndex>| types.iter().position(|t| ty.is_some() && *t == ty);
        if way.len() > MAX_CHAIN {
            // The way ends within the structure.
            return types.iter().rev().take(PERIOD).filter_map(|ty| first_of(*ty)).min();
        }
        self.next_is_linked(&types, children).and_then(|ty| first_of(Some(ty))).or_else(|| self.spread(way, &types))
    }

    /// Returns the type that most of the bytes below the last object of a way have, if it continues a linked structure. `types`: those of the way.
    fn next_is_linked(&self, types: &[Option<TypeIndex>], children: &[ObjectId]) -> Option<TypeIndex> {
        let rank = |(ty, sum): &(Option<TypeIndex>, Sum)| (sum.bytes, Reverse(ty.and_then(|t| self.method_table(t))));
        let next = self.sums_by_type(children).into_iter().max_by_key(rank)?.0?;
        let above = |steps: usize| types.len().checked_sub(steps).and_then(|at| types.get(at)).copied().flatten();
        let steps = (1..=PERIOD).find(|steps| above(*steps) == Some(next))?;
        // An array in an array, or a list in a list, is not enough for a structure: there must be a third object.
        (above(steps.saturating_mul(2)) == Some(next) || self.recurs(next, children, steps)).then_some(next)
    }

    /// Whether the largest of `objects` of type `ty` dominates another object of this type `steps` steps below: a child of the last one if the largest
    /// objects are followed.
    fn recurs(&self, ty: TypeIndex, objects: &[ObjectId], steps: usize) -> bool {
        let is_of = |id: &ObjectId| self.graph.type_index(*id) == Some(ty);
        let key = |id: &ObjectId| (self.tree.retained(*id), Reverse(*id));
        let mut at = objects.iter().copied().filter(is_of).max_by_key(key);
        for _ in 1..steps {
            at = at.and_then(|id| self.tree.below(Some(id)).max_by_key(key));
        }
        at.is_some_and(|id| self.tree.below(Some(id)).any(|child| is_of(&child)))
    }

    /// Returns the index of the first object of a linked structure on `way` that retains few bytes at its end: the other bytes belong to the objects
    /// before.
    fn spread(&self, way: &[ObjectId], types: &[Option<TypeIndex>]) -> Option<usize> {
        let before = |at: usize| {
            let from = at.saturating_sub(PERIOD);
            let ty = types.get(at).copied().flatten()?;
            types.get(from..at)?.contains(&Some(ty)).then_some(ty)
        };
        let (last, ty) = (1..types.len()).rev().find_map(|at| Some((at, before(at)?)))?;
        let first = types.iter().position(|t| *t == Some(ty))?;
        let retained = |at: usize| way.get(at).map_or(0, |id| self.tree.retained(*id));
        let is_repeated = types.iter().filter(|t| **t == Some(ty)).count() >= REPEATS;
        let part = share(retained(last), retained(first)).filter(|_| is_repeated)?;
        (part < SPREAD).then_some(first)
    }

    fn method_table(&self, ty: TypeIndex) -> Option<Addr> {
        self.graph.types.get(ty).map(|kind| kind.method_table)
    }

    /// Returns the objects that `id` dominates, including itself, by type: first the type of `first`, if any, then those with the most bytes.
    pub(super) fn dominated_by_type(&self, namer: &Namer, id: ObjectId, first: Option<ObjectId>) -> Vec<TypeBytes> {
        let add = |sums: &mut FxHashMap<Option<TypeIndex>, Sum>, id: ObjectId, _: u64| {
            sums.entry(self.graph.type_index(id)).or_default().add(self.graph.size(id));
        };
        let mut sums = FxHashMap::default();
        add(&mut sums, id, 0);
        for part in self.tree.visit_dominated(id, FxHashMap::default, add) {
            part.into_iter().for_each(|(ty, sum)| sums.entry(ty).or_default().merge(sum));
        }
        let first = first.map(|id| self.graph.type_index(id));
        let mut rows: Vec<_> = sums.into_iter().map(|(ty, sum)| (Some(ty) != first, ty.and_then(|t| self.method_table(t)), sum)).collect();
        rows.sort_unstable_by_key(|(is_other, mt, sum)| (*is_other, Reverse(sum.bytes), *mt));
        // Names are read only for the types that are listed, so that the others cannot be missing.
        rows.truncate(BELOW);
        let named = |(_, mt, sum): (bool, Option<Addr>, Sum)| TypeBytes {
            type_name: mt.map_or_else(|| "?".into(), |mt| namer.name_or_address(mt)),
            method_table: mt.unwrap_or(Addr::NULL),
            count: sum.count,
            bytes: sum.bytes,
        };
        rows.into_iter().map(named).collect()
    }
}
