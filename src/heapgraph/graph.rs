//! The heap as a graph: references between objects, and the rooted objects.

use std::sync::{Arc, OnceLock};

use super::described::Described;
use super::edges::{ByType, Edges};
use super::roots::{RawRoot, RootFlags, Roots};
use crate::base::{Addr, IndexVec, Indices, Notes, in_units, plural};
use crate::clr::modules::Module;
use crate::gc::{ObjectId, ObjectStarts, ObjectType, TypeIndex};
use crate::model::Sum;

/// Error: the graph would exceed the memory limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the graph of {} needs about {} of memory, and {} are allowed", plural((*objects).into(), "object"), in_units(*needed), in_units(*allowed))]
pub struct MemoryLimit {
    /// Number of objects.
    pub objects: u32,
    /// Estimated memory in bytes of the graph and the data derived from it, or only of the part that cannot be in a temporary file.
    pub needed: u64,
    /// The limit in bytes.
    pub allowed: u64,
}

/// The references of a heap, from a walk or an index.
pub(crate) struct References {
    pub(crate) edges: Edges,
    pub(crate) types: IndexVec<TypeIndex, Arc<ObjectType>>,
    pub(crate) described: Described,
    pub(crate) by_type: OnceLock<ByType>,
    /// Notes of the walk.
    pub(crate) notes: Notes,
    /// Whether the references came from an index.
    pub(crate) is_of_index: bool,
}

/// The effect of conservatively scanned words of stacks: see [`RootFlags::DOUBTFUL`].
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Doubts {
    /// Number and size of the objects that only doubtful words keep alive.
    pub(super) only: Sum,
    /// Whether a doubtful word points to an object to which no certain root points, and which no lasting root (one outside of stacks) reaches. If
    /// so, the retained sizes of other objects may be wrong.
    pub(super) dominators: bool,
}

/// The heap of one runtime as a graph.
pub struct HeapGraph {
    /// The object starts. They define the ids of the objects.
    pub index: Arc<ObjectStarts>,
    /// References between the objects.
    pub edges: Edges,
    /// The types.
    pub types: IndexVec<TypeIndex, Arc<ObjectType>>,
    /// The roots, including those without an object and, if requested, weak ones.
    pub roots: Roots,
    /// The objects in frozen segments, ascending. They are never freed, even if no root holds them.
    pub frozen: Vec<ObjectId>,
    /// Modules that supplied names of roots.
    modules: Vec<Arc<Module>>,
    described: Described,
    /// Notes of the walk for references.
    pub(super) walk_notes: Notes,
    /// Whether the references came from an index.
    pub(super) is_of_index: bool,
    /// Objects by type, created on first use.
    by_type: OnceLock<ByType>,
    /// Computed for the first answer that doubtful words of stacks may affect.
    pub(super) doubts: OnceLock<Doubts>,
}

impl std::fmt::Debug for HeapGraph {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HeapGraph").field("objects", &self.len()).field("references", &self.edges.references()).finish_non_exhaustive()
    }
}

impl HeapGraph {
    /// Creates the graph of the objects in `index`.
    pub(crate) fn new(index: Arc<ObjectStarts>, references: References, roots: Roots, frozen: Vec<ObjectId>) -> HeapGraph {
        let References { edges, types, described, by_type, notes: walk_notes, is_of_index } = references;
        let (modules, doubts) = (Vec::new(), OnceLock::new());
        HeapGraph { index, edges, types, roots, frozen, modules, described, walk_notes, is_of_index, by_type, doubts }
    }

    /// Adds the modules that supplied names of the roots.
    pub(crate) fn with_modules(mut self, modules: Vec<Arc<Module>>) -> HeapGraph {
        self.modules = modules;
        self
    }

    /// Returns the modules that supplied names of the roots.
    pub(crate) fn modules(&self) -> &[Arc<Module>] {
        &self.modules
    }

    /// Returns the sorted ids of the objects held by roots for which `counts` is true.
    pub fn rooted_by(&self, counts: impl Fn(&RawRoot) -> bool) -> Vec<ObjectId> {
        let picked = self.roots.roots.iter().filter(|r| counts(r));
        let mut ids: Vec<ObjectId> = picked.filter_map(|r| self.index.id_of(r.object)).collect();
        ids.sort_unstable();
        ids.dedup();
        ids
    }

    /// Returns the number of objects.
    pub fn len(&self) -> u32 {
        self.edges.objects()
    }

    /// Returns the objects, ascending.
    pub fn ids(&self) -> Indices<ObjectId> {
        self.index.ids()
    }

    /// Returns the size of an object in bytes, as counted by SOS and ClrMD; 0 for an invalid id.
    pub fn size(&self, id: ObjectId) -> u64 {
        self.described.size(id)
    }

    pub(crate) fn described(&self) -> &Described {
        &self.described
    }

    /// Returns the size of all objects in bytes.
    pub fn bytes(&self) -> u64 {
        self.described.bytes
    }

    /// Returns the index of an object's type in [`HeapGraph::types`].
    pub fn type_index(&self, id: ObjectId) -> Option<TypeIndex> {
        self.described.type_of(id)
    }

    /// Returns the type of an object.
    pub fn kind(&self, id: ObjectId) -> Option<&ObjectType> {
        self.types.get(self.type_index(id)?).map(Arc::as_ref)
    }

    /// Returns the address of an object; null for an invalid id.
    pub fn address(&self, id: ObjectId) -> Addr {
        self.index.address_of(id).unwrap_or(Addr::NULL)
    }

    /// Returns the objects by type. These lists take four bytes per object, which the estimate of the graph's memory includes.
    pub(crate) fn by_type(&self) -> &ByType {
        self.by_type.get_or_init(|| ByType::of(self.edges.csr().store(), self.len(), self.types.len(), |id| self.type_index(id)))
    }

    /// Returns the types that have objects. [`HeapGraph::types`] also contains types without objects.
    pub(crate) fn types_met(&self) -> impl Iterator<Item = &Arc<ObjectType>> {
        let by_type = self.by_type();
        self.types.iter_enumerated().filter(|(index, _)| by_type.objects(*index).next().is_some()).map(|(_, ty)| ty)
    }

    /// Returns the objects of the `wanted` types, ascending. The first call processes all objects, later ones only the wanted ones.
    pub fn objects_of(&self, wanted: &IndexVec<TypeIndex, bool>) -> Vec<ObjectId> {
        let by_type = self.by_type();
        let types = wanted.iter_enumerated().filter(|(_, wanted)| **wanted);
        let mut ids: Vec<ObjectId> = types.flat_map(|(ty, _)| by_type.objects(ty)).collect();
        // The objects of each type are in ascending order, so this stable sort only merges runs.
        ids.sort();
        ids
    }

    /// Whether an object has one of the `wanted` types.
    pub fn is_of(&self, id: ObjectId, wanted: &IndexVec<TypeIndex, bool>) -> bool {
        self.type_index(id).and_then(|t| wanted.get(t)).copied().unwrap_or(false)
    }

    /// Returns the roots that refer to an object, including weak ones if `weak`.
    pub fn roots_of(&self, id: ObjectId, weak: bool) -> impl Iterator<Item = &RawRoot> {
        let address = self.address(id);
        self.roots.roots.iter().filter(move |r| r.object == address && (weak || !r.flags.has(RootFlags::WEAK)))
    }
}
