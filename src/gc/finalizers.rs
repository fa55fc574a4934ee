//! The finalization queue of each heap: objects whose finalizer has yet to run.
//!
//! Source: `CFinalize` in `gcpriv.h` and `gc.cpp`; `docs/internals/gc-structures.md#finalization-queue`. One array in parts, whose ends the fill pointers are:
//! POH, LOH, gen2, gen1, gen0, critical ready, ready. The first part begins where the array does, which the contract does
//! not tell; no object of the pinned heap has ever been in it. Collections move objects between the parts;
//! what is registered anew from a finalizer starts over in generation 0, wherever the object lies by then.

use super::{HeapId, Reading};
use crate::base::{Addr, AddrRange, NoteKind};
use crate::model::{FinalizerState, Generation};

/// An object in the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FinalizerEntry {
    /// Where the queue holds the reference.
    pub address: Addr,
    /// The object.
    pub object: Addr,
    /// Whether its finalizer is due.
    pub state: FinalizerState,
    /// Registered objects: the generation by which the queue keeps them.
    pub generation: Option<Generation>,
}

/// The queue of one heap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FinalizerQueue {
    /// Number of the heap.
    pub heap: u64,
    /// Its objects in the order of the queue; empty places are left out.
    pub entries: Vec<FinalizerEntry>,
    /// Whether all of it could be read.
    pub complete: bool,
}

impl Reading<'_> {
    /// The finalization queue of every heap. What cannot be read is noted.
    pub(super) fn finalizer_queues(&self) -> Vec<FinalizerQueue> {
        self.facts.heaps.iter().map(|heap| self.finalizer_queue(*heap)).collect()
    }

    fn finalizer_queue(&self, heap: HeapId) -> FinalizerQueue {
        let mut queue = FinalizerQueue { heap: heap.index, entries: Vec::new(), complete: false };
        let what = format!("heap {}: finalization queue", heap.index);
        let Some(at) = self.places.finalize_queue.and_then(|p| p.of(heap.address)) else {
            self.notes.add(NoteKind::Missing, None, format!("{what}: the descriptor does not say where it is"));
            return queue;
        };
        let Some(address) = self.needed(&what, self.memory.ptr(at)) else { return queue };
        if address.is_null() {
            // A heap that is being set up has none yet.
            queue.complete = true;
            return queue;
        }
        let Some(fills) = self.fill_pointers(&what, address) else { return queue };
        let parts = fills.len();
        if !fills.is_sorted() {
            self.notes.add(NoteKind::Invalid, address, format!("{what}: its fill pointers are out of order"));
            return queue;
        }
        queue.complete = true;
        if parts < 7 {
            // Before the pinned heap came, the first part was that of large objects.
            queue.complete = false;
            self.notes.add(NoteKind::Missing, address, format!("{what}: the contract does not say where its large objects begin"));
        }
        for (index, bounds) in (1usize..).zip(fills.windows(2)) {
            let [from, to] = bounds else { continue };
            // The last two parts are the ready lists, the others generations in falling order.
            let (state, generation) = match parts.saturating_sub(index) {
                1 => (FinalizerState::Ready, None),
                2 => (FinalizerState::Critical, None),
                left => (FinalizerState::Registered, generation(left.saturating_sub(3))),
            };
            queue.complete &= self.finalizer_part(&what, AddrRange::new(*from, *to), state, generation, &mut queue.entries);
        }
        queue
    }

    fn finalizer_part(
        &self,
        what: &str,
        range: AddrRange,
        state: FinalizerState,
        generation: Option<Generation>,
        out: &mut Vec<FinalizerEntry>,
    ) -> bool {
        let word = self.memory.ptr_bytes();
        let mut at = range.start;
        while at < range.end {
            if out.len() >= self.limits.finalizer_entries {
                self.notes.add(NoteKind::LimitHit, at, format!("{what}: more entries than are read"));
                return false;
            }
            let Ok(object) = self.memory.ptr(at) else {
                let absent = range.end.since(at).unwrap_or(0) / word;
                self.notes.add(NoteKind::Missing, at, format!("{what}: up to {absent} entries from {at} on are not in the dump"));
                return false;
            };
            if !object.is_null() {
                out.push(FinalizerEntry { address: at, object, state, generation });
            }
            at = at.plus(word);
        }
        true
    }

    /// The fill pointers, all of them or none.
    fn fill_pointers(&self, what: &str, address: Addr) -> Option<Vec<Addr>> {
        let layout = || {
            let offset = self.descriptor.offset("CFinalize", "FillPointers").ok()?;
            Some((offset, self.descriptor.number("CFinalizeFillPointersLength").ok()?.min(self.limits.per_heap_array)))
        };
        let Some((offset, length)) = layout().filter(|(_, n)| *n >= 3) else {
            self.notes.add(NoteKind::Missing, address, format!("{what}: the descriptor does not say how it is laid out"));
            return None;
        };
        let word = self.memory.ptr_bytes();
        let first = address.plus(offset);
        (0..length).map(|i| self.needed(what, self.memory.ptr(first.element(i, word)))).collect()
    }
}

/// The GC's generation of this number.
fn generation(number: usize) -> Option<Generation> {
    [Generation::Gen0, Generation::Gen1, Generation::Gen2, Generation::Loh, Generation::Poh].get(number).copied()
}
