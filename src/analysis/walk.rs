//! Heap walks shared by several analyses.

use crate::base::{Addr, Answer, Collector, IndexVec};
use crate::gc::{Object, Piece, SegmentIndex, TypeIndex, Visitor};
use crate::session::{Heap, note_walks};

/// Visits nothing: for walks that only need the totals per segment.
pub(super) struct Nothing;

impl Visitor for Nothing {
    fn object(&mut self, _object: &Object<'_>) {}
}

struct OfTypes<F> {
    wanted: F,
    /// Decisions by type.
    known: IndexVec<TypeIndex, Option<bool>>,
    segment: SegmentIndex,
    found: Vec<(SegmentIndex, Addr, Addr)>,
}

impl<F: Fn(Addr) -> bool + Send> Visitor for OfTypes<F> {
    fn piece(&mut self, piece: &Piece<'_>) -> bool {
        self.segment = piece.index;
        true
    }

    fn object(&mut self, object: &Object<'_>) {
        let Some(known) = self.known.slot(object.ty.index) else { return };
        if *known.get_or_insert_with(|| !object.ty.is_free && (self.wanted)(object.ty.method_table)) {
            self.found.push((self.segment, object.address, object.ty.method_table));
        }
    }
}

/// The objects with a wanted method table, with it, in heap order.
pub(super) fn objects_of(heap: &Heap, wanted: impl Fn(Addr) -> bool + Sync) -> Answer<Vec<(Addr, Addr)>> {
    let notes = Collector::new();
    let wanted = &wanted;
    let visitor = || OfTypes { wanted, known: IndexVec::new(), segment: SegmentIndex::default(), found: Vec::new() };
    let walked = heap.walker().walk_once(heap.progress(), visitor);
    note_walks(heap.walker(), &walked.segments, &notes);
    let mut found: Vec<_> = walked.visitors.into_iter().flat_map(|v| v.found).collect();
    found.sort_unstable();
    notes.finish(found.into_iter().map(|(_, address, mt)| (address, mt)).collect())
}
