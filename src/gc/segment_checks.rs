//! Fields of segments that contradict each other.
//!
//! Every rule held for the 1,330 segments and regions of 141 real dumps of .NET 8 to 11, workstation and server, CoreCLR and NativeAOT.
//! Fields of frozen segments that the runtime does not use are not set, and are not checked.

use super::{Gc, HeapId, Reading, names};
use crate::base::{Collector, NoteKind, PAGE};
use crate::model::{Generation, SegmentModel};

impl Gc {
    /// Adds notes for figures and flags of `segments` that cannot be true, for answers that show them. Reading objects does not depend on
    /// them.
    pub fn note_figures(&self, segments: &[SegmentModel], notes: &Collector) {
        for s in segments.iter().filter(|_| !self.facts.moves_objects() && self.carved.is_none()) {
            let add = |what: String| {
                notes.add(NoteKind::Invalid, s.address, format!("heap {}: {} segment {}: {what}", s.heap, s.generation, s.address));
            };
            if let Some(what) = self.wrong_flags(s) {
                add(what.to_string());
            }
            let (frozen, word) = (s.flags_value & names::READONLY != 0, self.memory.ptr_bytes());
            if let Some(used) = s.used.filter(|used| !(s.start <= *used && *used <= s.committed && used.is_aligned(word))) {
                add(format!("the end of its used memory, {used}, is not within its committed memory, {} to {}", s.start, s.committed));
            }
            for (what, at) in [("committed", s.committed), ("reserved", s.reserved)].into_iter().filter(|_| !frozen) {
                if !at.is_aligned(PAGE) {
                    add(format!("the end of its {what} memory, {at}, is not at a page boundary"));
                }
            }
            let background = s.background_allocated.filter(|at| !at.is_null() && !frozen);
            if let Some(at) = background.filter(|at| !(s.start <= *at && *at <= s.reserved && at.is_aligned(word))) {
                add(format!("the end of the objects known to the background collection, {at}, is not within the segment"));
            }
        }
    }

    /// The contradiction between the flags of a segment and its list, if there is one.
    fn wrong_flags(&self, s: &SegmentModel) -> Option<&'static str> {
        let has = |flag: u64| s.flags_value & flag != 0;
        Some(match s.generation {
            Generation::Loh if !has(names::LOH) => "it is on the list of large object segments, but does not have their flag",
            Generation::Poh if !has(names::POH) => "it is on the list of pinned object segments, but does not have their flag",
            Generation::Frozen | Generation::Gen2 => return None,
            _ if has(names::READONLY) => "it has the flag of frozen segments, but is on another list",
            _ => return None,
        })
    }
}

impl Reading<'_> {
    /// Adds a note if the list of the oldest generation has frozen segments only: every generation has a region that the GC allocated. With segments,
    /// that list holds the ephemeral segment, for which [`Reading::note_unlisted`] adds a note. `own` are the segments of one heap.
    pub(super) fn note_only_frozen(&self, heap: HeapId, own: &[SegmentModel]) {
        let frozen = own.iter().rfind(|s| s.generation == Generation::Frozen);
        let Some(last) = frozen.filter(|_| self.facts.regions && !self.facts.moves_objects()) else { return };
        if !own.iter().any(|s| s.generation == Generation::Gen2) && self.notes.notes().complete() {
            let what =
                format!("heap {}: the list of gen2 ends after its frozen segments, although every generation has a region", heap.index);
            self.notes.add(NoteKind::Invalid, last.address, what);
        }
    }

    /// Adds a note if objects of two segments have the same addresses.
    pub(super) fn note_overlaps(&self, segments: &[SegmentModel]) {
        let mut by_start: Vec<&SegmentModel> = segments.iter().filter(|s| s.start < s.allocated).collect();
        by_start.sort_by_key(|s| (s.start, s.allocated));
        let mut below: Option<&SegmentModel> = None;
        for s in by_start.into_iter().filter(|_| !self.facts.moves_objects()) {
            if let Some(below) = below.filter(|below| s.start < below.allocated) {
                let what =
                    format!("the objects of segments {} and {} have the same addresses, from {} on", below.address, s.address, s.start);
                self.notes.add(NoteKind::Invalid, below.address, what);
            }
            below = below.filter(|below| below.allocated > s.allocated).or(Some(s));
        }
    }

    /// Adds notes for segments of the oldest generation with a wrong flag of frozen segments: set although the GC created the segment, or
    /// not set although it did not. `own` are the segments of one heap.
    pub(super) fn note_frozen(&self, own: &[SegmentModel]) {
        // In all regions that the GC creates, the first object is at the same offset.
        let basic = own.iter().find(|s| s.generation == Generation::Gen0);
        let made = |s: &SegmentModel| {
            if !self.facts.regions {
                // The `heap_segment` is on the page before the first object.
                return Some(s.start.since(s.address).is_some_and(|distance| distance > 0 && distance <= PAGE));
            }
            let offset = |s: &SegmentModel| s.start.since(s.start.align_down(PAGE));
            let alike = offset(s) == offset(basic?);
            // The frozen objects of an image may start at this offset by chance, and their segment may end anywhere.
            (!alike || s.generation != Generation::Frozen || s.committed.is_aligned(PAGE) && s.reserved.is_aligned(PAGE)).then_some(alike)
        };
        for s in own.iter().filter(|_| !self.facts.moves_objects()) {
            let frozen = s.generation == Generation::Frozen;
            if !(frozen || s.generation == Generation::Gen2) {
                continue;
            }
            let what = match made(s) {
                Some(true) if frozen => "it has the flag of frozen segments, but the GC created it",
                Some(false) if !frozen => "it does not have the flag of frozen segments, but the GC did not create it",
                _ => continue,
            };
            self.notes.add(NoteKind::Invalid, s.address, format!("heap {}: segment {}: {what}", s.heap, s.address));
        }
    }
}
