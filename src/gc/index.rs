//! Object index: a bitmap of object starts that maps any address to the object containing it, and every object to an id.
//!
//! Ids are dense, start at 0, follow segment and address order, and do not depend on the number of threads. Free space has
//! no ids. The bitmap takes 1/64 of the heap size; a segment that is mostly absent from the dump uses a sorted list instead.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::walk::{Object, ObjectType, Piece, SegmentIndex, Visitor, Walker};
use crate::base::rank::{BLOCK_WORDS, Counted, before_word, count};
use crate::base::{Addr, AddrRange, Answer, Array, Index, IndexVec, Indices, NoteKind, Notes, Progress, index_type, len64, total};
use crate::model::WalkModel;

index_type! {
    /// An object of the heap, not free space.
    pub struct ObjectId;
}

/// A segment with less than 1/32 of its bytes in the dump uses a list instead of a bitmap.
const SPARSE: u64 = 32;

/// The objects of one segment.
#[derive(Clone, Debug)]
pub(crate) struct SegmentObjects {
    pub(crate) start: u64,
    /// End of the segment's objects.
    pub(crate) end: u64,
    /// Id of the first object.
    pub(crate) first: u32,
    pub(crate) count: u32,
    pub(crate) starts: Starts,
}

/// The starts of the objects of a segment.
#[derive(Clone, Debug)]
pub(crate) enum Starts {
    /// One bit per word from the start of the segment, and the counts of each block of words.
    Bits { words: Array<u64>, blocks: Array<Counted> },
    /// Sorted addresses.
    List(Array<u64>),
}

/// [`Starts`] under construction.
#[derive(Debug)]
enum Gathered {
    Bits(Vec<u64>),
    List(Vec<u64>),
}

impl Default for Gathered {
    fn default() -> Gathered {
        Gathered::List(Vec::new())
    }
}

/// Start addresses of all objects of a heap. Immutable once built.
#[derive(Debug)]
pub struct ObjectStarts {
    /// The objects of each segment.
    parts: IndexVec<SegmentIndex, SegmentObjects>,
    by_address: ByAddress,
    /// Log2 of the pointer size: shifts a byte offset to a bit index.
    shift: u32,
    len: u32,
}

/// Finds the segment of an address.
#[derive(Debug)]
struct ByAddress {
    /// Start address of each segment, ascending.
    starts: Vec<(u64, SegmentIndex)>,
    /// Lowest address of all segments.
    lowest: u64,
    /// End of all segments.
    highest: u64,
    /// Log2 of the size of a slot in bytes. The range from `lowest` to `highest` is divided into slots of equal size.
    slot: u32,
    /// Number of segments that start at or before the beginning of each slot, and at or before the end of the last one.
    before: Vec<u32>,
}

impl ByAddress {
    /// Number of slots per segment. Most regions have the same size, so few of them start in the same slot.
    const SLOTS: usize = 4;

    fn of(parts: &IndexVec<SegmentIndex, SegmentObjects>) -> ByAddress {
        let mut starts: Vec<(u64, SegmentIndex)> = parts.iter_enumerated().map(|(i, part)| (part.start, i)).collect();
        starts.sort_by_key(|(start, i)| (*start, parts.get(*i).map(|part| part.end)));
        let lowest = starts.first().map_or(0, |(start, _)| *start);
        let highest = parts.iter().map(|part| part.end).max().unwrap_or(0);
        let most = u64::try_from(starts.len().saturating_mul(ByAddress::SLOTS)).unwrap_or(u64::MAX);
        let span = highest.saturating_sub(lowest);
        let slot = (0..u64::BITS - 1).find(|bits| span >> bits <= most).unwrap_or(u64::BITS - 1);
        let ends = (0..=(span >> slot).saturating_add(1)).map(|n| lowest.saturating_add(n.saturating_mul(1 << slot)));
        let before = ends.map(|end| u32::try_from(starts.partition_point(|(start, _)| *start <= end)).unwrap_or(u32::MAX));
        ByAddress { before: before.collect(), starts, lowest, highest, slot }
    }

    /// The last segment that starts at or before `address`, if `address` is below the end of all segments.
    #[inline]
    fn find(&self, address: u64) -> Option<SegmentIndex> {
        if address < self.lowest || address >= self.highest {
            return None;
        }
        let slot = usize::try_from((address - self.lowest) >> self.slot).ok()?;
        let (first, end) = (*self.before.get(slot)? as usize, *self.before.get(slot + 1)? as usize);
        let within = self.starts.get(first..end)?.partition_point(|(start, _)| *start <= address);
        self.starts.get((first + within).checked_sub(1)?).map(|(_, index)| *index)
    }
}

/// Visitor that collects object starts. Pass all visitors of a walk to [`ObjectStarts::new`].
#[derive(Debug)]
pub struct StartsVisitor {
    shift: u32,
    found: Vec<Found>,
}

/// The object starts of a piece.
#[derive(Debug)]
struct Found {
    segment: SegmentIndex,
    /// Bounds of the segment's objects.
    objects: AddrRange,
    /// Number of words of the segment's bitmap; `None` for a list.
    bitmap: Option<usize>,
    /// Index of the bitmap's first word that is in `starts`.
    first_word: usize,
    starts: Gathered,
}

impl StartsVisitor {
    /// An empty visitor for a walk of `heap`.
    pub fn new(heap: &Walker) -> StartsVisitor {
        StartsVisitor { shift: heap.memory().ptr_bytes().max(1).ilog2(), found: Vec::new() }
    }

    /// The location of the bit for an object at this offset in a segment's bitmap: index of the word, and mask of the bit.
    #[inline]
    fn place(shift: u32, offset: u64) -> Option<(usize, u64)> {
        let bit = offset >> shift;
        Some((usize::try_from(bit / 64).ok()?, 1u64 << (bit % 64)))
    }
}

impl Visitor for StartsVisitor {
    fn piece(&mut self, piece: &Piece<'_>) -> bool {
        let segment = piece.segment;
        let word = |at: Addr| StartsVisitor::place(self.shift, at.since(segment.start).unwrap_or(0)).map(|(word, _)| word);
        let sparse = segment.captured_bytes < segment.allocated_bytes / SPARSE;
        let bitmap = word(segment.allocated).filter(|_| !sparse).and_then(|last| last.checked_add(1));
        let first_word = word(piece.starts.start).filter(|_| bitmap.is_some()).unwrap_or(0);
        let words = bitmap.and_then(|_| word(piece.starts.end)?.checked_sub(first_word)?.checked_add(1));
        let starts = words.map_or_else(Gathered::default, |n| Gathered::Bits(vec![0; n]));
        let objects = AddrRange::new(segment.start, segment.allocated);
        self.found.push(Found { segment: piece.index, objects, bitmap, first_word, starts });
        true
    }

    #[inline]
    fn object(&mut self, object: &Object<'_>) {
        if object.ty.is_free {
            return;
        }
        let Some(found) = self.found.last_mut() else { return };
        let Some(offset) = object.address.since(found.objects.start) else { return };
        match &mut found.starts {
            Gathered::Bits(words) => {
                let place = StartsVisitor::place(self.shift, offset);
                if let Some((word, bit)) = place
                    && let Some(word) = word.checked_sub(found.first_word).and_then(|i| words.get_mut(i))
                {
                    *word |= bit;
                }
            }
            Gathered::List(list) => list.push(object.address.0),
        }
    }
}

impl Found {
    /// Joins the pieces of a segment. Returns the range of its objects, and their starts.
    fn join(mut pieces: Vec<Found>) -> Option<(AddrRange, Gathered)> {
        let first = pieces.first()?;
        let (objects, bitmap) = (first.objects, first.bitmap);
        let starts = match bitmap {
            _ if pieces.len() == 1 => std::mem::take(&mut pieces.first_mut()?.starts),
            None => {
                let list = |piece: Found| if let Gathered::List(list) = piece.starts { list } else { Vec::new() };
                let mut all: Vec<u64> = pieces.into_iter().flat_map(list).collect();
                all.sort();
                Gathered::List(all)
            }
            Some(length) => {
                let mut all = vec![0u64; length];
                for piece in pieces {
                    let Gathered::Bits(words) = piece.starts else { continue };
                    // Two pieces may share a word.
                    all.get_mut(piece.first_word..).into_iter().flatten().zip(words).for_each(|(to, from)| *to |= from);
                }
                Gathered::Bits(all)
            }
        };
        Some((objects, starts))
    }
}

impl SegmentObjects {
    /// The segment's `n`th object.
    #[inline]
    fn id(&self, n: u32) -> Option<ObjectId> {
        self.first.checked_add(n).map(ObjectId::from_u32)
    }

    /// Id of the object that starts at `address`.
    #[inline]
    fn id_at(&self, address: Addr, shift: u32) -> Option<ObjectId> {
        let n = match &self.starts {
            Starts::Bits { words, blocks } => {
                let offset = address.0.checked_sub(self.start)?;
                let bit = offset >> shift;
                let at = usize::try_from(bit / 64).ok()?;
                let word = words.get(at)?;
                if word >> (bit % 64) & 1 == 0 || bit << shift != offset {
                    return None;
                }
                let below = word & ((1 << (bit % 64)) - 1);
                before_word(blocks.get(at / BLOCK_WORDS)?, at).wrapping_add(below.count_ones())
            }
            Starts::List(list) => u32::try_from(list.binary_search(&address.0).ok()?).ok()?,
        };
        // A bitmap read from a file may have more bits than its count.
        self.id(n).filter(|_| n < self.count)
    }

    /// The objects of a segment, numbered from `first`. `None` if ids overflow.
    fn of(objects: AddrRange, gathered: Gathered, first: u32) -> Option<SegmentObjects> {
        let (count, starts) = match gathered {
            Gathered::Bits(words) => {
                let (mut before, mut blocks) = (0u32, Vec::with_capacity(ObjectStarts::blocks(words.len())));
                for block in words.chunks(BLOCK_WORDS) {
                    let (counted, next) = count(before, block);
                    blocks.push(counted);
                    before = next;
                    first.checked_add(before)?;
                }
                (before, Starts::Bits { words: words.into(), blocks: blocks.into() })
            }
            Gathered::List(list) => (u32::try_from(list.len()).ok()?, Starts::List(list.into())),
        };
        first.checked_add(count)?;
        Some(SegmentObjects { start: objects.start.0, end: objects.end.0, first, count, starts })
    }

    /// Number of objects that start at or before `address`.
    #[inline]
    fn rank(&self, address: u64, shift: u32) -> u32 {
        match &self.starts {
            Starts::List(list) => u32::try_from(list.partition_point(|a| *a <= address)).unwrap_or(u32::MAX),
            Starts::Bits { words, blocks } => {
                let bit = address.saturating_sub(self.start) >> shift;
                let Ok(word) = usize::try_from(bit / 64) else { return self.count };
                let Some(counted) = blocks.get(word / BLOCK_WORDS) else { return self.count };
                // Bits up to and including this one.
                let last = words.get(word).map_or(0, |w| (w & (u64::MAX >> (63 - bit % 64))).count_ones());
                // A bitmap read from a file may have more bits than its count.
                before_word(counted, word).wrapping_add(last).min(self.count)
            }
        }
    }

    /// Start address of the `n`th object of the segment.
    fn select(&self, n: u32, shift: u32) -> Option<u64> {
        match &self.starts {
            Starts::List(list) => list.get(usize::try_from(n).ok()?).copied(),
            Starts::Bits { words, blocks } => {
                let block = blocks.partition_point(|[before, ..]| *before <= n).checked_sub(1)?;
                let [before, ..] = blocks.get(block)?;
                let mut left = n.checked_sub(*before)?;
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
    /// Combines the visitors of a walk of `heap`. Objects beyond 2³² do not get an id; a note says so.
    pub fn new(heap: &Walker, visitors: impl IntoIterator<Item = StartsVisitor>) -> Answer<ObjectStarts> {
        let mut notes = Notes::new();
        let mut segments: BTreeMap<SegmentIndex, Vec<Found>> = BTreeMap::new();
        visitors.into_iter().flat_map(|v| v.found).for_each(|found| segments.entry(found.segment).or_default().push(found));
        let mut out: IndexVec<SegmentIndex, SegmentObjects> = IndexVec::with_capacity(segments.len());
        let mut len = 0u32;
        for (objects, gathered) in segments.into_values().filter_map(Found::join) {
            let Some(part) = SegmentObjects::of(objects, gathered, len) else {
                notes.add(NoteKind::LimitHit, objects.start, "the heap has more than 2³² objects; the rest have no id");
                break;
            };
            len = len.saturating_add(part.count);
            out.push(part);
        }
        Answer::new(ObjectStarts::of_parts(heap.memory().ptr_bytes(), out), notes)
    }

    /// The objects of segments with consecutive ids, in a process with pointers of `ptr_bytes` bytes.
    pub(crate) fn of_parts(ptr_bytes: u64, parts: IndexVec<SegmentIndex, SegmentObjects>) -> ObjectStarts {
        let len = parts.iter().map(|p| p.first.saturating_add(p.count)).max().unwrap_or(0);
        ObjectStarts { by_address: ByAddress::of(&parts), parts, shift: ptr_bytes.max(1).ilog2(), len }
    }

    /// Number of blocks of a bitmap with this many words.
    pub(crate) fn blocks(words: usize) -> usize {
        words.div_ceil(BLOCK_WORDS)
    }

    /// The objects by segment.
    pub(crate) fn parts(&self) -> &IndexVec<SegmentIndex, SegmentObjects> {
        &self.parts
    }

    /// Walks `heap` and returns its object starts and the walk result of each segment, with the segment index.
    pub fn build(heap: &Walker, progress: &dyn Progress) -> (Answer<ObjectStarts>, Vec<(SegmentIndex, WalkModel)>) {
        let walked = heap.walk_once(progress, || StartsVisitor::new(heap));
        (ObjectStarts::new(heap, walked.visitors), walked.segments)
    }

    /// Objects at these addresses, which must be ascending.
    pub(crate) fn listed(addresses: Array<u64>) -> ObjectStarts {
        // The end of the last object is unknown; callers check the size of the object.
        let (start, end) = (addresses.first().copied().unwrap_or(0), u64::MAX);
        let count = u32::try_from(addresses.len()).unwrap_or(u32::MAX);
        let part = SegmentObjects { start, end, first: 0, count, starts: Starts::List(addresses) };
        ObjectStarts::of_parts(8, IndexVec::from(vec![part]))
    }

    /// Memory used by the starts, in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        let bytes = |part: &SegmentObjects| match &part.starts {
            Starts::Bits { words, blocks } => size_of_val::<[u64]>(words).saturating_add(size_of_val::<[Counted]>(blocks)),
            Starts::List(list) => size_of_val::<[u64]>(list),
        };
        total(self.parts.iter().map(|part| len64(bytes(part))))
    }

    /// Number of objects, free space excluded.
    pub fn len(&self) -> u32 {
        self.len
    }

    /// The objects, ascending.
    pub fn ids(&self) -> Indices<ObjectId> {
        Indices::up_to(self.len)
    }

    /// Whether an object starts at `address`. `hint` caches the last segment between calls: references tend to target the
    /// same few segments.
    #[inline]
    pub fn is_start(&self, address: Addr, hint: &mut SegmentIndex) -> bool {
        let Some(part) = self.part_near(address, hint) else { return false };
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

    /// Id of the object that starts at `address`.
    #[inline]
    pub fn id_of(&self, address: Addr) -> Option<ObjectId> {
        self.part_of(address)?.id_at(address, self.shift)
    }

    /// Id of the object that starts at `address`, with a `hint` as for [`ObjectStarts::is_start`].
    #[inline]
    pub(crate) fn id_near(&self, address: Addr, hint: &mut SegmentIndex) -> Option<ObjectId> {
        self.part_near(address, hint)?.id_at(address, self.shift)
    }

    /// The objects of the segment with this index.
    pub fn of_segment(&self, segment: SegmentIndex) -> Option<Indices<ObjectId>> {
        self.parts.get(segment).map(|p| Indices::new(ObjectId::from_u32(p.first), p.count))
    }

    /// Whether the segment with this index has objects.
    pub fn has_objects(&self, segment: SegmentIndex) -> bool {
        self.parts.get(segment).is_some_and(|p| p.count > 0)
    }

    /// The objects that start in a piece of the walked heap.
    pub fn of_piece(&self, piece: &Piece<'_>) -> Option<Indices<ObjectId>> {
        let part = self.parts.get(piece.index)?;
        let before = |at: u64| if at <= part.start { 0 } else { part.rank(at.wrapping_sub(1), self.shift) };
        let first = before(piece.starts.start.0);
        let end = if piece.starts.end.0 < part.end { before(piece.starts.end.0) } else { part.count };
        Some(Indices::new(part.id(first)?, end.saturating_sub(first)))
    }

    #[inline]
    fn part_near(&self, address: Addr, hint: &mut SegmentIndex) -> Option<&SegmentObjects> {
        let inside = |p: &&SegmentObjects| p.start <= address.0 && address.0 < p.end;
        if let Some(part) = self.parts.get(*hint).filter(inside) {
            return Some(part);
        }
        let (index, part) = self.place_of(address)?;
        *hint = index;
        Some(part)
    }

    #[inline]
    fn part_of(&self, address: Addr) -> Option<&SegmentObjects> {
        self.place_of(address).map(|(_, part)| part)
    }

    #[inline]
    fn place_of(&self, address: Addr) -> Option<(SegmentIndex, &SegmentObjects)> {
        let index = self.by_address.find(address.0)?;
        self.parts.get(index).filter(|p| address.0 < p.end).map(|p| (index, p))
    }

    /// Start address of the object with this id.
    pub fn address_of(&self, id: ObjectId) -> Option<Addr> {
        let (parts, id) = (self.parts.as_slice(), id.as_u32());
        let part = parts.get(parts.partition_point(|p| p.first <= id).checked_sub(1)?)?;
        part.select(id.checked_sub(part.first)?, self.shift).map(Addr)
    }

    /// Id and start of the object in the walked `heap` that contains `address`. For the GC, an object extends to the method table pointer
    /// of the next object: a reference just past an array's elements belongs to the array.
    pub fn containing(&self, heap: &Walker, address: Addr) -> Option<(ObjectId, Addr)> {
        let (id, start) = self.before(address)?;
        if start == address {
            return Some((id, start));
        }
        let (_, size) = heap.object(start)?;
        let inside = size.checked_next_multiple_of(heap.memory().ptr_bytes())?;
        address.since(start).filter(|offset| *offset < inside).map(|_| (id, start))
    }

    /// The last object of the segment containing `address` that starts at or before it.
    pub fn before(&self, address: Addr) -> Option<(ObjectId, Addr)> {
        let part = self.part_of(address)?;
        let n = part.rank(address.0, self.shift).checked_sub(1)?;
        Some((part.id(n)?, Addr(part.select(n, self.shift)?)))
    }
}

impl Walker {
    /// Type and size in bytes (header included, not rounded) of the object at `address`. `None` if it has no valid method
    /// table or is not in the dump.
    pub fn object(&self, address: Addr) -> Option<(Arc<ObjectType>, u64)> {
        let memory = self.memory();
        let kind = self.type_at(self.method_table(address)?)?;
        let size = kind.size(|length| memory.u32(address.plus(length)).ok())?;
        Some((kind, size.max(self.smallest())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(gathered: Gathered, first: u32) -> Option<SegmentObjects> {
        SegmentObjects::of(AddrRange::new(Addr(0x1000), Addr(0x1000 + 64 * 64 * 8)), gathered, first)
    }

    #[test]
    fn bitmaps_and_lists_give_the_same_answers() {
        // The bits have runs, gaps of many blocks, and the first and the last bit.
        let places: Vec<u64> = (0..4096u64).filter(|n| *n == 0 || *n == 4095 || n % 7 == 3 && !(700..2100).contains(n)).collect();
        let mut words = vec![0u64; 64];
        places.iter().for_each(|n| words[usize::try_from(n / 64).unwrap()] |= 1 << (n % 64));
        let bits = part(Gathered::Bits(words), 10).unwrap();
        let list = part(Gathered::List(places.iter().map(|n| 0x1000 + n * 8).collect()), 10).unwrap();
        assert_eq!((bits.first, bits.count), (list.first, list.count));
        assert_eq!(bits.count as usize, places.len());
        for at in (0x1000..bits.end).step_by(4) {
            let n = bits.rank(at, 3);
            assert_eq!(n, list.rank(at, 3), "{at:#x}");
            assert_eq!(bits.select(n, 3), list.select(n, 3));
        }
        assert_eq!(bits.select(bits.count, 3), None);
        assert!(part(Gathered::Bits(vec![u64::MAX; 1]), u32::MAX - 10).is_none());
    }
}
