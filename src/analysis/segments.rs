//! Every segment or region.

use super::walk::Nothing;
use crate::base::Answer;
use crate::model::{SegmentModel, SegmentsReport};
use crate::session::{Error, Heap, Runtime, note_walks};

/// How much to tell.
#[derive(Clone, Copy, Debug, Default)]
pub struct SegmentsQuery {
    /// Also what the GC holds outside of the segments in use: free regions, bookkeeping, handle tables.
    pub free: bool,
    /// Walk through the objects of each.
    pub walk: bool,
}

/// The segments of `runtime`'s heap.
///
/// # Errors
/// [`Error::Contract`] where the GC's structures, or with [`SegmentsQuery::walk`] the sizes of objects, are not described.
pub fn segments(runtime: &Runtime, query: &SegmentsQuery) -> Result<Answer<SegmentsReport>, Error> {
    let notes = runtime.begin();
    let gc = notes.with(runtime.gc()?);
    let segments = if query.walk { notes.take(walked(&runtime.heap()?)) } else { notes.take(gc.segments()) };
    let regions = query.free.then(|| notes.take(gc.regions()));
    Ok(notes.finish(SegmentsReport { segments, regions }))
}

/// The segments of `heap`, each with what a walk through its objects met.
fn walked(heap: &Heap) -> Answer<Vec<SegmentModel>> {
    let notes = heap.begin();
    let mut segments = heap.segments().to_vec();
    let walked = heap.walker().walk_once(heap.progress(), || Nothing);
    note_walks(heap.walker(), &walked.segments, &notes);
    for (i, walk) in walked.segments {
        if let Some(segment) = segments.get_mut(i) {
            segment.walk = Some(walk);
        }
    }
    notes.finish(segments)
}
