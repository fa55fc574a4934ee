//! The memory that is searched for objects, and the starts of the objects found in it. Threads take the memory in chunks.

use std::ops::Range;

use crate::base::hash::Map;
use crate::base::{Addr, AddrRange, Count, Shape, len64};
use crate::gc::walk::words;
use crate::memory::Memory;

/// Captured memory without a gap.
#[derive(Clone, Copy)]
pub(super) struct Area<'m> {
    pub(super) start: Addr,
    pub(super) bytes: &'m [u8],
}

impl Area<'_> {
    pub(super) fn end(&self) -> Addr {
        self.start.plus(len64(self.bytes.len()))
    }

    pub(super) fn range(&self) -> AddrRange {
        AddrRange::new(self.start, self.end())
    }

    #[inline]
    pub(super) fn at(&self, offset: usize) -> Addr {
        self.start.plus(len64(offset))
    }

    /// Skips zeros from `offset` on, up to `end`, in steps of 64 bytes. Returns an offset at most 64 bytes before the first word that is
    /// not zero.
    #[inline]
    pub(super) fn skip_zeros(&self, offset: usize, end: usize) -> usize {
        const LINE: usize = 64;
        let lines = self.bytes.get(offset..end).unwrap_or_default().chunks_exact(LINE);
        let zeros = lines.take_while(|line| line.iter().fold(0, |all, b| all | b) == 0).count();
        offset.saturating_add(zeros.saturating_mul(LINE))
    }

    /// Calls `visit` with the address and the value of each nonzero word of `word` bytes.
    pub(super) fn each_set(&self, shape: Shape, word: usize, mut visit: impl FnMut(Addr, u64)) {
        let end = self.bytes.len();
        let mut at = 0usize;
        while at < end {
            at = self.skip_zeros(at, end);
            for _ in 0..8 {
                let value = self.bytes.get(at..).and_then(|rest| words::word(shape, rest));
                if let Some(value) = value.filter(|value| *value != 0) {
                    visit(self.at(at), value);
                }
                at = at.saturating_add(word);
            }
        }
    }

    pub(super) fn offset(&self, at: Addr) -> Option<usize> {
        usize::try_from(at.since(self.start)?).ok().filter(|offset| *offset < self.bytes.len())
    }

    #[inline]
    pub(super) fn u32(&self, shape: Shape, offset: usize) -> Option<u32> {
        words::u32(shape, self.bytes.get(offset..)?)
    }
}

/// One bit for each word of a chunk.
#[derive(Clone, Debug, Default)]
pub(super) struct Bits {
    /// Empty if no bit is set.
    words: Vec<u64>,
}

impl Bits {
    pub(super) fn get(&self, index: u64) -> bool {
        usize::try_from(index / 64).ok().and_then(|i| self.words.get(i)).is_some_and(|w| w >> (index % 64) & 1 != 0)
    }

    /// Sets the bit of `index`, one of `all`.
    pub(super) fn set(&mut self, index: u64, all: u64) {
        if self.words.is_empty() {
            self.words = vec![0; usize::try_from(all.div_ceil(64)).unwrap_or(0)];
        }
        if let Some(word) = usize::try_from(index / 64).ok().and_then(|i| self.words.get_mut(i)) {
            *word |= 1 << (index % 64);
        }
    }

    pub(super) fn clear(&mut self, index: u64) {
        if let Some(word) = usize::try_from(index / 64).ok().and_then(|i| self.words.get_mut(i)) {
            *word &= !(1 << (index % 64));
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// The indices of the set bits.
    fn list(&self) -> impl Iterator<Item = u64> {
        let set = self.words.iter().enumerate().filter(|(_, word)| **word != 0);
        set.flat_map(|(i, word)| {
            (0..64).filter(move |bit| word >> bit & 1 != 0).map(move |bit| len64(i).saturating_mul(64).saturating_add(bit))
        })
    }
}

/// A run of objects. Each object begins where the previous one ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::gc) struct Run {
    pub(in crate::gc) start: Addr,
    /// Start of the next object, if there were one.
    pub(in crate::gc) end: Addr,
    /// The last object.
    pub(in crate::gc) last: Addr,
    pub(in crate::gc) objects: u64,
    /// Whether the run ended only because its chunk did.
    pub(in crate::gc) open: bool,
    /// Whether the last object is a large free block.
    pub(in crate::gc) gap: bool,
    /// Whether the run has an object directly after a large free block.
    pub(in crate::gc) bridged: bool,
}

/// Number of objects from which a run needs no further proof.
const LONG: u64 = 16;

impl Run {
    pub(in crate::gc) fn bytes(&self) -> u64 {
        self.end.since(self.start).unwrap_or(0)
    }

    /// Whether the run cannot be a coincidence: it has many objects, or an object directly after a large free block.
    pub(super) fn is_long(&self) -> bool {
        self.objects >= LONG || self.bridged
    }

    /// Appends `more`, the run that follows.
    pub(super) fn append(&mut self, more: &Run) {
        self.bridged |= more.bridged || (self.gap && more.objects > 0);
        (self.end, self.last, self.open, self.gap) = (more.end, more.last, more.open, more.gap);
        self.objects.grow(more.objects);
    }
}

/// Size of a chunk in bytes. The result depends on this size, not on the number of threads.
const CHUNK: u64 = 1 << 20;

/// The captured parts of `range`, each from its first aligned word on.
pub(super) fn captured(memory: &Memory, range: AddrRange) -> impl Iterator<Item = Area<'_>> {
    let word = memory.ptr_bytes();
    memory.stretches(range).filter_map(move |(start, bytes)| {
        let skip = start.0.checked_next_multiple_of(word)?.saturating_sub(start.0);
        let bytes = usize::try_from(skip).ok().and_then(|skip| bytes.get(skip..)).filter(|b| len64(b.len()) >= word)?;
        Some(Area { start: start.plus(skip), bytes })
    })
}

fn block_of(at: Addr) -> u64 {
    at.0 / CHUNK
}

/// A part of an area with the runs found in it.
#[derive(Clone, Debug)]
pub(super) struct Chunk {
    pub(super) area: usize,
    pub(super) range: AddrRange,
    /// By address.
    pub(super) runs: Vec<Run>,
    /// Starts of the objects of runs.
    pub(super) starts: Bits,
    /// Possible starts of objects that do not belong to a long run.
    pub(super) likely: Bits,
}

/// The searched memory.
pub(super) struct Areas<'m> {
    pub(super) list: Vec<Area<'m>>,
    /// By address.
    pub(super) chunks: Vec<Chunk>,
    /// The indices in `chunks` of the chunks in each block of [`CHUNK`] bytes, by block number.
    blocks: Map<u64, Range<usize>>,
    word: u64,
}

impl<'m> Areas<'m> {
    /// The captured memory of `ranges`, which are sorted and disjoint.
    pub(super) fn of(memory: &'m Memory, ranges: &[AddrRange]) -> Areas<'m> {
        let word = memory.ptr_bytes();
        let (mut list, mut chunks) = (Vec::new(), Vec::new());
        for area in ranges.iter().flat_map(|r| captured(memory, *r)) {
            let mut at = area.start;
            while at < area.end() {
                let end = at.plus(CHUNK).align_down(CHUNK).min(area.end());
                let range = AddrRange::new(at, end);
                chunks.push(Chunk { area: list.len(), range, runs: Vec::new(), starts: Bits::default(), likely: Bits::default() });
                at = end;
            }
            list.push(area);
        }
        let mut blocks: Map<u64, Range<usize>> = Map::default();
        for (i, chunk) in chunks.iter().enumerate() {
            let next = i.saturating_add(1);
            blocks.entry(block_of(chunk.range.start)).and_modify(|places| places.end = next).or_insert(i..next);
        }
        Areas { list, chunks, blocks, word }
    }

    /// Index of the chunk that contains `at`.
    pub(super) fn chunk_of(&self, at: Addr) -> Option<usize> {
        let places = self.blocks.get(&block_of(at))?.clone();
        let first = places.start;
        let before = match self.chunks.get(places)? {
            [_] => 0,
            many => many.partition_point(|c| c.range.start <= at).checked_sub(1)?,
        };
        let place = first.saturating_add(before);
        self.chunks.get(place).filter(|c| c.range.contains(at)).map(|_| place)
    }

    /// Index of the word at `at` in its chunk, and the chunk's number of words.
    fn place(&self, chunk: &Chunk, at: Addr) -> (u64, u64) {
        let word = self.word.max(1);
        (at.since(chunk.range.start).unwrap_or(0) / word, chunk.range.len().div_ceil(word))
    }

    fn has(&self, at: Addr, bits: impl Fn(&Chunk) -> &Bits) -> bool {
        let chunk = self.chunk_of(at).and_then(|i| self.chunks.get(i)).filter(|c| !bits(c).is_empty() && at.is_aligned(self.word));
        chunk.is_some_and(|c| bits(c).get(self.place(c, at).0))
    }

    /// Whether an object of a run starts at `at`.
    pub(super) fn is_start(&self, at: Addr) -> bool {
        self.has(at, |c| &c.starts)
    }

    /// Whether there may be an object at `at` that does not belong to a run.
    pub(super) fn is_likely(&self, at: Addr) -> bool {
        self.has(at, |c| &c.likely)
    }

    /// Possible starts of objects in `range` that do not belong to a run, by address.
    pub(super) fn likely_in(&self, range: AddrRange) -> Vec<Addr> {
        let first = self.chunks.partition_point(|c| c.range.end <= range.start);
        let chunks = self.chunks.iter().skip(first).take_while(|c| c.range.start < range.end);
        let all = chunks.flat_map(|c| c.likely.list().map(|i| c.range.start.plus(i.saturating_mul(self.word))));
        all.filter(|at| range.contains(*at)).collect()
    }

    /// Marks or unmarks the start of an object.
    pub(super) fn mark(&mut self, at: Addr, set: bool) {
        let Some(i) = self.chunk_of(at) else { return };
        let place = self.chunks.get(i).map(|c| self.place(c, at));
        if let Some((chunk, (index, all))) = self.chunks.get_mut(i).zip(place) {
            if set { chunk.starts.set(index, all) } else { chunk.starts.clear(index) }
        }
    }

    /// The area that contains `at`, and the offset of `at` in it.
    pub(super) fn locate(&self, at: Addr) -> Option<(Area<'m>, usize)> {
        let chunk = self.chunks.get(self.chunk_of(at)?)?;
        let area = *self.list.get(chunk.area)?;
        Some((area, area.offset(at)?))
    }

    /// The lowest and the highest address of the searched memory.
    pub(super) fn bounds(&self) -> (Addr, Addr) {
        let first = self.list.first().map_or(Addr::NULL, |a| a.start);
        (first, self.list.last().map_or(Addr::NULL, Area::end))
    }

    /// Number of searched bytes.
    pub(super) fn bytes(&self) -> u64 {
        crate::base::total(self.list.iter().map(|a| a.range().len()))
    }
}
