//! Rooted objects, and the roots of one object by relevance.

use rustc_hash::FxHashMap;

use super::roots::{Root, RootFlags};
use super::{HeapGraph, Namer};
use crate::gc::{Gc, ObjectId};
use crate::model::{RootKind, RootModel, Stacks};

impl HeapGraph {
    /// Sorted ids of the rooted objects, with stack values according to `stacks`, and of the frozen ones, which live
    /// unconditionally and are thus retained by nothing.
    pub fn starts(&self, stacks: Stacks) -> Vec<ObjectId> {
        let and_frozen = |mut ids: Vec<ObjectId>| {
            ids.extend(&self.frozen);
            ids.sort_unstable();
            ids.dedup();
            ids
        };
        if stacks == Stacks::All {
            return and_frozen(self.rooted.clone());
        }
        let ids =
            |conservative: bool| self.rooted_by(|r| !r.flags.has(RootFlags::WEAK) && r.flags.has(RootFlags::CONSERVATIVE) == conservative);
        let mut precise = and_frozen(ids(false));
        if stacks == Stacks::Fallback {
            let reached = self.edges.reachable(precise.iter().copied());
            precise.extend(ids(true).into_iter().filter(|id| !reached.contains(*id)));
            precise.sort_unstable();
        }
        precise
    }

    /// The roots of an object, for display: precise and named ones first, at most `most`.
    pub fn root_models(&self, gc: &Gc, namer: &Namer, id: ObjectId, weak: bool, most: usize) -> Vec<RootModel> {
        let mut roots: Vec<&Root> = self.roots_of(id, weak).collect();
        // A static field is more informative than the handle of the array that stores it, and both more than a stack word.
        let rank = |r: &&Root| (r.flags.has(RootFlags::WEAK), r.flags.has(RootFlags::CONSERVATIVE), !is_named(r.kind));
        roots.sort_by_key(rank);
        roots.truncate(most);
        roots.into_iter().map(|r| self.root_model(gc, namer, r)).collect()
    }

    /// The rooted objects, each with what says most about its roots: see [`Roots::group`](super::roots::Roots::group).
    pub fn root_groups(&self) -> FxHashMap<ObjectId, String> {
        let rank = |r: &Root| (r.flags.has(RootFlags::CONSERVATIVE), !is_named(r.kind));
        let mut best: FxHashMap<ObjectId, &Root> = FxHashMap::default();
        for root in self.roots.roots.iter().filter(|r| !r.flags.has(RootFlags::WEAK)) {
            let Some(id) = self.index.id_of(root.object) else { continue };
            let known = best.entry(id).or_insert(root);
            if rank(root) < rank(known) {
                *known = root;
            }
        }
        best.into_iter().map(|(id, root)| (id, self.roots.group(root))).collect()
    }

    fn root_model(&self, gc: &Gc, namer: &Namer, root: &Root) -> RootModel {
        let method_table = gc.method_table(root.object);
        RootModel {
            kind: root.kind,
            address: root.address,
            object: root.object,
            type_name: method_table.map(|mt| namer.name_or_address(mt)),
            method_table,
            flags: root.flags.names(),
            label: self.roots.label(root),
            thread: self.roots.thread_of(root).and_then(|t| t.managed_id),
        }
    }
}

fn is_named(kind: RootKind) -> bool {
    matches!(kind, RootKind::Static | RootKind::ThreadStatic)
}
