//! One of the two dumps: the facts that the rules need about each object, in dense arrays by object id. A heap may have a hundred million objects, so
//! no object has its own allocation.

use std::sync::Arc;

use super::contents::{contents, in_order};
use crate::analysis::heap::pins::pins;
use crate::base::hash::Map;
use crate::base::{Addr, AddrRange, Collector, Count, Index, IndexVec, Indices, Missing};
use crate::clr::header::{HeaderUse, Headers};
use crate::gc::{GcDesc, Object, ObjectId, ObjectStarts, ObjectType, Piece, SegmentIndex, TypeIndex, Visitor, Walker, note_walks};
use crate::memory::Window;
use crate::model::Generation;
use crate::session::Heap;

/// Facts about an object, one bit each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Traits(u8);

impl Traits {
    /// The contents are distinctive: see [`contents`](super::contents).
    pub(super) const DISTINCTIVE: Traits = Traits(1);
    /// The contents distinguish the object from its neighbors.
    pub(super) const DISTINCTIVE_NEARBY: Traits = Traits(2);
    /// A handle pins the object.
    pub(super) const PINNED: Traits = Traits(4);
    /// The object has an identity hash code.
    pub(super) const HASHED: Traits = Traits(8);
    /// The object is a string, whose contents never change.
    pub(super) const STRING: Traits = Traits(16);
    /// The object is matched, and its neighbors moved in the same way. Anchors are the bounds of windows.
    pub(super) const ANCHOR: Traits = Traits(32);

    /// Whether all bits of `other` are set.
    #[inline]
    pub(super) fn has(self, other: Traits) -> bool {
        self.0 & other.0 == other.0
    }

    fn add(&mut self, other: Traits) {
        self.0 |= other.0;
    }
}

/// Objects of one generation in one segment, in the order of addresses.
#[derive(Clone, Copy, Debug)]
pub(super) struct SegmentShare<I> {
    /// The first object.
    pub(super) first: I,
    /// Number of objects.
    pub(super) count: u32,
    /// The segment.
    pub(super) segment: SegmentIndex,
    /// The generation.
    pub(super) generation: Generation,
}

impl<I: Index> SegmentShare<I> {
    /// Returns the objects.
    pub(super) fn ids(&self) -> Indices<I> {
        Indices::new(self.first, self.count)
    }

    fn has(&self, id: I) -> bool {
        id.as_u32().checked_sub(self.first.as_u32()).is_some_and(|at| at < self.count)
    }
}

/// One dump.
pub(super) struct Side<I> {
    pub(super) heap: Heap,
    starts: Arc<ObjectStarts>,
    pub(super) address: IndexVec<I, u64>,
    /// Type number, shared by both dumps.
    pub(super) kind: IndexVec<I, u32>,
    /// Size in bytes; `u32::MAX` for sizes of more than 32 bits.
    pub(super) size: IndexVec<I, u32>,
    /// Hash of type, size and contents; 0 if they are not in the dump.
    pub(super) key: IndexVec<I, u64>,
    traits: IndexVec<I, Traits>,
    pub(super) parts: Vec<SegmentShare<I>>,
    /// Identity hash codes, by object.
    hashes: Vec<(I, u32)>,
    /// The types, by number.
    types: Vec<Option<Arc<ObjectType>>>,
}

/// The objects of a piece of the heap.
#[derive(Default)]
struct Rows {
    segment: SegmentIndex,
    address: Vec<u64>,
    ty: Vec<u32>,
    size: Vec<u32>,
    key: Vec<u64>,
    traits: Vec<Traits>,
    /// First object of each generation, as an index in these rows.
    parts: Vec<(u32, Generation)>,
    hashes: Vec<(u32, u32)>,
}

struct Reader<'s> {
    starts: &'s ObjectStarts,
    headers: Option<&'s Headers>,
    window: Window<'s>,
    word: u64,
    descs: IndexVec<TypeIndex, Option<Arc<GcDesc>>>,
    rows: Vec<Rows>,
}

impl Visitor for Reader<'_> {
    fn piece(&mut self, piece: &Piece<'_>) -> bool {
        let Some(n) = self.starts.of_piece(piece).map(|ids| ids.len()) else { return false };
        let segment = piece.index;
        self.rows.push(Rows {
            segment,
            address: Vec::with_capacity(n),
            ty: Vec::with_capacity(n),
            size: Vec::with_capacity(n),
            key: Vec::with_capacity(n),
            traits: Vec::with_capacity(n),
            ..Rows::default()
        });
        self.starts.has_objects(segment)
    }

    fn object(&mut self, object: &Object<'_>) {
        if object.ty.is_free {
            return;
        }
        let desc = self.descs.slot(object.ty.index).map(|slot| Arc::clone(slot.get_or_insert_with(|| Arc::new(in_order(object.ty)))));
        let (Some(desc), Some(piece)) = (desc, self.rows.last_mut()) else { return };
        let at = u32::try_from(piece.address.len()).unwrap_or(u32::MAX);
        if piece.parts.last().is_none_or(|(_, generation)| *generation != object.generation) {
            piece.parts.push((at, object.generation));
        }
        let mut traits = Traits::default();
        let contents = contents(object, &desc, self.word);
        if contents.is_some_and(|c| c.distinctive) {
            traits.add(Traits::DISTINCTIVE);
        }
        if contents.is_some_and(|c| c.distinctive_nearby) {
            traits.add(Traits::DISTINCTIVE_NEARBY);
        }
        if object.ty.is_string {
            traits.add(Traits::STRING);
        }
        if let Some(hash) = self.hash(object.address) {
            traits.add(Traits::HASHED);
            if let Some(piece) = self.rows.last_mut() {
                piece.hashes.push((at, hash));
            }
        }
        let Some(piece) = self.rows.last_mut() else { return };
        piece.address.push(object.address.0);
        piece.ty.push(object.ty.index.as_u32());
        piece.size.push(u32::try_from(object.size).unwrap_or(u32::MAX));
        piece.key.push(contents.map_or(0, |c| c.key));
        piece.traits.push(traits);
    }
}

impl Reader<'_> {
    /// Returns the identity hash code of an object, from its header or its sync block.
    fn hash(&mut self, object: Addr) -> Option<u32> {
        let headers = self.headers?;
        let word = self.window.u32(object.minus(headers.before())?)?;
        match HeaderUse::of(word) {
            HeaderUse::None | HeaderUse::ThinLock(_) => None,
            HeaderUse::Hash | HeaderUse::SyncBlock(_) => headers.read(object)?.hash_code,
        }
    }
}

impl<I: Index + Send + Sync> Side<I> {
    /// Reads the objects of a heap.
    pub(super) fn read(heap: &Heap, notes: &Collector) -> Side<I> {
        let starts = Arc::clone(notes.with(heap.starts()));
        let headers = heap.runtime().headers(notes);
        if headers.is_none() {
            let what = "objects are not recognized by their hash codes: the runtime does not describe object headers";
            notes.add(Missing::Layouts, None, what);
        }
        let walker = heap.walker();
        let walked = walker.walk_once(heap.progress(), || Reader {
            starts: &starts,
            headers: headers.as_ref(),
            window: Window::new(heap.memory()),
            word: heap.memory().ptr_bytes(),
            descs: IndexVec::new(),
            rows: Vec::new(),
        });
        note_walks(walker, &walked.segments, notes);
        let mut pieces: Vec<Rows> = walked.visitors.into_iter().flat_map(|v| v.rows).collect();
        pieces.sort_by_key(|p| (p.segment, p.address.first().copied()));
        let n = starts.ids().len();
        let mut side = Side {
            heap: heap.clone(),
            address: IndexVec::with_capacity(n),
            kind: IndexVec::with_capacity(n),
            size: IndexVec::with_capacity(n),
            key: IndexVec::with_capacity(n),
            traits: IndexVec::with_capacity(n),
            parts: Vec::new(),
            hashes: Vec::new(),
            types: Vec::new(),
            starts,
        };
        // Each piece is freed as soon as its rows have been copied.
        for piece in pieces {
            side.take(piece);
        }
        side.pin(notes);
        side
    }

    fn take(&mut self, piece: Rows) {
        let first = u32::try_from(self.address.len()).unwrap_or(u32::MAX);
        let id = |at: u32| I::from_u32(first.saturating_add(at));
        let ends = piece.parts.iter().skip(1).map(|p| p.0).chain([u32::try_from(piece.address.len()).unwrap_or(u32::MAX)]);
        for ((at, generation), end) in piece.parts.iter().zip(ends) {
            let count = end.saturating_sub(*at);
            match self.parts.last_mut() {
                // The segment was walked in several pieces, which continue the same part.
                Some(last) if last.segment == piece.segment && last.generation == *generation => last.count.grow(count),
                _ => self.parts.push(SegmentShare { first: id(*at), count, segment: piece.segment, generation: *generation }),
            }
        }
        self.hashes.extend(piece.hashes.iter().map(|(at, hash)| (id(*at), *hash)));
        self.address.extend(piece.address);
        self.kind.extend(piece.ty);
        self.size.extend(piece.size);
        self.key.extend(piece.key);
        self.traits.extend(piece.traits);
    }

    /// Marks objects that are pinned by handles.
    fn pin(&mut self, notes: &Collector) {
        let (pinned, _) = notes.take(pins(self.heap.gc()));
        let ids: Vec<I> = pinned.into_iter().filter_map(|(object, _)| self.id_of(object)).collect();
        ids.into_iter().for_each(|id| self.mark(id, Traits::PINNED));
    }

    /// Replaces the type indices of this dump by the numbers that both dumps use.
    pub(super) fn number(&mut self, numbers: &Map<Addr, u32>) {
        let types = self.walker().types().list();
        let of: IndexVec<TypeIndex, u32> = types.iter().map(|t| numbers.get(&t.method_table).copied().unwrap_or(u32::MAX)).collect();
        for ty in types.iter() {
            let Some(number) = numbers.get(&ty.method_table).and_then(|n| usize::try_from(*n).ok()) else { continue };
            if self.types.len() <= number {
                self.types.resize(number.saturating_add(1), None);
            }
            self.types.get_mut(number).into_iter().for_each(|slot| *slot = Some(Arc::clone(ty)));
        }
        for kind in self.kind.iter_mut() {
            *kind = of.get(TypeIndex::from_u32(*kind)).copied().unwrap_or(u32::MAX);
        }
    }

    /// Returns the type of an object.
    pub(super) fn type_of(&self, id: I) -> Option<&ObjectType> {
        self.types.get(usize::try_from(*self.kind.get(id)?).ok()?)?.as_deref()
    }

    /// Returns the walker of the heap.
    pub(super) fn walker(&self) -> &Walker {
        self.heap.walker()
    }

    /// Number of objects.
    pub(super) fn len(&self) -> u32 {
        u32::try_from(self.address.len()).unwrap_or(u32::MAX)
    }

    /// Returns the object at an address.
    pub(super) fn id_of(&self, address: Addr) -> Option<I> {
        self.starts.id_of(address).map(|id: ObjectId| I::from_u32(id.as_u32()))
    }

    /// Returns the address of an object.
    #[inline]
    pub(super) fn at(&self, id: I) -> u64 {
        self.address.get(id).copied().unwrap_or(0)
    }

    /// Returns the key of an object, if its contents are in the dump.
    #[inline]
    pub(super) fn key_of(&self, id: I) -> Option<u64> {
        self.key.get(id).copied().filter(|k| *k != 0)
    }

    /// Returns the facts about an object.
    #[inline]
    pub(super) fn traits(&self, id: I) -> Traits {
        self.traits.get(id).copied().unwrap_or_default()
    }

    /// Records a fact about an object.
    pub(super) fn mark(&mut self, id: I, what: Traits) {
        if let Some(traits) = self.traits.get_mut(id) {
            traits.add(what);
        }
    }

    /// Returns the identity hash code of an object.
    pub(super) fn hash_of(&self, id: I) -> Option<u32> {
        if !self.traits(id).has(Traits::HASHED) {
            return None;
        }
        let at = self.hashes.binary_search_by_key(&id, |(id, _)| *id).ok()?;
        self.hashes.get(at).map(|(_, hash)| *hash)
    }

    /// Returns all identity hash codes, by object.
    pub(super) fn hashes(&self) -> &[(I, u32)] {
        &self.hashes
    }

    /// Returns the part that contains an object.
    #[inline]
    pub(super) fn part_of(&self, id: I) -> Option<(usize, &SegmentShare<I>)> {
        let at = self.parts.partition_point(|p| p.first <= id).checked_sub(1)?;
        self.parts.get(at).filter(|part| part.has(id)).map(|part| (at, part))
    }

    /// Releases the pages between the first and the last of `ids` in each part. The pages can be read again.
    pub(super) fn release(&self, ids: impl Iterator<Item = I>) {
        let mut bounds: Vec<(usize, u64, u64)> = Vec::new();
        for (part, at) in ids.filter_map(|id| Some((self.part_of(id)?.0, self.at(id)))) {
            match bounds.last_mut() {
                Some((last, from, to)) if *last == part => (*from, *to) = ((*from).min(at), (*to).max(at)),
                _ => bounds.push((part, at, at)),
            }
        }
        bounds.into_iter().for_each(|(_, from, to)| self.heap.memory().release(AddrRange::new(Addr(from), Addr(to))));
    }

    /// Returns the size of an object in bytes.
    pub(super) fn bytes_of(&self, id: I) -> u64 {
        match self.size.get(id) {
            Some(&u32::MAX) => self.walker().object(Addr(self.at(id))).map_or(u64::from(u32::MAX), |(_, size)| size),
            Some(size) => u64::from(*size),
            None => 0,
        }
    }
}
