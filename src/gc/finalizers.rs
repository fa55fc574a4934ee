//! The finalization queue of each heap: objects whose finalizer has not run yet.
//!
//! Source: `CFinalize` in `gcpriv.h` and `gc.cpp`; `docs/internals/gc-structures.md#finalization-queue`. The queue is one array, split by
//! the fill pointers into POH, LOH, gen2, gen1, gen0, critical ready, ready. The POH part starts with the array, whose address the contract
//! does not publish, but that part is always empty. Collections move objects between parts. An object that is re-registered from a
//! finalizer starts again in the part of generation 0, although the object may be in an older generation.

use super::{HeapId, Reading};
use crate::base::{Addr, AddrRange, Disjoint, Missing, NoteKind};
use crate::data::{CFinalize, GCHeap};
use crate::model::{FinalizerState, Generation};

/// Number of parts of the queue that hold objects ready for finalization, at its end.
const READY_PARTS: usize = 2;

/// An entry of a finalization queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FinalizerEntry {
    /// Address of the queue slot.
    pub address: Addr,
    /// The object.
    pub object: Addr,
    /// Registered or ready for finalization.
    pub state: FinalizerState,
    /// For registered objects, the generation of the queue part.
    pub generation: Option<Generation>,
}

/// The finalization queue of one heap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FinalizerQueue {
    /// Index of the heap.
    pub heap: u64,
    /// Entries in queue order; null slots are omitted.
    pub entries: Vec<FinalizerEntry>,
    /// The slots that the fill pointers delimit and that are not in the dump, as (state, generation, number).
    pub unread: Vec<(FinalizerState, Option<Generation>, u64)>,
    /// Whether the fill pointers could be read, so that the number of objects is known.
    pub counted: bool,
    /// Whether the whole queue could be read.
    pub complete: bool,
}

/// The fill pointers of a `CFinalize`, as the descriptor has them.
#[derive(Clone, Copy, Debug)]
pub(super) struct FillPointers {
    /// Address of the first.
    pub(super) first: Addr,
    pub(super) length: u64,
}

/// The fill pointers that were read. They delimit the parts of the queue: POH, LOH, gen2, gen1, gen0, critical ready, ready. With seven of them,
/// ClrMD's per-generation ranges are off by one.
#[derive(Clone, Debug)]
pub(super) struct Fills {
    pub(super) pointers: Vec<Addr>,
    /// Whether no pointer is missing.
    pub(super) whole: bool,
}

impl Fills {
    /// The bounds of the registered entries and of the two ready lists, which are the last parts of the queue; `None` if a bound is missing.
    pub(super) fn lists(&self) -> [Option<(Addr, Addr)>; 2] {
        let ready = self.pointers.len().checked_sub(READY_PARTS.saturating_add(1)).and_then(|i| self.pointers.get(i)).copied();
        let ready = ready.filter(|_| self.whole);
        [self.pointers.first().copied().zip(ready), ready.zip(self.pointers.last().copied())]
    }
}

impl Reading<'_> {
    /// The finalization queue of every heap. Adds a note for each unreadable part.
    pub(super) fn finalizer_queues(&self) -> Vec<FinalizerQueue> {
        self.note_unusable(GCHeap::FinalizeQueue);
        let words = Disjoint::new(self.memory.dump_bytes(), self.memory.ptr_bytes());
        let queues = self.facts.heaps.iter().map(|heap| self.finalizer_queue(*heap, &words)).collect();
        words.note("reading finalization queues", &self.notes);
        queues
    }

    fn finalizer_queue(&self, heap: HeapId, words: &Disjoint) -> FinalizerQueue {
        let mut queue = FinalizerQueue { heap: heap.index, entries: Vec::new(), unread: Vec::new(), counted: false, complete: false };
        let what = format!("heap {}: finalization queue", heap.index);
        let Some(at) = self.places.at(heap, GCHeap::FinalizeQueue) else {
            self.notes.add(Missing::Finalization, None, format!("{what}: the descriptor does not give its address"));
            return queue;
        };
        let Some(address) = self.needed(&what, self.memory.ptr(at)) else { return queue };
        if address.is_null() {
            // The queue is not created yet if the heap is still being initialized. A heap with segments has a queue.
            queue.complete = !self.has_segments(heap);
            queue.counted = queue.complete;
            if !queue.complete {
                self.notes.add(NoteKind::Invalid, at, format!("{what}: its address is null"));
            }
            return queue;
        }
        let Some(fills) = self.all_fill_pointers(&what, address) else { return queue };
        let parts = fills.len();
        if let Some(fault) = fault(&fills) {
            self.notes.add(NoteKind::Invalid, address, format!("{what}: its fill pointers are {fault}"));
            return queue;
        }
        (queue.complete, queue.counted) = (true, true);
        if parts < 7 {
            // Before the POH existed, the first part held large objects.
            queue.complete = false;
            self.notes.add(Missing::Finalization, address, format!("{what}: the descriptor does not give the start of its large objects"));
        }
        for (index, bounds) in (1usize..).zip(fills.windows(2)) {
            let [from, to] = bounds else { continue };
            // The last two parts are the ready lists; the others are generations, oldest first.
            let (state, generation) = match parts.saturating_sub(index) {
                1 => (FinalizerState::Ready, None),
                READY_PARTS => (FinalizerState::Critical, None),
                left => (FinalizerState::Registered, generation(left.saturating_sub(READY_PARTS).saturating_sub(1))),
            };
            queue.complete &= self.finalizer_part(&what, AddrRange::new(*from, *to), (state, generation), words, &mut queue);
        }
        queue
    }

    fn finalizer_part(
        &self,
        what: &str,
        range: AddrRange,
        (state, generation): (FinalizerState, Option<Generation>),
        words: &Disjoint,
        queue: &mut FinalizerQueue,
    ) -> bool {
        let word = self.memory.ptr_bytes();
        let mut at = range.start;
        while at < range.end {
            if queue.entries.len() >= self.limits.finalizer_entries {
                self.notes.add(NoteKind::LimitHit, at, format!("{what}: it has more entries than the limit; the rest are left out"));
                return false;
            }
            if !words.take(1) {
                return false;
            }
            let Ok(object) = self.memory.ptr(at) else {
                let absent = range.end.since(at).unwrap_or(0) / word;
                self.notes.add(Missing::Finalization, at, format!("{what}: up to {absent} entries from {at} are not in the dump"));
                // More would be more than the limit, or wrong fill pointers.
                match usize::try_from(absent) {
                    Ok(n) if n <= self.limits.finalizer_entries => queue.unread.push((state, generation, absent)),
                    _ => queue.counted = false,
                }
                return false;
            };
            if !object.is_null() {
                queue.entries.push(FinalizerEntry { address: at, object, state, generation });
            }
            at = at.plus(word);
        }
        true
    }

    /// The fill pointers of the queue at `address`; `None` if the descriptor does not describe them.
    pub(super) fn described_queue(&self, address: Addr) -> Option<FillPointers> {
        let first = CFinalize::FillPointers.bind(&self.descriptor).ok()?.place(address);
        Some(FillPointers { first, length: self.descriptor.number("CFinalizeFillPointersLength").ok()? })
    }

    /// Reads fill pointers, up to the first that is missing.
    pub(super) fn fill_pointers(&self, what: &str, FillPointers { first, length }: FillPointers) -> Fills {
        let read = |i| self.needed(what, self.memory.ptr(first.element(i, self.memory.ptr_bytes())));
        let pointers: Vec<Addr> = (0..length).map_while(read).collect();
        Fills { whole: u64::try_from(pointers.len()) == Ok(length), pointers }
    }

    /// All fill pointers; `None` if any of them is missing, since the last ones delimit the ready lists.
    fn all_fill_pointers(&self, what: &str, address: Addr) -> Option<Vec<Addr>> {
        let Some(queue) = self.described_queue(address).filter(|queue| queue.length >= 3) else {
            self.notes.add(Missing::Finalization, address, format!("{what}: the descriptor does not describe its layout"));
            return None;
        };
        if queue.length > self.limits.per_heap_array {
            self.notes.add(
                NoteKind::LimitHit,
                address,
                format!("{what}: it is not read, because it has {} fill pointers, more than the limit", queue.length),
            );
            return None;
        }
        let fills = self.fill_pointers(what, queue);
        fills.whole.then_some(fills.pointers)
    }
}

/// The contradiction in `fills`, if there is one: the array is allocated with the queue, and every fill pointer leads into it.
pub(super) fn fault(fills: &[Addr]) -> Option<&'static str> {
    match fills {
        fills if fills.iter().any(|at| at.is_null()) => Some("null"),
        fills => (!fills.is_sorted()).then_some("out of order"),
    }
}

/// The GC generation with this index.
fn generation(number: usize) -> Option<Generation> {
    [Generation::Gen0, Generation::Gen1, Generation::Gen2, Generation::Loh, Generation::Poh].get(number).copied()
}
