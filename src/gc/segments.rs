//! Segments and regions: their lists and object ranges.
//!
//! Source: contract `GC` (`EnumerateHeapSegments`), ClrMD's `DacHeap.cs`, and measurement
//! (`docs/internals/gc-structures.md#segments-and-regions`).

use std::collections::HashSet;

use super::{Gc, HeapId, Reading, names};
use crate::base::{Addr, AddrRange, Count, Missing, NoteKind, Notes, PAGE, len64, plural};
use crate::data::{self, GCHeap, HeapSegment};
use crate::memory::ReadError;
use crate::model::{Generation, SegmentModel, SegmentPart};

/// A `heap_segment` as stored.
pub(super) struct RawSegment {
    pub(super) allocated: Addr,
    pub(super) committed: Addr,
    pub(super) reserved: Addr,
    pub(super) used: Option<Addr>,
    pub(super) mem: Addr,
    pub(super) flags: u64,
    pub(super) next: Addr,
    background_allocated: Option<Addr>,
    heap: Option<Addr>,
}

impl RawSegment {
    /// Whether all bounds and the link are null, which no segment on a list has.
    fn is_blank(&self) -> bool {
        [self.mem, self.allocated, self.committed, self.reserved, self.next].iter().all(|at| at.is_null())
    }
}

/// No object is below this address: Linux and Windows do not map the first 64 KiB.
const LOWEST: Addr = Addr(0x1_0000);

/// A segment list.
#[derive(Clone, Copy)]
struct List {
    heap: HeapId,
    kind: Generation,
    first: Addr,
}

/// Fields that determine the end of allocation in a heap's current segment.
struct Youngest {
    ephemeral: Option<Addr>,
    alloc_allocated: Option<Addr>,
}

impl Gc {
    /// Address of the generation table entry of `generation`.
    pub(super) fn generation_entry(&self, heap: HeapId, generation: u64) -> Option<Addr> {
        let table = self.places.at(heap, GCHeap::GenerationTable)?;
        Some(table.element(generation, self.generation_size))
    }

    /// Whether any generation of the heap has a segment.
    pub(super) fn has_segments(&self, heap: HeapId) -> bool {
        let first = |g| self.generation.get(&self.memory, self.generation_entry(heap, g)?, data::Generation::StartSegment);
        (0..self.facts.total_generations).filter_map(first).any(|first| !first.is_null())
    }

    pub(super) fn raw_segment(&self, address: Addr) -> Result<RawSegment, ReadError> {
        let needed = |field| self.segment.read(&self.memory, address, field);
        let optional = |field| self.segment.get(&self.memory, address, field);
        Ok(RawSegment {
            allocated: needed(HeapSegment::Allocated)?,
            committed: needed(HeapSegment::Committed)?,
            reserved: needed(HeapSegment::Reserved)?,
            used: optional(HeapSegment::Used),
            mem: needed(HeapSegment::Mem)?,
            flags: self.segment.read(&self.memory, address, HeapSegment::Flags)?,
            next: needed(HeapSegment::Next)?,
            background_allocated: optional(HeapSegment::BackgroundAllocated),
            heap: optional(HeapSegment::Heap),
        })
    }
}

impl Reading<'_> {
    /// Every segment of every heap, once, ordered by heap and generation.
    pub(super) fn segments(&self) -> Vec<SegmentModel> {
        let mut seen = HashSet::new();
        self.note_unusable(GCHeap::AllocAllocated);
        self.note_unusable(GCHeap::EphemeralHeapSegment);
        self.note_unusable(GCHeap::GenerationTable);
        // Reads the heads of all lists first: they show where one list runs into another.
        let read = |heap: &HeapId| {
            let reading = self.part();
            (reading.lists(*heap), reading.notes.into_notes())
        };
        let tables: Vec<(Vec<List>, Notes)> = self.facts.heaps.iter().map(read).collect();
        let lists: Vec<List> = tables.iter().flat_map(|(lists, _)| lists).copied().collect();
        let mut noted = tables.iter().map(|(_, notes)| notes);
        let out = self.each_heap("segment lists", |reading, heap| {
            noted.next().into_iter().for_each(|notes| reading.notes.extend(notes));
            let youngest = reading.youngest(heap);
            let mut own = Vec::new();
            for list in lists.iter().filter(|l| l.heap == heap) {
                reading.follow(*list, &lists, &youngest, &mut seen, &mut own);
            }
            reading.note_unlisted(heap, &youngest, &own);
            reading.note_only_frozen(heap, &own);
            reading.note_frozen(&own);
            // Stable: keeps list order within a generation.
            own.sort_by_key(|s| s.generation);
            own
        });
        let out: Vec<SegmentModel> = out.into_iter().flatten().collect();
        self.note_overlaps(&out);
        // Every heap has segments from its initialization on.
        if out.is_empty() && self.notes.notes().complete() {
            self.notes.add(Missing::Heap, None, "no segment of the GC heap was found");
        }
        out
    }

    fn youngest(&self, heap: HeapId) -> Youngest {
        let (ephemeral, allocated) = ((GCHeap::EphemeralHeapSegment, "ephemeral segment"), (GCHeap::AllocAllocated, "end of allocation"));
        // Every runtime has both. Without them, the end of the objects in the youngest segment is unknown.
        for (field, what) in [ephemeral, allocated] {
            if !self.places.has(field) {
                let what = format!("heap {}: the descriptor does not give the address of its {what}", heap.index);
                self.notes.add(Missing::Heap, None, what);
            }
        }
        Youngest { ephemeral: self.of_heap(heap, ephemeral.0, ephemeral.1), alloc_allocated: self.of_heap(heap, allocated.0, allocated.1) }
    }

    /// Adds a note if the ephemeral segment is not on any list, since the youngest objects are then not read. Lists that were cut short
    /// have notes already.
    fn note_unlisted(&self, heap: HeapId, youngest: &Youngest, own: &[SegmentModel]) {
        let Some(ephemeral) = youngest.ephemeral.filter(|e| !own.iter().any(|s| s.address == *e)) else { return };
        if !self.facts.moves_objects() && self.notes.notes().complete() {
            let what = format!("heap {}: the ephemeral segment {ephemeral} is not on any segment list", heap.index);
            self.notes.add(NoteKind::Invalid, self.places.at(heap, GCHeap::EphemeralHeapSegment), what);
        }
    }

    /// The segment lists of a heap. Every generation has a segment once the heap is initialized, so an empty list is damage.
    fn lists(&self, heap: HeapId) -> Vec<List> {
        let soh = self.facts.oldest();
        let mut out = Vec::new();
        // If the address of the heap is wrong, all its generations share one note.
        let (mut lost, mut lost_at) = (Vec::new(), None);
        for generation in 0..self.facts.total_generations {
            // With segments, all small-object segments are on the list of generation 2. The lists of generations 0 and 1 start
            // at the ephemeral segment; walking them as well would visit its objects three times (measured with libclrgc).
            if !self.facts.regions && generation < soh {
                continue;
            }
            let Some(kind) = kind_of(generation, soh) else { continue };
            let entry = self.generation_entry(heap, generation);
            let Some(at) = entry.and_then(|entry| self.generation.place(entry, data::Generation::StartSegment)) else {
                self.notes.add(
                    Missing::Heap,
                    None,
                    format!("heap {}: the descriptor does not give the address of its generation table", heap.index),
                );
                return out;
            };
            let what = format!("heap {}: first segment of {kind}", heap.index);
            match self.needed(&what, self.memory.ptr(at)) {
                Some(first) if !first.is_null() => out.push(List { heap, kind, first }),
                Some(_) if !self.facts.moves_objects() => {
                    lost.push(kind.name());
                    lost_at.get_or_insert(at);
                }
                _ => {}
            }
        }
        if let Some(at) = lost_at {
            self.notes.add(NoteKind::Invalid, at, format!("heap {}: the first segments of {} were not found", heap.index, lost.join(", ")));
        }
        out
    }

    fn follow(&self, list: List, lists: &[List], youngest: &Youngest, seen: &mut HashSet<Addr>, out: &mut Vec<SegmentModel>) {
        let List { heap, kind, first } = list;
        let name = format!("heap {}: the {kind} segment list", heap.index);
        let mut address = first;
        let mut count = 0usize;
        let mut here = HashSet::new();
        while !address.is_null() {
            if !here.insert(address) {
                self.notes.add(NoteKind::LimitHit, address, format!("{name} has a cycle"));
                return;
            }
            // A link to the head of another list is a bad link; that list itself is sound.
            let head = lists.iter().find(|l| l.first == address && address != first);
            if let Some(other) = head {
                let what = format!("{name} runs into the {} list of heap {} at {address}", other.kind, other.heap.index);
                self.notes.add(NoteKind::Invalid, address, what);
                return;
            }
            if seen.contains(&address) {
                self.notes.add(NoteKind::Invalid, address, format!("{name} runs into another list at {address}"));
                return;
            }
            count.bump();
            if count > self.limits.segments_per_list {
                let what = format!("{name} has more than {} segments", self.limits.segments_per_list);
                self.notes.add(NoteKind::LimitHit, address, what);
                return;
            }
            let raw = match self.raw_segment(address) {
                Ok(raw) => raw,
                Err(e) => {
                    let what = format!("{name} ends at {address} after {}: {e}", plural(len64(count - 1), "segment"));
                    self.notes.add(Missing::Heap, address, what);
                    return;
                }
            };
            if self.belongs_elsewhere(&name, list, lists, address, raw.flags) {
                return;
            }
            seen.insert(address);
            if raw.mem < LOWEST {
                let what = match raw.is_blank() {
                    true => format!("{name} ends at {address}, which holds zeros instead of a segment"),
                    false => format!("{name}: segment {address} is left out, because its objects cannot start at {}", raw.mem),
                };
                self.notes.add(NoteKind::Invalid, address, what);
            } else {
                out.push(self.segment_model(heap, kind, address, &raw, youngest));
            }
            address = raw.next;
        }
    }

    /// Whether the segment at `address` has the LOH or POH flag although `list` is for another generation, and is also on the LOH or POH
    /// list. The LOH and POH flags agreed with the list in 243 of 243 segments, and no other segment had one of them.
    fn belongs_elsewhere(&self, name: &str, list: List, lists: &[List], address: Addr, flags: u64) -> bool {
        let claimed = [(names::LOH, Generation::Loh), (names::POH, Generation::Poh)].into_iter().find(|(bit, _)| flags & bit != 0);
        let Some((_, claimed)) = claimed.filter(|(_, g)| *g != list.kind && !self.facts.moves_objects()) else {
            return false;
        };
        self.notes.add(NoteKind::Invalid, address, format!("{name} runs into a {claimed} segment at {address}"));
        lists.iter().any(|l| l.heap == list.heap && l.kind == claimed && self.reaches(l.first, address))
    }

    /// Whether the list that starts at `first` leads to `address`.
    fn reaches(&self, first: Addr, address: Addr) -> bool {
        let mut here = HashSet::new();
        let mut at = first;
        while !at.is_null() && here.len() < self.limits.segments_per_list && here.insert(at) {
            if at == address {
                return true;
            }
            let Ok(next) = self.segment.read(&self.memory, at, HeapSegment::Next) else { return false };
            at = next;
        }
        false
    }

    fn segment_model(&self, heap: HeapId, list: Generation, address: Addr, raw: &RawSegment, youngest: &Youngest) -> SegmentModel {
        let allocating = youngest.ephemeral == Some(address);
        // Only the list of generation 2 holds frozen segments.
        let generation = if raw.flags & names::READONLY != 0 && list == Generation::Gen2 {
            Generation::Frozen
        } else if !self.facts.regions && allocating {
            Generation::Ephemeral
        } else {
            list
        };
        // Before the first GC, `Allocated` equals `Mem` although the allocator is already 4 MB further (measured).
        let end = if allocating { youngest.alloc_allocated.unwrap_or(raw.allocated) } else { raw.allocated };
        self.check_order(heap, address, raw, end);
        let committed_from = committed_start(self.facts.regions, address, raw.mem);
        self.memory.scan_objects(AddrRange::new(raw.mem, end));
        SegmentModel {
            address,
            heap: heap.index,
            generation,
            start: raw.mem,
            allocated: end,
            stored_allocated: raw.allocated,
            next: raw.next,
            committed: raw.committed,
            reserved: raw.reserved,
            used: raw.used,
            background_allocated: raw.background_allocated,
            allocated_bytes: end.since(raw.mem).unwrap_or(0),
            committed_bytes: raw.committed.since(committed_from).unwrap_or(0),
            reserved_bytes: raw.reserved.since(committed_from).unwrap_or(0),
            captured_bytes: self.memory.captured(AddrRange::new(raw.mem, end)),
            flags: names::segment_flags(raw.flags),
            flags_value: raw.flags,
            parts: if generation == Generation::Ephemeral { self.parts(heap, raw.mem, end) } else { Vec::new() },
            walk: None,
        }
    }

    /// Adds a note unless `mem ≤ end ≤ committed ≤ reserved`, which held for 645 of 645 segments of .NET 8 to 10.
    fn check_order(&self, heap: HeapId, address: Addr, raw: &RawSegment, end: Addr) {
        if !(raw.mem <= end && end <= raw.committed && raw.committed <= raw.reserved) {
            let what = format!(
                "heap {}: segment {address} has bounds out of order: start {}, allocated {end}, committed {}, reserved {}",
                heap.index, raw.mem, raw.committed, raw.reserved
            );
            self.notes.add(NoteKind::Invalid, address, what);
        }
        if let (Some(owner), Some(heap_address)) = (raw.heap, heap.address)
            && owner != heap_address
            && !self.facts.moves_objects()
        {
            let what = format!("segment {address} is on a list of heap {} ({heap_address}) but names {owner} as its heap", heap.index);
            self.notes.add(NoteKind::Invalid, address, what);
        }
    }

    /// gen0, gen1 and gen2 of the ephemeral segment, delimited by their allocation starts.
    fn parts(&self, heap: HeapId, start: Addr, end: Addr) -> Vec<SegmentPart> {
        let allocation_start = |generation| {
            let at = self.generation.place(self.generation_entry(heap, generation)?, data::Generation::AllocationStart)?;
            self.needed(&format!("heap {}: allocation start of generation {generation}", heap.index), self.memory.ptr(at))
        };
        let (Some(gen0), Some(gen1)) = (allocation_start(0), allocation_start(1)) else { return Vec::new() };
        if !(start <= gen1 && gen1 <= gen0 && gen0 <= end) {
            let what = format!("heap {}: generations out of order in the ephemeral segment: {start}, {gen1}, {gen0}, {end}", heap.index);
            self.notes.add(NoteKind::Invalid, gen0, what);
            return Vec::new();
        }
        vec![
            SegmentPart { generation: Generation::Gen0, start: gen0, end },
            SegmentPart { generation: Generation::Gen1, start: gen1, end: gen0 },
            SegmentPart { generation: Generation::Gen2, start, end: gen1 },
        ]
    }
}

/// The generation with this index: those past the oldest small-object generation are LOH, then POH.
pub(super) fn kind_of(generation: u64, oldest: u64) -> Option<Generation> {
    Some(match generation.checked_sub(oldest) {
        Some(1) => Generation::Loh,
        Some(2) => Generation::Poh,
        Some(0) if generation == 2 => Generation::Gen2,
        None if generation == 0 => Generation::Gen0,
        None if generation == 1 => Generation::Gen1,
        _ => return None,
    })
}

/// Start of the committed memory. The first object of a region lies shortly after its page-aligned start; with segments, the
/// `heap_segment` is on the page before the first object.
fn committed_start(regions: bool, address: Addr, mem: Addr) -> Addr {
    let header = mem.since(address).filter(|d| !regions && *d > 0 && *d <= PAGE);
    // Region starts are aligned to far more than a page on every platform.
    if header.is_some() { address } else { mem.align_down(PAGE) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_after_the_oldest_generation_are_loh_and_poh() {
        let kinds: Vec<_> = (0..6).map(|g| kind_of(g, 2)).collect();
        let expected = [Generation::Gen0, Generation::Gen1, Generation::Gen2, Generation::Loh, Generation::Poh];
        assert_eq!(kinds[..5], expected.map(Some));
        assert_eq!(kinds[5], None);
    }

    #[test]
    fn committed_memory_starts_at_the_page_of_the_first_object_or_at_the_heap_segment() {
        assert_eq!(committed_start(true, Addr(0x10), Addr(0x40_0028)), Addr(0x40_0000));
        assert_eq!(committed_start(false, Addr(0x40_0000), Addr(0x40_1000)), Addr(0x40_0000));
        assert_eq!(committed_start(false, Addr(0x10), Addr(0x40_0008)), Addr(0x40_0000));
    }
}
