//! Segments or regions of the heap.

mod report;

pub use report::*;

use crate::analysis::sort::{self, Key};
use crate::base::{Addr, AddrRange, Answer, IndexVec, PAGE};
use crate::gc::SegmentIndex;
use crate::model::{Generation, Order, RegionModel, SegmentModel, SegmentSort};
use crate::session::{Error, Heap, Runtime};

/// Arguments of `segments`.
#[derive(Clone, Copy, Debug, Default)]
pub struct SegmentsQuery {
    /// Whether to also list GC memory outside the segments in use: free regions, bookkeeping, handle tables.
    pub free: bool,
    /// Whether to walk the objects of each segment.
    pub walk: bool,
    /// Only the segment or region that contains this address, or whose `heap_segment` is at this address.
    pub at: Option<Addr>,
    /// Order of the segments in use, and of other memory if it has the column. By default, the order of the GC's lists.
    pub sort: Option<Order<SegmentSort>>,
}

/// Lists the segments of `runtime`'s heap.
///
/// # Errors
/// [`Error::Contract`] if the descriptor does not describe the GC's structures or, with [`SegmentsQuery::walk`], object sizes;
/// [`Error::Query`] for a column that requires the walk; [`Error::NotIn`] if no segment or region is at [`SegmentsQuery::at`].
pub fn segments(runtime: &Runtime, query: &SegmentsQuery) -> Result<Answer<SegmentsReport>, Error> {
    use SegmentSort::{Address, AllocatedBytes, CommittedBytes, Generation, Heap, Start};
    if !query.walk {
        let has = [Heap, Generation, Address, Start, AllocatedBytes, CommittedBytes];
        sort::check(query.sort.as_ref(), &has, "segments without `walk`")?;
    }
    let notes = runtime.begin();
    let gc = notes.with(runtime.gc()?);
    let mut segments = if query.walk { notes.take(walked(&runtime.heap()?)) } else { notes.take(gc.segments()) };
    if let Some(at) = query.at {
        segments.retain(|s| s.address == at || AddrRange::new(s.start.align_down(PAGE), s.reserved).contains(at));
    }
    if let Some(order) = query.sort {
        sort::sort(&mut segments, order.direction, |s| key(s, order.by));
    }
    gc.note_figures(&segments, &notes);
    let elsewhere = query.at.filter(|_| segments.is_empty());
    let mut regions = (query.free || elsewhere.is_some()).then(|| notes.take(gc.regions()));
    if let (Some(at), Some(regions)) = (query.at, &mut regions) {
        let around = |r: &RegionModel| r.segment.as_ref().map_or(r.range, |s| AddrRange::new(r.range.start, s.reserved));
        // The `heap_segment` of a region is in the bookkeeping memory, so an exact match of its address takes precedence over the range that contains
        // it.
        let named = regions.iter().any(|r| r.address == at);
        regions.retain(|r| if named { r.address == at } else { around(r).contains(at) });
    }
    if let (Some(order), Some(regions)) = (query.sort, &mut regions) {
        sort::sort(regions, order.direction, |r| region_key(r, order.by));
    }
    let answer = notes.finish(SegmentsReport { segments, not_listed: None, regions, carved: gc.carved_model() });
    match elsewhere.filter(|_| answer.regions.as_ref().is_none_or(Vec::is_empty)) {
        // If a list could not be read to its end, the address may be in the unread part.
        Some(at) if answer.complete() => Err(Error::NotIn(at, "a segment or region")),
        _ => Ok(answer),
    }
}

fn key(s: &SegmentModel, by: SegmentSort) -> Option<Key<'_>> {
    match by {
        SegmentSort::Heap => Key::least(Some(s.heap)),
        SegmentSort::Generation => Key::place(&Generation::ALL, &s.generation),
        SegmentSort::Address => Key::at(s.address),
        SegmentSort::Start => Key::at(s.start),
        SegmentSort::AllocatedBytes => Key::most(s.allocated_bytes),
        SegmentSort::CommittedBytes => Key::most(s.committed_bytes),
        SegmentSort::Objects => Key::most(s.walk.as_ref().map(|w| w.objects)),
        SegmentSort::FreeBytes => Key::most(s.walk.as_ref().map(|w| w.free_bytes)),
    }
}

/// Returns the sort key of a region. For a column that regions do not have, all keys are equal.
fn region_key(r: &RegionModel, by: SegmentSort) -> Option<Key<'_>> {
    match by {
        SegmentSort::Heap => Key::least(r.heap),
        SegmentSort::Address => Key::at(r.address),
        SegmentSort::Start => Key::at(r.range.start),
        SegmentSort::CommittedBytes => Key::most(r.bytes),
        SegmentSort::Generation | SegmentSort::AllocatedBytes | SegmentSort::Objects | SegmentSort::FreeBytes => None,
    }
}

/// Returns the segments of `heap`, each with the result of walking its objects.
fn walked(heap: &Heap) -> Answer<Vec<SegmentModel>> {
    let notes = heap.begin();
    let mut segments: IndexVec<SegmentIndex, SegmentModel> = heap.segment_models().to_vec().into();
    for (i, walk) in &notes.with(heap.type_sums()).walks {
        if let Some(segment) = segments.get_mut(*i) {
            segment.walk = Some(walk.clone().with_free_apart());
        }
    }
    notes.finish(segments.into_iter().collect())
}
