//! Checks segments, segment lists, and allocation contexts.

use std::collections::HashSet;

use super::check::Age;
use super::sink::{Found, Sink};
use crate::analysis::{FindingId, VerifyTotals};
use crate::base::{Addr, Count};
use crate::clr::threads::Thread;
use crate::gc::{Gc, ListEnd};
use crate::model::{ContextOwner, Generation, SegmentModel};

/// The known segments.
pub(super) struct Structure {
    /// Addresses of the segments that can be walked.
    pub(super) usable: HashSet<Addr>,
    /// Whether all segments of the process are known and can be walked.
    pub(super) all: bool,
}

/// Checks segments and segment lists. `cut`: the dump does not have all memory that was written.
pub(super) fn segments(gc: &Gc, segments: &[SegmentModel], cut: bool, sink: &mut Sink, totals: &mut VerifyTotals) -> Structure {
    let listed = lists(gc, segments, cut, sink);
    let mut out = Structure { usable: HashSet::new(), all: listed.all };
    let mut sound: Vec<&SegmentModel> = Vec::new();
    for s in segments.iter().filter(|s| listed.usable.contains(&s.address)) {
        totals.segments.bump();
        let order = [s.start, s.allocated, s.committed, s.reserved];
        if let Some(wrong) = order.windows(2).find(|w| matches!(w, [a, b] if a > b)) {
            sink.add(Found { related: wrong.last().copied(), ..Found::new(FindingId::SegmentBadBounds, s.address) });
            out.all = false;
            continue;
        }
        out.usable.insert(s.address);
        sound.push(s);
        let heap = gc.facts().heaps.iter().find(|h| h.index == s.heap).and_then(|h| h.address);
        if let (Some(heap), Some(owner)) = (heap, gc.segment_owner(s.address))
            && heap != owner
            && !gc.facts().moves_objects()
        {
            sink.add(Found::new(FindingId::SegmentWrongHeap, s.address).related(owner).number(s.heap));
        }
    }
    sound.sort_by_key(|s| (s.start, s.address));
    for pair in sound.windows(2) {
        if let [a, b] = pair
            && a.reserved > b.start
        {
            sink.add(Found::new(FindingId::SegmentOverlap, b.address).related(a.address));
        }
    }
    claims(gc, &sound, listed.all, sink);
    out
}

/// Follows the segment lists.
fn lists(gc: &Gc, segments: &[SegmentModel], cut: bool, sink: &mut Sink) -> Structure {
    let mut out = Structure { usable: HashSet::new(), all: true };
    let lists = gc.segment_lists();
    out.usable.extend(lists.iter().flat_map(|l| l.segments.iter().copied()));
    // A dump with all objects also has the structures of all segments, unless it is cut. If one is absent, the link to it is bad.
    let known = || segments.iter().filter(|s| out.usable.contains(&s.address));
    let whole = !cut && known().count() > 0 && known().all(|s| s.captured_bytes == s.allocated_bytes);
    for list in lists {
        if list.end == ListEnd::End {
            continue;
        }
        out.all = false;
        if list.end == ListEnd::Absent && (list.target.is_null() || !whole) {
            continue;
        }
        let place = list.segments.last().copied().unwrap_or(list.link);
        let what = match list.end {
            ListEnd::Seen => "a segment that is already on a list",
            ListEnd::TooLong => "more segments than possible",
            _ => "not a segment",
        };
        sink.add(Found::new(FindingId::SegmentBadLink, place).related(list.target).name(what));
    }
    out.all &= !segments.is_empty();
    out
}

/// Checks the ephemeral segment and the generation starts of each heap.
fn claims(gc: &Gc, sound: &[&SegmentModel], all: bool, sink: &mut Sink) {
    for claim in gc.heap_claims() {
        let Some(ephemeral) = claim.ephemeral else { continue };
        let Some(segment) = sound.iter().find(|s| s.address == ephemeral) else {
            if all && sound.iter().any(|s| s.heap == claim.heap) {
                sink.add(Found::new(FindingId::SegmentNotListed, ephemeral).number(claim.heap));
            }
            continue;
        };
        if gc.facts().regions {
            continue;
        }
        if let Some((gen0, gen1)) = claim.starts
            && !(segment.start <= gen1 && gen1 <= gen0 && gen0 <= segment.allocated)
        {
            let wrong = if gen1 < segment.start || gen1 > segment.allocated { gen1 } else { gen0 };
            sink.add(Found::new(FindingId::GenerationBadStart, ephemeral).related(wrong).number(claim.heap));
        }
    }
}

/// Checks the allocation contexts of the threads and the global context. Contexts of generations are skipped, because they are valid only during a
/// collection.
pub(super) fn contexts(gc: &Gc, threads: &[Thread], segments: &[SegmentModel], all: bool, sink: &mut Sink, totals: &mut VerifyTotals) {
    let mut contexts = gc.contexts(threads).data;
    contexts.retain(|c| c.owner != ContextOwner::Generation && !c.pointer.is_null());
    contexts.sort_by_key(|c| (c.pointer, c.limit));
    let mut before: Option<(Addr, Addr)> = None;
    for c in &contexts {
        totals.contexts.bump();
        let found = |id| Found::new(id, c.pointer).related(c.limit).number(c.owner_id.unwrap_or(0));
        if c.pointer > c.limit {
            sink.add(found(FindingId::ContextBadBounds));
            continue;
        }
        let Some(segment) = segments.iter().find(|s| s.start <= c.pointer && c.pointer <= s.reserved) else {
            if all {
                sink.add(found(FindingId::ContextOutsideGen0));
            }
            continue;
        };
        let older = segment.parts.iter().any(|p| p.generation != Generation::Gen0 && c.pointer < p.end && p.start <= c.pointer);
        if older || !matches!(Age::of(segment.generation), Age::All(0) | Age::Mixed) {
            sink.add(found(FindingId::ContextOutsideGen0));
        } else if c.limit > segment.committed {
            sink.add(found(FindingId::ContextBadBounds));
        } else if let Some((pointer, limit)) = before
            && c.pointer < limit
        {
            sink.add(Found::new(FindingId::ContextOverlap, c.pointer).related(pointer).number(c.owner_id.unwrap_or(0)));
        } else {
            before = Some((c.pointer, c.limit));
        }
    }
}
