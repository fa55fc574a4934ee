//! Walks that more than one answer makes.

use crate::base::{Addr, Answer, Collector};
use crate::gc::{Object, Visitor};
use crate::model::SegmentModel;
use crate::session::{Heap, note_walks};

/// For walks of which only the segments' sums are wanted.
pub(super) struct Nothing;

impl Visitor for Nothing {
    fn object(&mut self, _object: &Object<'_>) {}
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
        let Ok(index) = usize::try_from(object.ty.index) else { return };
        if self.known.len() <= index {
            self.known.resize(index.saturating_add(64), None);
        }
        let Some(known) = self.known.get_mut(index) else { return };
        if *known.get_or_insert_with(|| !object.ty.is_free && (self.wanted)(object.ty.method_table)) {
            self.found.push((self.segment, object.address, object.ty.method_table));
        }
    }
}

/// The objects whose method table is wanted, with it, in the order of the heap.
pub(super) fn objects_of(heap: &Heap, wanted: impl Fn(Addr) -> bool + Sync) -> Answer<Vec<(Addr, Addr)>> {
    let notes = Collector::new();
    let wanted = &wanted;
    let walked = heap.walker().walk_once(heap.progress(), || OfTypes { wanted, known: Vec::new(), segment: 0, found: Vec::new() });
    note_walks(heap.walker(), &walked.segments, &notes);
    let mut found: Vec<_> = walked.visitors.into_iter().flat_map(|v| v.found).collect();
    found.sort_unstable();
    notes.finish(found.into_iter().map(|(_, address, mt)| (address, mt)).collect())
}
