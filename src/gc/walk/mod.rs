//! The heap walk: visits the objects of each segment in address order.
//!
//! Source: `docs/internals/gc-structures.md#walking`. Measured on 131 dumps: outside the plan phase of a collection, every
//! walk that skips allocation contexts and objects in allocation ends exactly at the end of the segment.

mod pieces;
mod segment;
mod types;
pub(in crate::gc) mod words;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

pub use crate::clr::gcdesc::{GcDesc, Series, ValueSeries};
pub use pieces::Piece;
pub use segment::MAX_GAPS;
pub(crate) use segment::object_alignment;
pub use types::{ObjectType, ObjectTypes, TypeIndex};

use super::Gc;
use crate::base::{Addr, AddrRange, Answer, IndexVec, Indices, Progress, Silent, index_type, total};
use crate::clr::method_table::MethodTables;
use crate::clr::objects::Objects;
use crate::clr::threads::Thread;
use crate::contract::{ContractError, Descriptor};
use crate::memory::Memory;
use crate::model::{AllocContextModel, ContextOwner, GapKind, Generation, SegmentModel, WalkModel};
use segment::Context;
use types::Cache;

index_type! {
    /// A segment of the heap, in the order of [`Walker::segments`].
    pub struct SegmentIndex;
}

/// An object visited by the walk.
#[derive(Clone, Copy)]
pub struct Object<'o> {
    /// Address of the object.
    pub address: Addr,
    /// Type of the object.
    pub ty: &'o ObjectType,
    /// Size in bytes as counted by SOS and ClrMD: header included, not rounded up.
    pub size: u64,
    /// Generation of the object; in an ephemeral segment, that of the enclosing part.
    pub generation: Generation,
    /// Captured bytes from the start of the object. They may extend past the object, or end within it if it is not completely in the dump.
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
    /// Calls `visit` with the offset and target of every non-null reference of the object.
    pub fn references(&self, mut visit: impl FnMut(u64, Addr)) {
        if u64::try_from(self.bytes.len()).is_ok_and(|have| have < self.size) {
            return self.ty.gc_desc.references(self.memory, self.address, self.size, visit);
        }
        self.ty.gc_desc.places(self.size, self.memory.ptr_bytes(), |offset| {
            if let Some(target) = self.word(offset).filter(|t| *t != 0) {
                visit(offset, Addr(target));
            }
        });
    }

    /// The word at `offset`; `None` if it is not in the dump.
    #[inline]
    pub fn word(&self, offset: u64) -> Option<u64> {
        let from = usize::try_from(offset).ok()?;
        match self.bytes.get(from..) {
            Some(rest) if rest.len() >= 8 => words::word(self.memory.shape(), rest),
            _ => self.memory.word(self.address.plus(offset)).ok(),
        }
    }

    /// Number of elements of an array, characters of a string or bytes of free space; `None` for other objects.
    pub fn length(&self) -> Option<u64> {
        let component = self.ty.component_size;
        if component == 0 {
            return None;
        }
        // `size` cannot be used: it may have been raised to the minimum object size.
        let at = self.ty.length_at;
        let inside = usize::try_from(at).ok().and_then(|at| self.bytes.get(at..)).and_then(|b| words::u32(self.memory.shape(), b));
        inside.or_else(|| self.memory.u32(self.address.plus(at)).ok()).map(u64::from)
    }

    /// `length` bytes at `offset`; `None` unless all are in the dump.
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

/// Receives the objects of a walk. The heap is divided into pieces, and each piece is passed to one of several visitors.
pub trait Visitor: Send {
    /// Called at the start of a piece: a segment, or a part of a large one. Returns whether to walk it, which must depend only on
    /// the segment.
    fn piece(&mut self, _piece: &Piece<'_>) -> bool {
        true
    }

    /// Called for each object, including free space.
    fn object(&mut self, object: &Object<'_>);

    /// Called after the walk if the piece of this visitor begins where the piece of `before` ends. The visitor can then compare the objects
    /// on both sides. The calls for one segment are in address order.
    fn follow(&mut self, _before: &mut Self) {}
}

/// Both visitors see a piece that either of them wants to walk.
impl<A: Visitor, B: Visitor> Visitor for (A, B) {
    fn piece(&mut self, piece: &Piece<'_>) -> bool {
        let (a, b) = (self.0.piece(piece), self.1.piece(piece));
        a || b
    }

    #[inline]
    fn object(&mut self, object: &Object<'_>) {
        self.0.object(object);
        self.1.object(object);
    }

    fn follow(&mut self, before: &mut Self) {
        self.0.follow(&mut before.0);
        self.1.follow(&mut before.1);
    }
}

/// Walks the heap of one runtime.
pub struct Walker {
    memory: Arc<Memory>,
    tables: MethodTables,
    types: ObjectTypes,
    segments: IndexVec<SegmentIndex, SegmentModel>,
    /// Segment indices in address order.
    by_address: Vec<SegmentIndex>,
    /// Indices of the segments not walked, with the reason.
    refused: BTreeMap<SegmentIndex, &'static str>,
    contexts: Vec<Context>,
    /// Number of threads that may be allocating an object; `None` if some threads are unknown.
    allocators: Option<usize>,
    objects: Objects,
    /// Whether a collection was moving objects.
    moving: bool,
    /// Whether some memory of objects is not in the dump.
    holes: bool,
    cutting: pieces::Cutting,
}

impl std::fmt::Debug for Walker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Walker").field("segments", &self.segments.len()).finish_non_exhaustive()
    }
}

/// The result of a walk.
#[derive(Debug)]
pub struct Walked<V> {
    /// Result of each walked segment, in order, with the segment index.
    pub segments: Vec<(SegmentIndex, WalkModel)>,
    /// A visitor per thread, and one per piece of a large segment. The distribution of objects among them varies between runs;
    /// their union does not.
    pub visitors: Vec<V>,
}

impl Walker {
    /// Prepares a walk of the heap of `gc`; `threads` supplies the allocation contexts. `all_threads` is whether these are all threads.
    ///
    /// # Errors
    /// [`ContractError`] if the descriptor does not have the items needed to size objects.
    pub fn new(gc: &Gc, threads: &[Thread], all_threads: bool) -> Result<Answer<Walker>, ContractError> {
        let Answer { data: segments, mut notes } = gc.segments();
        let d = gc.descriptor.scope();
        let free = gc.carved().and_then(|carved| carved.free);
        let walker = Walker::over(&gc.memory, &d, segments, free)?;
        let contexts = match gc.carved() {
            Some(carved) => carved.gaps().iter().filter_map(|gap| walker.gap(*gap)).collect(),
            None => usable(&gc.contexts(threads).data),
        };
        let allocators = (all_threads && !threads.is_empty()).then(|| threads.iter().filter(|t| t.cooperative != Some(false)).count());
        let walker = Walker { contexts, allocators, objects: gc.objects.clone()?, moving: gc.facts.moves_objects(), ..walker };
        notes.extend(&d.losses());
        Ok(Answer::new(walker, notes))
    }

    /// A walk of `segments` without allocation contexts. `free` is the method table of free blocks, used if the descriptor does not give
    /// it.
    ///
    /// # Errors
    /// [`ContractError`] if the descriptor does not have the items needed to size objects.
    pub(super) fn over(
        memory: &Arc<Memory>,
        d: &Descriptor,
        segments: Vec<SegmentModel>,
        free: Option<Addr>,
    ) -> Result<Walker, ContractError> {
        let segments: IndexVec<SegmentIndex, SegmentModel> = segments.into();
        let (by_address, refused) = order(&segments, memory);
        let mut tables = MethodTables::bind(memory, d)?;
        tables.free = tables.free.or(free);
        Ok(Walker {
            memory: Arc::clone(memory),
            tables,
            holes: segments.iter().any(|s| {
                let objects = AddrRange::new(s.start, s.allocated);
                memory.captured(objects) < objects.len()
            }),
            types: ObjectTypes::new(segments.as_slice(), memory),
            segments,
            by_address,
            refused,
            contexts: Vec::new(),
            allocators: None,
            objects: Objects::bind(memory, d)?,
            moving: false,
            cutting: pieces::Cutting::USUAL,
        })
    }

    /// The segments, ordered by heap and generation.
    pub fn segments(&self) -> &[SegmentModel] {
        self.segments.as_slice()
    }

    /// The segment at `index`.
    pub fn segment(&self, index: SegmentIndex) -> Option<&SegmentModel> {
        self.segments.get(index)
    }

    /// The indices of the segments.
    pub fn segment_indices(&self) -> Indices<SegmentIndex> {
        self.segments.indices()
    }

    /// The segments with their indices.
    pub fn segments_enumerated(&self) -> impl Iterator<Item = (SegmentIndex, &SegmentModel)> {
        self.segments.iter_enumerated()
    }

    /// Drops the segments rejected by `keep`.
    pub fn retain(&mut self, keep: impl Fn(&SegmentModel) -> bool) {
        self.segments.retain(keep);
        (self.by_address, self.refused) = order(&self.segments, &self.memory);
    }

    /// Returns how many of the ranges that `walks` took for objects in allocation are too many: a thread allocates one object at a time.
    pub(super) fn excess_allocations(&self, walks: &[(SegmentIndex, WalkModel)]) -> usize {
        let gaps = walks.iter().flat_map(|(_, walk)| &walk.gaps).filter(|gap| gap.kind == GapKind::InAllocation).count();
        self.allocators.map_or(0, |most| gaps.saturating_sub(most))
    }

    /// Whether `address` lies in an allocation context or in the unformatted space after it.
    pub fn in_context(&self, address: Addr) -> bool {
        let room = self.smallest();
        self.contexts.iter().any(|c| c.pointer <= address && address < c.limit.plus(room))
    }

    /// An allocation context that makes the walk skip `range`, which has no objects. The walk resumes a minimum-size object after the limit
    /// of a context.
    fn gap(&self, range: AddrRange) -> Option<Context> {
        Some(Context { pointer: range.start, limit: range.end.minus(self.smallest())? })
    }

    /// Minimum bytes of an object.
    pub(crate) fn smallest(&self) -> u64 {
        self.tables.smallest()
    }

    /// The types encountered so far.
    pub fn types(&self) -> &ObjectTypes {
        &self.types
    }

    /// The method table reader.
    pub fn tables(&self) -> &MethodTables {
        &self.tables
    }

    /// The memory of the dump.
    pub fn memory(&self) -> &Arc<Memory> {
        &self.memory
    }

    /// Recreates an object found by an earlier walk.
    pub fn again<'o>(&'o self, address: Addr, ty: &'o ObjectType, size: u64, generation: Generation) -> Object<'o> {
        Object { address, ty, size, generation, bytes: self.memory.contiguous(address).unwrap_or_default(), memory: &self.memory }
    }

    /// Method table of the object at `address`, mark bits cleared. `None` if the object is not in the dump.
    pub fn method_table(&self, address: Addr) -> Option<Addr> {
        self.memory.word(address).ok().map(|word| self.objects.table_in(word))
    }

    /// The type with the method table at `mt`; `None` if it is not the method table of an instantiable type.
    pub fn type_at(&self, mt: Addr) -> Option<Arc<ObjectType>> {
        self.types.get(&self.memory, &self.tables, mt)
    }

    /// Walks the segments in parallel.
    pub fn walk<V: Visitor>(&self, progress: &dyn Progress, visitor: impl Fn() -> V + Sync) -> Walked<V> {
        self.walk_pieces(progress, false, visitor)
    }

    /// Like [`Walker::walk`], for single-pass callers: pages already walked are released, which bounds resident memory and
    /// keeps process exit fast.
    pub fn walk_once<V: Visitor>(&self, progress: &dyn Progress, visitor: impl Fn() -> V + Sync) -> Walked<V> {
        self.walk_pieces(progress, true, visitor)
    }

    /// Walks the segments selected by `wanted` sequentially until `visit` breaks, for callers that need heap order. Returns
    /// the result of each segment reached, with the segment index.
    pub fn visit(
        &self,
        progress: &dyn Progress,
        wanted: impl Fn(SegmentIndex, &SegmentModel) -> bool,
        mut visit: impl FnMut(&Object<'_>) -> ControlFlow<()>,
    ) -> Vec<(SegmentIndex, WalkModel)> {
        let picked: Vec<(SegmentIndex, &SegmentModel)> = self.segments.iter_enumerated().filter(|(i, s)| wanted(*i, s)).collect();
        progress.start("walking the heap", Some(total(picked.iter().map(|(_, s)| s.allocated_bytes))));
        let meter = segment::Meter::new(progress, false);
        let mut cache = Cache::new(&self.types, &self.memory, &self.tables);
        let mut out = Vec::new();
        let mut stop = false;
        for (i, segment) in picked {
            let model = self.refused(i, segment).unwrap_or_else(|| {
                let all = AddrRange::new(segment.start, segment.allocated);
                let walked = self.walk_segment(segment, all, &mut cache, &meter, |o| {
                    let flow = visit(o);
                    stop |= flow.is_break();
                    flow
                });
                walked.model
            });
            out.push((i, model));
            if stop {
                break;
            }
        }
        progress.finish();
        out
    }

    /// Walks a segment until `visit` breaks, from the object start `from` or from its own start. Used by iterators to resume.
    /// `None` if the index is out of range.
    pub fn visit_from(
        &self,
        index: SegmentIndex,
        from: Option<Addr>,
        visit: impl FnMut(&Object<'_>) -> ControlFlow<()>,
    ) -> Option<WalkModel> {
        let segment = self.segments.get(index)?;
        Some(self.refused(index, segment).unwrap_or_else(|| {
            let mut cache = Cache::new(&self.types, &self.memory, &self.tables);
            let meter = segment::Meter::new(&Silent, false);
            let rest = AddrRange::new(from.unwrap_or(segment.start), segment.allocated);
            self.walk_segment(segment, rest, &mut cache, &meter, visit).model
        }))
    }

    /// The result for a segment that is not walked.
    fn refused(&self, index: SegmentIndex, segment: &SegmentModel) -> Option<WalkModel> {
        let why = *self.refused.get(&index)?;
        Some(WalkModel {
            segment: segment.address,
            absent_bytes: segment.allocated.since(segment.start).unwrap_or(0),
            stopped_at: Some(segment.start),
            stopped_because: Some(why.into()),
            ..WalkModel::default()
        })
    }

    /// Index and segment whose object range contains `address`.
    pub fn segment_of(&self, address: Addr) -> Option<(SegmentIndex, &SegmentModel)> {
        let start = |i: &SegmentIndex| self.segments.get(*i).map(|s| s.start);
        let last = self.by_address.partition_point(|i| start(i) <= Some(address)).checked_sub(1)?;
        let index = *self.by_address.get(last)?;
        self.segments.get(index).filter(|s| address < s.allocated).map(|s| (index, s))
    }

    /// Generation of the object at `address`; in an ephemeral segment, that of the enclosing part.
    pub fn generation_of(&self, address: Addr) -> Option<Generation> {
        self.segment_of(address).map(|(_, s)| segment::generation_at(s, address).0)
    }
}

/// Segment indices in address order, and the segments to skip. In a forged dump, thousands of segments may map the same memory or the same
/// file bytes, which would be walked once per segment.
fn order(segments: &IndexVec<SegmentIndex, SegmentModel>, memory: &Memory) -> (Vec<SegmentIndex>, BTreeMap<SegmentIndex, &'static str>) {
    let mut by_address: Vec<SegmentIndex> = segments.iter_enumerated().map(|(i, _)| i).collect();
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

/// Contexts that hide memory, sorted by address. A *thread* context with pointer = limit is included: it is still followed by unformatted
/// space (confirmed with a thread that filled its context exactly). A *generation* context with pointer = limit is left out: during a
/// collection both are the start of the region, whose first object would be skipped.
fn usable(contexts: &[AllocContextModel]) -> Vec<Context> {
    let counts =
        |c: &&AllocContextModel| !c.pointer.is_null() && (c.limit > c.pointer || (c.limit == c.pointer && c.owner == ContextOwner::Thread));
    let mut out: Vec<Context> = contexts.iter().filter(counts).map(|c| Context { pointer: c.pointer, limit: c.limit }).collect();
    out.sort_by_key(|c| (c.pointer, std::cmp::Reverse(c.limit)));
    out.dedup_by_key(|c| c.pointer);
    out
}
