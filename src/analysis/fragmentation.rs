//! Free space by generation, segment and size, and the pinned objects that block compaction.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use rustc_hash::FxHashMap;

use super::pins::{Pins, pins};
use crate::base::{Addr, Answer, Count, share, total};
use crate::gc::{Object, Piece, SegmentIndex, Visitor};
use crate::model::{
    FragmentationReport, FragmentationTotals, FreeBlockModel, FreeSizeModel, FreeSpaceModel, Generation, NeighbourModel, PinnedTypeModel,
    SegmentModel, Sum,
};
use crate::session::{Error, Heap, Namer, coverage, note_walks};

/// Arguments of `fragmentation`.
#[derive(Clone, Copy, Debug)]
pub struct FragmentationQuery {
    /// Rows by heap and generation instead of by generation.
    pub heaps: bool,
    /// Also rows by segment.
    pub segments: bool,
    /// Free blocks to list; 0 for all.
    pub top: usize,
}

/// An object next to a free block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Neighbour {
    address: Addr,
    end: Addr,
    method_table: Addr,
    free: bool,
    handle: Option<Addr>,
}

/// A free block, ordered by size; of equal sizes, the lower address is greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Block {
    size: u64,
    address: Reverse<Addr>,
    segment: SegmentIndex,
    generation: Generation,
    before: Option<Neighbour>,
    after: Option<Neighbour>,
}

/// Pinned objects of a type.
#[derive(Clone, Copy, Debug, Default)]
struct Pinned {
    objects: Sum,
    free_before: u64,
}

struct Finder<'p> {
    pins: Pins<'p>,
    top: usize,
    segment: SegmentIndex,
    /// The preceding object.
    last: Option<Neighbour>,
    /// Bytes of the contiguous free blocks before it.
    run: u64,
    /// The free block whose following object is not known yet.
    open: Option<Block>,
    /// The largest so far, as a min-heap.
    largest: BinaryHeap<Reverse<Block>>,
    free: FxHashMap<(SegmentIndex, Generation), Sum>,
    sizes: BTreeMap<u32, Sum>,
    pinned: FxHashMap<Addr, Pinned>,
}

/// Whether an object at `at` directly follows one that ends at `end`, which is not rounded up to the alignment.
fn touches(end: Addr, at: Addr) -> bool {
    at.since(end).is_some_and(|gap| gap < 8)
}

impl Finder<'_> {
    /// Closes the pending free block: its following object is final.
    fn close(&mut self) {
        let Some(block) = self.open.take() else { return };
        if self.top > 0 && self.largest.len() >= self.top {
            match self.largest.peek() {
                Some(Reverse(smallest)) if *smallest < block => drop(self.largest.pop()),
                _ => return,
            }
        }
        self.largest.push(Reverse(block));
    }
}

impl Visitor for Finder<'_> {
    const WHOLE: bool = true;

    fn piece(&mut self, piece: &Piece<'_>) -> bool {
        self.close();
        self.segment = piece.index;
        self.pins.seek(piece.starts.start);
        (self.last, self.run) = (None, 0);
        true
    }

    #[inline]
    fn object(&mut self, object: &Object<'_>) {
        let handle = self.pins.handle(object.address);
        let here = Neighbour {
            address: object.address,
            end: object.address.plus(object.size),
            method_table: object.ty.method_table,
            free: object.ty.is_free,
            handle,
        };
        let before = self.last.replace(here).filter(|last| touches(last.end, here.address));
        if let Some(open) = &mut self.open {
            open.after = before.map(|_| here);
            self.close();
        }
        if before.is_none_or(|b| !b.free) {
            self.run = 0;
        }
        if object.ty.is_free {
            self.run.grow(object.size);
            self.free.entry((self.segment, object.generation)).or_default().add(object.size);
            self.sizes.entry(object.size.max(1).ilog2()).or_default().add(object.size);
            let (size, address) = (object.size, Reverse(object.address));
            self.open = Some(Block { size, address, segment: self.segment, generation: object.generation, before, after: None });
        } else if handle.is_some() {
            let pinned = self.pinned.entry(object.ty.method_table).or_default();
            pinned.objects.add(object.size);
            pinned.free_before.grow(self.run);
        }
    }
}

/// Free share of the allocated bytes; 0 if nothing is allocated.
fn free_share(free: u64, allocated: u64) -> f64 {
    share(free, allocated).unwrap_or(0.0)
}

/// The rows of a segment: one, or one per generation inside.
fn rows_of(segment: &SegmentModel, context_bytes: u64, free: impl Fn(Generation) -> Sum) -> Vec<FreeSpaceModel> {
    let unused = segment.committed.since(segment.allocated).unwrap_or(0);
    let row = |generation: Generation, allocated_bytes: u64, (unused, context): (u64, u64)| {
        let Sum { count, bytes } = free(generation);
        FreeSpaceModel {
            generation,
            heap: Some(segment.heap),
            segment: Some(segment.address),
            allocated_bytes,
            free_count: count,
            free_bytes: bytes,
            share: free_share(bytes, allocated_bytes),
            unused_committed_bytes: unused,
            context_bytes: context,
        }
    };
    if segment.parts.is_empty() {
        return vec![row(segment.generation, segment.allocated_bytes, (unused, context_bytes))];
    }
    let mut rows: Vec<FreeSpaceModel> = Vec::new();
    let youngest = segment.parts.iter().map(|p| p.generation).min();
    for part in &segment.parts {
        let more = if Some(part.generation) == youngest { (unused, context_bytes) } else { (0, 0) };
        rows.push(row(part.generation, part.end.since(part.start).unwrap_or(0), more));
    }
    // Bytes outside the parts: none in all dumps seen.
    let rest = free(segment.generation);
    if rest.count > 0 && !segment.parts.iter().any(|p| p.generation == segment.generation) {
        rows.push(row(segment.generation, 0, (0, 0)));
    }
    rows
}

/// Sums the rows by generation; with `heaps`, by heap and generation.
fn added(rows: &[FreeSpaceModel], heaps: bool) -> Vec<FreeSpaceModel> {
    let mut sums: BTreeMap<(Option<u64>, Generation), FreeSpaceModel> = BTreeMap::new();
    for row in rows {
        let heap = row.heap.filter(|_| heaps);
        let empty = FreeSpaceModel {
            heap,
            segment: None,
            allocated_bytes: 0,
            free_count: 0,
            free_bytes: 0,
            unused_committed_bytes: 0,
            context_bytes: 0,
            ..row.clone()
        };
        let sum = sums.entry((heap, row.generation)).or_insert(empty);
        sum.allocated_bytes.grow(row.allocated_bytes);
        sum.free_count.grow(row.free_count);
        sum.free_bytes.grow(row.free_bytes);
        sum.unused_committed_bytes.grow(row.unused_committed_bytes);
        sum.context_bytes.grow(row.context_bytes);
    }
    let mut rows: Vec<_> = sums.into_values().collect();
    rows.iter_mut().for_each(|r| r.share = free_share(r.free_bytes, r.allocated_bytes));
    rows
}

/// The free space of the heap.
///
/// # Errors
/// Never fails today; the signature leaves room.
pub fn fragmentation(heap: &Heap, query: &FragmentationQuery) -> Result<Answer<FragmentationReport>, Error> {
    let (notes, namer) = (heap.begin(), heap.namer());
    let (pins, pinned_handles) = notes.take(pins(heap.gc()));
    let walked = heap.walker().walk_once(heap.progress(), || Finder {
        pins: Pins::new(&pins),
        top: query.top,
        segment: SegmentIndex::default(),
        last: None,
        run: 0,
        open: None,
        largest: BinaryHeap::new(),
        free: FxHashMap::default(),
        sizes: BTreeMap::new(),
        pinned: FxHashMap::default(),
    });
    note_walks(heap.walker(), &walked.segments, &notes);
    let mut free: FxHashMap<(SegmentIndex, Generation), Sum> = FxHashMap::default();
    let mut sizes: BTreeMap<u32, Sum> = BTreeMap::new();
    let mut pinned: BTreeMap<Addr, Pinned> = BTreeMap::new();
    let mut largest: Vec<Block> = Vec::new();
    for mut visitor in walked.visitors {
        visitor.close();
        largest.extend(visitor.largest.into_iter().map(|Reverse(block)| block));
        visitor.free.into_iter().for_each(|(key, s)| free.entry(key).or_default().merge(s));
        visitor.sizes.into_iter().for_each(|(key, s)| sizes.entry(key).or_default().merge(s));
        for (mt, p) in visitor.pinned {
            let into = pinned.entry(mt).or_default();
            into.objects.merge(p.objects);
            into.free_before.grow(p.free_before);
        }
    }
    largest.sort_unstable_by(|a, b| b.cmp(a));
    if query.top > 0 {
        largest.truncate(query.top);
    }
    let contexts: FxHashMap<SegmentIndex, u64> = walked.segments.iter().map(|(i, w)| (*i, w.context_bytes)).collect();
    let rows: Vec<FreeSpaceModel> = heap
        .walker()
        .segments_enumerated()
        .flat_map(|(i, s)| {
            let free = |generation| free.get(&(i, generation)).copied().unwrap_or_default();
            rows_of(s, contexts.get(&i).copied().unwrap_or(0), free)
        })
        .collect();
    let sum = |part: fn(&FreeSpaceModel) -> u64| total(rows.iter().map(part));
    let (allocated_bytes, free_bytes) = (sum(|r| r.allocated_bytes), sum(|r| r.free_bytes));
    let report = FragmentationReport {
        generations: added(&rows, query.heaps),
        sizes: sizes
            .iter()
            .map(|(log, s)| FreeSizeModel { size_from: 1u64.checked_shl(*log).unwrap_or(0), count: s.count, bytes: s.bytes })
            .collect(),
        largest: largest.iter().map(|b| block_model(heap, &namer, b)).collect(),
        totals: FragmentationTotals {
            allocated_bytes,
            free_count: sum(|r| r.free_count),
            free_bytes,
            share: free_share(free_bytes, allocated_bytes),
            unused_committed_bytes: sum(|r| r.unused_committed_bytes),
            context_bytes: sum(|r| r.context_bytes),
            pinned_handles,
            pinned_objects: total(pinned.values().map(|p| p.objects.count)),
        },
        pinned: pinned_models(&namer, &pinned),
        segments: query.segments.then_some(rows),
        coverage: coverage(heap.walker(), &walked.segments),
    };
    namer.note(&notes);
    Ok(notes.finish(report))
}

fn block_model(heap: &Heap, namer: &Namer, b: &Block) -> FreeBlockModel {
    let neighbour = |n: &Neighbour| NeighbourModel {
        address: n.address,
        type_name: if n.free { "Free".into() } else { namer.name_or_address(n.method_table) },
    };
    FreeBlockModel {
        address: b.address.0,
        size: b.size,
        generation: b.generation,
        segment: heap.walker().segment(b.segment).map_or(Addr(0), |s| s.address),
        before: b.before.as_ref().map(neighbour),
        after: b.after.as_ref().map(neighbour),
        pinned_by: b.after.and_then(|n| n.handle).or_else(|| b.before.and_then(|n| n.handle)),
    }
}

fn pinned_models(namer: &Namer, pinned: &BTreeMap<Addr, Pinned>) -> Vec<PinnedTypeModel> {
    let mut rows: Vec<PinnedTypeModel> = pinned
        .iter()
        .map(|(mt, p)| PinnedTypeModel {
            type_name: namer.name_or_address(*mt),
            method_table: *mt,
            count: p.objects.count,
            bytes: p.objects.bytes,
            free_bytes_before: p.free_before,
        })
        .collect();
    rows.sort_by_key(|r| (Reverse(r.free_bytes_before), Reverse(r.bytes), r.method_table));
    rows
}
