//! Which roots hold objects, and in which order they are told.

use super::roots::{Root, RootFlags};
use super::{HeapGraph, Namer};
use crate::gc::Gc;
use crate::graph::{BitSet, reachable};
use crate::model::{RootKind, RootModel, Stacks};

impl HeapGraph {
    /// Numbers of the objects that roots hold, ascending, as `stacks` says, and of the frozen ones: these live on whoever
    /// holds them, so nothing retains them.
    pub fn starts(&self, stacks: Stacks) -> Vec<u32> {
        let and_frozen = |mut ids: Vec<u32>| {
            ids.extend(&self.frozen);
            ids.sort_unstable();
            ids.dedup();
            ids
        };
        if stacks == Stacks::All {
            return and_frozen(self.held.clone());
        }
        let ids =
            |conservative: bool| self.held_by(|r| !r.flags.has(RootFlags::WEAK) && r.flags.has(RootFlags::CONSERVATIVE) == conservative);
        let mut precise = and_frozen(ids(false));
        if stacks == Stacks::Fallback {
            let reached: BitSet = reachable(&self.edges, &precise);
            precise.extend(ids(true).into_iter().filter(|id| !reached.test(*id)));
            precise.sort_unstable();
        }
        precise
    }

    /// The roots that hold an object, for people: precise and named ones first, at most `most`.
    pub fn root_models(&self, gc: &Gc, namer: &Namer, id: u32, weak: bool, most: usize) -> Vec<RootModel> {
        let mut roots: Vec<&Root> = self.roots_of(id, weak).collect();
        // A static field says more than the handle of the array that it lies in, and any of them more than a stack word.
        let rank = |r: &&Root| (r.flags.has(RootFlags::WEAK), r.flags.has(RootFlags::CONSERVATIVE), !is_named(r.kind));
        roots.sort_by_key(rank);
        roots.truncate(most);
        roots.into_iter().map(|r| self.root_model(gc, namer, r)).collect()
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
