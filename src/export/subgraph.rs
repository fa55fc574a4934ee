//! The exported part of a heap graph: the whole graph that `retained` uses, or a reduced graph with the same retained sizes.
//!
//! A reduced graph keeps a set of objects that contains the dominators of each member. The objects omitted below a kept object are summed up in a
//! [`Rest`] below the kept object. If the immediate dominator of a kept object does not refer to the object directly, all paths to the object may
//! lead through omitted objects. So the object becomes a child of its immediate dominator, or of the group [`GroupKind::Through`] if no object
//! dominates it. Thus dominators and retained sizes of the kept objects do not change.

use crate::base::cancel::check_at;
use crate::base::{Addr, Answer, Collector, Count, Index, IndexVec, len64};
use crate::gc::{ObjectId, TypeIndex};
use crate::heapgraph::{Depends, DominatorTree, HeapGraph, ObjectSet, RawRoot};
use crate::model::{Generation, RootKind, Stacks, Sum};
use crate::session::{Error, FieldNames, FieldPlace, Heap, Namer};

/// Selects the objects to export.
#[derive(Clone, Copy, Debug, Default)]
pub struct Scope {
    /// Stack values that are treated as roots.
    pub stacks: Stacks,
    /// Whether unreachable objects are included. Cannot be combined with `under` and `min_retained`.
    pub unreachable: bool,
    /// If set, selects only the object that contains this address, the objects that this object dominates, and its dominators.
    pub under: Option<Addr>,
    /// Selects only objects that retain at least this many bytes.
    pub min_retained: u64,
}

impl Scope {
    fn cuts(&self) -> bool {
        self.under.is_some() || self.min_retained > 0
    }
}

/// A group of roots, or another holder of exported objects that is not an object.
pub struct Group {
    /// Kind of the group.
    pub kind: GroupKind,
    /// Objects that the group holds.
    pub links: Vec<Link>,
}

/// Kinds of groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupKind {
    /// Roots of a kind.
    Roots(RootKind),
    /// Objects that are never freed.
    Frozen,
    /// Objects that have no dominator and that roots hold only through other objects. Those other objects may be omitted.
    Through,
    /// Unreachable objects.
    Unreachable,
}

impl GroupKind {
    /// Returns the name of the group: `static`, `frozen`.
    pub fn name(self) -> &'static str {
        match self {
            GroupKind::Roots(kind) => kind.name(),
            GroupKind::Frozen => "frozen",
            GroupKind::Through => "through objects left out",
            GroupKind::Unreachable => "unreachable",
        }
    }
}

/// An object that a group holds.
#[derive(Clone, Copy, Debug)]
pub struct Link {
    /// The object.
    pub to: ObjectId,
    /// Index of the root in the graph's list, if the link is a root.
    pub root: Option<usize>,
    /// Whether the object is a start of dominance. The object of a stack root is a start only if no root outside of stacks reaches the object.
    pub holds: bool,
}

/// The sum of the objects that were omitted below a kept object, or that no kept object dominates.
#[derive(Clone, Copy, Debug)]
pub struct Rest {
    /// The kept object that dominates the omitted objects; `None` if no kept object dominates them.
    pub under: Option<ObjectId>,
    /// Number and size of the objects.
    pub sum: Sum,
}

/// How an object holds another object.
#[derive(Clone, Debug)]
pub enum Via {
    /// A reference; `None` if the dump does not have the name of its field.
    Reference(Option<FieldPlace>),
    /// A dependent handle.
    Dependent,
    /// The loader allocator of a collectible type.
    Allocator,
    /// A path through other objects, which may be omitted.
    Through,
}

/// A reference between exported objects.
#[derive(Clone, Debug)]
pub struct Edge {
    /// The object held.
    pub to: ObjectId,
    /// How the object is held.
    pub via: Via,
    /// Whether the edge keeps the object alive: a reference from garbage to a live object does not.
    pub holds: bool,
}

/// The exported part of a heap.
pub struct Subgraph<'h> {
    /// The heap.
    pub heap: &'h Heap,
    /// Graph of the heap.
    pub graph: &'h HeapGraph,
    /// Dominator tree of the heap.
    pub tree: &'h DominatorTree,
    /// Names for the answer.
    pub namer: Namer,
    /// Groups with at least one object, in order of root kinds.
    pub groups: Vec<Group>,
    /// Sums of omitted objects, in the order of their parents.
    pub rests: Vec<Rest>,
    /// The exported objects.
    pub sum: Sum,
    /// Number of references between exported objects.
    pub references: u64,
    notes: Collector,
    /// Number of each object among the exported ones, or [`LEFT_OUT`].
    numbers: IndexVec<ObjectId, u32>,
    /// Sorted pairs of a kept object and its dominator, dominator first, where the dominator does not refer to the object directly.
    through: Vec<(Option<ObjectId>, ObjectId)>,
}

const LEFT_OUT: u32 = u32::MAX;

impl std::fmt::Debug for Subgraph<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Subgraph").field("objects", &self.sum.count).field("references", &self.references).finish_non_exhaustive()
    }
}

impl<'h> Subgraph<'h> {
    /// Builds the subgraph that `scope` selects.
    ///
    /// # Errors
    /// [`Error::NoObject`] if no object is at the address, [`Error::Graph`] or [`Error::Memory`] if the graph cannot be built.
    pub fn open(heap: &'h Heap, scope: &Scope) -> Result<Subgraph<'h>, Error> {
        let notes = heap.begin();
        let graph = notes.with(heap.graph(false)?);
        graph.root_notes(scope.stacks).into_iter().for_each(|n| notes.extend(n));
        graph.note_doubts(scope.stacks, Depends::Roots, &notes);
        let tree = heap.dominators(scope.stacks)?;
        let mut part = Subgraph {
            heap,
            graph,
            tree,
            namer: graph.namer(heap.namer()),
            groups: Vec::new(),
            rests: Vec::new(),
            sum: Sum::default(),
            references: 0,
            notes,
            numbers: IndexVec::new(),
            through: Vec::new(),
        };
        let kept = part.kept(scope)?;
        part.number(&kept);
        let starts = graph.starts(scope.stacks);
        if scope.cuts() {
            part.cut(&kept, &starts);
        }
        part.group(scope, &starts);
        part.references = graph.ids().fold(0, |mut n: u64, id| {
            check_at(id.as_u32());
            n.grow(len64(part.successors(id).count()));
            n
        });
        Ok(part)
    }

    /// Returns the objects that `scope` selects.
    fn kept(&self, scope: &Scope) -> Result<ObjectSet, Error> {
        let mut kept = self.graph.edges.no_objects();
        let wanted = |id: &ObjectId| self.tree.is_reachable(*id) && self.tree.retained(*id) >= scope.min_retained;
        if let Some(at) = scope.under {
            let found = self.graph.index.containing(self.heap.walker(), at);
            let (top, _) = found.ok_or_else(|| Error::NoObject(at).given(&self.notes.notes()))?;
            if !self.tree.is_reachable(top) {
                return Err(Error::Nothing(format!("no root reaches the object at {at}, so it dominates nothing")));
            }
            kept.extend(self.tree.chain(top));
            kept.insert(top);
            kept.extend(self.tree.dominated(top).filter(wanted));
        } else {
            kept.extend(self.graph.ids().filter(|id| scope.unreachable || wanted(id)));
        }
        Ok(kept)
    }

    fn number(&mut self, kept: &ObjectSet) {
        let mut next = 0u32;
        self.numbers = IndexVec::with_capacity(self.graph.index.ids().len());
        for id in self.graph.ids() {
            let is_kept = kept.contains(id);
            self.numbers.extend([if is_kept { next } else { LEFT_OUT }]);
            if is_kept {
                next = next.saturating_add(1);
                self.sum.add(self.graph.size(id));
            }
        }
    }

    /// Sums up the omitted objects, and finds the kept objects that their dominator does not refer to directly.
    fn cut(&mut self, kept: &ObjectSet, starts: &[ObjectId]) {
        let mut held = self.graph.edges.no_objects();
        held.extend(starts.iter().copied().filter(|id| self.tree.dominator(*id).is_none()));
        for id in kept.iter() {
            held.extend(self.graph.edges.successors(id).filter(|to| self.tree.dominator(*to) == Some(id)));
        }
        let above = |id: &ObjectId| self.tree.dominator(*id);
        self.through = kept.iter().filter(|id| !held.contains(*id)).map(|id| (above(&id), id)).collect();
        self.through.sort_unstable();
        for under in std::iter::once(None).chain(kept.iter().map(Some)) {
            let mut sum = Sum::default();
            for id in self.tree.below(under).filter(|id| !kept.contains(*id)) {
                sum.merge(Sum { count: self.tree.subtree(id), bytes: self.tree.retained(id) });
            }
            if sum.count > 0 {
                self.rests.push(Rest { under, sum });
            }
        }
    }

    fn group(&mut self, scope: &Scope, starts: &[ObjectId]) {
        let mut groups: Vec<Group> = Vec::new();
        for (index, root) in self.graph.roots.roots.iter().enumerate().filter(|(_, r)| r.counts(scope.stacks)) {
            let Some(to) = self.graph.index.id_of(root.object).filter(|id| self.number_of(*id).is_some()) else { continue };
            let link = Link { to, root: Some(index), holds: starts.binary_search(&to).is_ok() };
            let kind = GroupKind::Roots(root.kind);
            match groups.iter_mut().find(|g| g.kind == kind) {
                Some(group) => group.links.push(link),
                None => groups.push(Group { kind, links: vec![link] }),
            }
        }
        let held = |to: ObjectId| Link { to, root: None, holds: true };
        let frozen = self.graph.frozen.iter().copied().filter(|id| self.number_of(*id).is_some());
        groups.push(Group { kind: GroupKind::Frozen, links: frozen.map(held).collect() });
        let through = self.through.iter().take_while(|(above, _)| above.is_none());
        groups.push(Group { kind: GroupKind::Through, links: through.map(|(_, id)| held(*id)).collect() });
        if scope.unreachable {
            groups.push(Group { kind: GroupKind::Unreachable, links: self.garbage_tops().into_iter().map(held).collect() });
        }
        groups.retain(|g| !g.links.is_empty());
        self.groups = groups;
    }

    /// Returns unreachable objects from which all other unreachable ones can be reached: those without referrers, and one of each remaining cycle.
    fn garbage_tops(&self) -> Vec<ObjectId> {
        let edges = &self.graph.edges;
        let dead = |id: &ObjectId| !self.tree.is_reachable(*id);
        let mut referred = edges.no_objects();
        for id in self.graph.ids().filter(dead) {
            check_at(id.as_u32());
            referred.extend(edges.successors(id).filter(|to| *to != id));
        }
        let mut seen = edges.no_objects();
        let mut tops = Vec::new();
        let mut waiting = Vec::new();
        for alone in [true, false] {
            for id in self.graph.ids().filter(dead).filter(|id| !alone || !referred.contains(*id)) {
                if !seen.insert(id) {
                    continue;
                }
                tops.push(id);
                waiting.push(id);
                while let Some(at) = waiting.pop() {
                    check_at(at.as_u32());
                    waiting.extend(edges.successors(at).filter(dead).filter(|to| seen.insert(*to)));
                }
            }
        }
        tops.sort_unstable();
        tops
    }

    /// Returns the exported objects, ascending.
    pub fn objects(&self) -> impl Iterator<Item = ObjectId> {
        self.graph.ids().filter(|id| {
            check_at(id.as_u32());
            self.number_of(*id).is_some()
        })
    }

    /// Returns the number of an object among the exported ones, from 0.
    pub fn number_of(&self, id: ObjectId) -> Option<u32> {
        self.numbers.get(id).copied().filter(|n| *n != LEFT_OUT)
    }

    /// Returns a root of the graph.
    pub fn root(&self, index: usize) -> Option<&RawRoot> {
        self.graph.roots.roots.get(index)
    }

    /// Returns the exported objects that an exported object refers to.
    fn successors(&self, id: ObjectId) -> impl Iterator<Item = ObjectId> {
        let own = self.number_of(id).is_some();
        self.graph.edges.successors(id).filter(move |to| own && self.number_of(*to).is_some())
    }

    /// Returns the objects that `id` dominates immediately but does not refer to directly, if the graph is reduced.
    pub fn through(&self, id: ObjectId) -> impl Iterator<Item = ObjectId> {
        let from = self.through.partition_point(|(above, _)| *above < Some(id));
        self.through.iter().skip(from).take_while(move |(above, _)| *above == Some(id)).map(|(_, to)| *to)
    }

    /// Returns the number of [`Subgraph::edges`] of an exported object.
    pub fn edge_count(&self, id: ObjectId) -> u64 {
        len64(self.held(id).count())
    }

    /// Returns the targets of the edges of an exported object, once per edge.
    pub fn held(&self, id: ObjectId) -> impl Iterator<Item = ObjectId> {
        self.successors(id).chain(self.through(id))
    }

    /// Visits the edges of an exported object, in the order of [`Subgraph::held`].
    pub fn edges(&self, id: ObjectId, names: &mut FieldNames<'_, TypeIndex>, mut visit: impl FnMut(Edge)) {
        let Some((index, kind)) = self.graph.type_index(id).and_then(|t| Some((t, self.graph.types.get(t)?))) else { return };
        let mut vias: Vec<Option<FieldPlace>> = Vec::new();
        let object = self.heap.walker().again(self.graph.address(id), kind, self.graph.size(id), Generation::Gen2);
        object.references(|offset, to| {
            // References that the graph ignores have no edge.
            if self.graph.index.id_of(to).is_some() {
                vias.push(names.at(index, kind, offset));
            }
        });
        let mut vias = vias.into_iter().map(Via::Reference);
        let alive = self.tree.is_reachable(id);
        let mut targets = self.graph.edges.successors(id).peekable();
        while let Some(to) = targets.next() {
            // In the graph, edges that are not fields follow the references of the object. The edge to the loader allocator is the last one.
            let added = if kind.is_collectible && targets.peek().is_none() { Via::Allocator } else { Via::Dependent };
            let via = vias.next().unwrap_or(added);
            if self.number_of(to).is_some() {
                visit(Edge { to, via, holds: alive || !self.tree.is_reachable(to) });
            }
        }
        self.through(id).for_each(|to| visit(Edge { to, via: Via::Through, holds: true }));
    }

    /// Returns the first note about data missing from the graph or its names.
    pub fn first_loss(&self) -> Option<String> {
        let all = Collector::new();
        all.extend(&self.notes.notes());
        self.namer.note(&all);
        all.into_notes().first_loss().map(|note| note.message.clone())
    }

    /// Returns the collector of the answer's notes.
    pub fn notes(&self) -> &Collector {
        &self.notes
    }

    /// Returns an answer with `data`, the notes of building the graph, and the notes about names.
    pub fn finish<T>(self, data: T) -> Answer<T> {
        self.namer.note(&self.notes);
        self.notes.finish(data)
    }
}
