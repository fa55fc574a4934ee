//! The heap as a graph: references between objects, and which objects are rooted.

use std::sync::{Arc, OnceLock};

use super::described::Described;
use super::edges::{ByType, Edges};
use super::roots::{RawRoot, RootFlags, Roots};
use crate::base::{Addr, IndexVec, Indices, Notes};
use crate::clr::modules::Module;
use crate::gc::{ObjectId, ObjectStarts, ObjectType, TypeIndex};
use crate::model::Sum;

/// The graph would exceed the memory limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{objects} objects need about {needed} bytes of memory, {allowed} are allowed")]
pub struct MemoryLimit {
    /// Number of objects.
    pub objects: u32,
    /// Estimated memory in bytes: of the graph and derived data, or of what no temporary file takes of them.
    pub needed: u64,
    /// The limit in bytes.
    pub allowed: u64,
}

/// The references of a heap, as a walk found them or an index has them.
pub(crate) struct References {
    pub(crate) edges: Edges,
    pub(crate) types: IndexVec<TypeIndex, Arc<ObjectType>>,
    pub(crate) described: Described,
    pub(crate) by_type: OnceLock<ByType>,
    /// Of the walk.
    pub(crate) notes: Notes,
    /// Whether they came from an index.
    pub(crate) is_of_index: bool,
}

/// The effect of words of stacks whose references are not known: see [`RootFlags::DOUBTFUL`].
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Doubts {
    /// The objects that nothing else keeps alive.
    pub(super) only: Sum,
    /// Whether objects are among their targets that nothing lasting keeps alive: others may be said to retain them.
    pub(super) dominators: bool,
}

/// The heap of one runtime as a graph.
pub struct HeapGraph {
    /// Object starts, which define the ids.
    pub index: Arc<ObjectStarts>,
    /// References between the objects.
    pub edges: Edges,
    /// The types.
    pub types: IndexVec<TypeIndex, Arc<ObjectType>>,
    /// The roots, including those without an object and, if requested, weak ones.
    pub roots: Roots,
    /// The objects in frozen segments, ascending: never freed, even if not rooted.
    pub frozen: Vec<ObjectId>,
    /// Modules that supplied names of roots.
    modules: Vec<Arc<Module>>,
    described: Described,
    /// Of the walk for its references.
    pub(super) walk_notes: Notes,
    /// Whether it came from an index.
    pub(super) is_of_index: bool,
    /// Made for the first question about types.
    by_type: OnceLock<ByType>,
    /// Made for the first question that stacks with gaps may matter to.
    pub(super) doubts: OnceLock<Doubts>,
}

impl std::fmt::Debug for HeapGraph {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HeapGraph").field("objects", &self.len()).field("references", &self.edges.references()).finish_non_exhaustive()
    }
}

impl HeapGraph {
    /// The graph of the objects that `index` numbers.
    pub(crate) fn new(index: Arc<ObjectStarts>, references: References, roots: Roots, frozen: Vec<ObjectId>) -> HeapGraph {
        let References { edges, types, described, by_type, notes: walk_notes, is_of_index } = references;
        let (modules, doubts) = (Vec::new(), OnceLock::new());
        HeapGraph { index, edges, types, roots, frozen, modules, described, walk_notes, is_of_index, by_type, doubts }
    }

    /// The graph with the modules that supplied names of its roots.
    pub(crate) fn with_modules(mut self, modules: Vec<Arc<Module>>) -> HeapGraph {
        self.modules = modules;
        self
    }

    /// The modules that supplied names of its roots.
    pub(crate) fn modules(&self) -> &[Arc<Module>] {
        &self.modules
    }

    /// Sorted ids of the objects held by roots for which `counts` is true.
    pub fn rooted_by(&self, counts: impl Fn(&RawRoot) -> bool) -> Vec<ObjectId> {
        let picked = self.roots.roots.iter().filter(|r| counts(r));
        let mut ids: Vec<ObjectId> = picked.filter_map(|r| self.index.id_of(r.object)).collect();
        ids.sort_unstable();
        ids.dedup();
        ids
    }

    /// Number of objects.
    pub fn len(&self) -> u32 {
        self.edges.objects()
    }

    /// The objects, ascending.
    pub fn ids(&self) -> Indices<ObjectId> {
        self.index.ids()
    }

    /// Size of an object in bytes, as counted by SOS and ClrMD; 0 for an invalid id.
    pub fn size(&self, id: ObjectId) -> u64 {
        self.described.size(id)
    }

    pub(crate) fn described(&self) -> &Described {
        &self.described
    }

    /// Bytes of all objects.
    pub fn bytes(&self) -> u64 {
        self.described.bytes
    }

    /// An object's type in [`HeapGraph::types`].
    pub fn type_index(&self, id: ObjectId) -> Option<TypeIndex> {
        self.described.type_of(id)
    }

    /// The type of an object.
    pub fn kind(&self, id: ObjectId) -> Option<&ObjectType> {
        self.types.get(self.type_index(id)?).map(Arc::as_ref)
    }

    /// Address of an object; null for an invalid id.
    pub fn address(&self, id: ObjectId) -> Addr {
        self.index.address_of(id).unwrap_or(Addr::NULL)
    }

    /// Four bytes for each object; the estimate of the graph's memory has room for them.
    pub(crate) fn by_type(&self) -> &ByType {
        self.by_type.get_or_init(|| ByType::of(self.edges.csr().store(), self.len(), self.types.len(), |id| self.type_index(id)))
    }

    /// The types that objects have: others may have been met elsewhere.
    pub(crate) fn types_met(&self) -> impl Iterator<Item = &Arc<ObjectType>> {
        let by_type = self.by_type();
        self.types.iter_enumerated().filter(|(index, _)| by_type.objects(*index).next().is_some()).map(|(_, ty)| ty)
    }

    /// The objects of the `wanted` types, ascending. The first question goes over all objects, later ones only over those.
    pub fn objects_of(&self, wanted: &IndexVec<TypeIndex, bool>) -> Vec<ObjectId> {
        let by_type = self.by_type();
        let types = wanted.iter_enumerated().filter(|(_, wanted)| **wanted);
        let mut ids: Vec<ObjectId> = types.flat_map(|(ty, _)| by_type.objects(ty)).collect();
        // Runs that ascend are merged.
        ids.sort();
        ids
    }

    /// Whether an object is of one of the `wanted` types.
    pub fn is_of(&self, id: ObjectId, wanted: &IndexVec<TypeIndex, bool>) -> bool {
        self.type_index(id).and_then(|t| wanted.get(t)).copied().unwrap_or(false)
    }

    /// The roots that hold an object, without weak ones unless requested.
    pub fn roots_of(&self, id: ObjectId, weak: bool) -> impl Iterator<Item = &RawRoot> {
        let address = self.address(id);
        self.roots.roots.iter().filter(move |r| r.object == address && (weak || !r.flags.has(RootFlags::WEAK)))
    }
}
