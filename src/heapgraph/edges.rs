//! References between objects, and graph algorithms in terms of object ids. An object's id is its node number in the graph.

use crate::base::cancel::check_at;
use crate::base::{Index, Store};
use crate::gc::{ObjectId, TypeIndex};
use crate::graph::{Bfs, BitSet, Closure, Components, Csr, Rank, Rows, TwoWay, closure, paths_to_roots, reach};

/// A set of objects, one bit each.
#[derive(Clone, Debug)]
pub struct ObjectSet(BitSet);

impl ObjectSet {
    /// Creates an empty set for a heap with this many objects.
    pub fn new(objects: u32) -> ObjectSet {
        ObjectSet(BitSet::new(objects))
    }

    /// Adds an object. Returns whether it was not a member before.
    #[inline]
    pub fn insert(&mut self, id: ObjectId) -> bool {
        self.0.set(id.as_u32())
    }

    /// Whether the object is a member.
    #[inline]
    pub fn contains(&self, id: ObjectId) -> bool {
        self.0.test(id.as_u32())
    }

    /// Returns the members, ascending.
    pub fn iter(&self) -> impl Iterator<Item = ObjectId> {
        self.0.iter().map(ObjectId::from_u32)
    }

    /// Returns the objects that are not members, ascending.
    pub fn others(&self) -> impl Iterator<Item = ObjectId> {
        self.0.iter_others().map(ObjectId::from_u32)
    }

    /// Creates the set of the objects whose bits are set.
    pub(crate) fn of_words(objects: u32, words: &[u64]) -> ObjectSet {
        ObjectSet(BitSet::of_words(objects, words))
    }

    /// Returns the set as bits, one for each object.
    pub(crate) fn words(&self) -> &[u64] {
        self.0.words()
    }
}

impl Extend<ObjectId> for ObjectSet {
    fn extend<S: IntoIterator<Item = ObjectId>>(&mut self, ids: S) {
        ids.into_iter().for_each(|id| {
            self.insert(id);
        });
    }
}

/// References between the objects of a heap.
#[derive(Debug)]
pub struct Edges(TwoWay);

impl From<Csr> for Edges {
    fn from(csr: Csr) -> Edges {
        Edges(csr.into())
    }
}

/// Objects by type, ascending within each type.
pub(crate) struct ByType(Rows);

impl ByType {
    /// Groups the objects by type. Objects without a type, or with a type index not below `types`, are in no group.
    pub(crate) fn of(store: &Store, objects: u32, types: usize, type_of: impl Fn(ObjectId) -> Option<TypeIndex>) -> ByType {
        let placed = |node: u32| {
            check_at(node);
            (type_of(ObjectId::from_u32(node)).map_or(u32::MAX, Index::as_u32), node)
        };
        ByType(Rows::sorted(store, u32::try_from(types).unwrap_or(0), (0..objects).map(placed)))
    }

    /// Creates groups from their rows.
    pub(crate) fn of_rows(rows: Rows) -> ByType {
        ByType(rows)
    }

    /// Returns the objects of a type.
    pub(crate) fn objects(&self, ty: TypeIndex) -> impl Iterator<Item = ObjectId> {
        self.0.row(ty.as_u32()).iter().copied().map(ObjectId::from_u32)
    }
}

pub(super) fn nodes(ids: &[ObjectId]) -> Vec<u32> {
    ids.iter().map(|id| id.as_u32()).collect()
}

fn ids(nodes: impl IntoIterator<Item = u32>) -> Vec<ObjectId> {
    nodes.into_iter().map(ObjectId::from_u32).collect()
}

impl Edges {
    /// Creates edges from a graph and its reverse.
    pub(crate) fn with_reversed(csr: Csr, reversed: Csr) -> Edges {
        Edges(TwoWay::with_reversed(csr, reversed))
    }

    /// Returns these edges. Arrays that are created from now on are allocated in `store`.
    pub(crate) fn with_store(self, store: &Store) -> Edges {
        Edges(self.0.with_store(store))
    }

    /// Returns the graph, in which the node of an object is its id.
    pub fn csr(&self) -> &Csr {
        self.0.graph()
    }

    /// Returns the reversed graph, which is computed once.
    pub fn reversed(&self) -> &Csr {
        self.0.reversed()
    }

    /// Returns the number of objects.
    pub fn objects(&self) -> u32 {
        self.csr().nodes()
    }

    /// Returns the number of references.
    pub fn references(&self) -> u32 {
        self.csr().edges()
    }

    /// Returns the objects an object refers to, once per reference.
    pub fn successors(&self, id: ObjectId) -> impl Iterator<Item = ObjectId> {
        self.csr().successors(id.as_u32()).iter().copied().map(ObjectId::from_u32)
    }

    /// Returns the objects that refer to an object, once per reference.
    pub fn predecessors(&self, id: ObjectId) -> impl Iterator<Item = ObjectId> {
        self.reversed().successors(id.as_u32()).iter().copied().map(ObjectId::from_u32)
    }

    /// Returns an empty set of objects.
    pub fn no_objects(&self) -> ObjectSet {
        ObjectSet::new(self.objects())
    }

    /// Returns all objects reachable from `starts`, including the starts.
    pub fn reachable(&self, starts: impl IntoIterator<Item = ObjectId>) -> ObjectSet {
        self.reach(starts, |_, _| true)
    }

    /// Returns all objects reachable from `starts` along references that `open` accepts, including the starts.
    pub fn reach(&self, starts: impl IntoIterator<Item = ObjectId>, open: impl Fn(ObjectId, ObjectId) -> bool) -> ObjectSet {
        let starts = starts.into_iter().map(Index::as_u32);
        ObjectSet(reach(self.csr(), starts, |from, to| open(ObjectId::from_u32(from), ObjectId::from_u32(to))))
    }

    /// Returns number and bytes of all objects reachable from an object, including itself.
    pub fn closure(&self, id: ObjectId, size: impl Fn(ObjectId) -> u64) -> Closure {
        closure(self.csr(), &[id.as_u32()], |node| size(ObjectId::from_u32(node)))
    }

    /// Searches breadth-first all objects reachable from the first group of `starts`, then those that only the second group reaches, and so on, until
    /// `meet` returns false. Each object is visited once, including the starts. The path to an object is a shortest path from the first group that
    /// reaches the object; of equally long paths, the one from the earliest start of the group.
    pub fn search_in_turn(&self, starts: &[Vec<ObjectId>], mut meet: impl FnMut(ObjectId) -> bool) -> Search {
        let groups: Vec<Vec<u32>> = starts.iter().map(|ids| nodes(ids)).collect();
        Search(Bfs::in_turn(self.csr(), &groups, |_, node| meet(ObjectId::from_u32(node))))
    }

    /// Returns the `rooted` objects that reach `target` along references that `open` accepts, and at most `limit` shortest paths from the objects
    /// with the best ranks: see [`paths_to_roots`].
    pub(crate) fn paths_to_roots(
        &self,
        target: ObjectId,
        (rooted, rank): (&[ObjectId], impl Fn(ObjectId) -> Option<Rank>),
        open: impl Fn(ObjectId, ObjectId) -> bool,
        limit: usize,
    ) -> PathsToRoots {
        let rank = |node| rank(ObjectId::from_u32(node));
        let open = |from, to| open(ObjectId::from_u32(from), ObjectId::from_u32(to));
        let found = paths_to_roots(&self.0, target.as_u32(), (&nodes(rooted), rank), open, limit);
        PathsToRoots { paths: found.paths.into_iter().map(ids).collect(), rooted: ids(found.roots) }
    }

    /// Computes the strongly connected components of the objects accepted by `include`.
    pub fn components(&self, include: impl Fn(ObjectId) -> bool) -> Components {
        Components::compute_where(self.csr(), |node| include(ObjectId::from_u32(node)))
    }
}

/// Rooted objects that reach an object.
#[derive(Debug)]
pub(crate) struct PathsToRoots {
    /// Paths from rooted objects, both included.
    pub(crate) paths: Vec<Vec<ObjectId>>,
    /// All rooted objects that reach the object.
    pub(crate) rooted: Vec<ObjectId>,
}

/// Result of a breadth-first search.
#[derive(Debug)]
pub struct Search(Bfs);

impl Search {
    /// Whether the search reached the object.
    pub fn reached(&self, id: ObjectId) -> bool {
        self.0.reached(id.as_u32())
    }

    /// Returns the object before this one on a shortest path; `None` for starts and unreached objects.
    pub fn parent(&self, id: ObjectId) -> Option<ObjectId> {
        self.0.parent(id.as_u32()).map(ObjectId::from_u32)
    }

    /// Returns a shortest path from a start to the object, both included; empty if the object was not reached.
    pub fn path_to(&self, id: ObjectId) -> Vec<ObjectId> {
        ids(self.0.path_to(id.as_u32()))
    }
}
