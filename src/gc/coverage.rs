//! Notes and coverage of heap walks.

use super::walk::{SegmentIndex, Walker};
use crate::base::{Collector, Count, Missing, NoteKind, len64, plural, share};
use crate::model::{CoverageModel, GapKind, WalkModel};

/// Adds notes for ranges without objects, and for walks that ended early.
pub(crate) fn note_walks(heap: &Walker, walks: &[(SegmentIndex, WalkModel)], notes: &Collector) {
    for (i, walk) in walks {
        let Some(segment) = heap.segment(*i) else { continue };
        let name = format!("{} segment {} of heap {}", segment.generation, segment.address, segment.heap);
        if let (Some(at), Some(why)) = (walk.stopped_at, &walk.stopped_because) {
            notes.add(Missing::Heap, at, format!("{name}: the walk stops at {at}: {why}; {} not shown", plural(walk.absent_bytes, "byte")));
        }
        for gap in &walk.gaps {
            let (kind, what) = match gap.kind {
                GapKind::InAllocation => (NoteKind::InAllocation, "belong to an object that was being allocated"),
                GapKind::Corrupt => (NoteKind::Invalid, "do not hold objects and were skipped"),
                GapKind::Absent => continue,
            };
            notes.add(kind, gap.range.start, format!("{name}: {} at {} {what}", plural(gap.bytes, "byte"), gap.range.start));
        }
    }
    let excess = heap.excess_allocations(walks);
    if excess > 0 {
        let what = format!(
            "at least {} of the ranges of zeros had objects, because fewer threads were allocating",
            plural(len64(excess), "range")
        );
        notes.add(NoteKind::Invalid, None, what);
    }
}

/// Adds a note for `objects` whose references are unknown because the GCDesc of their types is damaged. Missing memory is reported by
/// the failed reads.
pub(crate) fn note_unknown(heap: &Walker, objects: u64, notes: &Collector) {
    if objects > 0 {
        let what = format!("the references of {} are unknown: a GCDesc is damaged", plural(objects, "object"));
        notes.add(NoteKind::Invalid, None, what);
        heap.types().note(notes);
    }
}

/// The share of the allocated memory of the walked segments that was walked.
pub(crate) fn coverage(heap: &Walker, walks: &[(SegmentIndex, WalkModel)]) -> CoverageModel {
    let mut c = CoverageModel::default();
    for (i, walk) in walks {
        c.segments.bump();
        c.allocated_bytes.grow(heap.segment(*i).map_or(0, |s| s.allocated_bytes));
        c.walked_bytes.grow(walk.bytes);
        c.context_bytes.grow(walk.context_bytes);
        c.in_allocation_bytes.grow(walk.in_allocation_bytes);
        c.skipped_bytes.grow(walk.skipped_bytes);
        c.absent_bytes.grow(walk.absent_bytes);
    }
    c.complete = walks.iter().all(|(_, w)| w.complete && w.skipped_bytes == 0) && heap.excess_allocations(walks) == 0;
    let objects = c.allocated_bytes.saturating_sub(c.context_bytes).saturating_sub(c.in_allocation_bytes);
    c.share = share(c.walked_bytes, objects).unwrap_or(1.0);
    c
}
