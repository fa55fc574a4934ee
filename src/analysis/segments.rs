//! Segments or regions of the heap.

use super::walk::Nothing;
use crate::base::{Answer, IndexVec};
use crate::gc::SegmentIndex;
use crate::model::{SegmentModel, SegmentsReport};
use crate::session::{Error, Heap, Runtime, note_walks};

/// Arguments of `segments`.
#[derive(Clone, Copy, Debug, Default)]
pub struct SegmentsQuery {
    /// Also list GC memory outside the segments in use: free regions, bookkeeping, handle tables.
    pub free: bool,
    /// Walk the objects of each.
    pub walk: bool,
}

/// Lists the segments of `runtime`'s heap.
///
/// # Errors
/// [`Error::Contract`] if the GC's structures or, with [`SegmentsQuery::walk`], object sizes are not described.
pub fn segments(runtime: &Runtime, query: &SegmentsQuery) -> Result<Answer<SegmentsReport>, Error> {
    let notes = runtime.begin();
    let gc = notes.with(runtime.gc()?);
    let segments = if query.walk { notes.take(walked(&runtime.heap()?)) } else { notes.take(gc.segments()) };
    let regions = query.free.then(|| notes.take(gc.regions()));
    Ok(notes.finish(SegmentsReport { segments, regions }))
}

/// The segments of `heap`, each with the result of walking its objects.
fn walked(heap: &Heap) -> Answer<Vec<SegmentModel>> {
    let notes = heap.begin();
    let mut segments: IndexVec<SegmentIndex, SegmentModel> = heap.segments().to_vec().into();
    let walked = heap.walker().walk_once(heap.progress(), || Nothing);
    note_walks(heap.walker(), &walked.segments, &notes);
    for (i, walk) in walked.segments {
        if let Some(segment) = segments.get_mut(i) {
            segment.walk = Some(walk);
        }
    }
    notes.finish(segments.into_iter().collect())
}
