//! Walks segment lists link by link, to locate a broken link. [`Gc::segments`] returns all readable segments instead.

use std::collections::HashSet;

use super::segments::kind_of;
use super::{Gc, HeapId};
use crate::base::{Addr, AddrRange};
use crate::data::{self, GCHeap, HeapSegment};
use crate::model::Generation;

/// How a list of segments ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListEnd {
    /// At a null link, as expected.
    End,
    /// At a structure that is not in the dump.
    Absent,
    /// At a segment already seen on this list or another one.
    Seen,
    /// At an address that cannot be a segment.
    NoSegment,
    /// At the reader's limit.
    TooLong,
}

/// One list of segments.
#[derive(Clone, Debug)]
pub struct SegmentList {
    /// Index of the heap.
    pub heap: u64,
    /// Generation of the list.
    pub generation: Generation,
    /// Addresses of the segments, in list order.
    pub segments: Vec<Addr>,
    /// How the list ends.
    pub end: ListEnd,
    /// Address of the last link: in the last segment, or in the generation table.
    pub link: Addr,
    /// Value of the last link.
    pub target: Addr,
}

/// Facts that a heap records about its segments, in addition to the lists.
#[derive(Clone, Copy, Debug)]
pub struct HeapClaims {
    /// Index of the heap.
    pub heap: u64,
    /// The current allocation segment.
    pub ephemeral: Option<Addr>,
    /// With segments: allocation starts of generations 0 and 1 within `ephemeral`.
    pub starts: Option<(Addr, Addr)>,
}

/// State shared by the walks of all lists.
struct ListedSegments {
    /// The first segments of all lists.
    heads: HashSet<Addr>,
    /// Committed memory of the segments in `heads`, from the first object on.
    taken: Vec<AddrRange>,
    seen: HashSet<Addr>,
}

impl Gc {
    /// Every segment list, without notes.
    pub fn segment_lists(&self) -> Vec<SegmentList> {
        let soh = self.facts().oldest();
        // With segments, all small-object segments are on the list of generation 2.
        let first = if self.facts().regions { 0 } else { soh };
        let mut places = Vec::new();
        for heap in &self.facts().heaps {
            for generation in first..self.facts().total_generations {
                let Some(kind) = kind_of(generation, soh) else { continue };
                let Some(entry) = self.generation_entry(*heap, generation) else { continue };
                places.extend(self.generation.place(entry, data::Generation::StartSegment).map(|link| (*heap, kind, link)));
            }
        }
        // A link to the head of another list is a bad link; that list itself is sound.
        let heads: HashSet<Addr> = places.iter().filter_map(|(.., link)| self.memory.ptr(*link).ok()).collect();
        let taken = heads.iter().filter_map(|at| self.objects_of_segment(*at)).collect();
        let mut known = ListedSegments { heads, taken, seen: HashSet::new() };
        places.into_iter().map(|(heap, kind, link)| self.segment_list(heap, kind, link, &mut known)).collect()
    }

    /// Committed memory of the segment at `at`, from the first object on. `None` if the bounds of the segment are not in order.
    fn objects_of_segment(&self, at: Addr) -> Option<AddrRange> {
        let raw = self.raw_segment(at).ok()?;
        (raw.mem <= raw.allocated && raw.allocated <= raw.committed && raw.committed <= raw.reserved)
            .then(|| AddrRange::new(raw.mem, raw.committed))
    }

    fn segment_list(&self, heap: HeapId, generation: Generation, link: Addr, known: &mut ListedSegments) -> SegmentList {
        let mut list = SegmentList { heap: heap.index, generation, segments: Vec::new(), end: ListEnd::End, link, target: Addr::NULL };
        list.end = loop {
            let Ok(target) = self.memory.ptr(list.link) else { break ListEnd::Absent };
            list.target = target;
            if target.is_null() {
                break ListEnd::End;
            }
            if list.segments.len() >= self.limits.segments_per_list {
                break ListEnd::TooLong;
            }
            // A `heap_segment` never lies inside object memory.
            if !target.is_aligned(self.memory.ptr_bytes()) || known.taken.iter().any(|r| r.contains(target)) {
                break ListEnd::NoSegment;
            }
            let (Ok(raw), Ok(next)) = (self.raw_segment(target), self.segment.at(target, HeapSegment::Next)) else { break ListEnd::Absent };
            // With one or two bounds out of order, this is a damaged segment; with more, it is not a segment.
            let order = [raw.mem <= raw.allocated, raw.allocated <= raw.committed, raw.committed <= raw.reserved, raw.mem < raw.reserved];
            if raw.mem.is_null() || order.iter().filter(|fits| !**fits).count() > 2 {
                break ListEnd::NoSegment;
            }
            if (list.link != link && known.heads.contains(&target)) || !known.seen.insert(target) {
                break ListEnd::Seen;
            }
            list.segments.push(target);
            list.link = next;
        };
        list
    }

    /// The facts that each heap records about its segments in addition to the lists, without notes.
    pub fn heap_claims(&self) -> Vec<HeapClaims> {
        let claims = |heap: &HeapId| {
            let ephemeral = self.heap_field(*heap, GCHeap::EphemeralHeapSegment);
            let start = |generation| {
                let entry = self.generation_entry(*heap, generation)?;
                self.generation.get(&self.memory, entry, data::Generation::AllocationStart)
            };
            HeapClaims { heap: heap.index, ephemeral: ephemeral.filter(|a| !a.is_null()), starts: start(0).zip(start(1)) }
        };
        self.facts().heaps.iter().map(claims).collect()
    }

    /// Address of the `gc_heap` recorded in the segment at `segment`; only server GC records one.
    pub fn segment_owner(&self, segment: Addr) -> Option<Addr> {
        self.segment.get(&self.memory, segment, HeapSegment::Heap)
    }
}
