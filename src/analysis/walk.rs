//! Heap walks shared by several analyses.

use crate::base::{Addr, Answer, Collector, IndexVec};
use crate::gc::{Object, Piece, SegmentIndex, TypeIndex, Visitor};
use crate::session::Heap;

struct OfTypes<'w> {
    wanted: &'w IndexVec<TypeIndex, bool>,
    segment: SegmentIndex,
    found: Vec<(SegmentIndex, Addr, Addr)>,
}

impl Visitor for OfTypes<'_> {
    fn piece(&mut self, piece: &Piece<'_>) -> bool {
        self.segment = piece.index;
        true
    }

    fn object(&mut self, object: &Object<'_>) {
        if self.wanted.get(object.ty.index) == Some(&true) {
            self.found.push((self.segment, object.address, object.ty.method_table));
        }
    }
}

/// Returns the objects whose method table `wanted` accepts, each with its method table, in heap order. Walks only segments that contain such objects.
pub(super) fn objects_of(heap: &Heap, wanted: impl Fn(Addr) -> bool) -> Answer<Vec<(Addr, Addr)>> {
    let notes = Collector::new();
    let wanted = heap.types_where(&notes, |ty| !ty.is_free && wanted(ty.method_table));
    let visitor = || OfTypes { wanted: &wanted, segment: SegmentIndex::default(), found: Vec::new() };
    let mut found: Vec<_> = heap.walk_where(&wanted, visitor).into_iter().flat_map(|v| v.found).collect();
    found.sort_unstable();
    notes.finish(found.into_iter().map(|(_, address, mt)| (address, mt)).collect())
}
