//! Prepares walks through the heap, and says what did not add up.

use crate::base::{Addr, NoteKind, SharedNotes};
use crate::clr::threads::Threads;
use crate::contract::{ContractError, Process, Runtime};
use crate::gc::{Gc, Heap, Object, ObjectStarts, Visitor};
use crate::model::{CoverageModel, GapKind, SegmentModel, WalkModel};

/// The heap of `runtime`, ready to be walked. Without a readable thread list the walk finds its way by itself.
///
/// # Errors
/// [`ContractError`] where the descriptor lacks what sizes objects.
pub fn open_heap<'p>(process: &'p Process, runtime: &'p Runtime, gc: &Gc) -> Result<Heap, ContractError> {
    let quiet = SharedNotes::new();
    let threads = Threads::bind(&process.memory, &runtime.descriptor, &quiet, &process.limits);
    Heap::new(gc, &threads.map(|t| t.list()).unwrap_or_default())
}

/// For walks of which only the segments' sums are wanted.
pub(super) struct Nothing;

impl Visitor for Nothing {
    fn object(&mut self, _object: &Object<'_>) {}
}

/// The segments of `heap`, each with what a walk through its objects met.
pub fn walked_segments(process: &Process, heap: &Heap) -> Vec<SegmentModel> {
    let mut segments = heap.segments().to_vec();
    let walked = heap.walk_once(&*process.progress, || Nothing);
    note(process, heap, &walked.segments);
    for (i, walk) in walked.segments {
        if let Some(segment) = segments.get_mut(i) {
            segment.walk = Some(walk);
        }
    }
    segments
}

/// Where the objects of `heap` begin.
pub fn index(process: &Process, heap: &Heap) -> ObjectStarts {
    let (index, walks) = ObjectStarts::build(heap, &*process.progress, &process.notes);
    note(process, heap, &walks);
    index
}

struct OfTypes<F> {
    wanted: F,
    /// Decisions by number of the type: one question per type, not per object.
    known: Vec<Option<bool>>,
    segment: usize,
    found: Vec<(usize, Addr, Addr)>,
}

impl<F: Fn(Addr) -> bool + Send> Visitor for OfTypes<F> {
    fn segment(&mut self, index: usize, _segment: &SegmentModel) -> bool {
        self.segment = index;
        true
    }

    fn object(&mut self, object: &Object<'_>) {
        let Ok(index) = usize::try_from(object.kind.index) else { return };
        if self.known.len() <= index {
            self.known.resize(index.saturating_add(64), None);
        }
        let Some(known) = self.known.get_mut(index) else { return };
        if *known.get_or_insert_with(|| !object.kind.is_free && (self.wanted)(object.kind.method_table)) {
            self.found.push((self.segment, object.address, object.kind.method_table));
        }
    }
}

/// The objects whose method table is wanted, with it, in the order of the heap.
pub fn objects_of(process: &Process, heap: &Heap, wanted: impl Fn(Addr) -> bool + Sync) -> Vec<(Addr, Addr)> {
    let wanted = &wanted;
    let walked = heap.walk_once(&*process.progress, || OfTypes { wanted, known: Vec::new(), segment: 0, found: Vec::new() });
    note(process, heap, &walked.segments);
    let mut found: Vec<_> = walked.visitors.into_iter().flat_map(|v| v.found).collect();
    found.sort_unstable();
    found.into_iter().map(|(_, address, mt)| (address, mt)).collect()
}

/// SharedNotes where walks met something else than objects.
pub(super) fn note(process: &Process, heap: &Heap, walks: &[(usize, WalkModel)]) {
    for (i, walk) in walks {
        let Some(segment) = heap.segments().get(*i) else { continue };
        let name = format!("{} segment {} of heap {}", segment.generation, segment.address, segment.heap);
        if let (Some(at), Some(why)) = (walk.stopped_at, &walk.stopped_because) {
            process.notes.add(NoteKind::Missing, at, format!("{name}: the walk stops at {at}: {why}; {} bytes", walk.absent_bytes));
        }
        for gap in &walk.gaps {
            let (kind, what) = match gap.kind {
                GapKind::InAllocation => (NoteKind::InAllocation, "are an object in allocation"),
                GapKind::Corrupt => (NoteKind::Invalid, "hold no object and were skipped"),
                GapKind::Absent => continue,
            };
            process.notes.add(kind, gap.range.start, format!("{name}: {} bytes at {} {what}", gap.bytes, gap.range.start));
        }
    }
}

/// How much of what the walked segments had allocated was walked.
pub(super) fn coverage(heap: &Heap, walks: &[(usize, WalkModel)]) -> CoverageModel {
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
    c.share = share(c.walked_bytes, c.allocated_bytes.saturating_sub(c.context_bytes).saturating_sub(c.in_allocation_bytes));
    c
}

/// A part of a whole as a number from 0 to 1; 1 where there is nothing to have a part of.
pub(super) fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        return 1.0;
    }
    // 52 bits are enough for a share, and 4 PiB for a heap.
    let float =
        |n: u64| f64::from(u32::try_from(n >> 20).unwrap_or(u32::MAX)) * 1_048_576.0 + f64::from(u32::try_from(n & 0xf_ffff).unwrap_or(0));
    (float(part) / float(whole)).min(1.0)
}
