//! What walks say about the segments that they went through.

use crate::base::{Collector, NoteKind, share};
use crate::gc::Walker;
use crate::model::{CoverageModel, GapKind, WalkModel};

/// Notes where walks met something else than objects.
pub(crate) fn note_walks(heap: &Walker, walks: &[(usize, WalkModel)], notes: &Collector) {
    for (i, walk) in walks {
        let Some(segment) = heap.segments().get(*i) else { continue };
        let name = format!("{} segment {} of heap {}", segment.generation, segment.address, segment.heap);
        if let (Some(at), Some(why)) = (walk.stopped_at, &walk.stopped_because) {
            notes.add(NoteKind::Missing, at, format!("{name}: the walk stops at {at}: {why}; {} bytes", walk.absent_bytes));
        }
        for gap in &walk.gaps {
            let (kind, what) = match gap.kind {
                GapKind::InAllocation => (NoteKind::InAllocation, "are an object in allocation"),
                GapKind::Corrupt => (NoteKind::Invalid, "hold no object and were skipped"),
                GapKind::Absent => continue,
            };
            notes.add(kind, gap.range.start, format!("{name}: {} bytes at {} {what}", gap.bytes, gap.range.start));
        }
    }
}

/// How much of what the walked segments had allocated was walked.
pub(crate) fn coverage(heap: &Walker, walks: &[(usize, WalkModel)]) -> CoverageModel {
    let mut c = CoverageModel::default();
    let add = |to: &mut u64, n: u64| *to = to.saturating_add(n);
    for (i, walk) in walks {
        add(&mut c.segments, 1);
        add(&mut c.allocated_bytes, heap.segments().get(*i).map_or(0, |s| s.allocated_bytes));
        add(&mut c.walked_bytes, walk.bytes);
        add(&mut c.context_bytes, walk.context_bytes);
        add(&mut c.in_allocation_bytes, walk.in_allocation_bytes);
        add(&mut c.skipped_bytes, walk.skipped_bytes);
        add(&mut c.absent_bytes, walk.absent_bytes);
    }
    c.complete = walks.iter().all(|(_, w)| w.complete && w.skipped_bytes == 0);
    let objects = c.allocated_bytes.saturating_sub(c.context_bytes).saturating_sub(c.in_allocation_bytes);
    c.share = share(c.walked_bytes, objects).unwrap_or(1.0);
    c
}
