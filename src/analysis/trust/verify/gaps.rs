//! Determines which object is corrupt at each gap of the heap walk.
//!
//! A walk advances by object size. It finds no object at an address if the object there has lost its method table, or if the previous object has a
//! wrong size. Types, references into the gap and the surrounding memory show which of the two is the case.

use std::collections::BTreeMap;

use super::check::{Before, Folded, Hits, Tools};
use super::heap_map::certain;
use super::sink::{Detail, Found, Sink};
use crate::analysis::FindingId;
use crate::base::hash::Map;
use crate::base::missed::tried;
use crate::base::{Addr, AddrRange, Collector, Count, Missing};
use crate::gc::{SegmentIndex, Walker};
use crate::model::{GapKind, Generation, SegmentModel, WalkGap};

/// Maximum number of words, in total, that are searched for objects inside other objects.
const SEARCH: u64 = 1 << 23;

enum Verdict {
    /// An object was being allocated here, which is not corruption.
    Fine,
    /// The dump does not have the required data.
    Undecidable,
    /// The object at this address has a wrong size, because its length is wrong or its method table belongs to another type.
    Size(Addr),
    /// The object at the start of the gap has no valid method table. If no reference points there, the previous object, whose address is given, may
    /// have a wrong length instead.
    Table(Option<Addr>),
}

/// Classifies every gap, and reports each object with a wrong size once.
pub(super) fn judge(
    tools: &Tools<'_>,
    before: &Map<Addr, Before>,
    mut doubtful: BTreeMap<Addr, Vec<Found>>,
    folded: &mut Folded,
    sink: &mut Sink,
    notes: &Collector,
) {
    let mut left = SEARCH;
    let heap = tools.map.heap;
    for (index, walk) in tools.map.walks {
        let Some(segment) = heap.segment(*index) else { continue };
        for gap in walk.gaps.iter().filter(|g| g.range.start < certain(walk)) {
            let at = gap.range.start;
            let in_front = before.get(&at).copied();
            let hits = folded.gaps.get(&at).copied().unwrap_or_default();
            let of_gap = doubtful.remove(&at).unwrap_or_default();
            let look = Look { segment, gap, before: in_front, hits, doubtful: !of_gap.is_empty() };
            let verdict = verdict(tools, look, folded, &mut left);
            let wrong = |f: &Found| matches!(verdict, Verdict::Size(object) if f.object == Some(object));
            of_gap.into_iter().filter(|f| !wrong(f)).for_each(|f| sink.add(f));
            match verdict {
                Verdict::Fine => {}
                Verdict::Undecidable => {
                    notes.add(Missing::Heap, at, format!("whether an object is at {at} is unknown: its memory is not in the dump"))
                }
                Verdict::Size(object) => {
                    let also = folded.sizes.entry(object).or_default();
                    also.grow(hits.count);
                }
                Verdict::Table(length_of) => {
                    let table = heap.method_table(at);
                    let found = Found { also: hits.count, related: table, ..Found::new(FindingId::ObjectBadMethodTable, at) };
                    sink.add(Found { detail: Detail::Gap(gap.bytes, length_of), ..found.object(at) });
                }
            }
        }
    }
    doubtful.into_values().flatten().for_each(|f| sink.add(f));
    for (object, also) in &folded.sizes {
        let (id, related, detail) = match heap.object(*object) {
            // The size of the object depends only on its type, so the method table is wrong.
            Some((kind, size)) if kind.component_size == 0 => {
                (FindingId::ObjectBadMethodTable, Some(kind.method_table), Detail::Ends(object.plus(size)))
            }
            kind => {
                let length_at = kind.map_or_else(|| heap.memory().ptr_bytes(), |(kind, _)| kind.length_at);
                let length = heap.memory().u32(object.plus(length_at)).unwrap_or(0);
                (FindingId::ObjectBadSize, None, Detail::Number(length.into()))
            }
        };
        let found = Found { also: *also, related, detail, ..Found::new(id, *object) };
        sink.add(found.object(*object));
    }
}

/// A gap and its surroundings.
struct Look<'g> {
    segment: &'g SegmentModel,
    gap: &'g WalkGap,
    /// The object before the gap.
    before: Option<Before>,
    hits: Hits,
    /// Whether the object before the gap has bad references.
    doubtful: bool,
}

fn verdict(tools: &Tools<'_>, look: Look<'_>, folded: &Folded, left: &mut u64) -> Verdict {
    let Look { segment, gap, before, hits, doubtful } = look;
    let heap = tools.map.heap;
    let at = gap.range.start;
    // An object whose first words are partly missing from the dump is not corrupt.
    let needed = heap.memory().ptr_bytes().saturating_mul(2);
    if heap.memory().captured(AddrRange::of(at, needed)) < needed {
        return Verdict::Undecidable;
    }
    // An object whose class is missing is not corrupt either.
    if class_is_absent(heap, at) {
        return Verdict::Undecidable;
    }
    if heap.method_table(at).is_some_and(|mt| heap.type_at(mt).is_some()) {
        return Verdict::Size(at);
    }
    let cleared = gap.kind == GapKind::InAllocation || heap.all_zero(gap.range);
    // If not all allocation contexts are known, cleared memory in the youngest generation may be one.
    let may_be_context = || cleared && !tools.map.all_contexts && heap.generation_of(at) == Some(Generation::Gen0);
    if !hits.exact && (gap.kind == GapKind::InAllocation || may_be_context()) {
        return Verdict::Fine;
    }
    let Some(before) = before else { return Verdict::Table(None) };
    if folded.sizes.contains_key(&before.address) {
        return Verdict::Size(before.address);
    }
    // If a reference points to the start of the gap, an object was there, and the object before it ends correctly. A gap that is smaller than any
    // object cannot be one.
    let smallest = heap.smallest();
    // A zeroed gap after an array is more likely the rest of the array than an object overwritten with zeros.
    let mut ends_wrongly = || {
        gap.bytes < smallest
            || if before.sized { cleared } else { doubtful }
            || holds_more(tools, &before, at)
            || holds_objects(tools, segment, &before, gap.range, left)
    };
    if !hits.exact && ends_wrongly() {
        return Verdict::Size(before.address);
    }
    Verdict::Table((before.sized && !hits.exact).then_some(before.address))
}

/// Whether the first word of the object at `at` may point to a method table whose class is not in the dump.
fn class_is_absent(heap: &Walker, at: Addr) -> bool {
    let Some(mt) = heap.method_table(at).filter(|mt| heap.segment_of(*mt).is_none()) else { return false };
    let smallest = heap.smallest();
    let plausible = tried(|| heap.tables().read(mt)).is_ok_and(|info| u64::from(info.base_size) >= smallest);
    plausible && heap.tables().is_valid(mt).is_err()
}

/// Whether the length of the object `before` is too small: the object continues past its claimed end.
fn holds_more(tools: &Tools<'_>, before: &Before, end: Addr) -> bool {
    let memory = tools.map.heap.memory();
    let word = memory.ptr_bytes();
    if before.string {
        // Strings are NUL-terminated.
        let last = before.address.plus(before.size).minus(word.saturating_add(2));
        return last.is_some_and(|at| memory.u16(at).is_ok_and(|c| c != 0));
    }
    if before.references && memory.ptr(end).is_ok_and(|target| tools.map.starts.is_start(target, &mut SegmentIndex::default())) {
        return true;
    }
    tools.map.heap.padded(end) == Some(false)
}

/// Whether the length of the object `before` is too large: other objects begin inside it and continue past its claimed end.
fn holds_objects(tools: &Tools<'_>, segment: &SegmentModel, before: &Before, gap: AddrRange, left: &mut u64) -> bool {
    let heap = tools.map.heap;
    let word = heap.memory().ptr_bytes();
    let mut at = before.address.plus(heap.smallest());
    // The walk found no object at the start of the gap, so the last object must extend past it.
    let beyond = gap.start.plus(1);
    while at < gap.start && *left > 0 {
        *left = left.saturating_sub(1);
        let table = heap.memory().word(at).unwrap_or(0);
        if table != 0 && tools.map.holds_objects(segment, at, beyond) {
            return true;
        }
        at = at.plus(word);
    }
    false
}
