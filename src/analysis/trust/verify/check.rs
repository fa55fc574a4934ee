//! The second walk: checks the header and references of every object.

use std::collections::BTreeMap;

use super::heap_map::{HeapMap, Target, certain};
use super::sink::{Found, Sink};
use crate::analysis::{FindingId, VerifyTotals};
use crate::base::hash::{Map, Set};
use crate::base::{Addr, AddrRange, Count, IndexVec};
use crate::clr::header::{HeaderUse, Headers};
use crate::gc::{Cards, GcDesc, Object, Piece, SegmentIndex, Sweep, Visitor};
use crate::memory::Window;
use crate::model::{Generation, SegmentModel};

/// Maximum number of bad references of the object before a gap that are kept until the gap is classified. Further ones are reported at once.
const MAX_DOUBTFUL: usize = 64;
/// Number of words, starting at a bad reference, that are tried as the start of a swallowed object. The bad reference may be a non-null header word
/// before that object.
const LOOK_AHEAD: u64 = 32;

/// The input that all checks share.
pub(super) struct Tools<'h> {
    pub(super) map: HeapMap<'h>,
    pub(super) headers: Option<Headers>,
    /// End of the sync table, if known.
    pub(super) sync_end: Option<u32>,
    /// Managed thread ids, if all threads are known.
    pub(super) threads: Option<Set<u32>>,
    pub(super) cards: Option<Cards>,
    pub(super) sweep: Option<Sweep>,
    pub(super) ages: IndexVec<SegmentIndex, Age>,
}

/// Age of a segment's objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Age {
    /// All objects have this age: 0, 1 or 2. LOH and POH have age 2, because they are collected with generation 2.
    All(u8),
    /// Several generations in one segment.
    Mixed,
    /// Never collected.
    Frozen,
}

impl Age {
    pub(super) fn of(generation: Generation) -> Age {
        match generation {
            Generation::Gen0 => Age::All(0),
            Generation::Gen1 => Age::All(1),
            Generation::Gen2 | Generation::Loh | Generation::Poh => Age::All(2),
            Generation::Ephemeral | Generation::Unknown => Age::Mixed,
            Generation::Frozen => Age::Frozen,
        }
    }

    fn number(self) -> Option<u8> {
        match self {
            Age::All(n) => Some(n),
            _ => None,
        }
    }
}

/// The object before a gap, with the size that its length and method table claim.
#[derive(Clone, Copy, Debug)]
pub(super) struct Before {
    pub(super) address: Addr,
    pub(super) size: u64,
    pub(super) string: bool,
    /// Whether the object's size depends on a length.
    pub(super) sized: bool,
    /// Whether the object's elements are references.
    pub(super) references: bool,
}

/// References into a gap.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Hits {
    pub(super) count: u64,
    /// Whether one of them points exactly to the start of the gap.
    pub(super) exact: bool,
}

/// References into corrupt ranges and objects. They are counted in the finding about the corruption.
#[derive(Debug, Default)]
pub(super) struct Folded {
    pub(super) gaps: Map<Addr, Hits>,
    /// Objects with a wrong size, and the number of references to objects inside them.
    pub(super) sizes: BTreeMap<Addr, u64>,
}

impl Folded {
    /// Attributes a bad reference to known corruption, or counts it as unknown. Otherwise returns the kind of a separate finding and, for a reference
    /// into an object, that object.
    pub(super) fn fold(&mut self, map: &HeapMap<'_>, target: Addr, unknown: &mut u64) -> Option<(FindingId, Option<Addr>)> {
        Some(match map.look(target) {
            Target::Unknown => {
                unknown.bump();
                return None;
            }
            Target::Gap(start) => {
                let hits = self.gaps.entry(start).or_default();
                hits.count.bump();
                hits.exact |= start == target;
                return None;
            }
            Target::Swallowed(object) => {
                self.size(object, 1);
                return None;
            }
            Target::Unaligned => (FindingId::ReferenceUnaligned, None),
            Target::Outside => (FindingId::ReferenceOutsideHeap, None),
            Target::Middle(object) => (FindingId::ReferenceToMiddle, Some(object)),
            Target::Free => (FindingId::ReferenceToFree, None),
            Target::Unused => (FindingId::ReferenceToUnused, None),
        })
    }

    fn size(&mut self, object: Addr, also: u64) {
        self.sizes.entry(object).or_default().grow(also);
    }

    pub(super) fn merge(&mut self, other: Folded) {
        for (start, hits) in other.gaps {
            let into = self.gaps.entry(start).or_default();
            into.count.grow(hits.count);
            into.exact |= hits.exact;
        }
        other.sizes.into_iter().for_each(|(object, n)| self.size(object, n));
    }
}

/// The visitor of the second walk.
pub(super) struct Checker<'h> {
    tools: &'h Tools<'h>,
    segment: Option<&'h SegmentModel>,
    gaps: Vec<AddrRange>,
    next_gap: usize,
    /// End of the part of the segment in which object starts are certain.
    certain: Addr,
    last: Option<Before>,
    hint: SegmentIndex,
    header_window: Window<'h>,
    card_window: Window<'h>,
    mark_window: Window<'h>,
    /// The object before each gap, by start of the gap.
    pub(super) before: Map<Addr, Before>,
    /// Bad references of the object before each gap, by start of the gap. They are dropped if the object turns out to have the method table of
    /// another type.
    pub(super) doubtful: BTreeMap<Addr, Vec<Found>>,
    pub(super) folded: Folded,
    pub(super) sink: Sink,
    pub(super) totals: VerifyTotals,
    /// Captured method tables with an invalid GCDesc, each with its first object.
    pub(super) bad_types: BTreeMap<Addr, Addr>,
    /// Numbers of checks for which data is missing.
    pub(super) absent: Absent,
}

/// Numbers of checks that could not be made because data is missing from the dump.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Absent {
    pub(super) cards: u64,
    pub(super) marks: u64,
    pub(super) layouts: u64,
    /// Number of objects after memory that is not in the dump.
    pub(super) uncertain: u64,
}

fn one(n: &mut u64) {
    *n = n.wrapping_add(1);
}

impl<'h> Checker<'h> {
    pub(super) fn new(tools: &'h Tools<'h>, sink: Sink) -> Checker<'h> {
        let window = Window::new(tools.map.heap.memory());
        Checker {
            tools,
            segment: None,
            gaps: Vec::new(),
            next_gap: 0,
            certain: Addr::NULL,
            last: None,
            hint: SegmentIndex::default(),
            header_window: window.clone(),
            card_window: window.clone(),
            mark_window: window,
            before: Map::default(),
            doubtful: BTreeMap::new(),
            folded: Folded::default(),
            sink,
            totals: VerifyTotals::default(),
            bad_types: BTreeMap::new(),
            absent: Absent::default(),
        }
    }

    /// Records the object before each gap that starts before `address`.
    fn pass_gaps(&mut self, address: Option<Addr>) {
        while let Some(gap) = self.gaps.get(self.next_gap).filter(|g| address.is_none_or(|a| g.start < a)) {
            if let Some(before) = self.last.filter(|b| b.end(self.tools).is_none_or(|end| end >= gap.start)) {
                self.before.insert(gap.start, before);
            }
            self.next_gap.bump();
        }
    }

    /// Handles the remaining gaps of the last piece.
    pub(super) fn close(&mut self) {
        self.pass_gaps(None);
    }

    fn header(&mut self, address: Addr) {
        let Some(headers) = &self.tools.headers else { return };
        let Some(word) = address.minus(headers.before()).and_then(|at| self.header_window.u32(at)) else { return };
        one(&mut self.totals.headers);
        match HeaderUse::of(word) {
            HeaderUse::None | HeaderUse::Hash => {}
            HeaderUse::ThinLock(id) => {
                if self.tools.threads.as_ref().is_some_and(|known| !known.contains(&id)) {
                    self.sink.add(Found::new(FindingId::ThinLockNoThread, address).object(address).number(id.into()));
                }
            }
            HeaderUse::SyncBlock(index) => {
                let Some(end) = self.tools.sync_end else { return };
                let found = |id| Found::new(id, address).object(address).number(index.into());
                if index == 0 || index >= end {
                    self.sink.add(found(FindingId::SyncBlockBadIndex));
                } else if let Some((_, owner)) = headers.sync_entry(index).filter(|(_, owner)| *owner != address) {
                    self.sink.add(found(FindingId::SyncBlockWrongObject).related(owner));
                }
            }
        }
    }

    /// Whether the string is NUL-terminated.
    fn terminated(&self, object: &Object<'_>) -> bool {
        let heap = self.tools.map.heap;
        // The size includes the header word, which precedes the object. In Mono, the header is inside the object.
        let before = if heap.tables().mono().is_some() { 0 } else { heap.memory().ptr_bytes() };
        let last = object.size.checked_sub(before.saturating_add(2)).and_then(|at| object.part(at, 2));
        last.is_none_or(|c| c.iter().all(|b| *b == 0))
    }

    /// Handles a reference that does not point to the start of an object. Returns whether later references of the object can be trusted.
    #[cold]
    fn bad(&mut self, object: &Object<'_>, offset: u64, target: Addr) -> bool {
        let place = object.address.plus(offset);
        let Some((id, inside)) = self.folded.fold(&self.tools.map, target, &mut self.totals.unknown_references) else { return true };
        if self.ends_early(object, offset) {
            self.folded.size(object.address, 0);
            return false;
        }
        // Without regions, dead objects of the young generations look alive until a background collection has swept these generations (1 of 48 dumps
        // of a busy heap).
        if id == FindingId::ReferenceToFree && self.unmarked(object.address) {
            one(&mut self.totals.unknown_references);
            return true;
        }
        let found = Found::new(id, place).object(object.address).related(target);
        let found = inside.map_or(found.clone(), |o| found.number(o.0));
        let gap = self.gaps.get(self.next_gap).map(|g| g.start).filter(|start| *start > object.address);
        let end = rounded(object.size, self.tools).map(|n| object.address.plus(n));
        let waiting = gap.filter(|start| end.is_some_and(|end| end >= *start)).map(|start| self.doubtful.entry(start).or_default());
        match waiting.filter(|list| list.len() < MAX_DOUBTFUL) {
            Some(list) => list.push(found),
            None => self.sink.add(found),
        }
        true
    }

    /// Whether a background sweep is in progress and the object is not known to be marked.
    fn unmarked(&mut self, object: Addr) -> bool {
        let (Some(sweep), Some(segment)) = (&self.tools.sweep, self.segment) else { return false };
        sweep.is_marked(&mut self.mark_window, segment, object) != Some(true)
    }

    /// Whether other objects begin inside this one, at `offset` or up to `LOOK_AHEAD` words after it.
    fn ends_early(&self, object: &Object<'_>, offset: u64) -> bool {
        let map = &self.tools.map;
        let word = map.heap.memory().ptr_bytes();
        let Some(segment) = self.segment else { return false };
        (0..LOOK_AHEAD)
            .map(|i| offset.saturating_add(i.saturating_mul(word)))
            .take_while(|o| *o < object.size)
            .any(|o| map.swallowed(segment, object.address, object.address.plus(o)))
    }

    /// Checks the references of an object, and their cards. `age`: the age of the object, if it can be determined.
    fn references(&mut self, object: &Object<'_>, age: Option<u8>) {
        let tools = self.tools;
        let starts = tools.map.starts;
        let old = age.filter(|a| *a > 0 && tools.cards.is_some());
        let (mut trusted, mut covered) = (true, None);
        object.references(|offset, target| {
            one(&mut self.totals.references);
            if !starts.is_start(target, &mut self.hint) {
                if trusted {
                    trusted = self.bad(object, offset, target);
                }
            } else if let Some(age) = old {
                let age_there = match tools.ages.get(self.hint) {
                    Some(Age::Mixed) => tools.map.heap.generation_of(target).and_then(|g| Age::of(g).number()),
                    Some(there) => there.number(),
                    None => None,
                };
                if age_there.is_some_and(|there| there < age) {
                    self.card(object, offset, target, &mut covered);
                }
            }
        });
    }

    /// Checks the card of a reference from an older object to a younger one.
    fn card(&mut self, object: &Object<'_>, offset: u64, target: Addr, covered: &mut Option<bool>) {
        let (Some(cards), Some(segment)) = (&self.tools.cards, self.segment) else { return };
        let place = object.address.plus(offset);
        let set = match cards.is_set(&mut self.card_window, segment.heap, place) {
            None => return one(&mut self.absent.cards),
            Some(true) => true,
            // For a large or pinned object, any card of the object suffices.
            Some(false) if matches!(segment.generation, Generation::Loh | Generation::Poh) => *covered.get_or_insert_with(|| {
                let step = usize::try_from(cards.card_bytes()).unwrap_or(256).max(1);
                let window = &mut self.card_window;
                (0..object.size).step_by(step).any(|at| cards.is_set(window, segment.heap, object.address.plus(at)) == Some(true))
            }),
            Some(false) => false,
        };
        one(&mut self.totals.cards);
        if !set {
            self.sink.add(Found::new(FindingId::CardClear, place).object(object.address).related(target));
        }
    }
}

impl Before {
    fn end(&self, tools: &Tools<'_>) -> Option<Addr> {
        rounded(self.size, tools).map(|n| self.address.plus(n))
    }
}

/// Returns the distance in bytes from one object to the next, or a few bytes more.
fn rounded(size: u64, tools: &Tools<'_>) -> Option<u64> {
    // Large objects are aligned to 8 bytes even on 32-bit targets.
    size.checked_next_multiple_of(tools.map.heap.memory().ptr_bytes().max(8))
}

impl Visitor for Checker<'_> {
    fn piece(&mut self, piece: &Piece<'_>) -> bool {
        let index = piece.index;
        self.close();
        self.last = None;
        self.next_gap = 0;
        self.segment = self.tools.map.heap.segment(index);
        let walk = self.tools.map.walk(index);
        self.certain = walk.map_or(Addr::NULL, certain);
        // A gap before the start of the piece follows an object of an earlier piece. A gap after its end may follow its last object.
        let gaps = walk.into_iter().flat_map(|w| &w.gaps).map(|g| g.range);
        self.gaps = gaps.filter(|gap| gap.start >= piece.starts.start && gap.start < self.certain).collect();
        true
    }

    fn object(&mut self, object: &Object<'_>) {
        if self.next_gap < self.gaps.len() {
            self.pass_gaps(Some(object.address));
            let kind = object.ty;
            self.last = Some(Before {
                address: object.address,
                size: object.size,
                string: kind.is_string,
                sized: kind.component_size != 0,
                references: kind.is_array && matches!(kind.gc_desc, GcDesc::Series(_)),
            });
        }
        if object.ty.is_free {
            return;
        }
        if object.address >= self.certain {
            return one(&mut self.absent.uncertain);
        }
        one(&mut self.totals.objects);
        if let (Some(sweep), Some(segment)) = (&self.tools.sweep, self.segment) {
            match sweep.is_live(&mut self.mark_window, segment, object.address) {
                Some(true) => {}
                Some(false) => return one(&mut self.totals.dead_objects),
                // The object may be dead, and its references may be invalid.
                None => return one(&mut self.absent.marks),
            }
        }
        self.header(object.address);
        if object.ty.is_string && !self.terminated(object) {
            self.folded.size(object.address, 0);
        }
        match &object.ty.gc_desc {
            GcDesc::None => {}
            GcDesc::Unknown => {
                let table = object.ty.method_table;
                let memory = self.tools.map.heap.memory();
                one(&mut self.absent.layouts);
                if table.minus(memory.ptr_bytes()).is_some_and(|at| memory.has(at)) {
                    let first = self.bad_types.entry(table).or_insert(object.address);
                    *first = (*first).min(object.address);
                }
            }
            _ => self.references(object, Age::of(object.generation).number()),
        }
    }
}
