//! Addresses in segments of the heap: objects, free space, allocation contexts; static fields.

use std::ops::ControlFlow;

use super::finder::{Finder, arrow};
use crate::analysis::objects::list::brief;
use crate::analysis::{ObjectBrief, PlaceKind, SegmentPlace, WhereReport};
use crate::base::missed::tried;
use crate::base::{Addr, AddrRange, Collector, Missing, Silent, plural};
use crate::clr::fields::Storage;
use crate::clr::method_table::Category;
use crate::clr::statics::StaticPlace;
use crate::gc::note_walks;
use crate::model::{FieldValue, SegmentModel, StaticModel};
use crate::session::{Heap, Namer, StaticsReader};

/// Maximum size in bytes of the value of a static field.
const MAX_VALUE: u64 = 1 << 20;

/// Returns the object or free space that contains `address`. If none is found, adds notes about memory that could not be walked.
pub(in crate::analysis) fn containing(heap: &Heap, namer: &Namer, address: Addr, notes: &Collector) -> Option<ObjectBrief> {
    let (_, segment) = heap.walker().segment_of(address)?;
    let mut found = None;
    let walks = heap.walker().visit(
        &Silent,
        |_, s| s.address == segment.address,
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
    if found.is_none() {
        note_walks(heap.walker(), &walks, notes);
    }
    found
}

/// Returns the location of `address` in the heap.
pub(in crate::analysis) fn heap_place(heap: &Heap, address: Addr) -> Option<SegmentPlace> {
    heap.walker().segment_of(address).map(|(_, s)| segment_place(s, address))
}

/// Returns the location of `address` in `segment`.
pub(in crate::analysis) fn segment_place(segment: &SegmentModel, address: Addr) -> SegmentPlace {
    let part = segment.parts.iter().find(|p| p.start <= address && address < p.end);
    SegmentPlace {
        address: segment.address,
        heap: segment.heap,
        generation: part.map_or(segment.generation, |p| p.generation),
        start: segment.start,
        allocated: segment.allocated,
    }
}

impl Finder<'_> {
    pub(super) fn in_heap(&self, blank: &WhereReport) -> Option<WhereReport> {
        let address = blank.address;
        let inside = |s: &&SegmentModel| s.start <= address && address < s.reserved;
        let segment = self.heap.segment_models().iter().find(inside)?;
        let place = segment_place(segment, address);
        let report = WhereReport { segment: Some(place.clone()), ..blank.clone() };
        let home = format!("{} of heap {}, segment {}", place.generation, place.heap, place.address);
        if address >= segment.allocated {
            let what = if address < segment.committed { "committed" } else { "reserved" };
            let range = Some(AddrRange::new(segment.allocated, segment.reserved));
            let text = format!("{what} memory after the last object of {home}");
            return Some(WhereReport { kind: PlaceKind::SegmentUnused, text, range, ..report });
        }
        if let Some(object) = containing(self.heap, self.namer, address, self.notes) {
            let offset = address.since(object.address);
            // To the GC, a reference just past an array's elements belongs to the array, although the next object's header is there.
            let (word, size) = (self.heap.memory().ptr_bytes(), object.size.next_multiple_of(self.heap.memory().ptr_bytes()));
            let inside = match offset {
                None | Some(0) => String::new(),
                Some(n) if n.saturating_add(word) >= size => "in the header that follows ".into(),
                Some(n) => format!("{n:#x} bytes into "),
            };
            let free = object.free;
            let what = if free { "free space" } else { object.type_name.shown() };
            let text = format!("{inside}{what} at {} ({}), {home}", object.address, plural(object.size, "byte"));
            if offset.is_some_and(|n| n > 0)
                && self.may_hold_statics(&object)
                && let Some(field) = self.static_field(blank)
            {
                let text = format!("{}, {text}", field.text);
                return Some(WhereReport { text, offset, object: Some(object), segment: Some(place), ..field });
            }
            let kind = if free { PlaceKind::Free } else { PlaceKind::Object };
            return Some(WhereReport { kind, text, offset, object: Some(object), ..report });
        }
        let contexts = self.notes.take(self.heap.gc().contexts(self.heap.runtime().threads_if_any(self.notes)));
        let context = contexts.into_iter().find(|c| c.pointer <= address && address < c.limit);
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

    /// Whether an object may contain values of static fields. Arrays contain static references, and boxes contain static structures. Byte arrays may
    /// contain statics of collectible types and thread statics of .NET 9 and later.
    fn may_hold_statics(&self, object: &ObjectBrief) -> bool {
        let info = self.heap.walker().tables().read(object.method_table);
        !object.free && info.is_ok_and(|i| i.is_array || i.category == Category::ValueType)
    }

    /// Returns the static field or thread static that has its value at the address. The value may be in an object, or outside of the heap, such as a
    /// primitive static or an initial value (RVA static) in an image.
    pub(super) fn static_field(&self, blank: &WhereReport) -> Option<WhereReport> {
        let runtime = self.heap.runtime();
        let types = self.namer.types().ok()?;
        if let Some(why) = types.lacks() {
            self.notes.add(Missing::Statics, None, format!("{why}: static fields of most types are unknown"));
        }
        let reader = StaticsReader::bind(runtime, types, self.notes).with_threads(runtime.threads_if_any(self.notes));
        let mut found = None;
        for storage in [&[Storage::Static, Storage::Rva][..], &[Storage::ThreadStatic]] {
            let _ = reader.visit(
                |field| storage.contains(&field.storage),
                |spot| {
                    let StaticPlace::At(at) = spot.place else { return ControlFlow::Continue(()) };
                    let bytes = || match spot.field.storage {
                        Storage::Rva => MAX_VALUE,
                        _ => tried(|| reader.statics().value_bytes(at, spot.field)),
                    };
                    if blank.address.since(at).is_some_and(|offset| offset == 0 || offset < MAX_VALUE && offset < bytes()) {
                        found = self.static_report(blank, &reader.model(spot));
                    }
                    if found.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
                },
            );
            if found.is_some() {
                break;
            }
        }
        reader.note(self.notes);
        found
    }

    fn static_report(&self, blank: &WhereReport, model: &StaticModel) -> Option<WhereReport> {
        let (path, value) = at(&model.field, blank.address)?;
        let name = format!("{}{path}", model.field.declaring_type.as_ref().map_or_else(String::new, |t| format!("{t}.")));
        let of = match &model.thread {
            Some(t) => format!(" of {}", t.managed_id.map_or_else(|| "a thread".to_string(), |id| format!("thread {id}"))),
            None => String::new(),
        };
        let what = if model.thread.is_some() { "thread static" } else { "static field" };
        let target = value.object.filter(|o| !o.is_null());
        let target_type = target.and_then(|o| self.type_of(o));
        let text = format!("{what} {name}{of}{}", arrow(target, target_type.as_ref()));
        Some(WhereReport {
            kind: PlaceKind::Static,
            text,
            name: Some(name),
            target,
            target_type,
            managed_id: model.thread.as_ref().and_then(|t| t.managed_id),
            os_id: model.thread.as_ref().and_then(|t| t.os_id).and_then(|id| u32::try_from(id).ok()),
            ..blank.clone()
        })
    }
}

/// Returns the field at `address`, which may be in a structure, and its path.
fn at(value: &FieldValue, address: Addr) -> Option<(String, &FieldValue)> {
    let name = value.name.to_string();
    if value.address == Some(address) {
        // The first field of a structure has the same address as the structure. It is returned only if it is a reference.
        let first = value.fields.iter().find_map(|f| at(f, address)).filter(|(_, f)| f.object.is_some());
        return Some(first.map_or((name.clone(), value), |(path, f)| (format!("{name}.{path}"), f)));
    }
    value.fields.iter().find_map(|f| at(f, address)).map(|(path, f)| (format!("{name}.{path}"), f))
}
