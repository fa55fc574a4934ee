//! Maps the memory of the heap, segment by segment, in cells of equal size.

mod report;

pub use report::*;

use crate::analysis::heap::pins::{Pins, pins};
use crate::analysis::on_graph::OnGraph;
use crate::base::{Addr, AddrRange, Answer, Count, IndexVec, PAGE};
use crate::gc::{Object, Piece, SegmentIndex, Visitor, note_walks, object_alignment};
use crate::heapgraph::{Depends, HeapGraph, ObjectSet};
use crate::model::{Generation, SegmentModel, Stacks};
use crate::session::{Error, Heap};

/// Maximum number of cells in a map, so that it can still be viewed.
const CELLS: u64 = 1024;
/// Maximum number of rows: with more segments, a row represents several.
const ROWS: usize = 64;
/// Maximum number of cells for the reserved memory of a row, which may be many gigabytes.
const RESERVED: u64 = 16;

/// Arguments of a heap map.
#[derive(Clone, Copy, Debug, Default)]
pub struct MapQuery {
    /// The stack values that are roots when garbage is distinguished from live objects, which builds the graph. `None` to show both as objects.
    pub garbage: Option<Stacks>,
}

/// Maps the segments of the heaps that match `wanted`.
///
/// # Errors
/// [`Error::Graph`] or [`Error::Memory`] if garbage is requested and the graph cannot be built.
pub(in crate::analysis) fn map(heap: &Heap, query: &MapQuery, wanted: impl Fn(u64) -> bool) -> Result<Answer<HeapMapModel>, Error> {
    let notes = heap.begin();
    let on = query.garbage.map(|stacks| OnGraph::open(heap, false, stacks, Some(Depends::Live))).transpose()?;
    let live = on.as_ref().map(|on| (on.graph, on.heap.live(on.graph, on.stacks)));
    let (pins, _) = notes.take(pins(heap.gc()));
    let walker = heap.walker();
    let segments = walker.segments_enumerated().filter(|(_, s)| wanted(s.heap)).collect();
    let plan = Plan::of(segments, walker.memory().ptr_bytes(), |index| walker.unfilled(index));
    let walked = heap.walker().walk_once(heap.progress(), || Painter {
        plan: &plan,
        pins: Pins::new(&pins),
        live: live.as_ref().map(|(graph, live)| (*graph, live)),
        cells: vec![Amounts::default(); plan.cells],
        place: None,
        start: Addr::NULL,
        at: Addr::NULL,
    });
    note_walks(heap.walker(), &walked.segments, &notes);
    let mut cells = vec![Amounts::default(); plan.cells];
    for mut painter in walked.visitors {
        painter.close();
        cells.iter_mut().zip(&painter.cells).for_each(|(to, from)| to.merge(from));
    }
    let map = plan.finish(&cells, live.is_some());
    if let Some(on) = on {
        notes.take(on.finish(()));
    }
    Ok(notes.finish(map))
}

/// Bytes of a cell by content.
#[derive(Clone, Copy, Debug, Default)]
struct Amounts {
    objects: u64,
    pinned: u64,
    garbage: u64,
    free: u64,
    unknown: u64,
}

impl Amounts {
    fn merge(&mut self, other: &Amounts) {
        self.objects.grow(other.objects);
        self.pinned.grow(other.pinned);
        self.garbage.grow(other.garbage);
        self.free.grow(other.free);
        self.unknown.grow(other.unknown);
    }

    fn occupied(&self) -> u64 {
        self.objects.saturating_add(self.pinned).saturating_add(self.garbage)
    }

    /// Returns how many of the `bytes` of the cell have no other content.
    fn unused(&self, bytes: u64) -> u64 {
        bytes.saturating_sub(self.occupied()).saturating_sub(self.free).saturating_sub(self.unknown)
    }

    /// Returns the main content of a cell of `bytes`. Pinned objects always show, because a few of them may block much free space.
    fn mostly(&self, bytes: u64) -> MapCell {
        let (occupied, unused) = (self.occupied(), self.unused(bytes));
        let most = occupied.max(self.free).max(unused).max(self.unknown);
        if most == occupied && self.garbage > self.objects.saturating_add(self.pinned) {
            MapCell::Garbage
        } else if most == occupied {
            if self.pinned > 0 { MapCell::Pinned } else { MapCell::Objects }
        } else if most == self.free {
            if self.pinned > 0 { MapCell::FreePinned } else { MapCell::Free }
        } else if most == unused {
            MapCell::Unused
        } else {
            MapCell::Unknown
        }
    }
}

/// Location of the committed memory of a segment in the map.
#[derive(Clone, Debug)]
struct SegmentCells {
    committed: AddrRange,
    /// Index of the first cell of the segment's row.
    first: usize,
    /// Committed bytes of the segments before this one in the row.
    before: u64,
    /// Alignment of object sizes.
    align: u64,
    /// Unfilled ranges of allocation contexts.
    contexts: Vec<AddrRange>,
    allocated: Addr,
}

/// The rows of a map, before the contents of their cells are known.
struct Plan {
    cell_bytes: u64,
    cells: usize,
    by: MapRows,
    rows: Vec<(HeapMapRow, usize)>,
    places: IndexVec<SegmentIndex, Option<SegmentCells>>,
}

/// Returns the committed memory of a segment, its header included.
fn committed(segment: &SegmentModel) -> AddrRange {
    AddrRange::new(segment.committed.minus(segment.committed_bytes).unwrap_or(segment.committed), segment.committed)
}

/// Returns the smallest cell size with which rows of these lengths take at most [`CELLS`].
fn cell_bytes(rows: &[u64]) -> u64 {
    let fits = |cell: &u64| rows.iter().fold(0u64, |n, bytes| n.saturating_add(bytes.div_ceil(*cell))) <= CELLS;
    (PAGE.trailing_zeros()..u64::BITS).map(|shift| 1 << shift).find(fits).unwrap_or(1 << 63)
}

impl Plan {
    fn of(mut all: Vec<(SegmentIndex, &SegmentModel)>, word: u64, unfilled: impl Fn(SegmentIndex) -> Vec<AddrRange>) -> Plan {
        all.sort_by_key(|(_, s)| (s.heap, s.generation, s.start));
        let kinds = |key: &dyn Fn(&SegmentModel) -> (Option<u64>, Generation)| {
            let mut keys: Vec<_> = all.iter().map(|(_, s)| key(s)).collect();
            keys.sort_unstable();
            keys.dedup();
            keys.len()
        };
        let by = match all.len() {
            0..=ROWS => MapRows::Segments,
            _ if kinds(&|s| (Some(s.heap), s.generation)) <= ROWS => MapRows::HeapGenerations,
            _ => MapRows::Generations,
        };
        if by == MapRows::Generations {
            all.sort_by_key(|(_, s)| (s.generation, s.start));
        }
        let mut rows: Vec<(HeapMapRow, Vec<(SegmentIndex, &SegmentModel)>)> = Vec::new();
        for (index, segment) in all {
            let own = by == MapRows::Segments;
            let heap = (by != MapRows::Generations).then_some(segment.heap);
            let committed = committed(segment);
            let row = match rows.last_mut() {
                Some(row) if !own && (row.0.heap, row.0.generation) == (heap, segment.generation) => row,
                _ => {
                    let row = HeapMapRow {
                        heap,
                        generation: segment.generation,
                        segment: own.then_some(segment.address),
                        segments: 0,
                        start: committed.start,
                        committed: 0,
                        bytes: MapBytes::default(),
                        cells: Vec::new(),
                    };
                    rows.push((row, Vec::new()));
                    let Some(row) = rows.last_mut() else { continue };
                    row
                }
            };
            row.0.segments.bump();
            row.0.committed.grow(committed.len());
            row.0.bytes.reserved.grow(segment.reserved_bytes.saturating_sub(segment.committed_bytes));
            row.1.push((index, segment));
        }
        let cell_bytes = cell_bytes(&rows.iter().map(|(row, _)| row.committed).collect::<Vec<u64>>());
        let mut plan = Plan { cell_bytes, cells: 0, by, rows: Vec::with_capacity(rows.len()), places: IndexVec::new() };
        for (row, segments) in rows {
            let (first, mut before) = (plan.cells, 0u64);
            for (index, segment) in segments {
                let committed = committed(segment);
                let align = object_alignment(segment, word);
                let contexts = unfilled(index);
                if let Some(place) = plan.places.slot(index) {
                    *place = Some(SegmentCells { committed, first, before, align, contexts, allocated: segment.allocated });
                }
                before.grow(committed.len());
            }
            plan.cells.grow(usize::try_from(row.committed.div_ceil(cell_bytes)).unwrap_or(0));
            plan.rows.push((row, first));
        }
        plan
    }

    fn finish(self, cells: &[Amounts], garbage: bool) -> HeapMapModel {
        let none = MapBytes { garbage: garbage.then_some(0), ..MapBytes::default() };
        let mut totals = none;
        let finished = |(mut row, first): (HeapMapRow, usize)| {
            let mut bytes = MapBytes { reserved: row.bytes.reserved, ..none };
            let mut left = row.committed;
            for cell in cells.iter().skip(first) {
                if left == 0 {
                    break;
                }
                let whole = left.min(self.cell_bytes);
                left = left.saturating_sub(whole);
                row.cells.push(cell.mostly(whole));
                bytes.merge(&MapBytes {
                    objects: cell.objects,
                    pinned: cell.pinned,
                    garbage: Some(cell.garbage),
                    free: cell.free,
                    unused: cell.unused(whole),
                    unknown: cell.unknown,
                    reserved: 0,
                });
            }
            let reserved = bytes.reserved.div_ceil(self.cell_bytes).min(RESERVED);
            row.cells.extend((0..reserved).map(|_| MapCell::Reserved));
            totals.merge(&bytes);
            row.bytes = bytes;
            row
        };
        let rows = self.rows.into_iter().map(finished).collect();
        HeapMapModel { cell_bytes: self.cell_bytes, by: self.by, rows, totals }
    }
}

/// Adds the visited objects and gaps to the cells.
struct Painter<'p> {
    plan: &'p Plan,
    pins: Pins<'p>,
    live: Option<(&'p HeapGraph, &'p ObjectSet)>,
    cells: Vec<Amounts>,
    place: Option<&'p SegmentCells>,
    /// Start of the current piece.
    start: Addr,
    /// End of the preceding object.
    at: Addr,
}

impl Painter<'_> {
    #[inline]
    fn add(&mut self, range: AddrRange, of: fn(&mut Amounts) -> &mut u64) {
        let Some(place) = self.place else { return };
        let within = |at: Addr| at.min(place.committed.end).since(place.committed.start).unwrap_or(0).saturating_add(place.before);
        let (mut at, end) = (within(range.start), within(range.end));
        let size = self.plan.cell_bytes;
        while at < end {
            let cell = at / size;
            let until = cell.saturating_add(1).saturating_mul(size).min(end);
            let index = usize::try_from(cell).unwrap_or(usize::MAX).saturating_add(place.first);
            let Some(amounts) = self.cells.get_mut(index) else { return };
            of(amounts).grow(until.saturating_sub(at));
            at = until;
        }
    }

    /// Adds the range between two objects as unknown memory, since it could not be walked. Allocation contexts in the range are unused memory
    /// instead.
    #[cold]
    fn gap(&mut self, range: AddrRange) {
        let Some(place) = self.place else { return };
        let mut at = range.start;
        let first = place.contexts.partition_point(|c| c.end <= range.start);
        for context in place.contexts.iter().skip(first).take_while(|c| c.start < range.end) {
            let (start, end) = (context.start.max(at), context.end.min(range.end));
            if start < end {
                self.add(AddrRange::new(at, start), |a| &mut a.unknown);
                at = end;
            }
        }
        self.add(AddrRange::new(at, range.end), |a| &mut a.unknown);
    }

    /// Ends the segment: adds the memory after the last object.
    fn close(&mut self) {
        if let Some(place) = self.place {
            self.close_at(place.allocated);
        }
    }

    /// Ends the current piece at `end`.
    fn close_at(&mut self, end: Addr) {
        if self.at < end {
            self.gap(AddrRange::new(self.at, end));
        }
        self.place = None;
    }
}

impl Visitor for Painter<'_> {
    fn piece(&mut self, piece: &Piece<'_>) -> bool {
        self.close();
        self.place = self.plan.places.get(piece.index).and_then(Option::as_ref);
        (self.start, self.at) = (piece.starts.start, piece.starts.start);
        self.pins.seek(piece.starts.start);
        self.place.is_some()
    }

    #[inline]
    fn object(&mut self, object: &Object<'_>) {
        let Some(place) = self.place else { return };
        if self.at < object.address {
            self.gap(AddrRange::new(self.at, object.address));
        }
        let end = object.address.plus(object.size);
        // Objects start at multiples of the alignment.
        self.at = Addr(end.0.checked_next_multiple_of(place.align).unwrap_or(end.0));
        let range = AddrRange::new(object.address, self.at);
        let garbage = |(graph, live): (&HeapGraph, &ObjectSet)| graph.index.id_of(object.address).is_some_and(|id| !live.contains(id));
        if object.ty.is_free {
            self.add(range, |a| &mut a.free);
        } else if self.pins.handle(object.address).is_some() {
            self.add(range, |a| &mut a.pinned);
        } else if self.live.is_some_and(garbage) {
            self.add(range, |a| &mut a.garbage);
        } else {
            self.add(range, |a| &mut a.objects);
        }
    }

    fn follow(&mut self, before: &mut Self) {
        before.close_at(self.start);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Index;

    #[test]
    fn cells_grow_until_the_map_is_small() {
        assert_eq!(cell_bytes(&[]), 4096);
        assert_eq!(cell_bytes(&[1, 1 << 20]), 4096);
        assert_eq!(cell_bytes(&[4 << 20, 1]), 8192);
        assert_eq!(cell_bytes(&[u64::MAX; 64]), 1 << 60);
        let many = vec![32 << 20; 64];
        assert!(many.iter().map(|n: &u64| n.div_ceil(cell_bytes(&many))).sum::<u64>() <= CELLS);
    }

    fn region(heap: u64, n: u64, generation: Generation) -> SegmentModel {
        let base = Addr(0x7000_0000_0000).plus(n << 22);
        SegmentModel {
            address: Addr(0x1000).plus(n << 8),
            heap,
            generation,
            start: base.plus(0x28),
            allocated: base.plus(0x8000),
            stored_allocated: base.plus(0x8000),
            committed: base.plus(1 << 20),
            reserved: base.plus(4 << 20),
            next: Addr::NULL,
            used: None,
            background_allocated: None,
            allocated_bytes: 0x7fd8,
            committed_bytes: 1 << 20,
            reserved_bytes: 4 << 20,
            captured_bytes: 0,
            flags: Vec::new(),
            flags_value: 0,
            parts: Vec::new(),
            walk: None,
        }
    }

    fn planned(heaps: u64, regions: u64) -> HeapMapModel {
        let kinds = [Generation::Gen0, Generation::Gen2];
        // Heaps and generations alternate.
        let all: Vec<SegmentModel> = (0..regions).map(|n| region(n % heaps, n, kinds[usize::from(n / heaps % 2 == 1)])).collect();
        let all = all.iter().zip(0u32..).map(|(s, i)| (SegmentIndex::from_u32(i), s)).collect();
        let plan = Plan::of(all, 8, |_| Vec::new());
        let cells = vec![Amounts::default(); plan.cells];
        plan.finish(&cells, false)
    }

    #[test]
    fn thousands_of_regions_take_few_rows() {
        for (heaps, regions, by, rows) in [
            (1, 64, MapRows::Segments, 64),
            (1, 2000, MapRows::HeapGenerations, 2),
            (8, 2000, MapRows::HeapGenerations, 16),
            (100, 2000, MapRows::Generations, 2),
        ] {
            let map = planned(heaps, regions);
            assert_eq!((map.by, map.rows.len()), (by, rows), "{heaps} {regions}");
            let cells: usize = map.rows.iter().map(|r| r.cells.len()).sum();
            assert!(cells <= usize::try_from(CELLS).unwrap() + rows * usize::try_from(RESERVED).unwrap(), "{cells}");
            assert_eq!(map.rows.iter().map(|r| r.segments).sum::<u64>(), regions);
            assert_eq!((map.totals.unused, map.totals.reserved), (regions << 20, regions * (3 << 20)));
            assert_eq!(map.rows.iter().all(|r| r.segment.is_some()), by == MapRows::Segments);
            assert!(map.rows.iter().all(|r| r.heap.is_some() == (by != MapRows::Generations)));
        }
    }

    #[test]
    fn a_cell_shows_its_main_content() {
        let cell = |objects, pinned, garbage, free, unknown| Amounts { objects, pinned, garbage, free, unknown }.mostly(100);
        assert_eq!(cell(50, 0, 0, 50, 0), MapCell::Objects);
        assert_eq!(cell(50, 1, 0, 49, 0), MapCell::Pinned);
        assert_eq!(cell(20, 0, 40, 40, 0), MapCell::Garbage);
        assert_eq!(cell(10, 0, 0, 60, 0), MapCell::Free);
        assert_eq!(cell(0, 1, 0, 60, 0), MapCell::FreePinned);
        assert_eq!(cell(10, 0, 0, 10, 0), MapCell::Unused);
        assert_eq!(cell(10, 0, 0, 10, 60), MapCell::Unknown);
    }
}
