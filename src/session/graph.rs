//! The heap as a graph: references between objects, and which objects are rooted.
//!
//! A dependent handle is an edge from its key to its value: the value lives as long as the key.
//! An object of a collectible type has an edge to its loader allocator, which keeps the type and its statics alive.

use std::sync::{Arc, OnceLock};

use rustc_hash::FxHashMap;

use super::described::Described;
use super::doubts::Doubts;
use super::edges::{ByType, Edges};
use super::references::{Gathered, References, store_of};
use super::roots::{RawRoot, RootFlags, RootOptions, Roots};
use super::{Error, Heap, Namer, TypeFilter, TypePattern};
use crate::base::hash::Map;
use crate::base::{Addr, Answer, Collector, Index, IndexVec, Indices, Name, Notes};
use crate::clr::modules::Module;
use crate::gc::{ObjectId, ObjectStarts, ObjectType, TypeIndex};
use crate::model::Generation;

/// The graph would exceed the memory limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{objects} objects need about {needed} bytes of memory, {allowed} are allowed (--max-memory)")]
pub struct MemoryLimit {
    /// Number of objects.
    pub objects: u32,
    /// Estimated memory in bytes: of the graph and derived data, or of what no temporary file takes of them.
    pub needed: u64,
    /// The limit in bytes.
    pub allowed: u64,
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

/// Edges that are not references stored in objects.
#[derive(Default)]
pub(crate) struct Extra {
    /// By source.
    edges: FxHashMap<ObjectId, Vec<ObjectId>>,
    /// By method table of a collectible type.
    allocators: Map<Addr, ObjectId>,
}

impl Extra {
    /// Those of `heap`, whose objects `index` numbers: what `roots` say of dependent handles, and loader allocators of the types met so far.
    pub(crate) fn of(heap: &Heap, namer: &Namer, index: &ObjectStarts, roots: &Roots) -> Extra {
        let mut extra = Extra::default();
        for (primary, secondary) in &roots.dependents {
            if let (Some(from), Some(to)) = (index.id_of(*primary), index.id_of(*secondary)) {
                extra.edges.entry(from).or_default().push(to);
            }
        }
        if let Ok(types) = namer.types() {
            for kind in heap.walker().types().list().iter().filter(|t| t.is_collectible) {
                let module = heap.walker().tables().loader_module(kind.method_table);
                let allocator = module.and_then(|m| types.loader().allocator_object(m)).and_then(|a| index.id_of(a));
                extra.allocators.extend(allocator.map(|a| (kind.method_table, a)));
            }
        }
        extra
    }

    /// The objects that dependent handles keep alive as long as this one.
    #[inline]
    pub(crate) fn dependents(&self, id: ObjectId) -> impl Iterator<Item = ObjectId> {
        self.edges.get(&id).into_iter().flatten().copied()
    }

    /// Those of these objects, source before target, by source.
    pub(super) fn of_objects(
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

    /// All of them: from an object's id, or from the method table of a type that has objects; others may have been met elsewhere.
    pub(super) fn all(&self, has_objects: impl Fn(Addr) -> bool) -> impl Iterator<Item = (u64, ObjectId)> {
        let of_objects = self.edges.iter().flat_map(|(from, to)| to.iter().map(|to| (u64::from(from.as_u32()), *to)));
        let allocators = self.allocators.iter().filter(move |(table, _)| has_objects(**table));
        of_objects.chain(allocators.map(|(table, to)| (table.0, *to)))
    }

    /// The loader allocator that objects of a collectible type keep alive.
    #[inline]
    pub(crate) fn allocator(&self, kind: &ObjectType) -> Option<ObjectId> {
        if kind.is_collectible { self.allocators.get(&kind.method_table).copied() } else { None }
    }
}

impl HeapGraph {
    /// Builds the graph of `heap`, with or without weak handles among its roots.
    ///
    /// # Errors
    /// [`Error::Graph`] if there are too many objects or references to index, [`Error::Memory`] if the graph would exceed the
    /// memory limit.
    pub(super) fn build(heap: &Heap, weak: bool) -> Result<Answer<HeapGraph>, Error> {
        let notes = Collector::new();
        let gathered = if heap.index().is_none() { Some(Gathered::walk(heap)?) } else { None };
        let index = notes.with(heap.starts());
        let namer = heap.namer();
        let roots = notes.take(Roots::collect(heap, &namer, &RootOptions { weak, any_stacks: true, ..RootOptions::default() }));
        let extra = Extra::of(heap, &namer, index, &roots);
        let kept = heap.index().and_then(|of_file| of_file.graph(&extra));
        let is_of_index = kept.is_some();
        let walked = match kept {
            Some(kept) => References { edges: kept.edges.with_store(&store_of(heap)), ..kept },
            None => gathered.map_or_else(|| Gathered::walk(heap), Ok)?.resolved(heap, index, &extra)?,
        };
        notes.extend(&walked.notes);
        let graph = HeapGraph {
            edges: walked.edges,
            types: walked.types,
            frozen: frozen(heap, index),
            roots,
            described: walked.described,
            walk_notes: walked.notes,
            is_of_index,
            by_type: walked.by_type,
            doubts: OnceLock::new(),
            modules: namer.modules(),
            index: Arc::clone(index),
        };
        Ok(notes.finish(graph))
    }

    /// The graph of a snapshot.
    pub(super) fn of_file(
        index: Arc<ObjectStarts>,
        edges: Edges,
        types: IndexVec<TypeIndex, Arc<ObjectType>>,
        roots: Roots,
        frozen: Vec<ObjectId>,
        described: Described,
    ) -> HeapGraph {
        HeapGraph {
            index,
            edges,
            types,
            roots,
            frozen,
            modules: Vec::new(),
            described,
            walk_notes: Notes::new(),
            is_of_index: false,
            by_type: OnceLock::new(),
            doubts: OnceLock::new(),
        }
    }

    /// `namer` for an answer about this graph: it accounts for the modules used to build the graph.
    pub(crate) fn namer(&self, namer: Namer) -> Namer {
        namer.include(&self.modules);
        namer
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

    pub(super) fn described(&self) -> &Described {
        &self.described
    }

    /// Edges that are no references, as they are now: see [`Extra::all`].
    pub(super) fn extra_edges(&self, heap: &Heap, has_objects: impl Fn(Addr) -> bool) -> Vec<(u64, ObjectId)> {
        Extra::of(heap, &heap.namer(), &self.index, &self.roots).all(has_objects).collect()
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

    /// Name of an object's type.
    pub fn type_name(&self, namer: &Namer, id: ObjectId) -> Name {
        let named = |k: &ObjectType| namer.of_object(self.address(id), k.method_table, namer.name_or_address(k.method_table));
        self.kind(id).map_or_else(|| "?".into(), named)
    }

    /// Four bytes for each object; the estimate of the graph's memory has room for them.
    fn by_type(&self) -> &ByType {
        self.by_type.get_or_init(|| ByType::of(self.edges.csr().store(), self.len(), self.types.len(), |id| self.type_index(id)))
    }

    /// The types that objects have: others may have been met elsewhere.
    fn types_met(&self) -> impl Iterator<Item = &Arc<ObjectType>> {
        let by_type = self.by_type();
        self.types.iter_enumerated().filter(|(index, _)| by_type.objects(*index).next().is_some()).map(|(_, ty)| ty)
    }

    /// Which types match `patterns`.
    pub(crate) fn wanted_types(&self, namer: &Namer, patterns: &[TypePattern], notes: &Collector) -> IndexVec<TypeIndex, bool> {
        let labels = || self.types_met().filter(|t| !t.is_free).map(|t| namer.label(t.method_table)).collect();
        let filter = TypeFilter::of(patterns, labels, notes);
        let wanted = |t: &Arc<ObjectType>| filter.takes(t, namer);
        self.types.iter().map(|t| !t.is_free && wanted(t)).collect()
    }

    /// The objects of types that match `patterns`, ascending.
    pub(crate) fn of_types(&self, namer: &Namer, patterns: &[TypePattern], notes: &Collector) -> Vec<ObjectId> {
        let wanted = self.wanted_types(namer, patterns, notes);
        self.objects_of(&wanted)
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

/// The objects in frozen segments.
fn frozen(heap: &Heap, index: &ObjectStarts) -> Vec<ObjectId> {
    let frozen = heap.walker().segments_enumerated().filter(|(_, s)| s.generation == Generation::Frozen);
    let mut ids: Vec<ObjectId> = frozen.filter_map(|(i, _)| index.of_segment(i)).flatten().collect();
    ids.sort_unstable();
    ids
}
