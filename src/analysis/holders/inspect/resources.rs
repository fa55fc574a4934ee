//! Resources that are not released: finalizable objects, handles, registrations.

use std::collections::HashSet;

use super::sweep::Inspected;
use super::{Findings, Inspector, row};
use crate::analysis::InspectionRow;
use crate::base::hash::{Map, Set};
use crate::base::{Addr, Count, Missing, NoteKind};
use crate::clr::header::finalizer_suppressed;
use crate::clr::library::{fields_of, noted};
use crate::model::FinalizerState;

/// Fewest registrations for a source to be reported.
const REGISTRATIONS: u64 = 100;
/// Most registrations counted for a source.
const MOST: u64 = 1 << 24;

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
        let library = self.library;
        let mut rows = Vec::new();
        for source in self.swept.of(Inspected::CancellationSource) {
            let of = |object: Addr| library.method_table(object);
            let count = || {
                let f = noted(SourceFields::bind(library.types(), of(source)?), "registrations", self.notes)?;
                let list = library.reference(source, f.registrations)?;
                let f = noted(RegistrationsFields::bind(library.types(), of(list)?), "registrations", self.notes)?;
                let mut node = library.reference(list, f.callbacks);
                let (mut count, mut seen) = (0u64, HashSet::new());
                let f = noted(NodeFields::bind(library.types(), of(node?)?), "registrations", self.notes)?;
                while let Some(at) = node {
                    if !library.afford(1) {
                        break;
                    }
                    if !seen.insert(at) || count >= MOST {
                        self.notes.add(
                            NoteKind::LimitHit,
                            at,
                            "the registrations of a cancellation source have a cycle or exceed the limit",
                        );
                        break;
                    }
                    count.bump();
                    node = library.reference(at, f.next);
                }
                Some(count)
            };
            if let Some(count) = count().filter(|n| *n >= REGISTRATIONS) {
                rows.push(row(source, count, 0));
            }
        }
        Findings::plain(rows)
    }
}
