//! Where objects begin: a bit for every place where one could, so that any address leads to the object around it and
//! every object has a number.
//!
//! Numbers are dense, count from 0 in the order of segments and addresses, and do not depend on the number of threads.
//! Free space has none. A bitmap costs a 64th of the heap; a segment that is mostly absent from the dump gets a list.

use std::sync::Arc;

use super::walk::{Object, ObjectType, Visitor, Walker};
use crate::base::{Addr, Answer, NoteKind, Notes, Progress};
use crate::model::{SegmentModel, WalkModel};

/// Bits between two counts of the objects before.
const BLOCK_WORDS: usize = 8;
/// A segment of which less than this part is in the dump gets a list instead of a bitmap.
const SPARSE: u64 = 32;

/// Objects of one segment.
#[derive(Debug, Default)]
struct Part {
    start: u64,
    /// End of the segment's objects.
    end: u64,
    /// Number of the first object.
    first: u32,
    count: u32,
    starts: Starts,
}

#[derive(Debug)]
enum Starts {
    /// A bit per word of the heap, from the segment's start on, and the bits set before each block.
    Bits { words: Vec<u64>, before: Vec<u32> },
    /// The addresses.
    List(Vec<u64>),
}

impl Default for Starts {
    fn default() -> Starts {
        Starts::List(Vec::new())
    }
}

/// Where the objects of a heap begin. Built once per dump, then only read.
#[derive(Debug)]
pub struct ObjectStarts {
    /// By segment.
    parts: Vec<Part>,
    /// Numbers of the parts by address.
    by_address: Vec<usize>,
    /// Bits to shift an offset by to get its place in the bitmap: 3 for pointers of 8 bytes.
    shift: u32,
    len: u32,
    /// Bounds of all parts.
    lowest: u64,
    highest: u64,
}

/// Collects starts of objects on a walk: the visitor of one thread. Give all of them to [`ObjectStarts::new`].
#[derive(Debug)]
pub struct StartsVisitor {
    shift: u32,
    parts: Vec<(usize, Part)>,
}

impl StartsVisitor {
    /// An empty one for a walk of `heap`.
    pub fn new(heap: &Walker) -> StartsVisitor {
        StartsVisitor { shift: heap.memory().ptr_bytes().max(1).ilog2(), parts: Vec::new() }
    }
}

impl Visitor for StartsVisitor {
    fn segment(&mut self, index: usize, segment: &SegmentModel) -> bool {
        let bits = segment.allocated_bytes >> self.shift;
        let sparse = segment.captured_bytes < segment.allocated_bytes / SPARSE;
        let words = usize::try_from(bits / 64).ok().filter(|_| !sparse).and_then(|n| n.checked_add(1));
        let starts = words.map_or_else(Starts::default, |n| Starts::Bits { words: vec![0; n], before: Vec::new() });
        self.parts.push((index, Part { start: segment.start.0, end: segment.allocated.0, starts, ..Part::default() }));
        true
    }

    #[inline]
    fn object(&mut self, object: &Object<'_>) {
        if object.ty.is_free {
            return;
        }
        let Some((_, part)) = self.parts.last_mut() else { return };
        let Some(offset) = object.address.0.checked_sub(part.start) else { return };
        match &mut part.starts {
            Starts::Bits { words, .. } => {
                let bit = offset >> self.shift;
                if let Some(word) = usize::try_from(bit / 64).ok().and_then(|i| words.get_mut(i)) {
                    *word |= 1u64 << (bit % 64);
                }
            }
            Starts::List(list) => list.push(object.address.0),
        }
    }
}

impl Part {
    /// Counts the objects and makes the counts before each block. `None` where there are too many.
    fn finish(&mut self, first: u32) -> Option<u32> {
        self.first = first;
        let mut count = 0u32;
        match &mut self.starts {
            Starts::Bits { words, before } => {
                before.reserve_exact(words.len().div_ceil(BLOCK_WORDS));
                for block in words.chunks(BLOCK_WORDS) {
                    before.push(count);
                    count = block.iter().fold(count, |n, w| n.wrapping_add(w.count_ones()));
                    first.checked_add(count)?;
                }
            }
            Starts::List(list) => count = u32::try_from(list.len()).ok()?,
        }
        self.count = count;
        first.checked_add(count)
    }

    /// Number of objects that begin before `address`, or at it.
    fn rank(&self, address: u64, shift: u32) -> u32 {
        match &self.starts {
            Starts::List(list) => u32::try_from(list.partition_point(|a| *a <= address)).unwrap_or(u32::MAX),
            Starts::Bits { words, before } => {
                let bit = address.saturating_sub(self.start) >> shift;
                let Ok(word) = usize::try_from(bit / 64) else { return self.count };
                let block = word / BLOCK_WORDS;
                let Some(counted) = before.get(block) else { return self.count };
                let from = block.saturating_mul(BLOCK_WORDS);
                let whole = words.get(from..word).unwrap_or_default().iter().fold(0u32, |n, w| n.wrapping_add(w.count_ones()));
                // Bits up to this one, itself included.
                let last = words.get(word).map_or(0, |w| (w & (u64::MAX >> (63 - bit % 64))).count_ones());
                counted.wrapping_add(whole).wrapping_add(last)
            }
        }
    }

    /// Where the object with this number, counted within the segment, begins.
    fn select(&self, n: u32, shift: u32) -> Option<u64> {
        match &self.starts {
            Starts::List(list) => list.get(usize::try_from(n).ok()?).copied(),
            Starts::Bits { words, before } => {
                let block = before.partition_point(|b| *b <= n).checked_sub(1)?;
                let mut left = n.checked_sub(*before.get(block)?)?;
                let from = block.checked_mul(BLOCK_WORDS)?;
                for (word, index) in words.get(from..)?.iter().zip(from..).take(BLOCK_WORDS) {
                    if left < word.count_ones() {
                        let mut word = *word;
                        for _ in 0..left {
                            word &= word.wrapping_sub(1);
                        }
                        let bit = u64::try_from(index).ok()?.checked_mul(64)?.checked_add(u64::from(word.trailing_zeros()))?;
                        return self.start.checked_add(bit.checked_mul(1u64.checked_shl(shift)?)?);
                    }
                    left = left.wrapping_sub(word.count_ones());
                }
                None
            }
        }
    }
}

impl ObjectStarts {
    /// Joins what the visitors of a walk of `heap` collected. Objects beyond 4 billion have no number, and a note says so.
    pub fn new(heap: &Walker, visitors: impl IntoIterator<Item = StartsVisitor>) -> Answer<ObjectStarts> {
        let mut notes = Notes::new();
        let mut parts: Vec<(usize, Part)> = visitors.into_iter().flat_map(|v| v.parts).collect();
        parts.sort_by_key(|(i, _)| *i);
        let mut out: Vec<Part> = Vec::with_capacity(parts.len());
        let mut len = 0u32;
        for (_, mut part) in parts {
            let Some(next) = part.finish(len) else {
                notes.add(NoteKind::LimitHit, Addr(part.start), "the heap has more objects than can be numbered");
                break;
            };
            len = next;
            out.push(part);
        }
        let mut by_address: Vec<usize> = (0..out.len()).collect();
        by_address.sort_by_key(|i| out.get(*i).map(|p| (p.start, p.end)));
        let lowest = out.iter().map(|p| p.start).min().unwrap_or(0);
        let highest = out.iter().map(|p| p.end).max().unwrap_or(0);
        let shift = heap.memory().ptr_bytes().max(1).ilog2();
        Answer::new(ObjectStarts { lowest, highest, parts: out, by_address, shift, len }, notes)
    }

    /// Walks `heap` and returns where its objects begin, and what the walk found out about each segment.
    pub fn build(heap: &Walker, progress: &dyn Progress) -> (Answer<ObjectStarts>, Vec<(usize, WalkModel)>) {
        let walked = heap.walk_once(progress, || StartsVisitor::new(heap));
        (ObjectStarts::new(heap, walked.visitors), walked.segments)
    }

    /// Number of objects, free space not counted.
    pub fn len(&self) -> u32 {
        self.len
    }

    /// Whether there are no objects at all.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether an object begins exactly at `address`. `hint` is for the caller to keep: references lead to the same few
    /// segments again and again.
    #[inline]
    pub fn is_start(&self, address: Addr, hint: &mut usize) -> bool {
        let inside = |p: &&Part| p.start <= address.0 && address.0 < p.end;
        let part = match self.parts.get(*hint).filter(inside) {
            Some(part) => part,
            None => match self.place_of(address) {
                Some((index, part)) => {
                    *hint = index;
                    part
                }
                None => return false,
            },
        };
        let offset = address.0.wrapping_sub(part.start);
        match &part.starts {
            Starts::Bits { words, .. } => {
                let bit = offset >> self.shift;
                let word = usize::try_from(bit / 64).ok().and_then(|i| words.get(i)).copied().unwrap_or(0);
                word >> (bit % 64) & 1 != 0 && bit << self.shift == offset
            }
            Starts::List(list) => list.binary_search(&address.0).is_ok(),
        }
    }

    /// The number of the object that begins exactly at `address`.
    pub fn id_of(&self, address: Addr) -> Option<u32> {
        let part = self.part_of(address)?;
        if let Starts::Bits { words, .. } = &part.starts {
            let offset = address.0.checked_sub(part.start)?;
            let bit = offset >> self.shift;
            let word = words.get(usize::try_from(bit / 64).ok()?)?;
            if word >> (bit % 64) & 1 == 0 || bit << self.shift != offset {
                return None;
            }
            return part.first.checked_add(part.rank(address.0, self.shift).checked_sub(1)?);
        }
        self.before(address).filter(|(_, start)| *start == address).map(|(id, _)| id)
    }

    /// The number of the first object of the segment with this number, and how many it has.
    pub fn of_segment(&self, segment: usize) -> Option<(u32, u32)> {
        self.parts.get(segment).map(|p| (p.first, p.count))
    }

    fn part_of(&self, address: Addr) -> Option<&Part> {
        self.place_of(address).map(|(_, part)| part)
    }

    fn place_of(&self, address: Addr) -> Option<(usize, &Part)> {
        if address.0 < self.lowest || address.0 >= self.highest {
            return None;
        }
        let place = self.by_address.partition_point(|i| self.parts.get(*i).is_some_and(|p| p.start <= address.0)).checked_sub(1)?;
        let index = *self.by_address.get(place)?;
        self.parts.get(index).filter(|p| address.0 < p.end).map(|p| (index, p))
    }

    /// Where the object with this number begins.
    pub fn address_of(&self, id: u32) -> Option<Addr> {
        let part = self.parts.partition_point(|p| p.first <= id).checked_sub(1)?;
        let part = self.parts.get(part)?;
        part.select(id.checked_sub(part.first)?, self.shift).map(Addr)
    }

    /// The object that `address` lies in: its number and where it begins. As to the GC, an object reaches from its method
    /// table to that of the next one: a reference to the end of an array's elements belongs to the array. `heap` is the one
    /// that was walked.
    pub fn containing(&self, heap: &Walker, address: Addr) -> Option<(u32, Addr)> {
        let (id, start) = self.before(address)?;
        if start == address {
            return Some((id, start));
        }
        let (_, size) = heap.object(start)?;
        let inside = size.checked_next_multiple_of(heap.memory().ptr_bytes())?;
        address.since(start).filter(|offset| *offset < inside).map(|_| (id, start))
    }

    /// The last object of the segment around `address` that begins at it or before.
    fn before(&self, address: Addr) -> Option<(u32, Addr)> {
        let part = self.part_of(address)?;
        let n = part.rank(address.0, self.shift).checked_sub(1)?;
        Some((part.first.checked_add(n)?, Addr(part.select(n, self.shift)?)))
    }

    /// Bytes of memory that the index takes.
    pub fn memory_bytes(&self) -> usize {
        let part = |p: &Part| match &p.starts {
            Starts::Bits { words, before } => words.capacity().saturating_mul(8).saturating_add(before.capacity().saturating_mul(4)),
            Starts::List(list) => list.capacity().saturating_mul(8),
        };
        self.parts.iter().fold(0usize, |n, p| n.saturating_add(part(p)))
    }
}

impl Walker {
    /// The type and the size of the object at `address`, header word included, not rounded. `None` where no object can be
    /// there: its type is no type, or it is not in the dump.
    pub fn object(&self, address: Addr) -> Option<(Arc<ObjectType>, u64)> {
        let word = self.memory().ptr_bytes();
        let ty = self.type_at(self.method_table(address)?)?;
        let mut size = ty.base_size;
        if ty.component_size != 0 {
            let count = u64::from(self.memory().u32(address.plus(word)).ok()?);
            size = count.checked_mul(ty.component_size)?.checked_add(size)?;
        }
        Some((ty, size.max(word.saturating_mul(3))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(starts: Starts) -> Part {
        Part { start: 0x1000, end: 0x1000 + 64 * 64 * 8, starts, ..Part::default() }
    }

    #[test]
    fn bits_and_lists_say_the_same() {
        // Runs, gaps of many blocks, the first and the last bit.
        let places: Vec<u64> = (0..4096u64).filter(|n| *n == 0 || *n == 4095 || n % 7 == 3 && !(700..2100).contains(n)).collect();
        let mut words = vec![0u64; 64];
        places.iter().for_each(|n| words[usize::try_from(n / 64).unwrap()] |= 1 << (n % 64));
        let mut bits = part(Starts::Bits { words, before: Vec::new() });
        let mut list = part(Starts::List(places.iter().map(|n| 0x1000 + n * 8).collect()));
        assert_eq!(bits.finish(10), list.finish(10));
        assert_eq!(bits.count as usize, places.len());
        for at in (0x1000..bits.end).step_by(4) {
            let n = bits.rank(at, 3);
            assert_eq!(n, list.rank(at, 3), "{at:#x}");
            assert_eq!(bits.select(n, 3), list.select(n, 3));
        }
        assert_eq!(bits.select(bits.count, 3), None);
        assert_eq!(part(Starts::Bits { words: vec![u64::MAX; 1], before: Vec::new() }).finish(u32::MAX - 10), None);
    }
}
