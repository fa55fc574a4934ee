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
    /// Collects the edges between objects in `index`: from the primary to the secondary object of each dependent handle, and to the loader allocator
    /// of each method table in `allocators`.
    pub(crate) fn new(index: &ObjectStarts, dependents: &[(Addr, Addr)], allocators: impl Iterator<Item = (Addr, ObjectId)>) -> Extra {
        let mut edges: FxHashMap<ObjectId, Vec<ObjectId>> = FxHashMap::default();
        for (primary, secondary) in dependents {
            if let (Some(from), Some(to)) = (index.id_of(*primary), index.id_of(*secondary)) {
                edges.entry(from).or_default().push(to);
            }
        }
        Extra { edges, allocators: allocators.collect() }
    }

    /// Returns the objects that dependent handles keep alive as long as the object `id` lives.
    #[inline]
    pub(crate) fn dependents(&self, id: ObjectId) -> impl Iterator<Item = ObjectId> {
        self.edges.get(&id).into_iter().flatten().copied()
    }

    /// Returns the edges of dependent handles, and the edges to loader allocators from the objects `ids`, as source and target, sorted by source.
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

    /// Returns all extra edges. The source is the id of an object, or the method table of a collectible type for which `has_objects` is true.
    pub(crate) fn all(&self, has_objects: impl Fn(Addr) -> bool) -> impl Iterator<Item = (u64, ObjectId)> {
        let of_objects = self.edges.iter().flat_map(|(from, to)| to.iter().map(|to| (u64::from(from.as_u32()), *to)));
        let allocators = self.allocators.iter().filter(move |(table, _)| has_objects(**table));
        of_objects.chain(allocators.map(|(table, to)| (table.0, *to)))
    }

    /// Returns the loader allocator that objects of this type keep alive; `None` unless the type is collectible.
    #[inline]
    pub(crate) fn allocator(&self, kind: &ObjectType) -> Option<ObjectId> {
        if kind.is_collectible { self.allocators.get(&kind.method_table).copied() } else { None }
    }
}
