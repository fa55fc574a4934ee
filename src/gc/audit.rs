//! The lists of segments link by link, for who wants to know where one breaks: [`Gc::segments`] takes what it can get.

use std::collections::HashSet;

use super::segments::kind_of;
use super::{Gc, HeapId};
use crate::base::{Addr, AddrRange};
use crate::model::Generation;

/// How a list of segments ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListEnd {
    /// As it should.
    End,
    /// A structure is not in the dump.
    Absent,
    /// At a segment that was on this list before, or is on another one.
    Seen,
    /// At something that cannot be a segment.
    NoSegment,
    /// Past the cap of the reader.
    TooLong,
}

/// One list of segments.
#[derive(Clone, Debug)]
pub struct SegmentList {
    /// Heap that it belongs to.
    pub heap: u64,
    /// Generation that it belongs to.
    pub generation: Generation,
    /// Its segments.
    pub segments: Vec<Addr>,
    /// How it ends.
    pub end: ListEnd,
    /// Where the last link lies: in the last segment, or in the generation table.
    pub link: Addr,
    /// What the last link says.
    pub target: Addr,
}

/// What a heap says about its segments beside the lists.
#[derive(Clone, Copy, Debug)]
pub struct HeapClaims {
    /// The heap.
    pub heap: u64,
    /// The segment that is being allocated from.
    pub ephemeral: Option<Addr>,
    /// Segments build: where generation 0 and 1 begin inside of it.
    pub starts: Option<(Addr, Addr)>,
}

/// What is known while the lists are followed.
struct Known {
    /// The first segments of all lists.
    heads: HashSet<Addr>,
    /// Where objects lie that belong to these.
    taken: Vec<AddrRange>,
    seen: HashSet<Addr>,
}

impl Gc {
    /// Every list of segments. Nothing is noted.
    pub fn segment_lists(&self) -> Vec<SegmentList> {
        let soh = self.facts().max_generation.unwrap_or(2).min(self.facts().total_generations);
        // The segments build hangs all small-object segments on the list of generation 2.
        let first = if self.facts().regions { 0 } else { soh };
        let mut places = Vec::new();
        for heap in &self.facts().heaps {
            for generation in first..self.facts().total_generations {
                let Some(kind) = kind_of(generation, soh) else { continue };
                let Some(entry) = self.generation_entry(*heap, generation) else { continue };
                places.push((*heap, kind, entry.plus(self.generation.start_segment)));
            }
        }
        // A link to the first segment of a list is wrong, the list is not.
        let heads: HashSet<Addr> = places.iter().filter_map(|(.., link)| self.memory.ptr(*link).ok()).collect();
        let taken = heads.iter().filter_map(|at| self.objects_of_segment(*at)).collect();
        let mut known = Known { heads, taken, seen: HashSet::new() };
        places.into_iter().map(|(heap, kind, link)| self.segment_list(heap, kind, link, &mut known)).collect()
    }

    /// Where the objects of the segment at `at` lie, if its bounds make sense.
    fn objects_of_segment(&self, at: Addr) -> Option<AddrRange> {
        let raw = self.raw_segment(at).ok()?;
        (raw.mem <= raw.allocated && raw.allocated <= raw.committed && raw.committed <= raw.reserved)
            .then(|| AddrRange::new(raw.mem, raw.committed))
    }

    fn segment_list(&self, heap: HeapId, generation: Generation, link: Addr, known: &mut Known) -> SegmentList {
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
            // No segment's structure lies among objects.
            if !target.is_aligned(self.memory.ptr_bytes()) || known.taken.iter().any(|r| r.contains(target)) {
                break ListEnd::NoSegment;
            }
            let Ok(raw) = self.raw_segment(target) else { break ListEnd::Absent };
            // One value out of order is a damaged segment; nothing in order is none at all.
            let order = [raw.mem <= raw.allocated, raw.allocated <= raw.committed, raw.committed <= raw.reserved, raw.mem < raw.reserved];
            if raw.mem.is_null() || order.iter().filter(|fits| !**fits).count() > 2 {
                break ListEnd::NoSegment;
            }
            if (list.link != link && known.heads.contains(&target)) || !known.seen.insert(target) {
                break ListEnd::Seen;
            }
            list.segments.push(target);
            list.link = target.plus(self.segment.next);
        };
        list
    }

    /// What each heap says about its segments beside the lists. Nothing is noted.
    pub fn heap_claims(&self) -> Vec<HeapClaims> {
        let claims = |heap: &HeapId| {
            let ephemeral = self.places.ephemeral_segment.and_then(|p| p.of(heap.address)).and_then(|at| self.memory.ptr(at).ok());
            let start = |generation| {
                let at = self.generation_entry(*heap, generation)?.plus(self.generation.allocation_start?);
                self.memory.ptr(at).ok()
            };
            HeapClaims { heap: heap.index, ephemeral: ephemeral.filter(|a| !a.is_null()), starts: start(0).zip(start(1)) }
        };
        self.facts().heaps.iter().map(claims).collect()
    }

    /// The heap that the segment at `segment` says it belongs to; only server GC writes it down.
    pub fn segment_owner(&self, segment: Addr) -> Option<Addr> {
        self.memory.ptr(segment.plus(self.segment.heap?)).ok()
    }
}
