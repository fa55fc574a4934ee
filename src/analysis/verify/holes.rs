//! Stretches that hold no object, where objects should be: which object is broken?
//!
//! A walk goes from object to object by their sizes. It runs into something that is no object where the object there has
//! lost its method table, or where the one in front has a wrong length. The types, what leads to the place, and what is
//! around it say which of the two.

use super::check::{Before, Folded, Hits, Tools};
use super::ground::certain;
use super::sink::{Found, Sink};
use crate::base::{Addr, AddrRange};
use crate::model::{FindingId, Generation, SegmentModel, WalkGap};

/// Words in all that are searched for objects inside of others.
const SEARCH: u64 = 1 << 23;

enum Verdict {
    /// An object in allocation: nothing is wrong.
    Fine,
    /// The object that begins there has a wrong size.
    Size(Addr),
    /// The object that begins there has no method table.
    Table,
}

/// Judges every gap, and tells of every object with a wrong size once.
pub(super) fn judge(tools: &Tools<'_, '_>, before: &[(Addr, Option<Before>)], folded: &mut Folded, sink: &mut Sink) {
    let mut left = SEARCH;
    let heap = tools.ground.heap;
    for (index, walk) in tools.ground.walks {
        let Some(segment) = heap.segments().get(*index) else { continue };
        for gap in walk.gaps.iter().filter(|g| g.range.start < certain(walk)) {
            let at = gap.range.start;
            let in_front = before.iter().find(|(start, _)| *start == at).and_then(|(_, b)| *b);
            let hits = folded.gaps.get(&at).copied().unwrap_or_default();
            match verdict(tools, segment, gap, in_front, hits, folded, &mut left) {
                Verdict::Fine => {}
                Verdict::Size(object) => {
                    let also = folded.sizes.entry(object).or_default();
                    *also = also.saturating_add(hits.count);
                }
                Verdict::Table => {
                    let table = heap.method_table(at);
                    let found = Found { also: hits.count, related: table, ..Found::new(FindingId::ObjectBadMethodTable, at) };
                    sink.add(found.object(at).number(gap.bytes));
                }
            }
        }
    }
    for (object, also) in &folded.sizes {
        let length = heap.memory().u32(object.plus(heap.memory().ptr_bytes())).unwrap_or(0);
        let found = Found { also: *also, ..Found::new(FindingId::ObjectBadSize, *object) };
        sink.add(found.object(*object).number(length.into()));
    }
}

fn verdict(
    tools: &Tools<'_, '_>,
    segment: &SegmentModel,
    gap: &WalkGap,
    before: Option<Before>,
    hits: Hits,
    folded: &Folded,
    left: &mut u64,
) -> Verdict {
    let heap = tools.ground.heap;
    let at = gap.range.start;
    // An object whose first words are not all in the dump is no damage.
    let needed = heap.memory().ptr_bytes().saturating_mul(2);
    if heap.memory().captured(AddrRange::new(at, at.plus(needed))) < needed {
        return Verdict::Fine;
    }
    if heap.method_table(at).is_some_and(|mt| heap.type_at(mt).is_some()) {
        return Verdict::Size(at);
    }
    if gap.kind == "in-allocation" && !hits.exact {
        // Only the youngest generation and the large-object heaps are allocated in.
        let generation = heap.generation_of(at).unwrap_or(segment.generation);
        if !matches!(generation, Generation::Gen1 | Generation::Gen2 | Generation::Frozen) {
            return Verdict::Fine;
        }
    }
    let Some(before) = before.filter(|b| b.sized) else { return Verdict::Table };
    if folded.sizes.contains_key(&before.address) {
        return Verdict::Size(before.address);
    }
    // What something refers to is where an object begins.
    if !hits.exact && (holds_more(tools, &before, at) || holds_objects(tools, segment, &before, gap.range, left)) {
        return Verdict::Size(before.address);
    }
    Verdict::Table
}

/// Whether the object goes on behind its end: its length is too small.
fn holds_more(tools: &Tools<'_, '_>, before: &Before, end: Addr) -> bool {
    let memory = tools.ground.heap.memory();
    let word = memory.ptr_bytes();
    if before.string {
        // A zero stands behind the last character.
        let last = before.address.plus(before.size).minus(word.saturating_add(2));
        return last.is_some_and(|at| memory.u16(at).is_ok_and(|c| c != 0));
    }
    if before.references && memory.ptr(end).is_ok_and(|target| tools.ground.starts.is_start(target, &mut 0)) {
        return true;
    }
    // On 64-bit targets a word half of which is always zero lies in front of an object.
    word == 8 && end.minus(word).is_some_and(|at| memory.u32(at).is_ok_and(|n| n != 0))
}

/// Whether objects begin inside of the object and go on behind its end: its length is too large.
fn holds_objects(tools: &Tools<'_, '_>, segment: &SegmentModel, before: &Before, gap: AddrRange, left: &mut u64) -> bool {
    let heap = tools.ground.heap;
    let word = heap.memory().ptr_bytes();
    let mut at = before.address.plus(word.saturating_mul(3));
    // The last object inside crosses the end, which is why nothing begins there.
    let beyond = gap.start.plus(1);
    while at < gap.start && *left > 0 {
        *left = left.saturating_sub(1);
        let table = heap.memory().word(at).unwrap_or(0);
        if table != 0 && tools.ground.holds_objects(segment, at, beyond) {
            return true;
        }
        at = at.plus(word);
    }
    false
}
