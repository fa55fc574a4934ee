//! The walk of one segment: the hot loop, and recovery after memory that does not hold an object.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering};

use super::types::{Cache, LOOKED_AT};
use super::{Object, SegmentIndex, Walker, words};
use crate::base::cancel;
use crate::base::missed::tried;
use crate::base::{Addr, AddrRange, Count, Endian, Progress, PtrSize, Shape};
use crate::memory::Memory;
use crate::model::{GapKind, Generation, SegmentModel, WalkGap, WalkModel};

/// An allocation context: a range within a segment that does not hold objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Context {
    pub(super) pointer: Addr,
    pub(super) limit: Addr,
}

/// Maximum number of gaps listed per segment. Further gaps are only added to the byte counts.
pub const MAX_GAPS: usize = 64;
/// Bytes between progress reports.
const STEP: u64 = 8 << 20;
/// Consecutive plausible objects required to resync after corruption.
const CHAIN: u32 = 4;
/// Consecutive plausible objects required to begin a piece: free blocks are full of chains of dead objects.
const LONG_CHAIN: u32 = 32;
/// Number of bytes for which a chain is followed. A chain of dead objects in a free block often ends where the block ends, at a real
/// object.
const FOLLOWED: u64 = 16 << 10;
/// Number of bytes that are searched for the first object of a piece.
pub(super) const SEARCHED: u64 = 256 << 10;

/// Sums the bytes walked by all threads.
pub(super) struct Meter<'p> {
    done: AtomicU64,
    /// Whether walked pages are released. This spreads the work over the threads: unmapping a whole dump at process exit runs on one
    /// core (28 ms for 0.9 GB).
    once: bool,
    progress: &'p dyn Progress,
}

impl<'p> Meter<'p> {
    pub(super) fn new(progress: &'p dyn Progress, once: bool) -> Meter<'p> {
        Meter { done: AtomicU64::new(0), once, progress }
    }

    fn add(&self, memory: &Memory, walked: AddrRange) {
        if self.once {
            memory.release(walked);
        }
        let bytes = walked.len();
        let before = self.done.fetch_add(bytes, Ordering::Relaxed);
        self.progress.advance(before.saturating_add(bytes));
        cancel::check();
    }
}

/// Constraints that a segment places on its objects.
#[derive(Clone, Copy)]
struct Rules {
    end: Addr,
    align: u64,
    smallest: u64,
}

impl Rules {
    /// Address of the first object after an allocation context. Unformatted space for a minimum-size object follows the limit of a context.
    fn after_context(&self, context: Context) -> Addr {
        context.limit.plus(self.smallest.next_multiple_of(self.align)).min(self.end)
    }
}

/// Whether allocation contexts may lie in `segment`: they exist only in the youngest generation, never in LOH or frozen segments.
fn has_contexts(segment: &SegmentModel) -> bool {
    !matches!(segment.generation, Generation::Loh | Generation::Frozen)
}

fn has_large_objects(segment: &SegmentModel) -> bool {
    matches!(segment.generation, Generation::Loh | Generation::Poh)
}

/// Alignment of objects in `segment` in bytes, with pointers of `word` bytes. In LOH and POH it is 8 on 32-bit targets too.
pub(crate) fn object_alignment(segment: &SegmentModel, word: u64) -> u64 {
    if has_large_objects(segment) { 8 } else { word }
}

/// Why a run of objects ended.
enum Stop {
    /// End of captured memory, or an event to handle.
    Event,
    /// Not an object.
    NoObject,
    /// The visitor stopped the walk.
    Enough,
}

/// The walk of a segment, or of a piece of one.
pub(super) struct SegmentWalk {
    pub(super) model: WalkModel,
    /// Start of the next object; `None` if the segment is not walked any further.
    pub(super) next: Option<Addr>,
}

/// Counters of a walk.
#[derive(Default)]
struct Counts {
    objects: u64,
    bytes: u64,
    free_objects: u64,
    free_bytes: u64,
}

impl Walker {
    /// Calls `visit` for each object of a segment that starts in `range`, including free space. `range` must start at an object.
    pub(super) fn walk_segment(
        &self,
        segment: &SegmentModel,
        range: AddrRange,
        cache: &mut Cache<'_>,
        meter: &Meter<'_>,
        mut visit: impl FnMut(&Object<'_>) -> ControlFlow<()>,
    ) -> SegmentWalk {
        let rules = self.rules(segment);
        let (from, until, end) = (range.start, range.end.min(rules.end), rules.end);
        let first = if has_contexts(segment) { self.contexts.partition_point(|c| c.pointer < from) } else { self.contexts.len() };
        let mut contexts = self.contexts.iter().skip(first).peekable();
        let mut w = WalkModel { segment: segment.address, ..WalkModel::default() };
        let mut counts = Counts::default();
        let mut at = from;
        let mut reported = from;
        let mut stopped = false;
        while at < until {
            if at.since(reported).is_some_and(|n| n >= STEP) {
                meter.add(&self.memory, AddrRange::new(reported, at));
                reported = at;
            }
            while contexts.next_if(|c| c.pointer < at).is_some() {}
            if let Some(context) = contexts.next_if(|c| c.pointer == at) {
                let next = rules.after_context(*context);
                if next > at {
                    w.context_bytes.grow(next.since(at).unwrap_or(0));
                    at = next;
                }
                continue;
            }
            let (generation, boundary) = generation_at(segment, at);
            let Some(bytes) = self.memory.contiguous(at) else {
                at = tried(|| self.across_absent(at, rules, &mut w));
                continue;
            };
            let event = contexts.peek().map_or(until, |c| c.pointer).min(boundary).min(until).min(at.plus(STEP));
            // Specialized for 64-bit little-endian targets, which are nearly all.
            let mut run = Run { heap: self, rules, generation, bytes, event, counts: &mut counts };
            let stop = match self.memory.shape() {
                Shape { ptr: PtrSize::Eight, endian: Endian::Little } => run.objects(Shape::LE64, &mut at, cache, &mut visit),
                shape => run.objects(shape, &mut at, cache, &mut visit),
            };
            // An object that reaches into an allocation context has a wrong size. A context in another generation is wrong itself.
            while let Some(context) = contexts.next_if(|c| generation == Generation::Gen0 && c.pointer < at) {
                let range = AddrRange::new(context.pointer, rules.after_context(*context).min(at));
                w.skipped_bytes.grow(range.len());
                add_gap(&mut w, range, GapKind::Corrupt);
            }
            match stop {
                Stop::Event => {}
                Stop::Enough => {
                    stopped = true;
                    break;
                }
                Stop::NoObject if self.moving => {
                    // Half-moved objects and plug headers lie between the objects: a resync would find false objects.
                    w.stopped_at = Some(at);
                    w.stopped_because = Some("a collection was compacting or sweeping this segment".into());
                    w.absent_bytes.grow(end.since(at).unwrap_or(0));
                    stopped = true;
                    break;
                }
                // Missing memory is reported by the gaps, not as a failed read.
                Stop::NoObject => at = tried(|| self.across_no_object(at, generation, rules, &mut w)),
            }
        }
        meter.add(&self.memory, AddrRange::new(reported, until));
        (w.objects, w.bytes, w.free_objects, w.free_bytes) = (counts.objects, counts.bytes, counts.free_objects, counts.free_bytes);
        w.complete = w.stopped_at.is_none() && self.is_end(segment, at);
        SegmentWalk { model: w, next: (!stopped).then_some(at) }
    }

    /// Whether a walk that arrives at `at` has covered the whole segment, whose end need not be aligned.
    pub(super) fn is_end(&self, segment: &SegmentModel, at: Addr) -> bool {
        let rules = self.rules(segment);
        at.since(rules.end).is_some_and(|over| over < rules.align)
    }

    /// An address at or after `near` where an object seems to start.
    pub(super) fn likely_start(&self, segment: &SegmentModel, near: Addr) -> Option<Addr> {
        let rules = self.rules(segment);
        let from = Addr(near.0.checked_next_multiple_of(rules.align)?);
        let to = from.plus(SEARCHED).min(rules.end);
        tried(|| {
            let seems = self.scan(AddrRange::new(from, to), rules, LONG_CHAIN)?;
            let start = self.objects_reach(segment, seems, seems.plus(FOLLOWED), u32::MAX).unwrap_or(seems);
            (start < rules.end && self.memory.word(start).is_ok()).then_some(start)
        })
    }

    /// The unfilled ranges of allocation contexts in a segment, by address; empty for a segment that is not walked.
    pub fn unfilled(&self, index: SegmentIndex) -> Vec<AddrRange> {
        let Some(segment) = self.segments.get(index).filter(|s| has_contexts(s) && !self.refused.contains_key(&index)) else {
            return Vec::new();
        };
        let rules = self.rules(segment);
        let first = self.contexts.partition_point(|c| c.pointer < segment.start);
        let within = self.contexts.iter().skip(first).take_while(|c| c.pointer < rules.end);
        within.map(|c| AddrRange::new(c.pointer, rules.after_context(*c))).collect()
    }

    fn rules(&self, segment: &SegmentModel) -> Rules {
        let align = object_alignment(segment, self.memory.ptr_bytes());
        Rules { end: segment.allocated, align, smallest: self.smallest() }
    }

    /// Address at which the walk resumes after memory that is not in the dump. It is the first plausible chain of objects, since the size
    /// of the current object is unknown.
    fn across_absent(&self, at: Addr, rules: Rules, w: &mut WalkModel) -> Addr {
        let there = self.memory.stretches(AddrRange::new(at, rules.end)).next().map(|(a, _)| a);
        let aligned = there.and_then(|a| a.0.checked_next_multiple_of(rules.align)).map_or(rules.end, Addr).min(rules.end);
        let next = if aligned < rules.end && !self.is_object(aligned, rules, CHAIN) { self.resync(aligned, rules, CHAIN) } else { aligned };
        if w.stopped_at.is_none() {
            w.stopped_at = Some(at);
            w.stopped_because = Some("the memory is not in the dump".into());
        }
        w.absent_bytes.grow(next.since(at).unwrap_or(0));
        add_gap(w, AddrRange::new(at, next), GapKind::Absent);
        next
    }

    /// Address to resume at after something that is not an object.
    fn across_no_object(&self, at: Addr, generation: Generation, rules: Rules, w: &mut WalkModel) -> Addr {
        let first = self.memory.word(at).unwrap_or(1);
        if let Some(range) = self.object_in_allocation(at, generation, rules) {
            w.in_allocation_bytes.grow(range.len());
            add_gap(w, range, GapKind::InAllocation);
            return range.end;
        }
        let next = self.resync(at, rules, CHAIN);
        let range = AddrRange::new(at, next);
        let mt = self.objects.table_in(first);
        if let Some(why) = self.lost_by_dump(at, mt) {
            if w.stopped_at.is_none() {
                w.stopped_at = Some(at);
                w.stopped_because = Some(why);
            }
            w.absent_bytes.grow(range.len());
            add_gap(w, range, GapKind::Absent);
            return next;
        }
        w.skipped_bytes.grow(range.len());
        add_gap(w, range, GapKind::Corrupt);
        next
    }

    /// Returns why the object at `at` with method table `mt` may be valid although it cannot be read.
    fn lost_by_dump(&self, at: Addr, mt: Addr) -> Option<String> {
        // If heap pages are missing from the dump, method tables may be too.
        let unread = self.tables.is_valid(mt).err().or_else(|| self.tables.read(mt).err());
        if let Some(e) = unread {
            // The runtime's own variables lead to some method tables.
            let is_named = [self.tables.free, self.tables.string, self.tables.object].contains(&Some(mt));
            let missing = self.holes || is_named || self.memory.is_beside(e.address);
            return missing.then(|| format!("{mt} cannot be verified as a method table: its memory is not in the dump"));
        }
        let size = self.type_at(mt)?.size(|length| self.memory.u32(at.plus(length)).ok());
        size.is_none().then(|| "the length of the object is not in the dump".into())
    }

    /// The range of an object at `at` whose memory is reserved and cleared, but whose method table is not yet written; `None` if no object can be in
    /// allocation there. Two of three dumps of a process that allocates all the time have one.
    ///
    /// Without these rules, memory that a writer of dumps has replaced with zeros would look like such an object. The thread that allocates is in
    /// cooperative mode. In the youngest generation it has advanced its allocation context, so the object ends where the context begins; the older
    /// ones receive objects from collections only. In LOH and POH the object may be anywhere, and the allocator clears it after it has released its
    /// lock, so only the start may be zero.
    fn object_in_allocation(&self, at: Addr, generation: Generation, rules: Rules) -> Option<AddrRange> {
        let is_zero = |end| self.all_zero(AddrRange::new(at, end));
        if self.allocators == Some(0) || !is_zero(at.plus(rules.smallest)) {
            return None;
        }
        let next = self.resync(at, rules, CHAIN);
        let end = match generation {
            Generation::Gen0 => {
                let context = self.contexts.get(self.contexts.partition_point(|c| c.pointer <= at)).map(|c| c.pointer);
                let end = context.filter(|end| *end <= next);
                // If the contexts of some threads are unknown, the range may be one.
                end.or_else(|| self.allocators.is_none().then_some(next)).filter(|end| is_zero(*end))?
            }
            Generation::Loh | Generation::Poh => next,
            _ => return None,
        };
        Some(AddrRange::new(at, end)).filter(|range| range.len() >= rules.smallest)
    }

    /// The next address after `from` where `chain` consecutive objects are plausible.
    fn resync(&self, from: Addr, rules: Rules, chain: u32) -> Addr {
        self.scan(AddrRange::new(from.plus(rules.align), rules.end), rules, chain).unwrap_or(rules.end)
    }

    /// The first address in `range` at which `chain` consecutive objects are plausible or memory is absent. `range` is aligned.
    fn scan(&self, range: AddrRange, rules: Rules, chain: u32) -> Option<Addr> {
        let mut at = range.start;
        while at < range.end {
            match self.memory.word(at) {
                Err(_) => return Some(at),
                Ok(0) => {}
                Ok(_) if self.is_object(at, rules, chain) => return Some(at),
                Ok(_) => {}
            }
            at = at.plus(rules.align);
        }
        None
    }

    /// Whether `chain` consecutive objects are plausible from `at`. The end of the segment, an allocation context, and cleared
    /// or absent memory are valid ends of a chain.
    fn is_object(&self, at: Addr, rules: Rules, chain: u32) -> bool {
        if !self.looks_whole(at, rules) {
            return false;
        }
        let mut at = at;
        for i in 0..chain {
            if i > 0 && (at >= rules.end || self.contexts.binary_search_by_key(&at, |c| c.pointer).is_ok()) {
                return true;
            }
            let word = match self.memory.word(at) {
                Err(_) => return i > 0,
                // An object in allocation is entirely zero; a few zero words may be null fields.
                Ok(0) if i > 0 => return self.all_zero(AddrRange::new(at, at.plus(rules.smallest).min(rules.end))),
                Ok(word) => word,
            };
            let Some(next) = self.end_of(at, word, rules) else { return false };
            at = next;
        }
        true
    }

    /// Whether the memory around `at` looks like an object of its type. Fields may hold method tables too (`RuntimeType`, the activator
    /// cache, the cast cache), and the memory after them may look like objects by chance.
    fn looks_whole(&self, at: Addr, rules: Rules) -> bool {
        let Some(mt) = self.method_table(at) else { return false };
        // The memory before a free block keeps its old contents.
        if Some(mt) == self.tables.free {
            return true;
        }
        if self.padded(at) == Some(false) {
            return false;
        }
        let word = self.memory.ptr_bytes();
        let Some(ty) = self.type_at(mt) else { return false };
        let Some(size) = ty.size(|length| self.memory.u32(at.plus(length)).ok()) else { return false };
        let (mut sound, looked_at) = (true, size.min(LOOKED_AT).min(rules.end.since(at).unwrap_or(0)));
        ty.near.places_in(size, word, (0, looked_at), |offset| {
            let Ok(target) = self.memory.ptr(at.plus(offset)) else { return };
            // If the type is not in the dump, the check is inconclusive.
            let leads_to_type = || self.holes || self.method_table(target).is_some_and(|mt| self.type_at(mt).is_some());
            sound &= target.is_null() || target.is_aligned(word) && leads_to_type();
        });
        sound
    }

    /// Whether the header padding before `at` is valid; `None` if it is not in the dump. On 64-bit targets half of the header
    /// word is padding and always zero (all objects of 70 dumps). Other targets have no padding.
    pub fn padded(&self, at: Addr) -> Option<bool> {
        match self.memory.ptr_bytes() {
            8 if self.tables.has_padding() => Some(self.memory.u32(at.minus(8)?).ok()? == 0),
            _ => Some(true),
        }
    }

    /// End of the object at `at` whose first word is `word`; `None` if it cannot be an object.
    fn end_of(&self, at: Addr, word: u64, rules: Rules) -> Option<Addr> {
        let ty = self.type_at(self.objects.table_in(word))?;
        let size = ty.size(|length| self.memory.u32(at.plus(length)).ok())?;
        let rounded = size.max(rules.smallest).checked_next_multiple_of(rules.align)?;
        rules.end.since(at).filter(|room| size <= *room).map(|_| at.plus(rounded))
    }

    /// Follows consecutive objects of `segment` from `at` until one ends at or after `to`, or for `most` objects. Returns the end of the
    /// last one; `None` if one of them is not an object.
    pub fn objects_reach(&self, segment: &SegmentModel, at: Addr, to: Addr, most: u32) -> Option<Addr> {
        let rules = self.rules(segment);
        let mut here = at;
        for _ in 0..most {
            if here >= to && here > at {
                break;
            }
            let word = self.memory.word(here).ok().filter(|_| here.is_aligned(self.memory.ptr_bytes()))?;
            here = self.end_of(here, word, rules)?;
        }
        Some(here)
    }

    /// Whether `range` is in the dump and contains only zeros.
    pub(crate) fn all_zero(&self, range: AddrRange) -> bool {
        self.memory.captured(range) == range.len() && self.memory.stretches(range).all(|(_, bytes)| bytes.iter().all(|b| *b == 0))
    }
}

/// Consecutive objects within one captured range.
struct Run<'r> {
    heap: &'r Walker,
    rules: Rules,
    generation: Generation,
    /// Captured bytes from the start of the run.
    bytes: &'r [u8],
    /// Next address to stop at: allocation context, generation boundary, progress report, or end.
    event: Addr,
    counts: &'r mut Counts,
}

impl Run<'_> {
    /// Walks from `at` to the next event. Neither allocates nor searches.
    #[inline(always)]
    fn objects(
        &mut self,
        shape: Shape,
        at: &mut Addr,
        cache: &mut Cache<'_>,
        visit: &mut impl FnMut(&Object<'_>) -> ControlFlow<()>,
    ) -> Stop {
        let memory = &*self.heap.memory;
        let objects_of = &self.heap.objects;
        let Rules { end, align, smallest, .. } = self.rules;
        let round = align.saturating_sub(1);
        let (from, mut objects) = (*at, 0u64);
        let mut rest = self.bytes;
        let mut here = *at;
        let stop = loop {
            if here >= self.event {
                break Stop::Event;
            }
            // The last word of a captured range may be cut off: the next iteration decides.
            let Some(first) = words::word(shape, rest) else { break if rest.is_empty() { Stop::Event } else { Stop::NoObject } };
            let Some(slot) = cache.get(objects_of.table_in(first).0) else { break Stop::NoObject };
            let Some(ty) = slot.ty.as_deref() else { break Stop::NoObject };
            // Read the length unconditionally: whether the next object has a length is unpredictable, and
            // a mispredicted branch costs more than the read.
            let count = match rest.get(slot.length_at..).and_then(|b| words::u32(shape, b)) {
                Some(count) => count,
                None if slot.component_size == 0 => 0,
                None => match memory.u32(here.plus(ty.length_at)) {
                    Ok(count) => count,
                    Err(_) => break Stop::NoObject,
                },
            };
            // 32 bits times 16 bits plus the base size cannot overflow.
            let size = u64::from(count).wrapping_mul(slot.component_size).wrapping_add(slot.base_size);
            if size > end.0.wrapping_sub(here.0) {
                break Stop::NoObject;
            }
            let size = size.max(smallest);
            let rounded = size.wrapping_add(round) & !round;
            objects = objects.wrapping_add(1);
            if ty.is_free {
                self.counts.free_objects = self.counts.free_objects.wrapping_add(1);
                self.counts.free_bytes = self.counts.free_bytes.wrapping_add(rounded);
            }
            let flow = visit(&Object { address: here, ty, size, generation: self.generation, bytes: rest, memory });
            here = here.plus(rounded);
            if flow.is_break() {
                break Stop::Enough;
            }
            match usize::try_from(rounded).ok().and_then(|n| rest.get(n..)) {
                Some(next) => rest = next,
                None => break Stop::Event,
            }
        };
        *at = here;
        self.counts.objects.grow(objects);
        self.counts.bytes.grow(here.since(from).unwrap_or(0));
        stop
    }
}

/// The generation at `at`, and its end.
pub(super) fn generation_at(segment: &SegmentModel, at: Addr) -> (Generation, Addr) {
    let part = segment.parts.iter().find(|p| p.start <= at && at < p.end);
    part.map_or((segment.generation, segment.allocated), |p| (p.generation, p.end))
}

fn add_gap(w: &mut WalkModel, range: AddrRange, kind: GapKind) {
    if w.gaps.len() < MAX_GAPS {
        w.gaps.push(WalkGap { range, bytes: range.len(), kind });
    }
}
