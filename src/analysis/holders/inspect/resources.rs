//! Resources that are not released: finalizable objects, handles, registrations.

use std::cmp::Reverse;
use std::collections::HashSet;

use super::sweep::Inspected;
use super::{Findings, Inspector, row};
use crate::analysis::InspectionRow;
use crate::base::hash::{Map, Set};
use crate::base::{Addr, Count, Missing, Name, NoteKind, len64, thousands, total};
use crate::bcl::delegates::{Call, Delegates};
use crate::clr::header::finalizer_suppressed;
use crate::clr::library::{FieldAt, fields_of, noted};
use crate::model::FinalizerState;

/// Fewest registrations for a source to be reported.
const REGISTRATIONS: u64 = 100;
/// Most registrations counted for a source.
const MOST: u64 = 1 << 24;
/// Most methods of a source that are named.
const MOST_METHODS: usize = 1 << 10;
/// Steps of the budget charged for a callback, which is a delegate.
const STEPS_OF_A_CALLBACK: u64 = 4;

// Bit of `SafeHandle._state`: the handle is closed. The bits above the two lowest ones count references.
const CLOSED: u32 = 1;

fields_of! {
    /// `SafeHandle`.
    struct SafeHandleFields {
        handle: req "handle",
        state: req "_state",
        owns: req "_ownsHandle",
    }
}

fields_of! {
    /// `CancellationTokenSource`.
    struct SourceFields {
        registrations: req "_registrations",
    }
}

fields_of! {
    /// `CancellationTokenSource.Registrations`.
    struct RegistrationsFields {
        callbacks: req "Callbacks",
    }
}

fields_of! {
    /// `CancellationTokenSource.CallbackNode`.
    struct NodeFields {
        next: req "Next",
        callback: opt "Callback",
        state: opt "CallbackState",
    }
}

/// Objects of a type: their number, their bytes, and the first one.
#[derive(Clone, Copy)]
struct Group {
    count: u64,
    bytes: u64,
    first: Addr,
}

impl Inspector<'_> {
    /// Returns a row for each type of `objects`.
    fn grouped(&self, objects: impl Iterator<Item = Addr>) -> Vec<InspectionRow> {
        let mut groups: Map<Option<Addr>, Group> = Map::default();
        for object in objects {
            let size = self.heap.walker().object(object).map_or(0, |(_, size)| size);
            let group = groups.entry(self.library.method_table(object)).or_insert(Group { count: 0, bytes: 0, first: object });
            group.count.bump();
            group.bytes.grow(size);
            group.first = group.first.min(object);
        }
        groups.into_values().map(|g| row(g.first, g.count, g.bytes)).collect()
    }

    pub(super) fn undisposed(&self) -> Findings<'_> {
        let Some(headers) = self.heap.runtime().headers(self.notes) else {
            self.notes.add(Missing::Layouts, None, "undisposed objects cannot be found: the runtime does not describe object headers");
            return Findings::plain(Vec::new());
        };
        let queues = self.notes.take(self.heap.gc().finalizer_queues());
        let registered = queues.into_iter().flat_map(|q| q.entries).filter(|e| e.state == FinalizerState::Registered).map(|e| e.object);
        let word = |object: Addr| self.heap.memory().u32(object.minus(headers.before())?).ok();
        // A program may register an object several times.
        let mut seen: Set<Addr> = Set::default();
        let pending = registered.filter(|object| seen.insert(*object) && word(*object).is_some_and(|word| !finalizer_suppressed(word)));
        Findings::plain(self.grouped(pending))
    }

    pub(super) fn open_handles(&self) -> Findings<'_> {
        let library = self.library;
        let mut bound: Map<Addr, Option<SafeHandleFields>> = Map::default();
        let mut open = |object: &Addr| {
            let mt = library.method_table(*object)?;
            let f = (*bound.entry(mt).or_insert_with(|| noted(SafeHandleFields::bind(library.types(), mt), "open handles", self.notes)))?;
            let (state, owns, handle) = (library.u32(*object, f.state)?, library.u8(*object, f.owns)?, library.word(*object, f.handle)?);
            // An invalid handle is 0 or -1, depending on the kind of handle.
            Some(state & CLOSED == 0 && owns != 0 && handle != 0 && handle != u64::MAX && handle != u64::from(u32::MAX))
        };
        let list: Vec<Addr> = self.swept.of(Inspected::SafeHandle).filter(|o| open(o) == Some(true)).collect();
        Findings::plain(self.grouped(list.into_iter()))
    }

    pub(super) fn registrations(&self) -> Findings<'_> {
        let mut rows = Vec::new();
        for source in self.swept.of(Inspected::CancellationSource) {
            let (mut count, mut bytes) = (0u64, 0u64);
            let mut sizes: Map<Option<Addr>, u64> = Map::default();
            self.each_registration(source, 1, |node, _| {
                let size = || self.heap.walker().object(node).map_or(0, |(_, size)| size);
                count.bump();
                bytes.grow(*sizes.entry(self.library.method_table(node)).or_insert_with(size));
            });
            if count >= REGISTRATIONS {
                rows.push(row(source, count, bytes));
            }
        }
        if rows.is_empty() {
            return Findings::plain(rows);
        }
        let delegates = Delegates::bind(self.heap.runtime(), self.library.types(), self.notes);
        Findings::plain(rows).with_detail(move |row| {
            let (count, callback) = self.most_registered(row.object?, &delegates)?;
            delegates.note(self.notes);
            Some(format!("{} of them for {callback}", thousands(count)))
        })
    }

    /// Passes the registrations of a cancellation source to `each`. Each of them is charged `steps` steps.
    fn each_registration(&self, source: Addr, steps: u64, mut each: impl FnMut(Addr, &NodeFields)) {
        let library = self.library;
        let of = |object: Addr| library.method_table(object);
        let first = || {
            let f = noted(SourceFields::bind(library.types(), of(source)?), "registrations", self.notes)?;
            let list = library.reference(source, f.registrations)?;
            let f = noted(RegistrationsFields::bind(library.types(), of(list)?), "registrations", self.notes)?;
            let node = library.reference(list, f.callbacks)?;
            Some((node, noted(NodeFields::bind(library.types(), of(node)?), "registrations", self.notes)?))
        };
        let Some((node, fields)) = first() else { return };
        let (mut node, mut seen) = (Some(node), HashSet::new());
        while let Some(at) = node.filter(|_| library.afford(steps)) {
            if len64(seen.len()) >= MOST || !seen.insert(at) {
                let what = "the registrations of a cancellation source have a cycle or exceed the limit";
                self.notes.add(NoteKind::LimitHit, at, what);
                break;
            }
            each(at, &fields);
            node = library.reference(at, fields.next);
        }
    }

    /// The method that is registered most often with a cancellation source, and the number of its registrations. `None` if the dump does not show which one
    /// that is.
    fn most_registered(&self, source: Addr, delegates: &Delegates) -> Option<(u64, Name)> {
        // Code may be entered at several addresses.
        let mut entries: Map<Addr, (u64, Call)> = Map::default();
        let mut unknown = 0u64;
        self.each_registration(source, STEPS_OF_A_CALLBACK, |node, fields| {
            let field = |at: Option<FieldAt>| self.library.reference(node, at?);
            // `Register(Action)` stores a method of the library as the callback and the action as its state.
            let action = field(fields.state).filter(|state| delegates.is(*state)).or_else(|| field(fields.callback));
            match action.and_then(|action| delegates.call(action)) {
                Some(call) => entries.entry(call.entry).or_insert((0, call)).0.bump(),
                None => unknown.bump(),
            }
        });
        let mut entries: Vec<(u64, Call)> = entries.into_values().collect();
        entries.sort_by_key(|(count, call)| (Reverse(*count), call.entry));
        let rest = entries.split_off(entries.len().min(MOST_METHODS));
        unknown.grow(total(rest.iter().map(|(count, _)| *count)));
        most_common(entries.iter().map(|(count, call)| (*count, delegates.called(call))), unknown)
    }
}

/// The most common of the names, and its number. `None` if another one may be more common: one among `unknown` names, or among those that are not known.
fn most_common(counted: impl Iterator<Item = (u64, Option<Name>)>, mut unknown: u64) -> Option<(u64, Name)> {
    let mut names: Map<Name, u64> = Map::default();
    for (count, name) in counted {
        match name {
            Some(name) => names.entry(name).or_default().grow(count),
            None => unknown.grow(count),
        }
    }
    let (name, count) = names.into_iter().max_by(|a, b| (a.1, &b.0).cmp(&(b.1, &a.0)))?;
    (count > unknown).then_some((count, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_common_method_is_named_if_no_other_may_be_more_common() {
        let most = |counted: &[(u64, Option<&str>)], unknown| {
            most_common(counted.iter().map(|(count, name)| (*count, name.map(Name::from))), unknown).map(|(n, name)| (n, name.to_string()))
        };
        // One method is entered at two addresses.
        let counted = [(5, Some("Lab.Other")), (3, Some("Lab.Stop")), (3, Some("Lab.Stop"))];
        assert_eq!(most(&counted, 0), Some((6, "Lab.Stop".into())));
        assert_eq!((most(&counted, 6), most(&[(2, Some("Lab.Stop")), (2, None)], 0), most(&[], 0)), (None, None, None));
    }
}
