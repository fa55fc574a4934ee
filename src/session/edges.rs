//! References between objects: graph algorithms in terms of object ids. Only this file converts object ids to graph nodes.

use std::ops::Range;

use rayon::iter::{IntoParallelIterator, ParallelIterator};

use super::retention::Sums;
use crate::base::cancel::{check, check_at};
use crate::base::missed::Carried;
use crate::base::{Index, Packed, Store};
use crate::gc::{ObjectId, TypeIndex};
use crate::graph::{Bfs, BitSet, Closure, Components, Csr, Dominators, GroupSum, Idom, Rank, Rows, TwoWay, closure, paths_to_roots, reach};

/// A set of objects, one bit each.
#[derive(Clone, Debug)]
pub struct ObjectSet(BitSet);

impl ObjectSet {
    /// An empty set for a heap with this many objects.
    pub fn new(objects: u32) -> ObjectSet {
        ObjectSet(BitSet::new(objects))
    }

    /// Adds an object. Returns whether it was absent.
    #[inline]
    pub fn insert(&mut self, id: ObjectId) -> bool {
        self.0.set(id.as_u32())
    }

    /// Whether the object is a member.
    #[inline]
    pub fn contains(&self, id: ObjectId) -> bool {
        self.0.test(id.as_u32())
    }

    /// The members, ascending.
    pub fn iter(&self) -> impl Iterator<Item = ObjectId> {
        self.0.iter().map(ObjectId::from_u32)
    }

    /// The other objects, ascending.
    pub fn others(&self) -> impl Iterator<Item = ObjectId> {
        self.0.iter_others().map(ObjectId::from_u32)
    }

    /// The objects whose bits are set.
    pub(super) fn of_words(objects: u32, words: &[u64]) -> ObjectSet {
        ObjectSet(BitSet::of_words(objects, words))
    }

    /// The members as bits.
    pub(super) fn words(&self) -> &[u64] {
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

/// The objects by type, ascending within each.
pub(super) struct ByType(Rows);

impl ByType {
    /// Sorts the objects; those of a type beyond `types` are in none.
    pub(super) fn of(store: &Store, objects: u32, types: usize, type_of: impl Fn(ObjectId) -> Option<TypeIndex>) -> ByType {
        let placed = |node: u32| {
            check_at(node);
            (type_of(ObjectId::from_u32(node)).map_or(u32::MAX, Index::as_u32), node)
        };
        ByType(Rows::sorted(store, u32::try_from(types).unwrap_or(0), (0..objects).map(placed)))
    }

    /// The objects whose rows are these.
    pub(super) fn of_rows(rows: Rows) -> ByType {
        ByType(rows)
    }

    /// The objects of a type.
    pub(super) fn objects(&self, ty: TypeIndex) -> impl Iterator<Item = ObjectId> {
        self.0.row(ty.as_u32()).iter().copied().map(ObjectId::from_u32)
    }
}

fn nodes(ids: &[ObjectId]) -> Vec<u32> {
    ids.iter().map(|id| id.as_u32()).collect()
}

fn ids(nodes: impl IntoIterator<Item = u32>) -> Vec<ObjectId> {
    nodes.into_iter().map(ObjectId::from_u32).collect()
}

impl Edges {
    /// A graph, and the same one reversed.
    pub(super) fn with_reversed(csr: Csr, reversed: Csr) -> Edges {
        Edges(TwoWay::with_reversed(csr, reversed))
    }

    /// The same graphs, for which arrays are made in this store.
    pub(super) fn with_store(self, store: &Store) -> Edges {
        Edges(self.0.with_store(store))
    }

    /// The graph: an object's id is its node.
    pub fn csr(&self) -> &Csr {
        self.0.graph()
    }

    /// The reversed graph, made once.
    pub fn reversed(&self) -> &Csr {
        self.0.reversed()
    }

    /// Number of objects.
    pub fn objects(&self) -> u32 {
        self.csr().nodes()
    }

    /// Number of references.
    pub fn references(&self) -> u32 {
        self.csr().edges()
    }

    /// The objects an object refers to, once per reference.
    pub fn successors(&self, id: ObjectId) -> impl Iterator<Item = ObjectId> {
        self.csr().successors(id.as_u32()).iter().copied().map(ObjectId::from_u32)
    }

    /// An empty set of objects.
    pub fn no_objects(&self) -> ObjectSet {
        ObjectSet::new(self.objects())
    }

    /// All objects reachable from `starts`, including themselves.
    pub fn reachable(&self, starts: impl IntoIterator<Item = ObjectId>) -> ObjectSet {
        self.reach(starts, |_, _| true)
    }

    /// All objects reachable from `starts` along references accepted by `open`, including themselves.
    pub fn reach(&self, starts: impl IntoIterator<Item = ObjectId>, open: impl Fn(ObjectId, ObjectId) -> bool) -> ObjectSet {
        let starts = starts.into_iter().map(Index::as_u32);
        ObjectSet(reach(self.csr(), starts, |from, to| open(ObjectId::from_u32(from), ObjectId::from_u32(to))))
    }

    /// The closure of an object, including itself: count and bytes.
    pub fn closure(&self, id: ObjectId, size: impl Fn(ObjectId) -> u64) -> Closure {
        closure(self.csr(), &[id.as_u32()], |node| size(ObjectId::from_u32(node)))
    }

    /// A breadth-first search of all that the first group of `starts` reaches, then of what only the second reaches, and so
    /// on, until `meet` says false. It sees each object once, starts included. Paths are shortest ones from the first group
    /// that reaches an object; of equally long ones, from its earliest start.
    pub fn search_in_turn(&self, starts: &[Vec<ObjectId>], mut meet: impl FnMut(ObjectId) -> bool) -> Search {
        let groups: Vec<Vec<u32>> = starts.iter().map(|ids| nodes(ids)).collect();
        Search(Bfs::in_turn(self.csr(), &groups, |_, node| meet(ObjectId::from_u32(node))))
    }

    /// The `rooted` objects that reach `target` along references for which `open` says so, and shortest paths from the best of them,
    /// at most `limit`: see [`paths_to_roots`].
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

    /// Strongly connected components of the objects accepted by `include`.
    pub fn components(&self, include: impl Fn(ObjectId) -> bool) -> Components {
        Components::compute_where(self.csr(), |node| include(ObjectId::from_u32(node)))
    }

    /// The dominator tree below roots in groups, with retained sizes. Of a later group, those count that no earlier one reaches.
    pub fn dominators(&self, groups: [&[ObjectId]; 2], size: impl Fn(ObjectId) -> u64 + Sync) -> DominatorTree {
        let [first, second] = groups.map(nodes);
        let tree = Dominators::compute(self.csr(), &[&first, &second]);
        let retained = tree.retained(|node| size(ObjectId::from_u32(node)));
        DominatorTree { tree, retained, sums: Sums::default() }
    }
}

/// Rooted objects that lead to an object.
#[derive(Debug)]
pub(crate) struct PathsToRoots {
    /// Paths from rooted objects, both included.
    pub(crate) paths: Vec<Vec<ObjectId>>,
    /// Every rooted object that reaches it.
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

    /// The object before this one on a shortest path; `None` for starts and unreached objects.
    pub fn parent(&self, id: ObjectId) -> Option<ObjectId> {
        self.0.parent(id.as_u32()).map(ObjectId::from_u32)
    }

    /// A shortest path from a start to the object, both included; empty if it was not reached.
    pub fn path_to(&self, id: ObjectId) -> Vec<ObjectId> {
        ids(self.0.path_to(id.as_u32()))
    }
}

/// The dominator tree of a heap, with retained sizes.
#[derive(Debug)]
pub struct DominatorTree {
    tree: Dominators,
    /// By position.
    retained: Packed<u16>,
    sums: Sums,
}

impl DominatorTree {
    /// The tree and the retained sizes by position.
    pub(super) fn parts(&self) -> (&Dominators, &Packed<u16>) {
        (&self.tree, &self.retained)
    }

    /// The parts that it was taken [apart](DominatorTree::parts) into, with sums that are known.
    pub(super) fn of_parts(tree: Dominators, retained: Packed<u16>, sums: Sums) -> DominatorTree {
        DominatorTree { tree, retained, sums }
    }

    pub(super) fn sums(&self) -> &Sums {
        &self.sums
    }

    /// Retained size of an object in bytes; 0 if it is unreachable.
    pub fn retained(&self, id: ObjectId) -> u64 {
        self.tree.position_of(id.as_u32()).and_then(|at| self.retained.get(at as usize)).unwrap_or(0)
    }

    /// Sums over the reachable objects of each of `types` types.
    pub(super) fn sums_by_type(
        &self,
        type_of: impl Fn(ObjectId) -> Option<TypeIndex> + Sync,
        types: usize,
        size: impl Fn(ObjectId) -> u64 + Sync,
    ) -> Vec<GroupSum> {
        let group = |node: u32| type_of(ObjectId::from_u32(node)).map_or(u32::MAX, Index::as_u32);
        let size = |node: u32| size(ObjectId::from_u32(node));
        self.tree.by_group(group, u32::try_from(types).unwrap_or(u32::MAX), size, &self.retained)
    }

    /// Bytes jointly retained by all objects of each of `types` types.
    pub(crate) fn retained_by_type(&self, type_of: impl Fn(ObjectId) -> Option<TypeIndex> + Sync, types: usize) -> Vec<u64> {
        self.sums_by_type(type_of, types, |_| 0).into_iter().map(|sum| sum.retained).collect()
    }

    /// Passes what `id` dominates, itself not included, with retained sizes to a `visitor` for each piece, on all threads. In no order.
    pub(crate) fn visit_dominated<V: Send>(
        &self,
        id: ObjectId,
        visitor: impl Fn() -> V + Sync,
        visit: impl Fn(&mut V, ObjectId, u64) + Sync,
    ) -> Vec<V> {
        let below = self.tree.positions_below(id.as_u32());
        self.by_piece(below.start.saturating_add(1)..below.end, |positions| {
            let mut own = visitor();
            self.reached_at(positions).for_each(|(id, retained)| visit(&mut own, id, retained));
            own
        })
    }

    /// What `piece` makes of each piece of `positions`, in their order, on all threads.
    pub(super) fn by_piece<V: Send>(&self, positions: Range<usize>, piece: impl Fn(Range<usize>) -> V + Sync) -> Vec<V> {
        /// Objects of a piece: some milliseconds.
        const PIECE: usize = 1 << 18;
        let starts: Vec<usize> = positions.clone().step_by(PIECE).collect();
        let carried = Carried::here();
        let piece = |start: usize| {
            carried.run(|| {
                let own = piece(start..positions.end.min(start.saturating_add(PIECE)));
                check();
                own
            })
        };
        starts.into_par_iter().map(piece).collect()
    }

    /// The reachable objects with their retained sizes, what dominates before what it dominates.
    pub(crate) fn reached(&self) -> impl Iterator<Item = (ObjectId, u64)> {
        self.reached_at(self.positions())
    }

    /// The positions of all reachable objects: the virtual root has the first.
    pub(super) fn positions(&self) -> Range<usize> {
        1..self.tree.reached().len().saturating_add(1)
    }

    /// Those of [`reached`](Self::reached) at these positions.
    pub(super) fn reached_at(&self, positions: Range<usize>) -> impl Iterator<Item = (ObjectId, u64)> {
        let retained = self.retained.iter_from(positions.start);
        positions.zip(retained).filter_map(|(position, retained)| Some((ObjectId::from_u32(self.tree.node_at(position)?), retained)))
    }

    /// Whether the object is reachable from a root.
    pub fn is_reachable(&self, id: ObjectId) -> bool {
        self.tree.is_reachable(id.as_u32())
    }

    /// The immediate dominator; `None` if no object dominates it.
    pub fn dominator(&self, id: ObjectId) -> Option<ObjectId> {
        match self.tree.idom(id.as_u32()) {
            Idom::Node(above) => Some(ObjectId::from_u32(above)),
            _ => None,
        }
    }

    /// Whether every path from a root to `id` goes through `above`.
    pub fn dominates(&self, above: ObjectId, id: ObjectId) -> bool {
        self.tree.dominates(above.as_u32(), id.as_u32())
    }

    /// Number of objects dominated by the object, including itself.
    pub fn subtree(&self, id: ObjectId) -> u64 {
        self.tree.subtree(id.as_u32()).into()
    }

    /// The dominators of an object, nearest first.
    pub fn chain(&self, id: ObjectId) -> impl Iterator<Item = ObjectId> {
        self.tree.chain(id.as_u32()).map(ObjectId::from_u32)
    }

    /// The objects that `id` dominates, itself included.
    pub fn dominated(&self, id: ObjectId) -> impl Iterator<Item = ObjectId> {
        self.tree.dominated(id.as_u32()).map(ObjectId::from_u32)
    }

    /// The objects immediately dominated by `id`, or by no object for `None`, in no particular order.
    pub fn below(&self, id: Option<ObjectId>) -> impl Iterator<Item = ObjectId> {
        id.map_or_else(|| self.tree.top(), |id| self.tree.children(id.as_u32())).map(ObjectId::from_u32)
    }
}
