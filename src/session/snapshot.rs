//! The heap of a snapshot file: a graph with types and sizes, without memory.

use std::sync::{Arc, OnceLock};

use super::described::Describing;
use super::dump::Process;
use super::graph::MemoryLimit;
use super::names::NameTable;
use super::roots::{Origin, Root, RootFlags, Roots, StaticIndex};
use super::{DominatorTree, Error, GraphSource, HeapGraph, Namer};
use crate::base::cancel::{check_at, tick};
use crate::base::hash::{Map, Set};
use crate::base::{Addr, Answer, Collector, Index, IndexVec, Limits, NoteKind, Store, total};
use crate::dump::{DumpFacts, Snapshot};
use crate::gc::{ObjectId, ObjectStarts, ObjectType, TypeIndex};
use crate::graph::CsrBuilder;
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

/// Bytes that the graph of a snapshot takes for each node.
const BYTES_PER_NODE: u64 = 64;

/// What `dotnet-gcdump` appends to the names of large objects, up to its last character.
const SIZE_CLASS: &str = " (Bytes > ";

/// The group of objects that are never freed.
const FROZEN: &str = "[frozen objects]";

/// A node's place in the graph.
#[derive(Clone, Copy)]
enum Place {
    /// A group of roots: invented by the writer.
    Group,
    /// An object.
    Object(ObjectId),
}

struct Reader<'s> {
    file: &'s Snapshot,
    places: Vec<Place>,
    /// By object: its node.
    nodes: IndexVec<ObjectId, u32>,
    names: NameTable,
    /// By type of the file.
    types: Vec<TypeIndex>,
    damaged: u64,
}

/// Bounds the references that are read: nodes of a forged file may all lead to the same ones.
struct Room {
    left: u64,
    met: bool,
}

impl Room {
    /// Takes one of them; `false` if there are no more.
    fn take(&mut self) -> bool {
        let left = self.left.checked_sub(1);
        self.left = left.unwrap_or(0);
        self.met |= left.is_none();
        left.is_some()
    }
}

/// The name that the groups of roots have.
fn is_group(name: &str) -> bool {
    name.starts_with('[') && name.ends_with(']')
}

impl<'s> Reader<'s> {
    fn new(file: &'s Snapshot) -> Reader<'s> {
        let mut names = NameTable::default();
        let mut known: Map<(String, Option<String>), TypeIndex> = Map::default();
        let mut types = Vec::with_capacity(file.types.len());
        for ty in &file.types {
            // Types of large objects are one with those of the others, as in a dump.
            let large = ty.name.strip_suffix(')').and_then(|name| name.rsplit_once(SIZE_CLASS));
            let name = large.map_or(&*ty.name, |(name, _)| name).to_string();
            let module = ty.module.as_ref().map(|m| crate::base::file_name(m).to_string()).filter(|m| !m.is_empty());
            let index = *known.entry((name.clone(), module.clone())).or_insert_with(|| names.add(name, module));
            types.push(index);
        }
        Reader { file, places: Vec::new(), nodes: IndexVec::new(), names, types, damaged: 0 }
    }

    /// Numbers the objects by address, as those of a dump are.
    fn place(&mut self, notes: &Collector) -> Vec<u64> {
        let mut objects: Vec<(u64, u32)> = Vec::new();
        let mut nameless: Vec<u32> = Vec::new();
        for node in 0..self.file.nodes {
            check_at(node);
            match (self.file.address(node), self.file.node(node)) {
                (_, None) => self.damaged = self.damaged.saturating_add(1),
                (0, Some(n)) if n.size == 0 && self.file.types.get(n.ty).is_some_and(|t| is_group(&t.name)) || node == self.file.root => {}
                (0, Some(_)) => nameless.push(node),
                (at, Some(_)) => objects.push((at, node)),
            }
        }
        objects.sort_unstable();
        let mut last = 0;
        let mut twice = Vec::new();
        objects.retain(|(at, node)| {
            let new = *at != std::mem::replace(&mut last, *at);
            if !new {
                twice.push(*node);
            }
            new
        });
        // Below all objects is room for numbers that stand for addresses.
        let without = nameless.into_iter().chain(twice);
        let mut numbered: Vec<(u64, u32)> = (1u64..).zip(without).map(|(n, node)| (n.saturating_mul(8), node)).collect();
        if let (Some((_, _)), Some((lowest, _))) = (numbered.first(), objects.first()) {
            let most = usize::try_from(lowest / 8).unwrap_or(usize::MAX).saturating_sub(1);
            let lost = numbered.len().saturating_sub(most);
            numbered.truncate(most);
            if lost > 0 {
                notes.add(NoteKind::Invalid, None, format!("{lost} nodes have no address and are left out"));
            }
        }
        if !numbered.is_empty() {
            let what =
                format!("{} nodes of the file have no address of their own; they are shown at addresses from 0x8 on", numbered.len());
            notes.add(NoteKind::Descriptor, None, what);
        }
        numbered.extend(objects);
        self.places = vec![Place::Group; usize::try_from(self.file.nodes).unwrap_or(0)];
        for (id, (_, node)) in numbered.iter().enumerate() {
            let (Some(id), Some(place)) = (ObjectId::new(id), usize::try_from(*node).ok().and_then(|n| self.places.get_mut(n))) else {
                break;
            };
            *place = Place::Object(id);
        }
        self.nodes = numbered.iter().map(|(_, node)| *node).collect();
        numbered.into_iter().map(|(at, _)| at).collect()
    }

    fn object(&self, node: u32) -> Option<ObjectId> {
        match self.places.get(usize::try_from(node).ok()?)? {
            Place::Object(id) => Some(*id),
            Place::Group => None,
        }
    }

    /// Bytes of the graph, if all that groups have are different objects.
    fn needed(&self) -> u64 {
        let groups = (0..self.file.nodes).zip(&self.places).filter(|(_, place)| matches!(place, Place::Group));
        let groups = groups.inspect(|(group, _)| check_at(*group));
        let children = total(groups.filter_map(|(group, _)| self.file.node(group)).map(|group| group.child_count().into()));
        let root = u64::try_from(size_of::<Root>()).unwrap_or(u64::MAX);
        let roots = children.min(self.file.most_references()).saturating_mul(root);
        u64::from(self.file.nodes).saturating_mul(BYTES_PER_NODE).saturating_add(roots)
    }

    /// The roots: what hangs below the root by way of groups; and what is never freed.
    fn roots(&self, room: &mut Room) -> (Roots, Vec<ObjectId>) {
        let (mut roots, mut frozen) = (Roots::default(), Vec::new());
        // By type: many groups may have the same long name.
        let mut groups: Map<usize, (RootKind, Option<StaticIndex>)> = Map::default();
        let mut seen = vec![false; self.places.len()];
        // A group may name the same object a million times.
        let mut rooted: Set<(StaticIndex, ObjectId)> = Set::default();
        let mut waiting = vec![self.file.root];
        while let Some(group) = waiting.pop() {
            match usize::try_from(group).ok().and_then(|g| seen.get_mut(g)) {
                Some(seen) if !*seen => *seen = true,
                _ => continue,
            }
            let Some(node) = self.file.node(group) else { continue };
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
                        let object = self.file.address(child);
                        let origin = Origin::Group(label);
                        roots.roots.push(Root { kind, address: None, object: Addr(object), flags: RootFlags::NONE, origin });
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

    fn graph(mut self, limits: &Limits, notes: &Collector) -> Result<(HeapGraph, NameTable), Error> {
        let addresses = self.place(notes);
        within(limits, self.file, self.needed())?;
        let objects = addresses.len();
        let mut rows = CsrBuilder::with_capacity(&Store::default(), objects, objects);
        let mut described = Describing::new(&Store::default());
        let mut cut = 0u64;
        let mut room = Room { left: self.file.most_references(), met: false };
        for node in self.nodes.iter().copied() {
            check_at(node);
            if let Some(n) = self.file.node(node) {
                let mut told = 0u32;
                for child in n.children().take_while(|_| room.take()) {
                    told = told.saturating_add(1);
                    if let Some(to) = self.object(child) {
                        rows.push_edge(to.as_u32());
                    }
                }
                cut = cut.saturating_add(u64::from(told < n.child_count()));
                described.push(self.types.get(n.ty).copied().unwrap_or_default(), n.size);
            } else {
                described.push(TypeIndex::default(), 0);
            }
            rows.end_node()?;
        }
        let (roots, frozen) = self.roots(&mut room);
        if room.met {
            notes.add(NoteKind::Invalid, None, "nodes of the file share references: those beyond its size are left out");
        }
        if cut > 0 || self.damaged > 0 {
            let what =
                format!("{} nodes of the file are damaged: they, or references of theirs, are left out", cut.saturating_add(self.damaged));
            notes.add(NoteKind::Invalid, None, what);
        }
        let types = self.names.types().map(|(index, mt)| Arc::new(ObjectType::named(index, mt))).collect();
        let starts = Arc::new(ObjectStarts::listed(addresses));
        Ok((HeapGraph::of_file(starts, rows.finish()?.into(), types, roots, frozen, described.finish()), self.names))
    }
}

/// Whether the graph of a file may take what it needs.
fn within(limits: &Limits, file: &Snapshot, needed: u64) -> Result<(), Error> {
    let exceeded = limits.max_memory.filter(|allowed| needed > *allowed);
    exceeded.map_or(Ok(()), |allowed| Err(MemoryLimit { objects: file.nodes, needed, allowed }.into()))
}

/// Kind and label of the roots in a group with this name, one of PerfView's.
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
        // As those of a dump are called.
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
        // Before nodes have places: roots are not known yet.
        within(&inner.process.limits, file, u64::from(file.nodes).saturating_mul(BYTES_PER_NODE))?;
        let notes = Collector::new();
        if file.sampling != 1.0 {
            let what = format!("the file has a sample of the heap: each object stands for {:.1}", file.sampling);
            notes.add(NoteKind::Missing, None, what);
        }
        if let Some(loss) = &file.loss {
            notes.add(NoteKind::Missing, None, format!("the file was made from a dump that lacks something: {loss}"));
        }
        let (graph, names) = Reader::new(file).graph(&inner.process.limits, &notes)?;
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
        super::heap::dominators_of(graph, stacks, &self.inner.dominators, &*self.inner.process.progress, || None)
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
