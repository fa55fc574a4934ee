//! The heap as a graph: a number for every object, who refers to whom, and what the roots hold.
//!
//! Free space has no number. A dependent handle is an edge from its key to its value: the value lives as long as the key.
//! An object whose type can be unloaded has an edge to its loader allocator, which keeps the type and its statics.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::roots::{Root, RootFlags, RootOptions, Roots};
use super::{Error, Heap, Namer, TypePattern, note_walks};
use crate::base::{Addr, Answer, NoteKind};
use crate::clr::modules::Module;
use crate::gc::{Object, ObjectStarts, ObjectType, Visitor};
use crate::graph::{Csr, CsrBuilder, GraphError};
use crate::model::{Generation, SegmentModel};

/// The graph would take more memory than allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{objects} objects need about {needed} bytes of memory, {allowed} are allowed (--max-memory)")]
pub struct MemoryLimit {
    /// Objects of the heap.
    pub objects: u32,
    /// Bytes of memory that the graph and what is made of it would take.
    pub needed: u64,
    /// Bytes allowed.
    pub allowed: u64,
}

/// Bytes of memory for each object, dominator tree and retained sizes included: measured 50 on a heap with 1.1 references
/// per object, with room for three references.
const BYTES_PER_OBJECT: u64 = 64;

/// The heap of one runtime as a graph.
pub struct HeapGraph {
    /// Numbers of the objects.
    pub index: Arc<ObjectStarts>,
    /// Who refers to whom.
    pub edges: Csr,
    /// Types by their number.
    pub types: Vec<Arc<ObjectType>>,
    /// The roots, weak ones and those of no object among them where they were asked for.
    pub roots: Roots,
    /// Numbers of the objects that roots hold, ascending, each once; weak roots left out.
    pub held: Vec<u32>,
    /// Numbers of the objects on frozen segments, ascending: no collection frees them, whether a root leads there or not.
    pub frozen: Vec<u32>,
    /// References that lead to no object: a sign of damage, or of a collection in progress.
    pub dangling: u64,
    /// Modules that names of its roots were taken from.
    modules: Vec<Arc<Module>>,
    type_of: Vec<u32>,
    size_of: Vec<u32>,
    /// Sizes that take more than 32 bits.
    large: FxHashMap<u32, u64>,
}

impl std::fmt::Debug for HeapGraph {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HeapGraph").field("objects", &self.len()).field("edges", &self.edges.edges()).finish_non_exhaustive()
    }
}

#[derive(Default)]
struct Part {
    rows: CsrBuilder,
    types: Vec<u32>,
    sizes: Vec<u32>,
    large: Vec<(u32, u64)>,
    failed: Option<GraphError>,
}

/// What is not in the objects themselves.
#[derive(Default)]
struct Extra {
    /// By number of the source.
    edges: FxHashMap<u32, Vec<u32>>,
    /// By method table of a type that can be unloaded.
    allocators: FxHashMap<Addr, u32>,
}

struct Builder<'g> {
    index: &'g ObjectStarts,
    extra: &'g Extra,
    segment: usize,
    id: u32,
    parts: Vec<(usize, Part)>,
    dangling: u64,
}

impl Visitor for Builder<'_> {
    fn segment(&mut self, number: usize, _segment: &SegmentModel) -> bool {
        let Some((first, count)) = self.index.of_segment(number) else { return false };
        (self.segment, self.id) = (number, first);
        let n = usize::try_from(count).unwrap_or(0);
        let part =
            Part { rows: CsrBuilder::with_capacity(n, n), types: Vec::with_capacity(n), sizes: Vec::with_capacity(n), ..Part::default() };
        self.parts.push((number, part));
        count > 0
    }

    fn object(&mut self, object: &Object<'_>) {
        if object.ty.is_free {
            return;
        }
        let Some((_, part)) = self.parts.last_mut() else { return };
        object.references(|_, target| match self.index.id_of(target) {
            Some(id) => part.rows.push_edge(id),
            None => self.dangling = self.dangling.saturating_add(1),
        });
        if let Some(more) = self.extra.edges.get(&self.id) {
            more.iter().for_each(|id| part.rows.push_edge(*id));
        }
        if object.ty.is_collectible
            && let Some(allocator) = self.extra.allocators.get(&object.ty.method_table)
        {
            part.rows.push_edge(*allocator);
        }
        if let Err(e) = part.rows.end_node() {
            part.failed = Some(e);
        }
        part.types.push(object.ty.index);
        part.sizes.push(u32::try_from(object.size).unwrap_or(u32::MAX));
        if object.size >= u64::from(u32::MAX) {
            part.large.push((self.id, object.size));
        }
        self.id = self.id.saturating_add(1);
    }
}

impl HeapGraph {
    /// Builds the graph of `heap`, with weak handles among its roots or without.
    ///
    /// # Errors
    /// [`Error::Graph`] where there are more objects or references than can be indexed, [`Error::Memory`] where they would take
    /// more memory than allowed.
    pub(super) fn build(heap: &Heap, weak: bool) -> Result<Answer<HeapGraph>, Error> {
        let notes = crate::base::Collector::new();
        let index = notes.with(heap.starts());
        let needed = u64::from(index.len()).saturating_mul(BYTES_PER_OBJECT);
        if let Some(allowed) = heap.limits().max_memory.filter(|most| needed > *most) {
            return Err(MemoryLimit { objects: index.len(), needed, allowed }.into());
        }
        let namer = heap.namer();
        let roots = notes.take(Roots::collect(heap, &namer, &RootOptions { kinds: Vec::new(), weak }));
        let extra = extra(heap, &namer, index, &roots);
        let walked = heap.walker().walk_once(heap.progress(), || Builder {
            index,
            extra: &extra,
            segment: 0,
            id: 0,
            parts: Vec::new(),
            dangling: 0,
        });
        note_walks(heap.walker(), &walked.segments, &notes);
        let dangling = walked.visitors.iter().fold(0u64, |n, v| n.saturating_add(v.dangling));
        if dangling > 0 {
            notes.add(NoteKind::Invalid, None, format!("{dangling} references lead to no object and are left out"));
        }
        let mut parts: Vec<(usize, Part)> = walked.visitors.into_iter().flat_map(|v| v.parts).collect();
        parts.sort_by_key(|(segment, _)| *segment);
        let objects = usize::try_from(index.len()).unwrap_or(0);
        let edges = parts.iter().fold(0usize, |n, (_, p)| n.saturating_add(p.rows.edges()));
        let mut rows = CsrBuilder::with_capacity(objects, edges);
        let mut graph = HeapGraph {
            edges: CsrBuilder::default().finish()?,
            types: heap.walker().types().list(),
            held: held(index, &roots, |r| !r.flags.has(RootFlags::WEAK)),
            frozen: frozen(heap, index),
            roots,
            dangling,
            type_of: Vec::with_capacity(objects),
            size_of: Vec::with_capacity(objects),
            large: FxHashMap::default(),
            modules: namer.modules(),
            index: Arc::clone(index),
        };
        // Each part goes away as soon as it is taken over: two whole graphs at once would be too much.
        for (_, part) in parts {
            if let Some(e) = part.failed {
                return Err(e.into());
            }
            rows.append(part.rows)?;
            graph.type_of.extend(part.types);
            graph.size_of.extend(part.sizes);
            graph.large.extend(part.large);
        }
        graph.edges = rows.finish()?;
        Ok(notes.finish(graph))
    }

    /// A namer for an answer about this graph: it accounts for the modules that the graph was built with.
    pub(crate) fn namer(&self, heap: &Heap) -> Namer {
        let namer = heap.namer();
        namer.include(&self.modules);
        namer
    }

    /// Numbers of the objects that those roots hold that `counts` picks, ascending, each once.
    pub fn held_by(&self, counts: impl Fn(&Root) -> bool) -> Vec<u32> {
        held(&self.index, &self.roots, counts)
    }

    /// Number of objects.
    pub fn len(&self) -> u32 {
        self.edges.nodes()
    }

    /// Whether there is no object.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of an object as SOS and ClrMD count them; 0 for a number that no object has.
    pub fn size(&self, id: u32) -> u64 {
        match usize::try_from(id).ok().and_then(|i| self.size_of.get(i)) {
            Some(&u32::MAX) => self.large.get(&id).copied().unwrap_or(u64::from(u32::MAX)),
            Some(size) => u64::from(*size),
            None => 0,
        }
    }

    /// Number of an object's type in [`HeapGraph::types`].
    pub fn type_index(&self, id: u32) -> u32 {
        usize::try_from(id).ok().and_then(|i| self.type_of.get(i)).copied().unwrap_or(u32::MAX)
    }

    /// The type of an object.
    pub fn kind(&self, id: u32) -> Option<&ObjectType> {
        self.types.get(usize::try_from(self.type_index(id)).ok()?).map(Arc::as_ref)
    }

    /// Where an object lies; null for a number that no object has.
    pub fn address(&self, id: u32) -> Addr {
        self.index.address_of(id).unwrap_or(Addr::NULL)
    }

    /// Name of an object's type.
    pub fn type_name(&self, namer: &Namer, id: u32) -> String {
        self.kind(id).map_or_else(|| "?".into(), |k| namer.name_or_address(k.method_table))
    }

    /// Which types `patterns` mean, by their numbers.
    pub fn wanted_types(&self, namer: &Namer, patterns: &[TypePattern]) -> Vec<bool> {
        let wanted = |t: &Arc<ObjectType>| patterns.iter().any(|p| p.matches(t.method_table, || namer.name_or_address(t.method_table)));
        self.types.iter().map(|t| !t.is_free && wanted(t)).collect()
    }

    /// Numbers of the objects of the types that `patterns` mean, ascending.
    pub fn of_types(&self, namer: &Namer, patterns: &[TypePattern]) -> Vec<u32> {
        let wanted = self.wanted_types(namer, patterns);
        let is = |id: &u32| usize::try_from(self.type_index(*id)).ok().and_then(|i| wanted.get(i)).copied().unwrap_or(false);
        (0..self.len()).filter(is).collect()
    }

    /// The roots that hold an object, weak ones left out unless asked for.
    pub fn roots_of(&self, id: u32, weak: bool) -> impl Iterator<Item = &Root> {
        let address = self.address(id);
        self.roots.roots.iter().filter(move |r| r.object == address && (weak || !r.flags.has(RootFlags::WEAK)))
    }

    /// Bytes of memory that the graph takes.
    pub fn bytes(&self) -> u64 {
        let vectors = self.type_of.capacity().saturating_add(self.size_of.capacity()).saturating_mul(4);
        self.edges.bytes().saturating_add(u64::try_from(vectors.saturating_add(self.index.memory_bytes())).unwrap_or(u64::MAX))
    }
}

/// Numbers of the objects that no collection frees.
fn frozen(heap: &Heap, index: &ObjectStarts) -> Vec<u32> {
    let frozen = heap.segments().iter().enumerate().filter(|(_, s)| s.generation == Generation::Frozen);
    let mut ids: Vec<u32> = frozen.filter_map(|(i, _)| index.of_segment(i)).flat_map(|(first, n)| first..first.saturating_add(n)).collect();
    ids.sort_unstable();
    ids
}

/// Numbers of the objects that those roots hold that `counts` picks, ascending, each once.
fn held(index: &ObjectStarts, roots: &Roots, counts: impl Fn(&Root) -> bool) -> Vec<u32> {
    let picked = roots.roots.iter().filter(|r| counts(r));
    let mut ids: Vec<u32> = picked.filter_map(|r| index.id_of(r.object)).collect();
    ids.sort_unstable();
    ids.dedup();
    ids
}

fn extra(heap: &Heap, namer: &Namer, index: &ObjectStarts, roots: &Roots) -> Extra {
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
