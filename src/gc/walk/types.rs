//! Types as the walk needs them: object sizes and reference layouts, read once per type.

use std::sync::{Arc, PoisonError, RwLock};

use crate::base::hash::Map;
use crate::base::missed::{Missed, watched};
use crate::base::ranges::union;
use crate::base::{Addr, AddrRange, Budget, Collector, Index, IndexVec, index_type};
use crate::clr::gcdesc::{GcDesc, Series};
use crate::clr::method_table::MethodTables;
use crate::memory::Memory;
use crate::model::SegmentModel;

index_type! {
    /// A type encountered by walks.
    pub struct TypeIndex;
}

/// A type as seen by the walk.
#[derive(Clone, Debug)]
pub struct ObjectType {
    /// Dense index, from 0 in order of first encounter; differs between runs.
    pub index: TypeIndex,
    /// Address of the method table.
    pub method_table: Addr,
    /// Base size in bytes: header included, elements excluded, not rounded.
    pub base_size: u64,
    /// Component size in bytes; 0 for fixed-size objects.
    pub component_size: u64,
    /// Offset of the length in objects of variable size.
    pub(crate) length_at: u64,
    /// Whether this is the free-space pseudo type.
    pub is_free: bool,
    /// Whether this is `System.String`.
    pub is_string: bool,
    /// Whether this is an array.
    pub is_array: bool,
    /// Whether the type is collectible: its objects keep its loader allocator alive.
    pub is_collectible: bool,
    /// GCDesc of its objects.
    pub gc_desc: GcDesc,
    /// The part of `gc_desc` for the first [`LOOKED_AT`] bytes, to check whether memory looks like an object of the type.
    pub(super) near: GcDesc,
    /// Reads that failed when the type was read.
    missed: Missed,
}

impl ObjectType {
    /// A type of which only the name is known, identified by `method_table`.
    pub fn named(index: TypeIndex, method_table: Addr) -> ObjectType {
        ObjectType {
            index,
            method_table,
            base_size: 0,
            component_size: 0,
            length_at: 0,
            is_free: false,
            is_string: false,
            is_array: false,
            is_collectible: false,
            gc_desc: GcDesc::default(),
            near: GcDesc::default(),
            missed: Missed::default(),
        }
    }

    /// Whether the references in objects of the type are unknown although no memory is missing: the GCDesc is damaged, or exceeded the
    /// budget.
    pub(crate) fn loses_references(&self) -> bool {
        matches!(self.gc_desc, GcDesc::Unknown) && self.missed.first().is_none()
    }

    /// The type with another index, for a separate list.
    pub(crate) fn at(&self, index: TypeIndex) -> ObjectType {
        ObjectType { index, ..self.clone() }
    }

    /// Calls `visit` with the places of references at the beginning of an object of `size` bytes.
    pub(in crate::gc) fn near_places(&self, size: u64, word: u64, visit: impl FnMut(u64)) {
        self.near.places_in(size, word, (0, size.min(LOOKED_AT)), visit);
    }

    /// Size in bytes of an object, not rounded, and not raised to the minimum size. For arrays, strings and free space, `length` reads the
    /// length at the given offset; the size is `None` if it returns `None`.
    pub fn size(&self, length: impl FnOnce(u64) -> Option<u32>) -> Option<u64> {
        if self.component_size == 0 {
            return Some(self.base_size);
        }
        u64::from(length(self.length_at)?).checked_mul(self.component_size)?.checked_add(self.base_size)
    }
}

/// The types encountered so far. Shared between threads.
#[derive(Debug)]
pub struct ObjectTypes {
    known: RwLock<TypeCache>,
    /// Budget for the series of all types: in a forged dump, many types may share the same words.
    budget: Budget,
    /// Object memory, sorted and disjoint, which does not contain method tables.
    heap: Vec<AddrRange>,
}

#[derive(Debug, Default)]
struct TypeCache {
    by_address: Map<u64, Option<Arc<ObjectType>>>,
    list: IndexVec<TypeIndex, Arc<ObjectType>>,
}

/// Number of bytes at the start of an object whose references are checked before a resync accepts it.
pub(super) const LOOKED_AT: u64 = 256;

/// Limit on cached negative results; beyond it, invalid addresses are checked again each time.
const MAX_MISSES: usize = 1 << 20;

impl ObjectTypes {
    /// Creates the cache for a heap with these segments. Objects in a reference cycle can look like method tables, so addresses in
    /// `segments` are excluded. Segments with bounds out of order are ignored.
    pub(in crate::gc) fn new(segments: &[SegmentModel], memory: &Memory) -> ObjectTypes {
        let sound = |s: &&SegmentModel| s.start <= s.allocated && s.allocated <= s.committed && s.committed <= s.reserved;
        let heap = union(segments.iter().filter(sound).map(|s| AddrRange::new(s.start, s.allocated)).collect(), 0);
        ObjectTypes { known: RwLock::default(), budget: Budget::of_types(memory.dump_bytes(), None), heap }
    }

    /// Whether the budget allows `series` more series.
    fn afford(&self, series: u64) -> bool {
        let bytes = u64::try_from(size_of::<Series>()).unwrap_or(u64::MAX);
        self.budget.steps(series) && self.budget.memory(series.saturating_mul(bytes))
    }

    /// Adds a note if types were refused because they exceeded the budget.
    pub(crate) fn note(&self, notes: &Collector) {
        self.budget.note("reading types", notes);
    }

    fn in_heap(&self, address: Addr) -> bool {
        let before = self.heap.partition_point(|r| r.start <= address).checked_sub(1);
        before.and_then(|i| self.heap.get(i)).is_some_and(|r| r.contains(address))
    }

    /// The types encountered, by index.
    pub fn list(&self) -> IndexVec<TypeIndex, Arc<ObjectType>> {
        self.known.read().unwrap_or_else(PoisonError::into_inner).list.clone()
    }

    /// The type with the method table at `mt`; `None` if it is not the method table of an instantiable type.
    pub(in crate::gc) fn get(&self, memory: &Memory, tables: &MethodTables, mt: Addr) -> Option<Arc<ObjectType>> {
        if let Some(known) = self.known.read().unwrap_or_else(PoisonError::into_inner).by_address.get(&mt.0) {
            return known.clone();
        }
        let (made, missed) = watched(|| if self.in_heap(mt) { None } else { make(memory, tables, mt, |series| self.afford(series)) });
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(other) = known.by_address.get(&mt.0) {
            // Another thread won the race: keep its index.
            return other.clone();
        }
        let made = made.and_then(|t| {
            let index = TypeIndex::new(known.list.len())?;
            let t = Arc::new(ObjectType { index, missed, ..t });
            known.list.push(Arc::clone(&t));
            Some(t)
        });
        if made.is_some() || known.by_address.len() < MAX_MISSES {
            known.by_address.insert(mt.0, made.clone());
        }
        made
    }
}

fn make(memory: &Memory, tables: &MethodTables, mt: Addr, afford: impl FnOnce(u64) -> bool) -> Option<ObjectType> {
    if mt.is_null() {
        return None;
    }
    let info = tables.read(mt).ok()?;
    let base_size = u64::from(info.base_size);
    // The empty string is the smallest object: its base size is two bytes below the minimum aligned size.
    let smallest = tables.smallest();
    if base_size.saturating_add(8) < smallest || !(info.is_free || tables.is_valid(mt).unwrap_or(false)) {
        return None;
    }
    tables.check_base_size(&info);
    let gc_desc = tables.gc_desc(&info, afford);
    Some(ObjectType {
        index: TypeIndex::default(),
        method_table: mt,
        base_size,
        component_size: u64::from(info.component_size),
        length_at: tables.length_at(&info),
        is_free: info.is_free,
        is_string: info.is_string,
        is_array: info.is_array,
        is_collectible: info.is_collectible,
        near: gc_desc.near(LOOKED_AT, memory.ptr_bytes()),
        gc_desc,
        missed: Missed::default(),
    })
}

/// Per-thread cache in front of [`ObjectTypes`], queried for every object.
pub(super) struct Cache<'h> {
    types: &'h ObjectTypes,
    memory: &'h Memory,
    tables: &'h MethodTables,
    slots: Vec<Slot>,
}

/// A cache slot. Keeps the sizes next to the method table: an extra indirection costs a tenth of the walk.
#[derive(Clone, Debug, Default)]
pub(super) struct Slot {
    mt: u64,
    pub(super) base_size: u64,
    pub(super) component_size: u64,
    pub(super) length_at: usize,
    pub(super) ty: Option<Arc<ObjectType>>,
}

/// Cache slots: a heap has a few thousand types, of which a few hundred account for most objects.
const SLOTS: usize = 1 << 12;

impl<'h> Cache<'h> {
    pub(super) fn new(types: &'h ObjectTypes, memory: &'h Memory, tables: &'h MethodTables) -> Cache<'h> {
        Cache { types, memory, tables, slots: vec![Slot::default(); SLOTS] }
    }

    /// The slot of the type at `mt`; its `ty` is `None` if there is no such type.
    #[inline(always)]
    pub(super) fn get(&mut self, mt: u64) -> Option<&Slot> {
        // Method tables are 8-byte aligned and a few hundred bytes apart.
        let mixed = (mt >> 3) ^ (mt >> 13);
        let mask = SLOTS - 1;
        let i = usize::try_from(mixed).unwrap_or(0) & mask;
        if self.slots.get(i)?.mt != mt {
            self.fill(i, mt);
        }
        self.slots.get(i)
    }

    #[cold]
    #[inline(never)]
    fn fill(&mut self, i: usize, mt: u64) {
        // Failed reads of a word that is not a method table are not reported: the word becomes part of a gap, which is reported.
        let ty = self.types.get(self.memory, self.tables, Addr(mt));
        if let Some(ty) = &ty {
            ty.missed.tell();
        }
        let (base_size, component_size) = ty.as_ref().map_or((0, 0), |t| (t.base_size, t.component_size));
        if let Some(slot) = self.slots.get_mut(i) {
            let length_at = ty.as_ref().and_then(|t| usize::try_from(t.length_at).ok()).unwrap_or(0);
            *slot = Slot { mt, base_size, component_size, length_at, ty };
        }
    }
}
