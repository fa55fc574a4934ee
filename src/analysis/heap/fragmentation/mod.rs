//! Free space by generation, segment and size, and the pinned objects that block compaction.

mod report;

pub use report::*;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use rustc_hash::FxHashMap;

use crate::analysis::heap::pins::{Pins, pins};
use crate::base::{Addr, Answer, Count, share, total};
use crate::gc::{Object, Piece, SegmentIndex, Visitor, coverage, note_walks};
use crate::model::{Generation, SegmentModel, Sum, WalkModel};
use crate::session::{Heap, Namer};

/// Arguments of `fragmentation`.
#[derive(Clone, Copy, Debug)]
pub struct FragmentationQuery {
    /// Whether rows are by heap and generation instead of by generation.
    pub heaps: bool,
    /// Whether to add rows by segment.
    pub segments: bool,
    /// Free blocks to list; 0 for all.
    pub top: usize,
}

/// An object next to a free block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Neighbor {
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
    before: Option<Neighbor>,
    after: Option<Neighbor>,
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
    /// The first object of the piece.
    first: Option<Neighbor>,
    /// The free block that is the first object of the piece, once the object after it is known. `follow` may add the object before it.
    leading: Option<Block>,
    /// Whether all objects of the piece so far are adjacent free blocks.
    all_free: bool,
    /// Type of the first object of the piece that is not free, if it is pinned and no gap precedes it.
    led: Option<Addr>,
    /// The preceding object.
    last: Option<Neighbor>,
    /// Size in bytes of the contiguous free blocks before the current object.
    run: u64,
    /// The free block whose following object is not known yet.
    open: Option<Block>,
    /// The largest blocks so far, as a min-heap.
    largest: BinaryHeap<Reverse<Block>>,
    free: FxHashMap<(SegmentIndex, Generation), Sum>,
    sizes: BTreeMap<u32, Sum>,
    pinned: FxHashMap<Addr, Pinned>,
}

/// Whether an object at `at` directly follows the object that ends at `end`. A gap of less than 8 bytes is padding.
fn touches(end: Addr, at: Addr) -> bool {
    at.since(end).is_some_and(|gap| gap < 8)
}

impl Finder<'_> {
    /// Ends the piece: the remaining free blocks have no further neighbors.
    fn close(&mut self) {
        let blocks = [self.leading.take(), self.open.take()];
        blocks.into_iter().flatten().for_each(|block| self.keep(block));
    }

    /// Handles a free block whose following object is known.
    fn closed(&mut self, block: Block) {
        match self.first {
            Some(first) if first.address == block.address.0 => self.leading = Some(block),
            _ => self.keep(block),
        }
    }

    /// Handles the first object of the piece, or an object that only free blocks precede. `touches` is whether the object is adjacent to the last of
    /// these blocks.
    fn lead(&mut self, here: Neighbor, touches: bool) {
        let joins = touches || self.first.is_none();
        self.first.get_or_insert(here);
        self.all_free = joins && here.free;
        self.led = here.handle.filter(|_| joins && !here.free).map(|_| here.method_table);
    }

    /// Keeps a free block if it is one of the largest.
    fn keep(&mut self, block: Block) {
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
    fn piece(&mut self, piece: &Piece<'_>) -> bool {
        self.close();
        self.segment = piece.index;
        self.pins.seek(piece.starts.start);
        (self.first, self.last, self.led) = (None, None, None);
        (self.run, self.all_free) = (0, true);
        true
    }

    #[inline]
    fn object(&mut self, object: &Object<'_>) {
        let handle = self.pins.handle(object.address);
        let here = Neighbor {
            address: object.address,
            end: object.address.plus(object.size),
            method_table: object.ty.method_table,
            free: object.ty.is_free,
            handle,
        };
        let before = self.last.replace(here).filter(|last| touches(last.end, here.address));
        if let Some(block) = self.open.take() {
            self.closed(Block { after: before.map(|_| here), ..block });
        }
        if self.all_free {
            self.lead(here, before.is_some());
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

    fn follow(&mut self, before: &mut Self) {
        let (Some(first), Some(last)) = (self.first, before.last) else { return };
        if !touches(last.end, first.address) {
            return;
        }
        if let Some(block) = &mut before.open {
            block.after = Some(first);
        }
        // A block that is the only object of its piece is still open.
        if let Some(block) = self.leading.as_mut().or(self.open.as_mut()).filter(|block| block.address.0 == first.address) {
            block.before = Some(last);
        }
        let run = if last.free { before.run } else { 0 };
        if self.all_free {
            self.run.grow(run);
        }
        if let Some(pinned) = self.led.and_then(|mt| self.pinned.get_mut(&mt)) {
            pinned.free_before.grow(run);
        }
    }
}

/// Sums of a part of the heap. Memory of this part may be missing from the dump.
#[derive(Clone, Copy, Debug, Default)]
struct Counted {
    allocated: u64,
    /// Allocated bytes that were not walked.
    lost: u64,
    free: Sum,
    unused: u64,
    context: u64,
}

impl Counted {
    fn merge(&mut self, other: &Counted) {
        self.allocated.grow(other.allocated);
        self.lost.grow(other.lost);
        self.free.merge(other.free);
        self.unused.grow(other.unused);
        self.context.grow(other.context);
    }

    /// Returns `n`; `None` for zero in a part that was not walked completely.
    fn if_known(&self, n: u64) -> Option<u64> {
        found(n, self.lost == 0)
    }

    /// Returns the free share of the walked bytes; 0 if nothing is allocated.
    fn share(&self) -> Option<f64> {
        self.if_known(self.free.bytes).map(|free| share(free, self.allocated.saturating_sub(self.lost).max(free)).unwrap_or(0.0))
    }

    fn model(&self, (heap, generation, segment): Place) -> FreeSpaceModel {
        FreeSpaceModel {
            generation,
            heap,
            segment,
            allocated_bytes: self.allocated,
            free_count: self.if_known(self.free.count),
            free_bytes: self.if_known(self.free.bytes),
            share: self.share(),
            unused_committed_bytes: self.unused,
            context_bytes: self.if_known(self.context),
        }
    }
}

/// Returns `n`; `None` for zero if the part is not `whole`.
fn found(n: u64, whole: bool) -> Option<u64> {
    (whole || n > 0).then_some(n)
}

/// Scope of a row: heap, generation, segment.
type Place = (Option<u64>, Generation, Option<Addr>);

/// Returns the number of allocated bytes of a segment that were not walked.
fn lost_of(segment: &SegmentModel, walk: Option<&WalkModel>) -> u64 {
    walk.map_or(segment.allocated_bytes, |w| w.absent_bytes)
}

/// Returns the rows of a segment: one, or one for each generation in it.
fn rows_of(segment: &SegmentModel, walk: Option<&WalkModel>, free: impl Fn(Generation) -> Sum) -> Vec<(Place, Counted)> {
    let more = (segment.committed.since(segment.allocated).unwrap_or(0), walk.map_or(0, |w| w.context_bytes));
    let row = |generation: Generation, allocated: u64, lost: u64, (unused, context): (u64, u64)| {
        let place = (Some(segment.heap), generation, Some(segment.address));
        (place, Counted { allocated, lost, free: free(generation), unused, context })
    };
    let lost = lost_of(segment, walk);
    if segment.parts.is_empty() {
        return vec![row(segment.generation, segment.allocated_bytes, lost, more)];
    }
    let mut rows = Vec::new();
    let youngest = segment.parts.iter().map(|p| p.generation).min();
    for part in &segment.parts {
        let of_it = if Some(part.generation) == youngest { more } else { (0, 0) };
        let allocated = part.end.since(part.start).unwrap_or(0);
        // The walk reports how many bytes are missing, but not in which part, so each part is treated as if all of them were missing there.
        rows.push(row(part.generation, allocated, lost.min(allocated), of_it));
    }
    // Free blocks outside the parts; no known dump has any.
    let rest = free(segment.generation);
    if rest.count > 0 && !segment.parts.iter().any(|p| p.generation == segment.generation) {
        rows.push(row(segment.generation, 0, 0, (0, 0)));
    }
    rows
}

/// Sums up the rows by generation; with `heaps`, by heap and generation.
fn added(rows: &[(Place, Counted)], heaps: bool) -> Vec<FreeSpaceModel> {
    let mut sums: BTreeMap<(Option<u64>, Generation), Counted> = BTreeMap::new();
    for ((heap, generation, _), counted) in rows {
        sums.entry((heap.filter(|_| heaps), *generation)).or_default().merge(counted);
    }
    sums.into_iter().map(|((heap, generation), counted)| counted.model((heap, generation, None))).collect()
}

/// Reports the free space of the heap.
pub fn fragmentation(heap: &Heap, query: &FragmentationQuery) -> Answer<FragmentationReport> {
    let (notes, namer) = (heap.begin(), heap.namer());
    let pins = pins(heap.gc());
    let pins_whole = pins.complete();
    let (pins, pinned_handles) = notes.take(pins);
    let walked = heap.walker().walk_once(heap.progress(), || Finder {
        pins: Pins::new(&pins),
        top: query.top,
        segment: SegmentIndex::default(),
        first: None,
        leading: None,
        all_free: true,
        led: None,
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
    let walks: FxHashMap<SegmentIndex, &WalkModel> = walked.segments.iter().map(|(i, w)| (*i, w)).collect();
    let rows: Vec<(Place, Counted)> = heap
        .walker()
        .segments_enumerated()
        .flat_map(|(i, s)| {
            let free = |generation| free.get(&(i, generation)).copied().unwrap_or_default();
            rows_of(s, walks.get(&i).copied(), free)
        })
        .collect();
    let mut all = Counted::default();
    rows.iter().for_each(|(_, counted)| all.merge(counted));
    // Each part of a segment counts all of the segment's missing bytes.
    all.lost = total(heap.walker().segments_enumerated().map(|(i, s)| lost_of(s, walks.get(&i).copied())));
    // If a list of segments is cut off, the size of the rest is unknown.
    let listed = heap.segments_whole();
    let if_listed = |n: Option<u64>| n.and_then(|n| found(n, listed));
    let pinned_objects = total(pinned.values().map(|p| p.objects.count));
    let report = FragmentationReport {
        generations: added(&rows, query.heaps),
        sizes: sizes
            .iter()
            .map(|(log, s)| FreeSizeModel { size_from: 1u64.checked_shl(*log).unwrap_or(0), count: s.count, bytes: s.bytes })
            .collect(),
        largest: largest.iter().map(|b| block_model(heap, &namer, b)).collect(),
        totals: FragmentationTotals {
            allocated_bytes: found(all.allocated, listed),
            free_count: if_listed(all.if_known(all.free.count)),
            free_bytes: if_listed(all.if_known(all.free.bytes)),
            share: all.share().filter(|share| listed || *share > 0.0),
            unused_committed_bytes: found(all.unused, listed),
            context_bytes: if_listed(all.if_known(all.context)),
            pinned_handles: found(pinned_handles, pins_whole),
            pinned_objects: found(pinned_objects, pins_whole && listed && (all.lost == 0 || pinned_handles == 0)),
        },
        pinned: pinned_models(&namer, &pinned),
        segments: query.segments.then(|| rows.iter().map(|(place, counted)| counted.model(*place)).collect()),
        coverage: coverage(heap.walker(), &walked.segments),
    };
    namer.note(&notes);
    notes.finish(report)
}

fn block_model(heap: &Heap, namer: &Namer, b: &Block) -> FreeBlockModel {
    let neighbor = |n: &Neighbor| NeighborModel {
        address: n.address,
        type_name: if n.free { "Free".into() } else { namer.name_or_address(n.method_table) },
    };
    FreeBlockModel {
        address: b.address.0,
        size: b.size,
        generation: b.generation,
        segment: heap.walker().segment(b.segment).map_or(Addr(0), |s| s.address),
        before: b.before.as_ref().map(neighbor),
        after: b.after.as_ref().map(neighbor),
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
