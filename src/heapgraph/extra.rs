//! Edges of the graph that are not references stored in objects.
//!
//! A dependent handle is an edge from its key to its value: the value lives as long as the key.
//! An object of a collectible type has an edge to its loader allocator, which keeps the type and its statics alive.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::described::Described;
use crate::base::hash::Map;
use crate::base::{Addr, Index, IndexVec};
use crate::gc::{ObjectId, ObjectStarts, ObjectType, TypeIndex};

/// Edges that are not references stored in objects.
#[derive(Default)]
pub(crate) struct Extra {
    /// Edges of dependent handles, by source.
    edges: FxHashMap<ObjectId, Vec<ObjectId>>,
    /// Loader allocators, by method table of a collectible type.
    allocators: Map<Addr, ObjectId>,
}

impl Extra {
    /// Collects the edges between objects in `index`: from the primary to the secondary objects of `dependents`, and to loader allocators by the
    /// method tables of their types.
    pub(crate) fn new(index: &ObjectStarts, dependents: &[(Addr, Addr)], allocators: impl Iterator<Item = (Addr, ObjectId)>) -> Extra {
        let mut edges: FxHashMap<ObjectId, Vec<ObjectId>> = FxHashMap::default();
        for (primary, secondary) in dependents {
            if let (Some(from), Some(to)) = (index.id_of(*primary), index.id_of(*secondary)) {
                edges.entry(from).or_default().push(to);
            }
        }
        Extra { edges, allocators: allocators.collect() }
    }

    /// Returns the objects that dependent handles keep alive as long as this one.
    #[inline]
    pub(crate) fn dependents(&self, id: ObjectId) -> impl Iterator<Item = ObjectId> {
        self.edges.get(&id).into_iter().flatten().copied()
    }

    /// Returns the extra edges from these objects as source and target, sorted by source.
    pub(crate) fn of_objects(
        &self,
        ids: impl Iterator<Item = ObjectId>,
        described: &Described,
        types: &IndexVec<TypeIndex, Arc<ObjectType>>,
    ) -> Vec<(u32, u32)> {
        let mut all: Vec<(u32, u32)> = self.edges.iter().flat_map(|(from, to)| to.iter().map(|to| (from.as_u32(), to.as_u32()))).collect();
        if !self.allocators.is_empty() {
            let allocators: IndexVec<TypeIndex, Option<ObjectId>> = types.iter().map(|ty| self.allocator(ty)).collect();
            let of = |id: ObjectId| Some((id.as_u32(), allocators.get(described.type_of(id)?).copied()??.as_u32()));
            all.extend(ids.filter_map(of));
        }
        all.sort_by_key(|(from, _)| *from);
        all
    }

    /// Returns all extra edges: from an object's id, or from the method table of a type that has objects. Other types may have been found elsewhere.
    pub(crate) fn all(&self, has_objects: impl Fn(Addr) -> bool) -> impl Iterator<Item = (u64, ObjectId)> {
        let of_objects = self.edges.iter().flat_map(|(from, to)| to.iter().map(|to| (u64::from(from.as_u32()), *to)));
        let allocators = self.allocators.iter().filter(move |(table, _)| has_objects(**table));
        of_objects.chain(allocators.map(|(table, to)| (table.0, *to)))
    }

    /// Returns the loader allocator that objects of a collectible type keep alive.
    #[inline]
    pub(crate) fn allocator(&self, kind: &ObjectType) -> Option<ObjectId> {
        if kind.is_collectible { self.allocators.get(&kind.method_table).copied() } else { None }
    }
}
