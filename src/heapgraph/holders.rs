//! Rooted objects, and the roots of one object by relevance. The one place that says what [`Stacks`] means.

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
    /// Keeps its object alive for certain.
    Exact,
    /// A word of a stack or register, maybe a stale one; a handle of which it is unknown whether it keeps its object alive.
    Conservative,
    /// Keeps nothing alive.
    Weak,
}

impl Class {
    /// Every class, in order.
    const ALL: [Class; 3] = [Class::Exact, Class::Conservative, Class::Weak];
}

impl RawRoot {
    /// Whether it keeps its object alive.
    pub fn counts(&self, stacks: Stacks) -> bool {
        let scanned = self.flags.has(RootFlags::SCANNED);
        match stacks {
            _ if self.class() == Class::Weak => false,
            _ if !self.kind.is_of_stacks() => true,
            Stacks::Precise => !scanned,
            // No word of a stack points to it.
            Stacks::Conservative => scanned || matches!(self.origin, Origin::Code(_)),
            Stacks::None => false,
        }
    }

    fn class(&self) -> Class {
        if self.flags.has(RootFlags::WEAK) {
            Class::Weak
        } else if self.flags.has(RootFlags::CONSERVATIVE) || self.flags.has(RootFlags::REF_COUNTED) {
            Class::Conservative
        } else {
            Class::Exact
        }
    }

    /// Class, and order in the class: a static field says more than the handle of the array that it lies in.
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
    /// The rank of the best one.
    rank: Rank,
    /// How many there are.
    count: u64,
}

/// The rooted objects.
pub(crate) struct Holders {
    held: FxHashMap<ObjectId, Held>,
    /// Where static fields are that refer to an object, ascending, each place once.
    statics: FxHashMap<ObjectId, Vec<Addr>>,
    /// The objects that static fields lie in.
    containers: FxHashSet<ObjectId>,
}

impl Holders {
    /// The rooted objects, ascending.
    pub(crate) fn ids(&self) -> Vec<ObjectId> {
        let mut ids: Vec<ObjectId> = self.held.keys().copied().collect();
        ids.sort_unstable();
        ids
    }

    /// The rank of an object's best root; `None` for one without roots.
    pub(crate) fn rank(&self, id: ObjectId) -> Option<Rank> {
        self.held.get(&id).map(|held| held.rank)
    }

    /// Number of roots of an object.
    pub(crate) fn count(&self, id: ObjectId) -> u64 {
        self.held.get(&id).map_or(0, |held| held.count)
    }

    /// Whether all references from one object to another are static fields: these lie in arrays and boxes of the heap, which the runtime
    /// holds by a handle. The field is the root then, and the handle is not another one.
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

    /// The objects by class of their best root, best class first; in a class by rank, then by address.
    pub(crate) fn groups(&self) -> [Vec<ObjectId>; Class::ALL.len()] {
        let mut sorted: Vec<(Rank, ObjectId)> = self.held.iter().map(|(id, held)| (held.rank, *id)).collect();
        sorted.sort_unstable();
        Class::ALL.map(|class| sorted.iter().filter(|((c, _), _)| *c == class as u8).map(|(_, id)| *id).collect())
    }
}

impl HeapGraph {
    /// The objects that something keeps alive: reached from roots, or frozen.
    pub fn live(&self, stacks: Stacks) -> ObjectSet {
        self.edges.reachable(self.rooted(stacks).into_iter().chain(self.frozen.iter().copied()))
    }

    /// The rooted objects, ascending, each once; weak roots left out.
    pub fn rooted(&self, stacks: Stacks) -> Vec<ObjectId> {
        self.rooted_by(|r| r.counts(stacks))
    }

    /// Where dominance starts: the objects of roots that last; then those of stacks, which count where nothing else holds them. Frozen
    /// objects live whoever holds them, so nothing retains them: they are starts as well.
    pub(crate) fn start_groups(&self, stacks: Stacks) -> [Vec<ObjectId>; 2] {
        let mut lasting = self.rooted(Stacks::None);
        lasting.extend(&self.frozen);
        [lasting, if stacks == Stacks::None { Vec::new() } else { self.rooted(stacks) }]
    }

    /// Where dominance starts, ascending.
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

    /// The rooted objects with the ranks of their roots; with `weak`, those of weak handles too.
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
            // One place may be known by two names.
            places.sort_unstable();
            places.dedup();
        }
        holders
    }

    /// How completely the dump shows each kind of root. Kinds that `stacks` leaves out are unavailable.
    pub fn coverage(&self, stacks: Stacks) -> Vec<RootCoverageModel> {
        self.roots.coverage(stacks)
    }

    /// What could not be read of the roots that only some answers use: stacks, where these count.
    pub(crate) fn root_notes(&self, stacks: Stacks) -> Option<&Notes> {
        self.roots.stack_notes(stacks)
    }

    /// The roots of an object, at most `most`: exact and named ones first.
    pub(crate) fn best_roots_of(&self, id: ObjectId, (stacks, weak): (Stacks, bool), most: usize) -> Vec<&RawRoot> {
        let mut roots: Vec<&RawRoot> = self.roots_of(id, weak).filter(|r| r.counts(stacks) || r.class() == Class::Weak).collect();
        roots.sort_by_key(|r| r.rank());
        roots.truncate(most);
        roots
    }

    /// The label of the first of the roots that [`HeapGraph::best_roots_of`] lists of an object: for many objects, since it goes over all roots
    /// once.
    pub(crate) fn root_labels(&self, (stacks, weak): (Stacks, bool)) -> impl Fn(ObjectId) -> Option<String> {
        let best = self.best_roots(|r| r.counts(stacks) || weak && r.class() == Class::Weak);
        move |id| Some(self.roots.label(best.get(&id)?))
    }

    /// The rooted objects, each with what says most about its roots: see [`Roots::group`](super::Roots::group).
    pub fn root_groups(&self) -> FxHashMap<ObjectId, String> {
        let best = self.best_roots(|r| r.counts(Stacks::default()));
        best.into_iter().map(|(id, root)| (id, self.roots.group(root))).collect()
    }

    /// The best root of each object among those that count; the first of equals.
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
