//! The heap walk: from the first object of a segment to its end, object by object.
//!
//! Source: `docs/internals/gc-structures.md#walking`, measured on 131 dumps: outside of the plan phase of a
//! collection every walk ends exactly at the segment's end, once allocation contexts and objects in allocation are known.

mod gcdesc;
mod segment;
mod types;
mod words;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

pub use gcdesc::{GcDesc, Series, ValueSeries};
pub use types::{ObjectType, ObjectTypes};

use super::Gc;
use crate::base::{Addr, AddrRange, Answer, Progress, Silent};
use crate::clr::method_table::MethodTables;
use crate::clr::threads::Thread;
use crate::contract::ContractError;
use crate::memory::Memory;
use crate::model::{AllocContextModel, ContextOwner, Generation, SegmentModel, WalkModel};
use segment::Context;
use types::Cache;

/// An object as the walk meets it.
#[derive(Clone, Copy)]
pub struct Object<'o> {
    /// Where it lies.
    pub address: Addr,
    /// Its type.
    pub ty: &'o ObjectType,
    /// Its size in bytes as SOS and ClrMD count it: header word included, not rounded up.
    pub size: u64,
    /// Its generation; inside an ephemeral segment that of the part it lies in.
    pub generation: Generation,
    /// What was captured from the object's start on: the object and more, or less where the object is not whole.
    bytes: &'o [u8],
    memory: &'o Memory,
}

impl std::fmt::Debug for Object<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Object")
            .field("address", &self.address)
            .field("method_table", &self.ty.method_table)
            .field("size", &self.size)
            .finish_non_exhaustive()
    }
}

impl<'o> Object<'o> {
    /// Calls `visit` with the offset and the target of every reference that the object holds; null ones are left out.
    pub fn references(&self, mut visit: impl FnMut(u64, Addr)) {
        let word = self.memory.ptr_bytes();
        let place = |offset: u64| {
            if let Some(target) = self.word(offset).filter(|t| *t != 0) {
                visit(offset, Addr(target));
            }
        };
        if u64::try_from(self.bytes.len()).is_ok_and(|have| have >= self.size) {
            return self.ty.gc_desc.places(self.size, word, place);
        }
        self.ty.gc_desc.captured(self.memory, self.address, self.size, place);
    }

    /// The word at `offset`; `None` where it is not in the dump.
    #[inline]
    pub fn word(&self, offset: u64) -> Option<u64> {
        let from = usize::try_from(offset).ok()?;
        match self.bytes.get(from..) {
            Some(rest) if rest.len() >= 8 => words::word(self.memory.shape(), rest),
            _ => self.memory.word(self.address.plus(offset)).ok(),
        }
    }

    /// Number of elements of an array, of characters of a string, of bytes of free space; `None` for all others.
    pub fn length(&self) -> Option<u64> {
        let component = self.ty.component_size;
        if component == 0 {
            return None;
        }
        // The size may have been raised to the smallest object's.
        let word = self.memory.ptr_bytes();
        let inside = usize::try_from(word).ok().and_then(|w| self.bytes.get(w..)).and_then(|b| words::u32(self.memory.shape(), b));
        inside.or_else(|| self.memory.u32(self.address.plus(word)).ok()).map(u64::from)
    }

    /// `length` bytes at `offset`; `None` where they are not all in the dump.
    #[inline]
    pub fn part(&self, offset: u64, length: u64) -> Option<Cow<'o, [u8]>> {
        let from = usize::try_from(offset).ok()?;
        let to = from.checked_add(usize::try_from(length).ok()?)?;
        match self.bytes.get(from..to) {
            Some(part) => Some(Cow::Borrowed(part)),
            None => self.memory.bytes(self.address.plus(offset), length).ok(),
        }
    }
}

/// What is done with the objects of a walk. Each thread has one of its own.
pub trait Visitor: Send {
    /// A segment begins. Returns whether its objects are wanted.
    fn segment(&mut self, _index: usize, _segment: &SegmentModel) -> bool {
        true
    }

    /// An object, free space included.
    fn object(&mut self, object: &Object<'_>);
}

/// The heap of one runtime, ready to be walked.
pub struct Walker {
    memory: Arc<Memory>,
    tables: MethodTables,
    types: ObjectTypes,
    segments: Vec<SegmentModel>,
    /// Indices of the segments, by address.
    by_address: Vec<usize>,
    /// Segments that are not walked, by index, and why.
    refused: BTreeMap<usize, &'static str>,
    contexts: Vec<Context>,
    /// Bits of an object's first word that are not part of the method table pointer.
    unmask: u64,
    /// Whether a collection was moving objects.
    moving: bool,
    /// Whether the dump lacks memory that objects lie in.
    holes: bool,
}

impl std::fmt::Debug for Walker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Walker").field("segments", &self.segments.len()).finish_non_exhaustive()
    }
}

/// What a walk found out about the segments, and the visitors of its threads.
#[derive(Debug)]
pub struct Walked<V> {
    /// One for each segment of the heap that was walked, in their order, with the segment's index.
    pub segments: Vec<(usize, WalkModel)>,
    /// One for each thread: which objects each of them saw differs from run to run, all of them together do not.
    pub visitors: Vec<V>,
}

impl Walker {
    /// Prepares the walk of `gc`'s heap. `threads` gives the allocation contexts.
    ///
    /// # Errors
    /// [`ContractError`] where the descriptor lacks what sizes objects.
    pub fn new(gc: &Gc, threads: &[Thread]) -> Result<Answer<Walker>, ContractError> {
        let Answer { data: segments, notes } = gc.segments();
        let (by_address, refused) = order(&segments, &gc.memory);
        let walker = Walker {
            memory: Arc::clone(&gc.memory),
            tables: MethodTables::bind(&gc.memory, &gc.descriptor)?,
            holes: segments.iter().any(|s| {
                let objects = AddrRange::new(s.start, s.allocated);
                gc.memory.captured(objects) < objects.len()
            }),
            types: ObjectTypes::new(&segments),
            segments,
            by_address,
            refused,
            contexts: usable(&gc.contexts(threads)),
            unmask: gc.objects.as_ref().map_err(Clone::clone)?.unmask(),
            moving: gc.facts.structures_valid == Some(false),
        };
        Ok(Answer::new(walker, notes))
    }

    /// The segments, in the order of heaps and generations.
    pub fn segments(&self) -> &[SegmentModel] {
        &self.segments
    }

    /// Leaves out the segments that `keep` refuses: damaged ones, where there are no objects to be found.
    pub fn retain(&mut self, keep: impl Fn(&SegmentModel) -> bool) {
        self.segments.retain(keep);
        (self.by_address, self.refused) = order(&self.segments, &self.memory);
    }

    /// Whether `address` lies in an allocation context or in the unformatted room behind it.
    pub fn in_context(&self, address: Addr) -> bool {
        let room = self.memory.ptr_bytes().saturating_mul(3);
        self.contexts.iter().any(|c| c.pointer <= address && address < c.limit.plus(room))
    }

    /// The types that walks met so far.
    pub fn types(&self) -> &ObjectTypes {
        &self.types
    }

    /// The reader of method tables.
    pub fn tables(&self) -> &MethodTables {
        &self.tables
    }

    /// The memory that the heap lies in.
    pub fn memory(&self) -> &Arc<Memory> {
        &self.memory
    }

    /// An object that a walk met, to be looked at again.
    pub fn again<'o>(&'o self, address: Addr, ty: &'o ObjectType, size: u64, generation: Generation) -> Object<'o> {
        Object { address, ty, size, generation, bytes: self.memory.contiguous(address).unwrap_or_default(), memory: &self.memory }
    }

    /// The method table of the object at `address`, mark bits cleared. `None` where the object is not in the dump.
    pub fn method_table(&self, address: Addr) -> Option<Addr> {
        self.memory.word(address).ok().map(|word| Addr(word & !self.unmask))
    }

    /// The type whose method table is at `mt`; `None` where there is none that could have objects.
    pub fn type_at(&self, mt: Addr) -> Option<Arc<ObjectType>> {
        self.types.get(&self.memory, &self.tables, mt)
    }

    /// Walks the segments, several at a time, each thread with a visitor of its own.
    pub fn walk<V: Visitor>(&self, progress: &dyn Progress, visitor: impl Fn() -> V + Sync) -> Walked<V> {
        self.walk_parts(progress, false, visitor)
    }

    /// Like [`Walker::walk`], for who reads the heap once: the pages behind the walk leave this process at once, so that a
    /// dump of any size needs little resident memory, and the end of the process is not spent on them.
    pub fn walk_once<V: Visitor>(&self, progress: &dyn Progress, visitor: impl Fn() -> V + Sync) -> Walked<V> {
        self.walk_parts(progress, true, visitor)
    }

    fn walk_parts<V: Visitor>(&self, progress: &dyn Progress, once: bool, visitor: impl Fn() -> V + Sync) -> Walked<V> {
        let total = self.segments.iter().fold(0u64, |n, s| n.saturating_add(s.allocated_bytes));
        progress.start("walking the heap", Some(total));
        let next = AtomicUsize::new(0);
        let (done, visitors) = (Mutex::new(Vec::new()), Mutex::new(Vec::new()));
        let meter = segment::Meter::new(progress, once);
        rayon::scope(|scope| {
            for _ in 0..rayon::current_num_threads().min(self.segments.len()).max(1) {
                scope.spawn(|_| {
                    let mut visitor = visitor();
                    let mut cache = Cache::new(&self.types, &self.memory, &self.tables);
                    let mut mine = Vec::new();
                    loop {
                        let i = next.fetch_add(1, Ordering::Relaxed);
                        let Some(segment) = self.segments.get(i) else { break };
                        if visitor.segment(i, segment) {
                            let model = self.refused(i, segment).unwrap_or_else(|| {
                                self.walk_segment(segment, segment.start, &mut cache, &meter, |o| {
                                    visitor.object(o);
                                    ControlFlow::Continue(())
                                })
                            });
                            mine.push((i, model));
                        }
                    }
                    done.lock().unwrap_or_else(PoisonError::into_inner).extend(mine);
                    visitors.lock().unwrap_or_else(PoisonError::into_inner).push(visitor);
                });
            }
        });
        progress.finish();
        let mut segments = done.into_inner().unwrap_or_else(PoisonError::into_inner);
        segments.sort_by_key(|(i, _): &(usize, WalkModel)| *i);
        Walked { segments, visitors: visitors.into_inner().unwrap_or_else(PoisonError::into_inner) }
    }

    /// Walks the segments that `wanted` picks one after the other, until `visit` breaks off: for answers that need the
    /// order of the objects. Returns what the walk found out about each segment that it came to, with its number.
    pub fn visit(
        &self,
        progress: &dyn Progress,
        wanted: impl Fn(&SegmentModel) -> bool,
        mut visit: impl FnMut(&Object<'_>) -> ControlFlow<()>,
    ) -> Vec<(usize, WalkModel)> {
        let picked: Vec<(usize, &SegmentModel)> = self.segments.iter().enumerate().filter(|(_, s)| wanted(s)).collect();
        progress.start("walking the heap", Some(picked.iter().fold(0u64, |n, (_, s)| n.saturating_add(s.allocated_bytes))));
        let meter = segment::Meter::new(progress, false);
        let mut cache = Cache::new(&self.types, &self.memory, &self.tables);
        let mut out = Vec::new();
        let mut stop = false;
        for (i, segment) in picked {
            let model = self.refused(i, segment).unwrap_or_else(|| {
                self.walk_segment(segment, segment.start, &mut cache, &meter, |o| {
                    let flow = visit(o);
                    stop |= flow.is_break();
                    flow
                })
            });
            out.push((i, model));
            if stop {
                break;
            }
        }
        progress.finish();
        out
    }

    /// Walks the segment with this number from `from`, where an object begins, or from its start, until `visit` breaks off: for
    /// iterators, which continue later where they stopped. Returns what the walk found out; `None` for a number that no segment
    /// has.
    pub fn visit_from(&self, index: usize, from: Option<Addr>, visit: impl FnMut(&Object<'_>) -> ControlFlow<()>) -> Option<WalkModel> {
        let segment = self.segments.get(index)?;
        Some(self.refused(index, segment).unwrap_or_else(|| {
            let mut cache = Cache::new(&self.types, &self.memory, &self.tables);
            let meter = segment::Meter::new(&Silent, false);
            self.walk_segment(segment, from.unwrap_or(segment.start), &mut cache, &meter, visit)
        }))
    }

    /// What is said of a segment that is not walked.
    fn refused(&self, number: usize, segment: &SegmentModel) -> Option<WalkModel> {
        let why = *self.refused.get(&number)?;
        Some(WalkModel {
            segment: segment.address,
            absent_bytes: segment.allocated.since(segment.start).unwrap_or(0),
            stopped_at: Some(segment.start),
            stopped_because: Some(why.into()),
            ..WalkModel::default()
        })
    }

    /// The segment whose objects `address` lies between, with its number.
    pub fn segment_of(&self, address: Addr) -> Option<(usize, &SegmentModel)> {
        let start = |i: &usize| self.segments.get(*i).map(|s| s.start);
        let last = self.by_address.partition_point(|i| start(i) <= Some(address)).checked_sub(1)?;
        let index = *self.by_address.get(last)?;
        self.segments.get(index).filter(|s| address < s.allocated).map(|s| (index, s))
    }

    /// The generation that `address` lies in; inside an ephemeral segment that of the part.
    pub fn generation_of(&self, address: Addr) -> Option<Generation> {
        self.segment_of(address).map(|(_, s)| segment::generation_at(s, address).0)
    }
}

/// The numbers of `segments` by address, and which of them are not walked: a dump whose segments all claim the same memory, or
/// the same bytes of the file at different addresses, would take as many walks of it as there are segments.
fn order(segments: &[SegmentModel], memory: &Memory) -> (Vec<usize>, BTreeMap<usize, &'static str>) {
    let mut by_address: Vec<usize> = (0..segments.len()).collect();
    by_address.sort_by_key(|i| segments.get(*i).map(|s| s.start));
    let (mut refused, mut end, mut budget) = (BTreeMap::new(), Addr::NULL, memory.dump_bytes());
    for i in &by_address {
        let Some(s) = segments.get(*i).filter(|s| s.allocated > s.start) else { continue };
        let captured = memory.captured(AddrRange::new(s.start, s.allocated));
        if s.start < end {
            refused.insert(*i, "another segment claims the same memory");
        } else if captured > budget {
            refused.insert(*i, "the segments have more bytes than the dump");
        } else {
            budget = budget.saturating_sub(captured);
        }
        end = end.max(s.allocated);
    }
    (by_address, refused)
}

/// Contexts that hide memory, sorted. A *thread's* context with pointer = limit counts as well: the unformatted room
/// behind the limit is there (proven with a thread that filled its context exactly). A *generation's* does not: inside a
/// collection they are {mem, mem}, and skipping would lose the region's first object.
fn usable(contexts: &[AllocContextModel]) -> Vec<Context> {
    let counts = |c: &&AllocContextModel| c.limit > c.pointer || (c.limit == c.pointer && c.owner == ContextOwner::Thread);
    let mut out: Vec<Context> = contexts.iter().filter(counts).map(|c| Context { pointer: c.pointer, limit: c.limit }).collect();
    out.sort_by_key(|c| (c.pointer, std::cmp::Reverse(c.limit)));
    out.dedup_by_key(|c| c.pointer);
    out
}
