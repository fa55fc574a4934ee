//! Handles of a GC whose structures are not known.
//!
//! The first word of a handle is its object in every GC: the runtime reads it without asking. Structures of the runtime refer to some handles; around
//! each of these, others lie at the same distance from each other. What else a table has is up to the GC, and so are the kinds of handles.

use std::collections::BTreeMap;

use super::areas::Areas;
use super::reader::Kinds;
use crate::base::hash::Set;
use crate::base::{Addr, Count};
use crate::model::{HandleKind, HandleModel};

/// Words from one slot to the next at most.
const WIDEST: u64 = 16;
/// Minimum number of objects at the same distance from each other in a table.
const LEAST: u64 = 4;
/// Empty slots in a row that end a table.
const EMPTY: u64 = 64;
/// Slots by which a distance is judged.
const JUDGED: u64 = 256;

/// The kinds of `handles`.
pub(super) fn kinds(handles: &[HandleModel]) -> Vec<HandleKind> {
    HandleKind::ALL.into_iter().filter(|kind| handles.iter().any(|handle| handle.kind == *kind)).collect()
}

/// The handles in the tables of the slots that are `known`.
pub(super) fn handles(kinds: &Kinds<'_>, areas: &Areas<'_>, known: &[(Addr, HandleKind)]) -> Vec<HandleModel> {
    let mut found: BTreeMap<Addr, (Addr, HandleKind)> = BTreeMap::new();
    let mut seen = Set::default();
    let table = Table { kinds, areas };
    for (slot, _) in known {
        if seen.contains(slot) || !kinds.step(1) || table.object(*slot).is_none_or(Addr::is_null) {
            continue;
        }
        let stride = table.stride(*slot);
        let directions = if stride == 0 { &[][..] } else { &[true, false] };
        for forward in directions {
            table.each(*slot, stride, *forward, u64::MAX, |at, object| {
                let new = seen.insert(at);
                if new && !object.is_null() {
                    found.insert(at, (object, HandleKind::Unknown));
                }
                new
            });
            seen.remove(slot);
        }
        seen.insert(*slot);
    }
    for (slot, kind) in known {
        if let Some(object) = table.object(*slot).filter(|object| !object.is_null()) {
            found.insert(*slot, (object, *kind));
        }
    }
    found.into_iter().map(|(address, (object, kind))| model(address, object, kind)).collect()
}

struct Table<'a> {
    kinds: &'a Kinds<'a>,
    areas: &'a Areas<'a>,
}

impl Table<'_> {
    /// The object of the slot at `at`, null if it is empty; `None` if no slot can be there.
    fn object(&self, at: Addr) -> Option<Addr> {
        let memory = self.kinds.memory;
        let word = memory.has(at).then(|| memory.word(at).ok())??;
        (word == 0 || self.areas.is_start(Addr(word))).then_some(Addr(word))
    }

    /// Calls `visit` with the slots from `from` on, with their objects, until it returns false.
    fn each(&self, from: Addr, stride: u64, forward: bool, most: u64, mut visit: impl FnMut(Addr, Addr) -> bool) {
        let (mut at, mut empty, mut n) = (from, 0u64, 0u64);
        while n < most && self.kinds.step(1) {
            let Some(object) = self.object(at) else { return };
            empty = if object.is_null() { empty.saturating_add(1) } else { 0 };
            if empty > EMPTY || !visit(at, object) {
                return;
            }
            n.bump();
            let next = if forward { Some(at.plus(stride)) } else { at.minus(stride) };
            match next {
                Some(next) => at = next,
                None => return,
            }
        }
    }

    /// The distance at which most slots with objects follow that at `slot`; 0 without a table.
    fn stride(&self, slot: Addr) -> u64 {
        let word = self.kinds.memory.ptr_bytes();
        let (mut best, mut most) = (0, LEAST.saturating_sub(1));
        for stride in (1..=WIDEST).map(|n| word.saturating_mul(n)) {
            let mut objects = 0u64;
            for forward in [true, false] {
                self.each(slot, stride, forward, JUDGED, |_, object| {
                    objects.grow(u64::from(!object.is_null()));
                    true
                });
            }
            // A multiple of the distance has fewer slots.
            if objects > most {
                (best, most) = (stride, objects);
            }
        }
        best
    }
}

fn model(address: Addr, object: Addr, kind: HandleKind) -> HandleModel {
    HandleModel {
        address,
        kind,
        object,
        object_type: None,
        method_table: None,
        object_size: None,
        strong: kind.keeps_alive(),
        used_for: None,
        ref_count: None,
        secondary: None,
        secondary_type: None,
    }
}
