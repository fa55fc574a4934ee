//! Checks references from outside the heap: sync blocks, handles, finalization queues.

use super::check::{Folded, Tools};
use super::sink::{Found, Sink};
use crate::analysis::{FindingId, VerifyTotals};
use crate::base::{Addr, Answer, Collector, Count};
use crate::clr::header::HeaderUse;
use crate::gc::{Gc, HandleFilter, SegmentIndex};
use crate::model::HandleKind;

/// Checks table entries.
pub(super) struct Entries<'h> {
    pub(super) tools: &'h Tools<'h>,
    pub(super) folded: &'h mut Folded,
    pub(super) sink: &'h mut Sink,
    pub(super) totals: &'h mut VerifyTotals,
    pub(super) hint: SegmentIndex,
}

fn what(id: FindingId) -> &'static str {
    match id {
        FindingId::ReferenceUnaligned => "which is not a multiple of the pointer size",
        FindingId::ReferenceToMiddle => "which is inside an object",
        FindingId::ReferenceToFree => "which is free space",
        FindingId::ReferenceToUnused => "which is not yet filled with objects",
        _ => "which is outside the heap",
    }
}

impl Entries<'_> {
    /// Checks that the entry at `address` points to the start of an object.
    fn entry(&mut self, id: FindingId, address: Addr, target: Addr) -> Option<Found> {
        let map = &self.tools.map;
        if map.starts.is_start(target, &mut self.hint) {
            return None;
        }
        let mut unknown = 0;
        let (wrong, _) = self.folded.fold(map, target, &mut unknown)?;
        Some(Found::new(id, address).related(target).name(what(wrong)))
    }

    pub(super) fn handles(&mut self, gc: &Gc) -> Answer<()> {
        let mut handles = 0u64;
        let walked = gc.walk_handles(&HandleFilter::default(), |h| {
            handles.bump();
            let mut found = vec![self.entry(FindingId::HandleBadObject, h.address, h.object)];
            // Only the secondary value of a dependent handle is an object.
            if let Some(secondary) = h.secondary.filter(|s| h.kind == HandleKind::Dependent && !s.is_null()) {
                found.push(self.entry(FindingId::HandleBadSecondary, h.address, secondary));
            }
            found.into_iter().flatten().for_each(|f| self.sink.add(f));
        });
        self.totals.handles = handles;
        walked.map(|_| ())
    }

    pub(super) fn finalizers(&mut self, gc: &Gc) -> Answer<()> {
        let queues = gc.finalizer_queues();
        for queue in &queues.data {
            for entry in &queue.entries {
                self.totals.finalizers.bump();
                if let Some(found) = self.entry(FindingId::FinalizerBadObject, entry.address, entry.object) {
                    self.sink.add(found);
                }
            }
        }
        queues.map(|_| ())
    }

    /// Checks that the header of each sync block's object refers to a sync block. A header with the wrong index is reported by the second walk.
    /// Returns the number of entries that are not in the dump.
    pub(super) fn sync_blocks(&mut self, notes: &Collector) -> u64 {
        let Some(headers) = self.tools.headers.as_ref().filter(|_| self.tools.sync_end.is_some()) else { return 0 };
        let (mut absent, room) = (0u64, headers.sync_room());
        let memory = self.tools.map.heap.memory();
        for index in headers.sync_indices(notes).into_iter().flatten() {
            let Some((place, object)) = headers.sync_entry(index) else {
                absent.bump();
                continue;
            };
            if object.is_null() {
                continue;
            }
            if !room.take(1) {
                break;
            }
            self.totals.sync_blocks.bump();
            if !self.tools.map.starts.is_start(object, &mut self.hint) {
                if let Some(found) = self.entry(FindingId::SyncBlockBadObject, place, object) {
                    self.sink.add(found);
                }
                continue;
            }
            let word = object.minus(headers.before()).and_then(|at| memory.u32(at).ok());
            if word.is_some_and(|w| !matches!(HeaderUse::of(w), HeaderUse::SyncBlock(_))) {
                self.sink.add(Found::new(FindingId::SyncBlockNotInHeader, object).object(object).related(place).number(index.into()));
            }
        }
        room.note("reading the sync table", notes);
        absent
    }
}
