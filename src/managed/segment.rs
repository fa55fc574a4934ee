//! Segments of the heap.

use std::fmt;

use super::Objects;
use crate::base::{Addr, AddrRange, Indices};
use crate::gc::SegmentIndex;
use crate::model::{Generation, SegmentModel};
use crate::session::Heap;

/// A segment or region of the heap. For all its fields, see [`segments`](crate::analysis::segments()).
///
/// ```
/// let heap = gcdump::open("dumps/net10-wks-basics-heap.dmp.zst")?.runtime()?.heap()?;
/// for segment in heap.segments() {
///     println!("{} of heap {}: {} objects", segment.generation(), segment.gc_heap(), segment.objects().count());
/// }
/// # Ok::<(), gcdump::Error>(())
/// ```
#[derive(Clone)]
pub struct Segment {
    heap: Heap,
    index: SegmentIndex,
    address: Addr,
    gc_heap: u64,
    generation: Generation,
    range: AddrRange,
    committed_bytes: u64,
    captured_bytes: u64,
}

impl fmt::Debug for Segment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Segment({} {} from {} to {})", self.address, self.generation, self.range.start, self.range.end)
    }
}

/// Segments are equal if they are in the same heap and have the same place in its list.
impl PartialEq for Segment {
    fn eq(&self, other: &Segment) -> bool {
        self.index == other.index && self.heap.is(&other.heap)
    }
}

impl Eq for Segment {}

impl Heap {
    /// The segments, ordered by GC heap (server GC has several) and generation.
    pub fn segments(&self) -> Vec<Segment> {
        let handle = |(index, model): (SegmentIndex, &SegmentModel)| Segment {
            heap: self.clone(),
            index,
            address: model.address,
            gc_heap: model.heap,
            generation: model.generation,
            range: AddrRange::new(model.start, model.allocated),
            committed_bytes: model.committed_bytes,
            captured_bytes: model.captured_bytes,
        };
        self.walker().segments_enumerated().map(handle).collect()
    }
}

impl Segment {
    /// The heap that the segment belongs to.
    pub fn heap(&self) -> &Heap {
        &self.heap
    }

    /// Address of the `heap_segment` structure; for a [carved](crate::model::Carve) heap, the start of the range in which objects were found.
    pub fn address(&self) -> Addr {
        self.address
    }

    /// Index of the GC heap, from 0. Server GC has several.
    pub fn gc_heap(&self) -> u64 {
        self.gc_heap
    }

    /// Generation or segment kind. With segments instead of regions, generations 0 and 1 are in the
    /// [ephemeral](Generation::Ephemeral) segment; [`Heap::generation_of`] distinguishes them.
    pub fn generation(&self) -> Generation {
        self.generation
    }

    /// The range of the objects. In a segment in which objects are being allocated, it ends at the current end of allocation.
    pub fn range(&self) -> AddrRange {
        self.range
    }

    /// Committed bytes, including the header page.
    pub fn committed_bytes(&self) -> u64 {
        self.committed_bytes
    }

    /// Bytes of [`Segment::range`] that are in the dump.
    pub fn captured_bytes(&self) -> u64 {
        self.captured_bytes
    }

    /// The objects of the segment, by address.
    ///
    /// ```
    /// use rayon::prelude::*;
    ///
    /// let heap = gcdump::open("dumps/net10-wks-basics-heap.dmp.zst")?.runtime()?.heap()?;
    /// let bytes: u64 = heap.segments().par_iter().map(|segment| segment.objects().map(|object| object.size()).sum::<u64>()).sum();
    /// assert_eq!(bytes, heap.stat()?.totals.bytes);
    /// # Ok::<(), gcdump::Error>(())
    /// ```
    pub fn objects(&self) -> Objects {
        self.heap.objects_within(Indices::new(self.index, 1), None)
    }
}
