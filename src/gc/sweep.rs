//! Liveness during a background sweep: dead objects not yet swept may refer to memory that is already free.
//!
//! Source: `gc_heap::background_object_marked` in `gc.cpp`; `docs/internals/gc-structures.md#mark-array`. One bit of the mark
//! array covers 16 bytes on 64-bit targets and 8 on 32-bit ones; a word has 32 bits.

use super::Gc;
use crate::base::{Addr, AddrRange};
use crate::data::GCHeap;
use crate::memory::{Memory, Window};
use crate::model::{Generation, SegmentModel};

/// `c_gc_state` of a sweeping background collection.
const PLANNING: u64 = 1;
/// Flag of a segment already swept by this collection (`heap_segment_flags_swept`).
const SWEPT: u64 = 0x10;
const WORD_BITS: u64 = 32;
const WORD_BYTES: u64 = 4;

#[derive(Clone, Copy, Debug)]
struct HeapSweep {
    heap: u64,
    marks: Addr,
    next: Addr,
    saved: (Addr, Addr),
    saved_segment: Option<Addr>,
    saved_start: Option<Addr>,
}

/// A background sweep in progress.
#[derive(Clone, Debug)]
pub struct Sweep {
    heaps: Vec<HeapSweep>,
    /// Bytes covered by one mark bit.
    pitch: u64,
}

impl Sweep {
    /// Whether the object at `address` in `segment` counts as live; `None` if its mark is not in the dump.
    pub fn is_live(&self, window: &mut Window<'_>, segment: &SegmentModel, address: Addr) -> Option<bool> {
        let born = segment.background_allocated.unwrap_or(Addr::NULL);
        if segment.generation == Generation::Frozen || segment.flags_value & SWEPT != 0 || born.is_null() {
            return Some(true);
        }
        let heap = self.heaps.iter().find(|h| h.heap == segment.heap)?;
        let swept = segment.start <= heap.next && heap.next <= segment.reserved && address < heap.next;
        let young = heap.saved_segment == Some(segment.address) && heap.saved_start.is_some_and(|start| address >= start);
        let outside = address < heap.saved.0 || address >= heap.saved.1;
        if swept || young || address >= born || outside {
            return Some(true);
        }
        self.marked(window, heap, address)
    }

    /// Whether the collection marked the object at `address` in `segment`; `None` if its mark is not in the dump. An object that was
    /// allocated after the collection began may be live without a mark.
    pub fn is_marked(&self, window: &mut Window<'_>, segment: &SegmentModel, address: Addr) -> Option<bool> {
        self.marked(window, self.heaps.iter().find(|h| h.heap == segment.heap)?, address)
    }

    /// Marks the words of the mark array for `segment` as read.
    pub(crate) fn touch(&self, memory: &Memory, segment: &SegmentModel) {
        let marks = self.heaps.iter().find(|h| h.heap == segment.heap).map(|h| h.marks);
        let word = |address| mark_place(marks?, self.pitch, address).map(|(word, _)| word);
        if let Some((first, last)) = word(segment.start).zip(word(segment.allocated)) {
            memory.touch(AddrRange::new(first, last.plus(WORD_BYTES)));
        }
    }

    fn marked(&self, window: &mut Window<'_>, heap: &HeapSweep, address: Addr) -> Option<bool> {
        let (word, bit) = mark_place(heap.marks, self.pitch, address)?;
        Some(window.u32(word)? >> bit & 1 != 0)
    }
}

/// Location of the mark for `address`: the address of its word and the bit within it.
fn mark_place(marks: Addr, pitch: u64, address: Addr) -> Option<(Addr, u32)> {
    let mark = address.0.checked_div(pitch)?;
    Some((marks.element(mark / WORD_BITS, WORD_BYTES), u32::try_from(mark % WORD_BITS).ok()?))
}

impl Gc {
    /// The background sweep in progress, if any.
    ///
    /// # Errors
    /// The reason it cannot be read.
    pub fn sweep(&self) -> Option<Result<Sweep, &'static str>> {
        (self.facts.state == Some(PLANNING)).then(|| {
            let heaps = self.facts.heaps.iter().map(|heap| -> Result<HeapSweep, &'static str> {
                let read = |field| self.heap_field(*heap, field);
                let absent = "a background collection was sweeping, but its mark array is not in the dump";
                Ok(HeapSweep {
                    heap: heap.index,
                    marks: read(GCHeap::MarkArray).filter(|a| !a.is_null()).ok_or(absent)?,
                    next: read(GCHeap::NextSweepObj).ok_or(absent)?,
                    saved: read(GCHeap::BackgroundMinSavedAddr).zip(read(GCHeap::BackgroundMaxSavedAddr)).ok_or(absent)?,
                    saved_segment: read(GCHeap::SavedSweepEphemeralSeg).filter(|a| !a.is_null()),
                    saved_start: read(GCHeap::SavedSweepEphemeralStart),
                })
            });
            Ok(Sweep { heaps: heaps.collect::<Result<_, _>>()?, pitch: self.memory.ptr_bytes().saturating_mul(2) })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_covers_two_pointers() {
        // 64-bit: 16 bytes a bit, so 512 bytes a word.
        assert_eq!(mark_place(Addr(0x1000), 16, Addr(0x400)), Some((Addr(0x1008), 0)));
        assert_eq!(mark_place(Addr(0x1000), 16, Addr(0x418)), Some((Addr(0x1008), 1)));
        // 32-bit: 8 bytes a bit.
        assert_eq!(mark_place(Addr(0x1000), 8, Addr(0x418)), Some((Addr(0x1010), 3)));
    }
}
