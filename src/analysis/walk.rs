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
