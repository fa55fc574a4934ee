//! `where` and `near`: what is at an address, and around it.

use std::collections::VecDeque;
use std::ops::ControlFlow;

use super::objects::brief;
use crate::base::{Addr, AddrRange, Answer, Collector, Count, Silent};
use crate::dump::ThreadStacks;
use crate::gc::SegmentIndex;
use crate::model::{NearKind, NearReport, NearRow, ObjectBrief, PlaceKind, SegmentModel, SegmentPlace, WalkModel, WhereReport};
use crate::session::{Error, Heap, Namer};

/// The object or free space that contains `address`, in its header word, fields or elements.
pub(super) fn containing(heap: &Heap, namer: &Namer, address: Addr) -> Option<ObjectBrief> {
    let (_, segment) = heap.walker().segment_of(address)?;
    let mut found = None;
    heap.walker().visit(
        &Silent,
        |s| s.address == segment.address,
        |o| {
            if o.address > address {
                return ControlFlow::Break(());
            }
            // Alignment padding belongs to the object.
            if address.since(o.address).is_some_and(|n| n < o.size.next_multiple_of(heap.memory().ptr_bytes())) {
                found = Some(brief(heap, namer, o));
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        },
    );
    found
}

/// Location of `address` in the heap.
pub(super) fn heap_place(heap: &Heap, address: Addr) -> Option<SegmentPlace> {
    heap.walker().segment_of(address).map(|(_, s)| segment_place(s, address))
}

fn segment_place(segment: &SegmentModel, address: Addr) -> SegmentPlace {
    let part = segment.parts.iter().find(|p| p.start <= address && address < p.end);
    SegmentPlace {
        address: segment.address,
        heap: segment.heap,
        generation: part.map_or(segment.generation, |p| p.generation),
        start: segment.start,
        allocated: segment.allocated,
    }
}

/// Finds what is at `address`.
///
/// # Errors
/// Never fails today; the signature leaves room.
pub fn place(heap: &Heap, address: Addr) -> Result<Answer<WhereReport>, Error> {
    let (notes, namer) = (heap.begin(), heap.namer());
    let report = Finder { heap, namer: &namer, notes: &notes }.find(address);
    namer.note(&notes);
    Ok(notes.finish(report))
}

/// Looks up an address in one list after another.
struct Finder<'h> {
    heap: &'h Heap,
    namer: &'h Namer,
    notes: &'h Collector,
}

impl Finder<'_> {
    fn find(&self, address: Addr) -> WhereReport {
        let blank = WhereReport {
            address,
            kind: PlaceKind::Unknown,
            text: "nothing that the dump knows of".into(),
            captured: self.heap.memory().has(address),
            object: None,
            offset: None,
            segment: None,
            range: None,
            name: None,
            managed_id: None,
            os_id: None,
        };
        let find = [Self::in_heap, Self::in_gc_memory, Self::method_table, Self::stack, Self::module, Self::memory];
        find.into_iter().find_map(|f| f(self, &blank)).unwrap_or(blank)
    }

    fn in_heap(&self, blank: &WhereReport) -> Option<WhereReport> {
        let address = blank.address;
        let inside = |s: &&SegmentModel| s.start <= address && address < s.reserved;
        let segment = self.heap.segments().iter().find(inside)?;
        let place = segment_place(segment, address);
        let report = WhereReport { segment: Some(place.clone()), ..blank.clone() };
        let home = format!("{} of heap {}, segment {}", place.generation, place.heap, place.address);
        if address >= segment.allocated {
            let what = if address < segment.committed { "committed" } else { "reserved" };
            let range = Some(AddrRange::new(segment.allocated, segment.reserved));
            let text = format!("{what} memory after the last object of {home}");
            return Some(WhereReport { kind: PlaceKind::SegmentUnused, text, range, ..report });
        }
        if let Some(object) = containing(self.heap, self.namer, address) {
            let offset = address.since(object.address);
            let inside = offset.filter(|n| *n > 0).map_or_else(String::new, |n| format!("{n:#x} bytes into "));
            let free = object.free;
            let what = if free { "free space" } else { &object.type_name };
            let text = format!("{inside}{what} at {} ({} bytes), {home}", object.address, object.size);
            let kind = if free { PlaceKind::Free } else { PlaceKind::Object };
            return Some(WhereReport { kind, text, offset, object: Some(object), ..report });
        }
        let context =
            self.heap.gc().contexts(self.heap.runtime().threads_if_any()).into_iter().find(|c| c.pointer <= address && address < c.limit);
        if let Some(c) = context {
            let owner = c.owner_id.map_or_else(String::new, |id| format!(" {id}"));
            let text = format!("allocation context of {}{owner}, {home}", c.owner);
            return Some(WhereReport {
                kind: PlaceKind::AllocationContext,
                text,
                range: Some(AddrRange::new(c.pointer, c.limit)),
                ..report
            });
        }
        Some(WhereReport { kind: PlaceKind::Gap, text: format!("between the objects of {home}"), ..report })
    }

    fn in_gc_memory(&self, blank: &WhereReport) -> Option<WhereReport> {
        let region = self.notes.take(self.heap.gc().regions()).into_iter().find(|r| r.range.contains(blank.address))?;
        let heap = region.heap.map_or_else(String::new, |h| format!(" of heap {h}"));
        let text = format!("memory of the GC: {}{heap}", region.list.name());
        Some(WhereReport { kind: PlaceKind::Gc, text, range: Some(region.range), name: Some(region.list.name().into()), ..blank.clone() })
    }

    fn method_table(&self, blank: &WhereReport) -> Option<WhereReport> {
        self.heap.walker().tables().is_valid(blank.address).ok().filter(|v| *v)?;
        let name = self.namer.name(blank.address)?;
        Some(WhereReport { kind: PlaceKind::MethodTable, text: format!("method table of {name}"), name: Some(name), ..blank.clone() })
    }

    fn stack(&self, blank: &WhereReport) -> Option<WhereReport> {
        let dump = self.heap.runtime().file();
        let stacks = ThreadStacks::new(dump);
        let found = dump.threads.iter().find_map(|t| Some((t, stacks.of(t).filter(|r| r.contains(blank.address))?)));
        let (thread, range) = found?;
        let managed = self.heap.runtime().threads_if_any().iter().find(|m| m.os_id == Some(u64::from(thread.id))).and_then(|m| m.id);
        let named = managed.map_or_else(|| "a native thread".to_string(), |id| format!("thread {id}"));
        let text = format!("stack of {named} (os {})", thread.id);
        Some(WhereReport { kind: PlaceKind::Stack, text, range: Some(range), managed_id: managed, os_id: Some(thread.id), ..blank.clone() })
    }

    fn module(&self, blank: &WhereReport) -> Option<WhereReport> {
        let inside = |m: &&crate::dump::Module| m.base <= blank.address && blank.address.since(m.base).is_some_and(|n| n < m.size);
        let module = self.heap.runtime().file().modules.iter().find(inside)?;
        let offset = blank.address.since(module.base);
        let text = format!("{}+{:#x}", module.file_name(), offset.unwrap_or(0));
        let range = Some(AddrRange::new(module.base, module.base.plus(module.size)));
        Some(WhereReport { kind: PlaceKind::Module, text, range, offset, name: Some(module.path.clone()), ..blank.clone() })
    }

    fn memory(&self, blank: &WhereReport) -> Option<WhereReport> {
        let region = self.heap.runtime().file().regions.iter().find(|r| r.range.contains(blank.address));
        let file = self.heap.runtime().file().files.iter().find(|f| f.range.contains(blank.address));
        let name = file.map(|f| f.path.clone());
        let of = name.as_ref().map_or_else(String::new, |n| format!(" of {n}"));
        let range = region.map(|r| r.range).or(file.map(|f| f.range));
        if blank.captured {
            let text = match &name {
                Some(name) => format!("Readable memory of {name}, outside the heap, stacks and modules"),
                None => "Readable memory outside the heap, stacks and modules".into(),
            };
            return Some(WhereReport { kind: PlaceKind::Memory, text, range, name, ..blank.clone() });
        }
        range?;
        Some(WhereReport {
            kind: PlaceKind::NotCaptured,
            text: format!("mapped memory{of}, not in the dump"),
            range,
            name,
            ..blank.clone()
        })
    }
}

/// Arguments of `near`.
#[derive(Clone, Copy, Debug)]
pub struct NearQuery {
    /// The address.
    pub address: Addr,
    /// Maximum number of objects before it.
    pub before: usize,
    /// Maximum number of objects after it.
    pub after: usize,
}

/// Lists the objects and gaps around a heap address.
///
/// # Errors
/// [`Error::Nothing`] if the address is not in the heap.
pub fn near(heap: &Heap, query: &NearQuery) -> Result<Answer<NearReport>, Error> {
    let NearQuery { address, before, after } = *query;
    let (notes, namer) = (heap.begin(), heap.namer());
    let outside = || Error::Nothing(format!("{address} is not in the heap; `gcdump where {address}` says what is there"));
    let (_, segment) = heap.walker().segment_of(address).ok_or_else(outside)?;
    let mut rows: VecDeque<NearRow> = VecDeque::new();
    let word = heap.memory().ptr_bytes();
    let mut next = segment.start;
    let gap = |from: Addr, to: Addr| NearRow {
        kind: NearKind::Gap,
        address: from,
        size: to.since(from).unwrap_or(0),
        type_name: None,
        method_table: None,
        here: from <= address && address < to,
    };
    // Whether the walk has passed the address, and how many rows were kept since.
    let (mut passed, mut behind) = (false, 0usize);
    let mut keep = |row: NearRow, rows: &mut VecDeque<NearRow>| {
        if passed {
            behind.bump();
        }
        passed |= row.here || row.address > address;
        rows.push_back(row);
        if !passed && rows.len() > before {
            rows.pop_front();
        }
        behind < after
    };
    let walks = heap.walker().visit(
        &Silent,
        |s| s.address == segment.address,
        |o| {
            if o.address > next && !keep(gap(next, o.address), &mut rows) {
                return ControlFlow::Break(());
            }
            let rounded = o.size.next_multiple_of(word);
            next = o.address.plus(rounded);
            let row = NearRow {
                kind: if o.ty.is_free { NearKind::Free } else { NearKind::Object },
                address: o.address,
                size: o.size,
                // Named below: only few rows remain.
                type_name: None,
                method_table: Some(o.ty.method_table),
                here: o.address <= address && address < next,
            };
            if keep(row, &mut rows) { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        },
    );
    let stopped = walks.iter().any(|(_, w)| !w.complete && w.stopped_at.is_none());
    if !stopped && next < segment.allocated {
        keep(gap(next, segment.allocated), &mut rows);
    }
    let contexts = heap.gc().contexts(heap.runtime().threads_if_any());
    let mut rows: Vec<NearRow> = rows.into();
    for row in &mut rows {
        let free = row.kind == NearKind::Free;
        row.type_name = row.method_table.map(|mt| if free { "Free".into() } else { namer.name_or_address(mt) });
        if row.kind == NearKind::Gap {
            let context = contexts.iter().any(|c| c.pointer == row.address);
            row.kind = if context { NearKind::AllocationContext } else { gap_kind(&walks, row.address) };
        }
    }
    namer.note(&notes);
    Ok(notes.finish(NearReport { address, segment: segment_place(segment, address), rows }))
}

fn gap_kind(walks: &[(SegmentIndex, WalkModel)], address: Addr) -> NearKind {
    let gap = walks.iter().flat_map(|(_, w)| &w.gaps).find(|g| g.range.start == address);
    gap.map_or(NearKind::Gap, |g| g.kind.into())
}
