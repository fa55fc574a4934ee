//! The rooted objects, and the roots of an object in order of relevance. `RawRoot::counts` decides which roots a [`Stacks`] setting selects.

use rustc_hash::{FxHashMap, FxHashSet};

use super::edges::ObjectSet;
use super::graph::HeapGraph;
use super::roots::{Origin, RawRoot, RootFlags};
use crate::base::{Addr, Count, Notes};
use crate::gc::ObjectId;
use crate::graph::Rank;
use crate::model::{RootCoverageModel, RootKind, Stacks};

/// Classes of roots, best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Class {
    /// The root certainly keeps its object alive, until the program changes it.
    Exact,
    /// The root is a reference in a frame or register. It certainly keeps its object alive, but at most until the method returns.
    Frame,
    /// The root may keep its object alive: a word of a stack or register that may be stale, or a handle of unknown strength.
    Conservative,
    /// The root does not keep its object alive.
    Weak,
}

impl Class {
    /// All classes, in order.
    const ALL: [Class; 4] = [Class::Exact, Class::Frame, Class::Conservative, Class::Weak];
}

impl RawRoot {
    /// Whether the root keeps its object alive, or may do so, if stack values are treated according to `stacks`.
    pub fn counts(&self, stacks: Stacks) -> bool {
        let scanned = self.flags.has(RootFlags::SCANNED);
        match stacks {
            _ if self.class() == Class::Weak => false,
            _ if !self.kind.is_of_stacks() => true,
            Stacks::Precise => !scanned,
            // A scan cannot find the loader allocator of running code, because no stack word points to it.
            Stacks::Conservative => scanned || matches!(self.origin, Origin::Code(_)),
            Stacks::None => false,
        }
    }

    fn class(&self) -> Class {
        if self.flags.has(RootFlags::WEAK) {
            Class::Weak
        } else if self.flags.has(RootFlags::CONSERVATIVE) || self.flags.has(RootFlags::REF_COUNTED) {
            Class::Conservative
        } else if self.kind.is_of_stacks() {
            Class::Frame
        } else {
            Class::Exact
        }
    }

    /// Returns the class, and the order within the class. Static fields come first, because a static field is more informative than the handle of
    /// the array that contains the field.
    fn rank(&self) -> Rank {
        let order = match self.kind {
            RootKind::Static => 0,
            RootKind::ThreadStatic => 1,
            kind => RootKind::ALL.iter().zip(2u8..).find(|(k, _)| **k == kind).map_or(u8::MAX, |(_, n)| n),
        };
        (self.class() as u8, order)
    }
}

/// Summary of the roots of an object.
struct Held {
    /// Rank of the best root: the lowest rank of all roots.
    rank: Rank,
    /// Number of roots.
    count: u64,
}

/// The rooted objects.
pub(crate) struct Holders {
    held: FxHashMap<ObjectId, Held>,
    /// For each object, the addresses of the static fields that refer to it, ascending, without duplicates.
    statics: FxHashMap<ObjectId, Vec<Addr>>,
    /// For each static field in a heap segment, the last object that starts at or before the field's address. The field is usually inside this
    /// object; [`Holders::are_statics`] checks whether it is.
    containers: FxHashSet<ObjectId>,
}

impl Holders {
    /// Returns the rooted objects, ascending.
    pub(crate) fn ids(&self) -> Vec<ObjectId> {
        let mut ids: Vec<ObjectId> = self.held.keys().copied().collect();
        ids.sort_unstable();
        ids
    }

    /// Returns the rank of an object's best root; `None` for an object without roots.
    pub(crate) fn rank(&self, id: ObjectId) -> Option<Rank> {
        self.held.get(&id).map(|held| held.rank)
    }

    /// Returns the number of roots of an object.
    pub(crate) fn count(&self, id: ObjectId) -> u64 {
        self.held.get(&id).map_or(0, |held| held.count)
    }

    /// Whether all references from `from` to `to` are static fields. The runtime stores static fields in arrays and boxes on the heap, and keeps
    /// these containers alive by handles. A path then begins at the static field, not at the handle of the container.
    pub(crate) fn are_statics(&self, graph: &HeapGraph, from: ObjectId, to: ObjectId) -> bool {
        if !self.containers.contains(&from) {
            return false;
        }
        let Some(places) = self.statics.get(&to) else { return false };
        let start = graph.address(from);
        let end = start.plus(graph.size(from));
        let inside = places.iter().filter(|at| start <= **at && **at < end).count();
        inside > 0 && graph.edges.successors(from).filter(|id| *id == to).count() <= inside
    }

    /// Returns the rooted objects by the class of their best root, best class first; within a class by rank, then by address.
    pub(crate) fn groups(&self) -> [Vec<ObjectId>; Class::ALL.len()] {
        let mut sorted: Vec<(Rank, ObjectId)> = self.held.iter().map(|(id, held)| (held.rank, *id)).collect();
        sorted.sort_unstable();
        Class::ALL.map(|class| sorted.iter().filter(|((c, _), _)| *c == class as u8).map(|(_, id)| *id).collect())
    }
}

impl HeapGraph {
    /// Returns the live objects: those reached from roots, and frozen ones.
    pub fn live(&self, stacks: Stacks) -> ObjectSet {
        self.edges.reachable(self.rooted(stacks).into_iter().chain(self.frozen.iter().copied()))
    }

    /// Returns the rooted objects, ascending, without duplicates; weak roots are excluded.
    pub fn rooted(&self, stacks: Stacks) -> Vec<ObjectId> {
        self.rooted_by(|r| r.counts(stacks))
    }

    /// Returns the starts of dominance in two groups: first the objects of lasting roots and the frozen objects, then the objects of all roots.
    /// A start of the second group is to be ignored if the first group reaches it. Frozen objects are starts because they are never freed, so that
    /// no other object retains them.
    pub(crate) fn start_groups(&self, stacks: Stacks) -> [Vec<ObjectId>; 2] {
        let mut lasting = self.rooted(Stacks::None);
        lasting.extend(&self.frozen);
        [lasting, if stacks == Stacks::None { Vec::new() } else { self.rooted(stacks) }]
    }

    /// Returns the starts of dominance, ascending. Objects of stack roots that the lasting roots reach as well are left out.
    pub fn starts(&self, stacks: Stacks) -> Vec<ObjectId> {
        let [mut starts, on_stacks] = self.start_groups(stacks);
        if !on_stacks.is_empty() {
            let reached = self.edges.reachable(starts.iter().copied());
            starts.extend(on_stacks.into_iter().filter(|id| !reached.contains(*id)));
        }
        starts.sort_unstable();
        starts.dedup();
        starts
    }

    /// Returns the rooted objects with the ranks of their roots. With `weak`, weak handles are included.
    pub(crate) fn holders(&self, stacks: Stacks, weak: bool) -> Holders {
        let mut holders = Holders { held: FxHashMap::default(), statics: FxHashMap::default(), containers: FxHashSet::default() };
        for root in self.roots.roots.iter().filter(|r| r.counts(stacks) || weak && r.class() == Class::Weak) {
            let Some(id) = self.index.id_of(root.object) else { continue };
            let rank = root.rank();
            let held = holders.held.entry(id).or_insert(Held { rank, count: 0 });
            held.rank = held.rank.min(rank);
            held.count.bump();
            if let (RootKind::Static | RootKind::ThreadStatic, Some(at)) = (root.kind, root.address) {
                holders.statics.entry(id).or_default().push(at);
                holders.containers.extend(self.index.before(at).map(|(id, _)| id));
            }
        }
        for places in holders.statics.values_mut() {
            // A static field may have two names, so its address may occur twice.
            places.sort_unstable();
            places.dedup();
        }
        holders
    }

    /// Returns how completely the dump shows each kind of root. Kinds excluded by `stacks` are unavailable.
    pub fn coverage(&self, stacks: Stacks) -> Vec<RootCoverageModel> {
        self.roots.coverage(stacks)
    }

    /// Returns the notes about roots on stacks; `None` if `stacks` excludes them.
    pub(crate) fn root_notes(&self, stacks: Stacks) -> Option<&Notes> {
        self.roots.stack_notes(stacks)
    }

    /// Returns at most `most` roots of an object, best rank first.
    pub(crate) fn best_roots_of(&self, id: ObjectId, (stacks, weak): (Stacks, bool), most: usize) -> Vec<&RawRoot> {
        let mut roots: Vec<&RawRoot> = self.roots_of(id, weak).filter(|r| r.counts(stacks) || r.class() == Class::Weak).collect();
        roots.sort_by_key(|r| r.rank());
        roots.truncate(most);
        roots
    }

    /// Returns a function from an object to the label of its best root. Faster for many objects than [`HeapGraph::best_roots_of`], which iterates
    /// over all roots for each object.
    pub(crate) fn root_labels(&self, (stacks, weak): (Stacks, bool)) -> impl Fn(ObjectId) -> Option<String> {
        let best = self.best_roots(|r| r.counts(stacks) || weak && r.class() == Class::Weak);
        move |id| Some(self.roots.label(best.get(&id)?))
    }

    /// Returns the rooted objects, each with the most informative description of its roots: see
    /// [`Roots::group`](super::Roots::group).
    pub fn root_groups(&self) -> FxHashMap<ObjectId, String> {
        let best = self.best_roots(|r| r.counts(Stacks::default()));
        best.into_iter().map(|(id, root)| (id, self.roots.group(root))).collect()
    }

    /// Like [`HeapGraph::root_groups`], with the descriptions of [`Roots::group_in_snapshots`](super::Roots::group_in_snapshots). The order of the
    /// roots does not matter, because it differs between a dump and a snapshot.
    pub fn root_groups_in_snapshots(&self) -> FxHashMap<ObjectId, String> {
        let mut groups: FxHashMap<ObjectId, String> = FxHashMap::default();
        for root in self.roots.roots.iter().filter(|r| r.counts(Stacks::default())) {
            let Some(id) = self.index.id_of(root.object) else { continue };
            let group = self.roots.group_in_snapshots(root);
            let known = groups.entry(id).or_insert_with(|| group.clone());
            if group < *known {
                *known = group;
            }
        }
        groups
    }

    /// Returns the best root of each object among the roots for which `counts` is true. Of equally good roots, the first is used.
    fn best_roots(&self, counts: impl Fn(&RawRoot) -> bool) -> FxHashMap<ObjectId, &RawRoot> {
        let mut best: FxHashMap<ObjectId, &RawRoot> = FxHashMap::default();
        for root in self.roots.roots.iter().filter(|r| counts(r)) {
            let Some(id) = self.index.id_of(root.object) else { continue };
            let known = best.entry(id).or_insert(root);
            if root.rank() < known.rank() {
                *known = root;
            }
        }
        best
    }
}
