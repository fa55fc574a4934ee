//! The heap by generation.

mod report;

pub use report::*;

use crate::analysis::heap::heap_map::{MapQuery, map};
use crate::base::{Answer, Count, share};
use crate::model::{Generation, HeapDetail, SegmentModel};
use crate::session::{Error, Runtime};

/// Arguments of `heap`.
#[derive(Clone, Copy, Debug, Default)]
pub struct HeapQuery {
    /// Whether to include the GC's other data about each heap, and its records of collections.
    pub detail: bool,
    /// Only the heap of this index.
    pub heap: Option<u64>,
    /// If set, walks the objects and maps the contents of each segment.
    pub map: Option<MapQuery>,
}

/// Reads each heap by generation, and the allocation contexts.
///
/// # Errors
/// [`Error::Contract`] if the GC's structures are not described, [`Error::Query`] for an unknown heap. With [`HeapQuery::map`], also the errors of
/// opening the heap and, for garbage, of building its graph.
pub fn heap(runtime: &Runtime, query: &HeapQuery) -> Result<Answer<HeapReport>, Error> {
    let notes = runtime.begin();
    let gc = notes.with(runtime.gc()?);
    let wanted = |heap: u64| query.heap.is_none_or(|h| h == heap);
    if let Some(index) = query.heap.filter(|index| gc.facts().heaps.iter().all(|h| h.index != *index)) {
        let what = format!("there is no heap {index}: the heaps are {}", indices(gc.facts().heaps.iter().map(|h| h.index)));
        return Err(Error::Query(what).given(&notes.notes()));
    }
    let map = match &query.map {
        Some(map_query) => Some(notes.take(map(&runtime.heap()?, map_query, wanted)?)),
        None => None,
    };
    let mut segments = notes.take(gc.segments());
    let all = totals(&segments);
    segments.retain(|s| wanted(s.heap));
    let mut collections = if query.detail { runtime.collections(&notes) } else { None };
    let heaps = gc.facts().heaps.iter().filter(|h| wanted(h.index)).map(|heap| {
        let budgets = collections.as_mut().and_then(|c| c.heaps.iter_mut().find(|h| h.0 == heap.index).map(|h| std::mem::take(&mut h.1)));
        let own: Vec<&SegmentModel> = segments.iter().filter(|s| s.heap == heap.index).collect();
        HeapModel {
            index: heap.index,
            address: heap.address,
            generations: generations(&own, all.allocated),
            totals: totals(own.iter().copied()),
            detail: query.detail.then(|| HeapDetail { budgets, ..notes.take(gc.detail(*heap)) }),
        }
    });
    let heaps = heaps.collect();
    // Without the thread list, only the allocation contexts of threads are unknown.
    notes.extend(&runtime.context_losses());
    gc.note_figures(&segments, &notes);
    runtime.note_thread_ids(&notes);
    if let Ok(reader) = runtime.thread_reader() {
        reader.note_contexts(runtime.threads_if_any(&notes), &notes);
    }
    let mut allocation_contexts = notes.take(gc.contexts(runtime.threads_if_any(&notes)));
    allocation_contexts.retain(|c| c.heap.or(c.alloc_heap).is_none_or(wanted));
    let totals = totals(&segments);
    let (collections, carved) = (collections.map(|c| c.process), gc.carved_model());
    Ok(notes.finish(HeapReport { heaps, totals, collections, map, allocation_contexts, carved }))
}

fn indices(heaps: impl Iterator<Item = u64>) -> String {
    heaps.map(|h| h.to_string()).collect::<Vec<_>>().join(", ")
}

fn totals<'s>(segments: impl IntoIterator<Item = &'s SegmentModel>) -> HeapTotals {
    let mut totals = HeapTotals::default();
    for s in segments {
        totals.segments.bump();
        totals.allocated.grow(s.allocated_bytes);
        totals.committed.grow(s.committed_bytes);
        totals.reserved.grow(s.reserved_bytes);
    }
    totals
}

fn generations(segments: &[&SegmentModel], all: u64) -> Vec<GenerationModel> {
    let of = |generation: Generation| {
        let own: Vec<&SegmentModel> = segments.iter().copied().filter(|s| s.generation == generation).collect();
        let t = totals(own.iter().copied());
        // Rounded down to four digits after the point, so that the output is the same on every machine.
        let share = share(t.allocated, all).map_or(0.0, |s| (s * 10_000.0).floor() / 10_000.0);
        (!own.is_empty()).then(|| GenerationModel {
            generation,
            segments: t.segments,
            allocated: t.allocated,
            committed: t.committed,
            reserved: t.reserved,
            share,
            parts: own.iter().flat_map(|s| s.parts.clone()).collect(),
        })
    };
    Generation::ALL.into_iter().filter_map(of).collect()
}
