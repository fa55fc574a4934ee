//! The heap of a snapshot file: a graph with types and sizes, without memory.

use std::sync::{Arc, OnceLock};

use super::names::NameTable;
use super::process::Process;
use super::references::BYTES_IN_MEMORY;
use super::{Error, GraphSource, Namer};
use crate::base::cancel::{check_at, tick};
use crate::base::hash::{Map, Set};
use crate::base::store::caught;
use crate::base::{Addr, Answer, Buffer, Collector, Index, Limits, Missing, NoteKind, Notes, Store, be, len64, plural, total};
use crate::dump::{DumpFacts, Snapshot, SnapshotNode, TempFiles};
use crate::gc::{ObjectId, ObjectStarts, ObjectType, TypeIndex};
use crate::graph::{BitSet, CsrBuilder};
use crate::heapgraph::described::Describing;
use crate::heapgraph::{DominatorTree, HeapGraph, MemoryLimit, Origin, RawRoot, References, RootFlags, Roots, StaticIndex};
use crate::memory::Memory;
use crate::model::{RootKind, Stacks};

/// The objects of a heap snapshot.
#[derive(Clone, Debug)]
pub struct HeapSnapshot {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    process: Arc<Process>,
    graph: OnceLock<Answer<(HeapGraph, Arc<NameTable>)>>,
    dominators: [OnceLock<DominatorTree>; Stacks::ALL.len()],
}

impl HeapSnapshot {
    pub(super) fn new(process: Arc<Process>) -> HeapSnapshot {
        HeapSnapshot { inner: Arc::new(Inner { process, graph: OnceLock::new(), dominators: Default::default() }) }
    }
}

/// Estimated bytes of memory that the graph of a snapshot takes per node.
const BYTES_PER_NODE: u64 = 64;

/// Start of the suffix that `dotnet-gcdump` appends to the type names of large objects, as in `System.Byte[] (Bytes > 1M)`.
const SIZE_CLASS: &str = " (Bytes > ";

/// Name of the group of objects in frozen segments, which are never freed.
const FROZEN: &str = "[frozen objects]";

/// Marks a node that is not an object.
const NO_OBJECT: u32 = u32::MAX;

struct Reader<'s> {
    file: &'s Snapshot,
    /// The object of each node, or [`NO_OBJECT`].
    objects: Buffer<u32>,
    /// The node of each object.
    nodes: Buffer<u32>,
    names: NameTable,
    /// Types by their index in the file.
    types: Vec<TypeIndex>,
    damaged: u64,
}

/// The number of references that may still be read. The limit is needed because all nodes of a forged file may share one list of references.
struct Room {
    left: u64,
    /// Whether a reference was refused.
    met: bool,
}

impl Room {
    /// Takes one reference; returns `false` if none are left.
    fn take(&mut self) -> bool {
        let left = self.left.checked_sub(1);
        self.left = left.unwrap_or(0);
        self.met |= left.is_none();
        left.is_some()
    }
}

/// Whether a node is a group of roots that the writer added, not an object.
fn is_group(file: &Snapshot, index: u32, node: &SnapshotNode<'_>) -> bool {
    let is_named_so = || file.types.get(node.ty).is_some_and(|ty| ty.name.starts_with('[') && ty.name.ends_with(']'));
    file.address(index) == 0 && (index == file.root || node.size == 0 && is_named_so())
}

/// The store for the graph of `file`: temporary files if the graph may exceed the memory limit.
///
/// # Errors
/// [`Error::Memory`] if even the data that stays in memory exceeds the limit.
fn store_of(limits: &Limits, file: &Snapshot) -> Result<Store, Error> {
    let Some(allowed) = limits.max_memory else { return Ok(Store::default()) };
    let nodes = u64::from(file.nodes);
    // An upper bound of the number of roots, because all members of groups may be different objects.
    let children = total((0..file.nodes).inspect(|index| check_at(*index)).filter_map(|index| {
        let node = file.node(index).filter(|node| is_group(file, index, node))?;
        Some(node.child_count().into())
    }));
    let roots = children.min(file.most_references()).saturating_mul(len64(size_of::<RawRoot>()));
    if nodes.saturating_mul(BYTES_PER_NODE).saturating_add(roots) <= allowed {
        return Ok(Store::default());
    }
    let needed = nodes.saturating_mul(BYTES_IN_MEMORY).saturating_add(roots);
    if needed > allowed {
        return Err(MemoryLimit { objects: file.nodes, needed, allowed }.into());
    }
    Ok(Store::in_files(Arc::new(TempFiles::new())))
}

impl<'s> Reader<'s> {
    fn new(file: &'s Snapshot) -> Reader<'s> {
        let mut names = NameTable::default();
        let mut known: Map<(String, Option<String>), TypeIndex> = Map::default();
        let mut types = Vec::with_capacity(file.types.len());
        for ty in &file.types {
            // Remove the size class, so that large objects have the same type as the others.
            let large = ty.name.strip_suffix(')').and_then(|name| name.rsplit_once(SIZE_CLASS));
            let name = large.map_or(&*ty.name, |(name, _)| name).to_string();
            let module = ty.module.as_ref().map(|m| crate::base::file_name(m).to_string()).filter(|m| !m.is_empty());
            let index = *known.entry((name.clone(), module.clone())).or_insert_with(|| names.add(name, module));
            types.push(index);
        }
        Reader { file, objects: Buffer::default(), nodes: Buffer::default(), names, types, damaged: 0 }
    }

    /// Numbers the objects by address, as for a dump, and returns their addresses. Nodes without an address get made-up addresses from 0x8 on. If
    /// several nodes have the same address, all but the first get made-up addresses too.
    fn number(&mut self, store: &Store, notes: &Collector) -> Buffer<u64> {
        // Pairs of address and node number for nodes with an address, and the nodes without one.
        let (mut found, mut without) = (Buffer::<[u64; 2]>::new(store), Buffer::<u32>::new(store));
        for index in 0..self.file.nodes {
            check_at(index);
            match (self.file.address(index), self.file.node(index)) {
                (_, None) => self.damaged = self.damaged.saturating_add(1),
                (_, Some(node)) if is_group(self.file, index, &node) => {}
                (0, Some(_)) => without.push(index),
                (at, Some(_)) => found.push([at, index.into()]),
            }
        }
        found.sort_unstable();
        let node_of = |[_, node]: &[u64; 2]| u32::try_from(*node).unwrap_or(NO_OBJECT);
        let same = |one: &[u64; 2], other: &[u64; 2]| one.first() == other.first();
        found.chunk_by(same).flat_map(|nodes| nodes.iter().skip(1)).for_each(|twice| without.push(node_of(twice)));
        let found_first = || found.chunk_by(same).filter_map(<[_]>::first);
        // Made-up addresses are below the address of the first object. Nodes for which no such address is left are left out.
        if let Some([lowest, _]) = found.first() {
            let most = usize::try_from(lowest / 8).unwrap_or(usize::MAX).saturating_sub(1);
            let lost = without.len().saturating_sub(most);
            without.truncate(most);
            if lost > 0 {
                notes.add(
                    NoteKind::Invalid,
                    None,
                    format!("{} without an address {} left out", plural(len64(lost), "node"), be(len64(lost))),
                );
            }
        }
        if !without.is_empty() {
            let count = len64(without.len());
            let what = format!("{} without an address {} shown at addresses from 0x8 on", plural(count, "node"), be(count));
            notes.add(NoteKind::Descriptor, None, what);
        }
        let all = || {
            let numbered = (1u64..).zip(without.iter()).map(|(n, node)| (n.saturating_mul(8), *node));
            numbered.chain(found_first().map(|object @ [at, _]| (*at, node_of(object))))
        };
        self.objects = Buffer::zeroed(store, self.file.nodes as usize);
        self.objects.fill(NO_OBJECT);
        for (id, (_, node)) in (0u32..).zip(all()) {
            if let Some(object) = self.objects.get_mut(node as usize) {
                *object = id;
            }
        }
        self.nodes = Buffer::collected(store, all().map(|(_, node)| node));
        Buffer::collected(store, all().map(|(at, _)| at))
    }

    fn object(&self, node: u32) -> Option<ObjectId> {
        self.objects.get(node as usize).copied().filter(|id| *id != NO_OBJECT).map(ObjectId::from_u32)
    }

    /// The roots, and the objects of frozen segments. A root is an object that the root node reaches through groups only.
    /// `addresses` has the address of each object, which may be a made-up one.
    fn roots(&self, room: &mut Room, addresses: &[u64]) -> (Roots, Vec<ObjectId>) {
        let (mut roots, mut frozen) = (Roots::default(), Vec::new());
        // Kind and label of groups by type index, so that the long name of many groups is stored once.
        let mut groups: Map<usize, (RootKind, Option<StaticIndex>)> = Map::default();
        let mut seen = BitSet::new(self.file.nodes);
        // Pairs of a label and an object that are already roots. A group may contain the same object a million times.
        let mut rooted: Set<(StaticIndex, ObjectId)> = Set::default();
        let mut waiting = vec![self.file.root];
        while let Some(group) = waiting.pop() {
            let Some(node) = self.file.node(group).filter(|_| seen.set(group)) else { continue };
            let name = self.file.types.get(node.ty).map_or("", |t| t.name.as_str());
            let is_frozen = name.eq_ignore_ascii_case(FROZEN);
            let (kind, label) = *groups.entry(node.ty).or_insert_with(|| {
                let (kind, label) = group_kind(name);
                (kind, roots.names.push(label))
            });
            for child in node.children() {
                tick();
                if !room.take() {
                    break;
                }
                match (self.object(child), label) {
                    (None, _) => waiting.push(child),
                    (Some(id), _) if is_frozen => frozen.push(id),
                    (Some(id), Some(label)) if rooted.insert((label, id)) => {
                        let object = addresses.get(id.index()).copied().unwrap_or_default();
                        let origin = Origin::Group(label);
                        roots.roots.push(RawRoot { kind, address: None, object: Addr(object), flags: RootFlags::NONE, origin });
                    }
                    (Some(_), _) => {}
                }
            }
        }
        let order = |kind: RootKind| RootKind::ALL.iter().position(|k| *k == kind);
        roots.roots.sort_by_key(|r| (order(r.kind), r.object));
        frozen.sort_unstable();
        frozen.dedup();
        (roots, frozen)
    }

    fn graph(mut self, store: &Store, notes: &Collector) -> Result<(HeapGraph, NameTable), Error> {
        let addresses = self.number(store, notes);
        let objects = addresses.len();
        let mut rows = CsrBuilder::with_capacity(store, objects, objects);
        let mut described = Describing::new(store);
        let mut cut = 0u64;
        let mut room = Room { left: self.file.most_references(), met: false };
        for node in self.nodes.iter().copied() {
            check_at(node);
            if let Some(n) = self.file.node(node) {
                let mut read = 0u32;
                for child in n.children().take_while(|_| room.take()) {
                    read = read.saturating_add(1);
                    if let Some(to) = self.object(child) {
                        rows.push_edge(to.as_u32());
                    }
                }
                cut = cut.saturating_add(u64::from(read < n.child_count()));
                described.push(self.types.get(n.ty).copied().unwrap_or_default(), n.size);
            } else {
                described.push(TypeIndex::default(), 0);
            }
            rows.end_node()?;
        }
        let (roots, frozen) = self.roots(&mut room, &addresses);
        if room.met {
            notes.add(NoteKind::Invalid, None, "nodes of the file share references; references that exceed its size are left out");
        }
        if cut > 0 || self.damaged > 0 {
            let what = format!(
                "{} nodes of the file are damaged; they, or some of their references, are left out",
                cut.saturating_add(self.damaged)
            );
            notes.add(NoteKind::Invalid, None, what);
        }
        let types = self.names.types().map(|(index, mt)| Arc::new(ObjectType::named(index, mt))).collect();
        let starts = Arc::new(ObjectStarts::listed(addresses.freeze()));
        let (edges, described, by_type) = (rows.finish()?.into(), described.finish(), OnceLock::new());
        let references = References { edges, types, described, by_type, notes: Notes::new(), is_of_index: false };
        Ok((HeapGraph::new(starts, references, roots, frozen), self.names))
    }
}

/// Kind and label of the roots in a group with this name. The names are those that PerfView writes.
fn group_kind(name: &str) -> (RootKind, String) {
    let plain = name.strip_prefix('[').and_then(|n| n.strip_suffix(']')).unwrap_or(name);
    let lower = plain.to_ascii_lowercase();
    let kind = match &*lower {
        _ if lower.starts_with("static var ") || lower == "static vars" => RootKind::Static,
        "local vars" => RootKind::Stack,
        "pinning handles" => RootKind::PinnedHandle,
        "finalizer handles" => RootKind::FinalizerReady,
        "com/winrt objects" => RootKind::RefCountedHandle,
        _ => RootKind::StrongHandle,
    };
    let label = match (plain.split_at_checked(11), &*lower) {
        (Some((start, field)), _) if start.eq_ignore_ascii_case("static var ") => field.to_string(),
        // Use the labels that such roots have in a dump.
        (_, "strong handles") => "strong handle".into(),
        (_, "pinning handles") => "pinned handle".into(),
        _ => plain.to_string(),
    };
    (kind, label)
}

impl HeapSnapshot {
    fn built(&self) -> Result<&Answer<(HeapGraph, Arc<NameTable>)>, Error> {
        let inner = &*self.inner;
        if let Some(built) = inner.graph.get() {
            return Ok(built);
        }
        let file = inner.process.file.snapshot.as_ref().ok_or_else(|| Error::Query("the file holds no snapshot".into()))?;
        let notes = Collector::new();
        if file.sampling != 1.0 {
            let what = format!("the file has a sample of the heap; each of its objects represents about {:.1} objects", file.sampling);
            notes.add(Missing::File, None, what);
        }
        if let Some(loss) = &file.loss {
            notes.add(Missing::File, None, format!("the file was made from an incomplete dump: {loss}"));
        }
        let store = store_of(&inner.process.limits, file)?;
        let (graph, names) = caught(|| Reader::new(file).graph(&store, &notes))??;
        let built = notes.finish((graph, Arc::new(names)));
        Ok(inner.graph.get_or_init(|| built))
    }
}

impl GraphSource for HeapSnapshot {
    fn begin(&self) -> Collector {
        let notes = Collector::new();
        notes.extend(&self.inner.process.notes);
        if let Ok(built) = self.built() {
            notes.extend(&built.notes);
        }
        notes
    }

    fn namer(&self) -> Namer {
        let table = self.built().map(|built| Arc::clone(&built.1)).unwrap_or_default();
        Namer::of_table(table, &self.inner.process.memory)
    }

    fn graph(&self, _weak: bool) -> Result<&HeapGraph, Error> {
        self.built().map(|built| &built.0)
    }

    fn graph_notes(&self, _weak: bool, notes: &Collector) {
        if let Ok(built) = self.built() {
            notes.extend(&built.notes);
        }
    }

    fn dominators(&self, stacks: Stacks) -> Result<&DominatorTree, Error> {
        let graph = self.graph(false)?;
        super::heap_parts::dominators_of(graph, stacks, &self.inner.dominators, &*self.inner.process.progress, || None)
    }

    fn around(&self, graph: &HeapGraph, address: Addr) -> Option<ObjectId> {
        let (id, start) = graph.index.before(address)?;
        address.since(start).filter(|by| *by == 0 || *by < graph.size(id)).map(|_| id)
    }

    fn memory(&self) -> &Arc<Memory> {
        &self.inner.process.memory
    }

    fn facts(&self) -> &DumpFacts {
        &self.inner.process.file.facts
    }

    fn heap(&self) -> Option<&super::Heap> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_of_roots_have_kinds_and_labels() {
        assert_eq!(group_kind("[static var Lab.Program.Keep]"), (RootKind::Static, "Lab.Program.Keep".into()));
        assert_eq!(group_kind("[local vars]"), (RootKind::Stack, "local vars".into()));
        assert_eq!(group_kind("[Pinning handles]"), (RootKind::PinnedHandle, "pinned handle".into()));
        assert_eq!(group_kind("[other roots]"), (RootKind::StrongHandle, "other roots".into()));
        assert_eq!(group_kind("[]"), (RootKind::StrongHandle, String::new()));
    }
}
