//! Records which memory was read, for `gcdump trim`: one bit for every eight bytes.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use super::{Memory, ReadError};
use crate::base::hash::{Map, Set};
use crate::base::{Addr, AddrRange};

/// Bytes per bit. Most structures are aligned to pointers, so a finer granularity would gain little.
const GRAIN: u64 = 8;
/// Bytes per block of bits. Blocks are allocated on first use, so the cost depends on what is read, not on the size of the dump.
const BLOCK: u64 = 1 << 12;
/// Number of words of bits per block.
const WORDS: usize = 8;
/// Number of blocks that every recorder may use, in addition to those that the size and the ranges of the dump justify.
const FREE_BLOCKS: usize = 1 << 16;

type Bits = [AtomicU64; WORDS];

thread_local! {
    /// The block that this thread marked last: ID of the recorder, index of the block, and its bits. Saves look-ups, because a structure is
    /// read field by field.
    static LAST: RefCell<Option<(u64, u64, Arc<Bits>)>> = const { RefCell::new(None) };

    /// The recorded heap segment that this thread read last: ID of the recorder, start and end.
    static LAST_OBJECTS: Cell<(u64, u64, u64)> = const { Cell::new((u64::MAX, 0, 0)) };
}

/// A record of reads. Thread-safe.
#[derive(Debug, Default)]
pub struct Recorder {
    /// Distinguishes recorders in thread-local variables.
    id: u64,
    /// The bits of each block, by index of the block.
    read: RwLock<Map<u64, Arc<Bits>>>,
    scanned: Mutex<Set<(u64, u64)>>,
    /// The ranges of `scanned` that are heap segments: end by start.
    objects: RwLock<BTreeMap<u64, u64>>,
    texts: Mutex<Set<(u64, u64)>>,
    spared: Mutex<Set<(u64, u64)>>,
    reports: Mutex<Set<(u64, u64)>>,
    private: Mutex<Set<(u64, u64)>>,
    /// Maximum number of blocks. More are needed only if a hostile dump has the same bytes at many addresses.
    most: usize,
    overflow: AtomicBool,
}

impl Recorder {
    /// A recorder for a dump of `bytes` bytes in `ranges` ranges. Each range may share its first and last block with others.
    fn new(bytes: u64, ranges: usize) -> Recorder {
        static IDS: AtomicU64 = AtomicU64::new(0);
        let blocks = usize::try_from(bytes / BLOCK).unwrap_or(usize::MAX);
        let most = ranges.saturating_mul(2).saturating_add(blocks).saturating_add(FREE_BLOCKS);
        Recorder { id: IDS.fetch_add(1, Ordering::Relaxed), most, ..Recorder::default() }
    }

    /// Whether reads were lost, because they needed more blocks than a genuine dump does.
    pub(crate) fn overflowed(&self) -> bool {
        self.overflow.load(Ordering::Relaxed)
    }

    /// Marks `len` bytes at `address` as read.
    pub(super) fn mark(&self, address: Addr, len: u64) {
        let Some(last) = len.checked_sub(1).map(|n| address.0.saturating_add(n)) else { return };
        // Most reads are close to the previous one: in the same heap segment, or in the same block.
        if self.is_last_segment(address.0, last) {
            return;
        }
        let block = address.0 / BLOCK;
        let is_last = LAST.with_borrow(|kept| match kept {
            Some((id, at, bits)) if (*id, *at) == (self.id, block) => {
                let end = last.min(address.0 | (BLOCK - 1));
                set(bits, (address.0 % BLOCK) / GRAIN, (end % BLOCK) / GRAIN);
                true
            }
            _ => false,
        });
        if if is_last { last / BLOCK == block } else { self.is_of_segment(address.0, last) } {
            return;
        }
        let mut at = address.0;
        while at <= last {
            let block_end = (at | (BLOCK - 1)).min(last);
            self.mark_block(at / BLOCK, (at % BLOCK) / GRAIN, (block_end % BLOCK) / GRAIN);
            match block_end.checked_add(1) {
                Some(next) => at = next,
                None => break,
            }
        }
    }

    fn is_last_segment(&self, first: u64, last: u64) -> bool {
        let (id, start, end) = LAST_OBJECTS.get();
        id == self.id && start <= first && last < end
    }

    /// Whether a recorded heap segment contains `first..=last`. Remembers that segment for this thread.
    fn is_of_segment(&self, first: u64, last: u64) -> bool {
        let objects = self.objects.read().unwrap_or_else(PoisonError::into_inner);
        let Some((start, end)) = objects.range(..=first).next_back().filter(|(_, end)| last < **end) else { return false };
        LAST_OBJECTS.set((self.id, *start, *end));
        true
    }

    fn mark_block(&self, block: u64, from: u64, to: u64) {
        LAST.with_borrow_mut(|last| match last {
            Some((id, at, bits)) if (*id, *at) == (self.id, block) => set(bits, from, to),
            _ => match self.block(block) {
                Some(bits) => {
                    set(&bits, from, to);
                    *last = Some((self.id, block, bits));
                }
                None => self.overflow.store(true, Ordering::Relaxed),
            },
        });
    }

    /// The bits of a block; `None` if there are too many blocks.
    fn block(&self, block: u64) -> Option<Arc<Bits>> {
        if let Some(bits) = self.read.read().unwrap_or_else(PoisonError::into_inner).get(&block) {
            return Some(Arc::clone(bits));
        }
        let mut blocks = self.read.write().unwrap_or_else(PoisonError::into_inner);
        let room = blocks.len() < self.most || blocks.contains_key(&block);
        room.then(|| Arc::clone(blocks.entry(block).or_default()))
    }

    pub(super) fn scan(&self, range: AddrRange) {
        self.scanned.lock().unwrap_or_else(PoisonError::into_inner).insert((range.start.0, range.end.0));
    }

    /// Records a whole heap segment, so that reads of its objects need not be marked.
    pub(super) fn scan_objects(&self, range: AddrRange) {
        self.scan(range);
        let mut objects = self.objects.write().unwrap_or_else(PoisonError::into_inner);
        let end = objects.entry(range.start.0).or_default();
        *end = range.end.0.max(*end);
    }

    pub(super) fn text(&self, range: AddrRange) {
        let Some(last) = range.end.0.checked_sub(1) else { return };
        if self.is_last_segment(range.start.0, last) || self.is_of_segment(range.start.0, last) {
            return;
        }
        self.texts.lock().unwrap_or_else(PoisonError::into_inner).insert((range.start.0, range.end.0));
    }

    /// The ranges that were read, rounded to eight bytes, sorted and disjoint. Reads in heap segments are left out if they happened after the
    /// segment was recorded.
    pub fn read(&self) -> Vec<AddrRange> {
        let blocks = self.read.read().unwrap_or_else(PoisonError::into_inner);
        let mut indices: Vec<u64> = blocks.keys().copied().collect();
        indices.sort_unstable();
        let mut out: Vec<AddrRange> = Vec::new();
        for index in indices {
            let Some(bits) = blocks.get(&index) else { continue };
            let start = index.saturating_mul(BLOCK);
            for (word, base) in bits.iter().zip((0u64..).step_by(64)) {
                let word = word.load(Ordering::Relaxed);
                for bit in (0..64u64).filter(|b| word >> b & 1 == 1) {
                    let at = Addr(start.saturating_add(base.saturating_add(bit).saturating_mul(GRAIN)));
                    match out.last_mut() {
                        Some(last) if last.end == at => last.end = at.plus(GRAIN),
                        _ => out.push(AddrRange::of(at, GRAIN)),
                    }
                }
            }
        }
        out
    }

    /// The ranges that were scanned as a whole: stacks, image data, heap segments. Sorted; may overlap.
    pub fn scanned(&self) -> Vec<AddrRange> {
        sorted(&self.scanned)
    }

    /// The ranges outside of recorded heap segments that were read as characters of managed strings. Sorted; may overlap.
    pub fn texts(&self) -> Vec<AddrRange> {
        sorted(&self.texts)
    }

    /// The ranges of structures that may be on a stack: see [`Memory::spare`]. Sorted; may overlap.
    pub fn spared(&self) -> Vec<AddrRange> {
        sorted(&self.spared)
    }

    /// The ranges with crash reports, or with data that begins like a crash report. Sorted; may overlap.
    pub fn reports(&self) -> Vec<AddrRange> {
        sorted(&self.reports)
    }

    /// The ranges that a redacted copy leaves out: see [`Memory::keep_private`]. Sorted; may overlap.
    pub fn private(&self) -> Vec<AddrRange> {
        sorted(&self.private)
    }
}

fn sorted(set: &Mutex<Set<(u64, u64)>>) -> Vec<AddrRange> {
    let mut list: Vec<(u64, u64)> = set.lock().unwrap_or_else(PoisonError::into_inner).iter().copied().collect();
    list.sort_unstable();
    list.into_iter().map(|(from, to)| AddrRange::new(Addr(from), Addr(to))).collect()
}

/// Sets the bits `from..=to`.
fn set(bits: &[AtomicU64; WORDS], from: u64, to: u64) {
    for word in from / 64..=to / 64 {
        let low = if word == from / 64 { from % 64 } else { 0 };
        let high = if word == to / 64 { to % 64 } else { 63 };
        let mask = (u64::MAX >> (63 - high)) & (u64::MAX << low);
        if let Some(bits) = usize::try_from(word).ok().and_then(|i| bits.get(i))
            && bits.load(Ordering::Relaxed) & mask != mask
        {
            bits.fetch_or(mask, Ordering::Relaxed);
        }
    }
}

impl Memory {
    /// Starts recording reads.
    pub(crate) fn start_recording(&mut self) {
        self.recorder = Some(Box::new(Recorder::new(self.dump_bytes(), self.pieces.len())));
    }

    /// The record, if recording was started.
    pub fn recorder(&self) -> Option<&Recorder> {
        self.recorder.as_deref()
    }

    /// Records a read of `len` captured bytes at `address`.
    #[inline]
    pub(super) fn record(&self, address: Addr, len: u64) {
        if let Some(recorder) = &self.recorder {
            recorder.mark(address, len);
        }
    }

    /// Records `range` as read, for methods that do not record their reads.
    pub(crate) fn touch(&self, range: AddrRange) {
        if self.recorder.is_some() {
            self.stretches(range).for_each(|(at, bytes)| self.record(at, u64::try_from(bytes.len()).unwrap_or(0)));
        }
    }

    /// Records that the answer depends on every captured byte of `range`, and on which bytes are captured. Used for scans of whole ranges,
    /// whose reads are not recorded one by one.
    pub(crate) fn scan(&self, range: AddrRange) {
        if let Some(recorder) = self.recorder.as_ref().filter(|_| !range.is_empty()) {
            recorder.scan(range);
        }
    }

    /// [Scans](Memory::scan) the objects of a heap segment. Later reads in `range` are not recorded one by one.
    pub(crate) fn scan_objects(&self, range: AddrRange) {
        if let Some(recorder) = self.recorder.as_ref().filter(|_| !range.is_empty()) {
            recorder.scan_objects(range);
        }
    }

    /// Records that a redacted copy must keep all of `range`, even on a stack. Without this record, a redacted copy keeps only addresses on a
    /// stack. For data that the kernel or the C library places at the top of a stack.
    pub(crate) fn spare(&self, range: AddrRange) {
        if let Some(recorder) = self.recorder.as_ref().filter(|_| !range.is_empty()) {
            recorder.spared.lock().unwrap_or_else(PoisonError::into_inner).insert((range.start.0, range.end.0));
        }
    }

    /// Records that `range` is a crash report, whose messages a redacted copy leaves out.
    pub(crate) fn holds_report(&self, range: AddrRange) {
        if let Some(recorder) = self.recorder.as_ref().filter(|_| !range.is_empty()) {
            recorder.reports.lock().unwrap_or_else(PoisonError::into_inner).insert((range.start.0, range.end.0));
        }
    }

    /// Records that `range` was read and that a redacted copy must leave it out: text of the process outside of its heap.
    pub(crate) fn keep_private(&self, range: AddrRange) {
        if let Some(recorder) = self.recorder.as_ref().filter(|_| !range.is_empty()) {
            self.touch(range);
            recorder.private.lock().unwrap_or_else(PoisonError::into_inner).insert((range.start.0, range.end.0));
        }
    }

    /// The characters of a managed string in `range`, which is recorded only as text. If the reference to the string is corrupt, the range may
    /// contain other data of the process, which a redacted copy must not contain.
    ///
    /// # Errors
    /// Fails if any of the bytes is absent.
    pub(crate) fn text_bytes(&self, range: AddrRange) -> Result<Cow<'_, [u8]>, ReadError> {
        if let Some(recorder) = self.recorder.as_ref().filter(|_| !range.is_empty()) {
            recorder.text(range);
        }
        self.unrecorded(range.start, range.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_rounded_and_joined_across_blocks() {
        let r = Recorder::new(0, 0);
        r.mark(Addr(0x1_0003), 1);
        r.mark(Addr(0x1_fff9), 16);
        r.mark(Addr(0x1_0008), 0);
        r.mark(Addr(0x3_0000), 0x2_0000);
        r.mark(Addr(u64::MAX), 9);
        let read: Vec<(u64, u64)> = r.read().iter().map(|r| (r.start.0, r.end.0)).collect();
        assert_eq!(read, [(0x1_0000, 0x1_0008), (0x1_fff8, 0x2_0010), (0x3_0000, 0x5_0000), (u64::MAX - 7, u64::MAX)]);
        assert!(!r.overflowed());
    }

    #[test]
    fn objects_of_scanned_segments_are_not_marked() {
        let r = Recorder::new(0, 0);
        let range = |from, to| AddrRange::new(Addr(from), Addr(to));
        r.mark(Addr(0x1_0000), 8);
        r.scan_objects(range(0x1_0000, 0x2_0000));
        r.mark(Addr(0x1_0100), 8);
        r.mark(Addr(0x1_8000), 0x8000);
        r.mark(Addr(0x1_fff8), 16);
        r.mark(Addr(0x2_0010), 8);
        r.text(range(0x1_0100, 0x1_0200));
        r.text(range(0x1_ff00, 0x2_0100));
        let read: Vec<(u64, u64)> = r.read().iter().map(|r| (r.start.0, r.end.0)).collect();
        assert_eq!(read, [(0x1_0000, 0x1_0008), (0x1_0100, 0x1_0108), (0x1_fff8, 0x2_0008), (0x2_0010, 0x2_0018)]);
        assert_eq!(r.scanned(), [range(0x1_0000, 0x2_0000)]);
        assert_eq!(r.texts(), [range(0x1_ff00, 0x2_0100)]);
    }

    #[test]
    fn the_number_of_blocks_is_limited_by_the_size_of_the_dump() {
        let r = Recorder::new(0, 1);
        (0..u64::try_from(FREE_BLOCKS).unwrap() + 2).for_each(|i| r.mark(Addr(i * BLOCK), 8));
        assert!(!r.overflowed());
        r.mark(Addr(0), 16);
        assert!(!r.overflowed());
        r.mark(Addr(1 << 40), 8);
        assert!(r.overflowed());
    }
}
