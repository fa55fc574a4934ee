//! The heap walk: from the first object of a segment to its end, object by object.
//!
//! Source: reference §4 and fallback-8-9-10.md §1 and §4, measured on 131 dumps: outside of the plan phase of a
//! collection every walk ends exactly at the segment's end, once allocation contexts and objects in allocation are known.

use rayon::prelude::*;
use rustc_hash::FxHashMap;

use super::Gc;
use crate::base::{Addr, AddrRange};
use crate::clr::method_table::MethodTables;
use crate::model::{AllocContextModel, Generation, SegmentModel, WalkGap, WalkModel};

/// A stretch of a segment that holds no objects although it lies before its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Context {
    pointer: Addr,
    limit: Addr,
}

/// What a method table says about the size of its objects.
#[derive(Clone, Copy)]
struct Shape {
    base: u64,
    component: u64,
    free: bool,
}

/// An object as the walk meets it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Object {
    /// Where it lies.
    pub address: Addr,
    /// Its method table, mark bits cleared.
    pub method_table: Addr,
    /// Its size in bytes, not rounded up.
    pub size: u64,
    /// Whether it is free space.
    pub free: bool,
}

/// Most gaps that a segment may list; beyond that only their bytes are counted.
const MAX_GAPS: usize = 64;

impl Gc<'_> {
    /// Walks every segment, several at a time; the results are in the order of `segments` for any number of threads.
    pub fn walk(&self, tables: &MethodTables<'_>, segments: &[SegmentModel], contexts: &[AllocContextModel]) -> Vec<WalkModel> {
        let contexts = usable(contexts);
        segments.par_iter().map(|s| self.walk_segment(tables, s, &contexts, |_| {})).collect()
    }

    /// Walks every segment, one after the other, and calls `visit` for each object, free space included.
    pub fn visit(
        &self,
        tables: &MethodTables<'_>,
        segments: &[SegmentModel],
        contexts: &[AllocContextModel],
        mut visit: impl FnMut(Object),
    ) -> Vec<WalkModel> {
        let contexts = usable(contexts);
        segments.iter().map(|s| self.walk_segment(tables, s, &contexts, &mut visit)).collect()
    }

    /// Walks one segment and calls `visit` for each object, free space included.
    fn walk_segment(
        &self,
        tables: &MethodTables<'_>,
        segment: &SegmentModel,
        contexts: &[Context],
        mut visit: impl FnMut(Object),
    ) -> WalkModel {
        let word = self.memory.ptr_bytes();
        // Large and pinned objects are aligned to 8 bytes also on 32-bit targets.
        let align = if matches!(segment.generation, Generation::Loh | Generation::Poh) { 8 } else { word };
        let smallest = word * 3;
        // Threads allocate in the youngest generation only; large objects are never handed out in contexts, frozen never.
        let own = !matches!(segment.generation, Generation::Loh | Generation::Frozen);
        let end = segment.allocated;
        let mut shapes: FxHashMap<u64, Option<Shape>> = FxHashMap::default();
        let mut last: (u64, Option<Shape>) = (0, None);
        let mut w = WalkModel { segment: segment.address, ..WalkModel::default() };
        let mut at = segment.start;
        while at < end {
            if own && let Ok(i) = contexts.binary_search_by_key(&at, |c| c.pointer) {
                // Behind the limit lies room for the smallest object, unformatted as well.
                let next = contexts.get(i).map_or(at, |c| c.limit).plus(smallest.next_multiple_of(align)).min(end);
                if next > at {
                    w.context_bytes = w.context_bytes.saturating_add(next.since(at).unwrap_or(0));
                    at = next;
                    continue;
                }
            }
            let Ok(first) = self.memory.word(at) else {
                // Not captured: walking on would be a guess, as the next object is only known from this one's size.
                w.stopped_at = Some(at);
                w.stopped_because = Some("the memory is not in the dump".into());
                w.absent_bytes = end.since(at).unwrap_or(0);
                return w;
            };
            let mt = first & !self.unmask;
            if mt != last.0 {
                last = (mt, *shapes.entry(mt).or_insert_with(|| shape(tables, Addr(mt), smallest)));
            }
            let sized = last.1.and_then(|s| self.size_of(s, at).map(|size| (s, size)));
            let room = end.since(at).unwrap_or(0);
            match sized {
                Some((s, size)) if size <= room => {
                    let size = size.max(smallest);
                    let rounded = size.checked_next_multiple_of(align).unwrap_or(size);
                    w.objects = w.objects.saturating_add(1);
                    w.bytes = w.bytes.saturating_add(rounded);
                    if s.free {
                        w.free_objects = w.free_objects.saturating_add(1);
                        w.free_bytes = w.free_bytes.saturating_add(rounded);
                    }
                    visit(Object { address: at, method_table: Addr(mt), size, free: s.free });
                    at = at.plus(rounded);
                }
                _ => {
                    if self.facts.structures_valid == Some(false) {
                        // Half-moved objects and plug headers lie between the objects: a resync would invent some.
                        w.stopped_at = Some(at);
                        w.stopped_because = Some("a collection was rearranging this segment".into());
                        w.absent_bytes = room;
                        return w;
                    }
                    let next = self.resync(tables, at, end, align, smallest);
                    let range = AddrRange::new(at, next);
                    if self.all_zero(range) || (mt == 0 && first == 0) {
                        w.in_allocation_bytes = w.in_allocation_bytes.saturating_add(range.len());
                    } else {
                        w.skipped_bytes = w.skipped_bytes.saturating_add(range.len());
                    }
                    if w.gaps.len() < MAX_GAPS {
                        let kind = if first == 0 { "in-allocation" } else { "corrupt" };
                        w.gaps.push(WalkGap { range, bytes: range.len(), kind: kind.into() });
                    }
                    at = next;
                }
            }
        }
        w.complete = at == end || (at > end && at.since(end).is_some_and(|over| over < align));
        if !w.complete {
            w.stopped_at = Some(at);
            w.stopped_because = Some("the last object reaches beyond the segment's end".into());
        }
        w
    }

    fn size_of(&self, shape: Shape, at: Addr) -> Option<u64> {
        if shape.component == 0 {
            return Some(shape.base);
        }
        let count = u64::from(self.memory.u32(at.plus(self.memory.ptr_bytes())).ok()?);
        count.checked_mul(shape.component)?.checked_add(shape.base)
    }

    /// The next place where an object may begin. An object in allocation (space taken and cleared, its method table not
    /// yet written, 44 of 188 dumps of a busy heap) is zeros up to the next object, Free included.
    fn resync(&self, tables: &MethodTables<'_>, from: Addr, end: Addr, align: u64, smallest: u64) -> Addr {
        let mut at = from.plus(align);
        while at < end {
            match self.memory.word(at) {
                Err(_) => return at,
                Ok(0) => {}
                Ok(word) => {
                    let mt = Addr(word & !self.unmask);
                    let room = end.since(at).unwrap_or(0);
                    let fits = shape(tables, mt, smallest).and_then(|s| self.size_of(s, at)).is_some_and(|size| size <= room);
                    if fits {
                        return at;
                    }
                }
            }
            at = at.plus(align);
        }
        end
    }

    fn all_zero(&self, range: AddrRange) -> bool {
        self.memory.captured(range) == range.len() && self.memory.stretches(range).all(|(_, bytes)| bytes.iter().all(|b| *b == 0))
    }
}

/// Size rule of a method table, `None` where there is none.
fn shape(tables: &MethodTables<'_>, mt: Addr, smallest: u64) -> Option<Shape> {
    if mt.is_null() {
        return None;
    }
    let info = tables.read(mt).ok()?;
    let base = u64::from(info.base_size);
    // The empty string is the smallest object: its base size is two bytes short of the smallest aligned one.
    let plausible = base.saturating_add(8) >= smallest && (info.is_free || tables.is_valid(mt).unwrap_or(false));
    plausible.then_some(Shape { base, component: u64::from(info.component_size), free: info.is_free })
}

/// Contexts that hide memory, sorted. A *thread's* context with pointer = limit counts as well: the unformatted room
/// behind the limit is there (proven with a thread that filled its context exactly). A *generation's* does not: inside a
/// collection they are {mem, mem}, and skipping would lose the region's first object.
fn usable(contexts: &[AllocContextModel]) -> Vec<Context> {
    let counts = |c: &&AllocContextModel| c.limit > c.pointer || (c.limit == c.pointer && c.owner == "thread");
    let mut out: Vec<Context> = contexts.iter().filter(counts).map(|c| Context { pointer: c.pointer, limit: c.limit }).collect();
    out.sort_by_key(|c| (c.pointer, std::cmp::Reverse(c.limit)));
    out.dedup_by_key(|c| c.pointer);
    out
}
