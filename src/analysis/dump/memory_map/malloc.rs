//! Contents of `malloc` heaps, and pages that were never written.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::analysis::{MallocHeapModel, MallocModel};
use crate::base::cancel::tick;
use crate::base::{Addr, AddrRange, Collector, Count, Missing, PAGE, len64};
use crate::memory::Memory;
use crate::memory::malloc::{MallocHeap, Sizes, most_common};
use crate::model::{MallocHeapKind, MallocUse};

/// Maximum number of block sizes listed.
const SIZES: usize = 10;

/// Determines the used and free blocks in `heaps`.
pub(super) fn blocks(memory: &Memory, heaps: &[MallocHeap], notes: &Collector) -> MallocModel {
    let mut rows: BTreeMap<(MallocHeapKind, Option<Addr>), MallocHeapModel> = BTreeMap::new();
    let mut sizes = Sizes::new();
    let mut lost = None;
    for heap in heaps {
        let used = heap.used(memory, &mut sizes);
        if used.is_none() && memory.captured(heap.range) < heap.range.len() {
            lost = lost.or(Some(heap.range.start));
        }
        let row = rows.entry((heap.kind, heap.arena)).or_insert(MallocHeapModel {
            kind: heap.kind,
            start: heap.arena.unwrap_or(heap.range.start),
            ranges: 0,
            bytes: 0,
            parts: Some(MallocUse::default()),
        });
        row.ranges.bump();
        row.bytes.grow(heap.range.len());
        row.parts = row.parts.zip(used).map(|(a, b)| a.with(b));
    }
    if let Some(at) = lost {
        notes.add(Missing::NativeMemory, at, "the use of malloc heaps is unknown: not all of their blocks are in the dump");
    }
    let mut heaps: Vec<MallocHeapModel> = rows.into_values().collect();
    heaps.sort_by_key(|heap| (Reverse(heap.bytes), heap.start));
    MallocModel { heaps, sizes: most_common(sizes, SIZES) }
}

/// Returns the number of bytes of all-zero pages in `range` that are in the dump.
pub(super) fn zero_pages(memory: &Memory, range: AddrRange) -> u64 {
    let page = usize::try_from(PAGE).unwrap_or(usize::MAX);
    let is_zero = |bytes: &[u8]| {
        tick();
        bytes.as_chunks::<16>().0.iter().all(|chunk| u128::from_ne_bytes(*chunk) == 0)
    };
    let mut zero = 0u64;
    for (at, bytes) in memory.stretches(range) {
        let skip = usize::try_from(at.plus(PAGE.saturating_sub(1)).align_down(PAGE).since(at).unwrap_or(0)).unwrap_or(usize::MAX);
        let pages = bytes.get(skip..).unwrap_or_default().chunks_exact(page).filter(|page| is_zero(page));
        zero.grow(len64(pages.count()).saturating_mul(PAGE));
    }
    zero
}
