//! Finds the GC's records in the variables of its image and in its heaps.
//!
//! * `dynamic_data_table` has one entry per generation. Each entry ends with a pointer to the entry of the same generation in
//!   `static_data_table`, so consecutive pointers differ by the size of a `static_data_table` entry. With server GC, the table is part of
//!   each `gc_heap`, at the same offset in all of them.
//! * `last_recorded_gc_info`: the generations' sizes and fragmentation add up to the heap's, and committed memory is a whole number of
//!   pages. The index is at most the clock of the condemned generation.
//! * `settings`: the index is that of the last collection, and every other field has a possible value.
//!
//! A structure is not used if more candidates are found than the GC has copies of it.

use std::borrow::Cow;

use super::super::fields::RecordFields;
use super::super::{Gc, HeapId};
use crate::base::{Addr, AddrRange, PAGE, PtrSize, Shape, len64, ranges};
use crate::data::{Field, GCDynamicData, GCHeap, Source, Structure, Word};
use crate::memory::{Image, ReadError};

/// The bytes of a candidate for a structure.
pub(super) struct Raw<'m> {
    pub(super) at: Addr,
    bytes: Cow<'m, [u8]>,
    shape: Shape,
}

impl Raw<'_> {
    /// Bytes of a pointer; sizes of objects are multiples of it.
    pub(super) fn align(&self) -> u64 {
        self.shape.ptr.bytes()
    }
}

impl Source for Raw<'_> {
    fn uint<const N: usize>(&self, at: Addr) -> Result<u64, ReadError> {
        let offset = at.since(self.at).and_then(|offset| usize::try_from(offset).ok());
        let bytes = offset.and_then(|offset| self.bytes.get(offset..)?.get(..N));
        bytes.map(|bytes| self.shape.number(bytes)).ok_or(ReadError { address: at, len: len64(N) })
    }

    fn word(&self, at: Addr) -> Result<u64, ReadError> {
        match self.shape.ptr {
            PtrSize::Four => self.uint::<4>(at),
            PtrSize::Eight => self.uint::<8>(at),
        }
    }
}

/// A search through the variables of a GC.
pub(super) struct Search<'g> {
    pub(super) gc: &'g Gc,
    pub(super) records: &'g RecordFields,
    pub(super) image: &'g Image,
}

impl<'g> Search<'g> {
    /// Index of the oldest small-object generation.
    pub(super) fn oldest(&self) -> u64 {
        self.gc.facts.oldest()
    }

    /// The parts of the image with variables: what is writable after relocation.
    fn variables(&self) -> Vec<AddrRange> {
        ranges::subtract(&ranges::union(self.image.writable.clone(), 0), &ranges::union(self.image.relocated.clone(), 0))
    }

    /// `len` bytes at `at`, as a candidate. They are not marked as read: see [`Search::keep`].
    pub(super) fn peek(&self, at: Addr, len: u64) -> Option<Raw<'g>> {
        let memory = &self.gc.memory;
        let in_one_piece = memory.contiguous(at).and_then(|b| b.get(..usize::try_from(len).ok()?)).map(Cow::Borrowed);
        let bytes = in_one_piece.or_else(|| memory.bytes(at, len).ok())?;
        Some(Raw { at, bytes, shape: memory.shape() })
    }

    /// Marks the bytes of a structure that was found as read.
    pub(super) fn keep(&self, at: Addr, len: u64) {
        self.gc.memory.touch(AddrRange::of(at, len));
    }

    /// The nonzero words of the GC's variables.
    pub(super) fn words(&self) -> impl Iterator<Item = (Addr, u64)> + 'g {
        let gc = self.gc;
        self.variables().into_iter().flat_map(|range| gc.memory.set_words(range))
    }

    /// A field of an entry of a dynamic data table.
    pub(super) fn dynamic(&self, table: &Raw<'_>, generation: u64, field: Field<GCDynamicData, Word>) -> Option<u64> {
        self.records.dynamic.get(table, table.at.element(generation, self.records.dynamic_size), field)
    }

    /// The dynamic data table of each heap, with the heap's index.
    pub(super) fn tables(&self) -> Option<Vec<(u64, Raw<'g>)>> {
        let static_data = self.records.dynamic.offset(GCDynamicData::StaticData)?;
        let len = self.records.dynamic_size.checked_mul(self.gc.facts.total_generations)?;
        let table = |at: Addr| self.peek(at, len).filter(|raw| self.is_table(raw));
        let inside = |n: &(Addr, u64)| self.image.range.contains(Addr(n.1));
        let first = self.gc.facts.heaps.first()?;
        let Some(heap) = first.address else {
            let places = self.words().filter(inside).filter_map(|(at, _)| at.minus(static_data));
            let at = only(places.filter(|at| table(*at).is_some()))?;
            self.keep(at, len);
            return Some(vec![(first.index, table(at)?)]);
        };
        let size = self.heap_size()?;
        let heaps = || self.gc.facts.heaps.iter().filter_map(|h| Some((h.index, h.address?)));
        let places = self.gc.memory.set_words(AddrRange::of(heap, size)).filter(inside);
        let offsets = places.filter_map(|(at, _)| at.minus(static_data)?.since(heap));
        let offset = only(offsets.filter(|offset| heaps().all(|(_, h)| table(h.plus(*offset)).is_some())))?;
        heaps()
            .map(|(index, heap)| {
                self.keep(heap.plus(offset), len);
                Some((index, table(heap.plus(offset))?))
            })
            .collect()
    }

    /// Minimum size of a `gc_heap`: up to the last field that the GC publishes.
    fn heap_size(&self) -> Option<u64> {
        GCHeap::last_field(&self.gc.descriptor)
    }

    /// The searched memory: the variables of the image, and each heap including a table that may follow its last published field.
    fn searched(&self) -> impl Iterator<Item = AddrRange> + '_ {
        let table = self.records.dynamic_size.saturating_mul(self.gc.facts.total_generations);
        let heap = move |h: &HeapId| Some(AddrRange::new(h.address?, h.address?.plus(self.heap_size()?.saturating_add(table))));
        self.variables().into_iter().chain(self.gc.facts.heaps.iter().filter_map(heap))
    }

    /// A searched range that is not completely in the dump.
    pub(super) fn absent(&self) -> Option<AddrRange> {
        self.searched().find(|r| self.gc.memory.captured(*r) < r.len())
    }

    /// A page of the image that is only partly in the dump. Whole pages that were never written are missing in every heap dump.
    pub(super) fn torn(&self) -> Option<AddrRange> {
        self.variables().into_iter().find_map(|range| {
            let ends = self.gc.memory.stretches(range).flat_map(|(at, bytes)| [at, at.plus(len64(bytes.len()))]);
            let torn = |at: &Addr| *at != range.start && *at != range.end && self.gc.memory.is_torn(*at);
            ends.filter(torn).map(|at| AddrRange::new(at.align_down(PAGE), at.align_down(PAGE).plus(PAGE))).next()
        })
    }

    fn is_table(&self, raw: &Raw<'_>) -> bool {
        let generations = 0..self.gc.facts.total_generations;
        let static_data = |g| self.dynamic(raw, g, GCDynamicData::StaticData);
        let Some(first) = static_data(0) else { return false };
        let linked = |g: u64| static_data(g) == g.checked_mul(self.records.static_size).and_then(|n| first.checked_add(n));
        // A collection of a generation also collects every younger generation.
        let count = |g| self.dynamic(raw, g, GCDynamicData::CollectionCount);
        let ordered = |g: u64| count(g).zip(count(g.saturating_add(1))).is_some_and(|(younger, older)| younger >= older);
        first != 0 && generations.clone().all(linked) && (0..self.oldest()).all(ordered) && generations.count() > 1
    }
}

/// The item of `items`, if it is the only one.
fn only<T>(mut items: impl Iterator<Item = T>) -> Option<T> {
    let first = items.next()?;
    items.next().is_none().then_some(first)
}
