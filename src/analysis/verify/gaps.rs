//! Stretches that hold no object, where objects should be: which object is broken?
//!
//! A walk goes from object to object by their sizes. It runs into something that is no object where the object there has
//! lost its method table, or where the one in front has a wrong length. The types, what leads to the place, and what is
//! around it say which of the two.

use rustc_hash::FxHashMap;

use super::check::{Before, Folded, Hits, Tools};
use super::heap_map::certain;
use super::sink::{Detail, Found, Sink};
use crate::base::{Addr, AddrRange};
use crate::model::{FindingId, GapKind, Generation, SegmentModel, WalkGap};

/// Words in all that are searched for objects inside of others.
const SEARCH: u64 = 1 << 23;

enum Verdict {
    /// An object in allocation: nothing is wrong.
    Fine,
    /// The object that begins there has a wrong size: a wrong length, or the method table of another type.
    Size(Addr),
    /// The object that begins there has no method table. Where nothing leads to it, that may as well be the end of the one in
    /// front, whose length is wrong.
    Table(Option<Addr>),
}

/// Judges every gap, and tells of every object with a wrong size once.
pub(super) fn judge(
    tools: &Tools<'_>,
    before: &FxHashMap<Addr, Before>,
    mut doubtful: FxHashMap<Addr, Vec<Found>>,
    folded: &mut Folded,
    sink: &mut Sink,
) {
    let mut left = SEARCH;
    let heap = tools.map.heap;
    for (index, walk) in tools.map.walks {
        let Some(segment) = heap.segments().get(*index) else { continue };
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
                Verdict::Size(object) => {
                    let also = folded.sizes.entry(object).or_default();
                    *also = also.saturating_add(hits.count);
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
            // Its size comes from the type alone.
            Some((kind, size)) if kind.component_size == 0 => {
                (FindingId::ObjectBadMethodTable, Some(kind.method_table), Detail::Ends(object.plus(size)))
            }
            _ => {
                let length = heap.memory().u32(object.plus(heap.memory().ptr_bytes())).unwrap_or(0);
                (FindingId::ObjectBadSize, None, Detail::Number(length.into()))
            }
        };
        let found = Found { also: *also, related, detail, ..Found::new(id, *object) };
        sink.add(found.object(*object));
    }
}

/// A gap, and what is known around it.
struct Look<'g> {
    segment: &'g SegmentModel,
    gap: &'g WalkGap,
    /// The object in front of it.
    before: Option<Before>,
    hits: Hits,
    /// Whether references of the object in front make no sense.
    doubtful: bool,
}

fn verdict(tools: &Tools<'_>, look: Look<'_>, folded: &Folded, left: &mut u64) -> Verdict {
    let Look { segment, gap, before, hits, doubtful } = look;
    let heap = tools.map.heap;
    let at = gap.range.start;
    // An object whose first words are not all in the dump is no damage.
    let needed = heap.memory().ptr_bytes().saturating_mul(2);
    if heap.memory().captured(AddrRange::new(at, at.plus(needed))) < needed {
        return Verdict::Fine;
    }
    if heap.method_table(at).is_some_and(|mt| heap.type_at(mt).is_some()) {
        return Verdict::Size(at);
    }
    if gap.kind == GapKind::InAllocation && !hits.exact {
        // Large and pinned objects get their memory cleared before their method table. What lies in the youngest generation is
        // cut off the front of a thread's context, which then begins behind it, or is a context that is not known.
        let generation = heap.generation_of(at).unwrap_or(segment.generation);
        let large = matches!(generation, Generation::Loh | Generation::Poh);
        if large || generation == Generation::Gen0 && (!tools.map.all_contexts || heap.in_context(gap.range.end)) {
            return Verdict::Fine;
        }
    }
    let Some(before) = before else { return Verdict::Table(None) };
    if folded.sizes.contains_key(&before.address) {
        return Verdict::Size(before.address);
    }
    // What something refers to is where an object begins, and none is smaller than three words.
    let smallest = heap.memory().ptr_bytes().saturating_mul(3);
    // A cleared gap is the end of an array that is filled with nothing, rather than an object that lost all it had.
    let cleared = gap.kind == GapKind::InAllocation;
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

/// Whether the object goes on behind its end: its length is too small.
fn holds_more(tools: &Tools<'_>, before: &Before, end: Addr) -> bool {
    let memory = tools.map.heap.memory();
    let word = memory.ptr_bytes();
    if before.string {
        // A zero stands behind the last character.
        let last = before.address.plus(before.size).minus(word.saturating_add(2));
        return last.is_some_and(|at| memory.u16(at).is_ok_and(|c| c != 0));
    }
    if before.references && memory.ptr(end).is_ok_and(|target| tools.map.starts.is_start(target, &mut 0)) {
        return true;
    }
    tools.map.heap.padded(end) == Some(false)
}

/// Whether objects begin inside of the object and go on behind its end: its length is too large.
fn holds_objects(tools: &Tools<'_>, segment: &SegmentModel, before: &Before, gap: AddrRange, left: &mut u64) -> bool {
    let heap = tools.map.heap;
    let word = heap.memory().ptr_bytes();
    let mut at = before.address.plus(word.saturating_mul(3));
    // The last object inside crosses the end, which is why nothing begins there.
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
