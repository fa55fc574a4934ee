//! The heap by generation.

use crate::base::{Answer, Count, share};
use crate::model::{Generation, GenerationModel, HeapModel, HeapReport, HeapTotals, SegmentModel};
use crate::session::{Error, Runtime};

/// How much to tell.
#[derive(Clone, Copy, Debug, Default)]
pub struct HeapQuery {
    /// Everything else that the GC publishes about each heap.
    pub detail: bool,
}

/// Each heap by generation, with its allocation contexts.
///
/// # Errors
/// [`Error::Contract`] where the GC's structures are not described.
pub fn heap(runtime: &Runtime, query: &HeapQuery) -> Result<Answer<HeapReport>, Error> {
    let notes = runtime.begin();
    let gc = notes.with(runtime.gc()?);
    let segments = notes.take(gc.segments());
    let all = totals(&segments);
    let heaps = gc.facts().heaps.iter().map(|heap| {
        let own: Vec<&SegmentModel> = segments.iter().filter(|s| s.heap == heap.index).collect();
        HeapModel {
            index: heap.index,
            address: heap.address,
            generations: generations(&own, all.allocated),
            totals: totals(own.iter().copied()),
            detail: query.detail.then(|| notes.take(gc.detail(*heap))),
        }
    });
    let heaps = heaps.collect();
    // Without the thread list the heap is still the heap: only the allocation contexts of the threads are unknown.
    notes.extend(&runtime.context_losses());
    let allocation_contexts = gc.contexts(runtime.threads_if_any());
    Ok(notes.finish(HeapReport { heaps, totals: all, allocation_contexts }))
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
        // Four digits: every machine prints the same.
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
