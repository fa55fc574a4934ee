//! What the walk knows of types: how large their objects are and where these hold references. Found once per type.

use std::sync::{Arc, PoisonError, RwLock};

use rustc_hash::FxHashMap;

use super::gcdesc::GcDesc;
use crate::base::ranges::union;
use crate::base::{Addr, AddrRange};
use crate::clr::method_table::MethodTables;
use crate::memory::Memory;
use crate::model::SegmentModel;

/// A type as the walk knows it.
#[derive(Clone, Debug)]
pub struct ObjectType {
    /// Index of the type in the order in which the walk met them: dense, for tables, and different from run to run.
    pub index: u32,
    /// Its method table.
    pub method_table: Addr,
    /// Bytes of an object without its elements, header word included, not rounded.
    pub base_size: u64,
    /// Bytes of an element; 0 for objects of fixed size.
    pub component_size: u64,
    /// Whether this is free space.
    pub is_free: bool,
    /// Whether this is `System.String`.
    pub is_string: bool,
    /// Whether this is an array.
    pub is_array: bool,
    /// Whether the type can be unloaded: its objects keep its loader allocator alive.
    pub is_collectible: bool,
    /// Whether the type has a finalizer.
    pub has_finalizer: bool,
    /// Where its objects hold references.
    pub gc_desc: GcDesc,
}

/// The types that were met so far. Shared between threads.
#[derive(Debug, Default)]
pub struct ObjectTypes {
    known: RwLock<Known>,
    /// The memory of objects, sorted, without overlaps: no method table lies there.
    heap: Vec<AddrRange>,
}

#[derive(Debug, Default)]
struct Known {
    by_address: FxHashMap<u64, Option<Arc<ObjectType>>>,
    list: Vec<Arc<ObjectType>>,
}

/// Addresses that are remembered to be no method table: beyond this, damage is looked at again and again instead.
const MAX_MISSES: usize = 1 << 20;

impl ObjectTypes {
    /// Types of a heap with these segments. Among objects that refer to each other in cycles, one can pass for a method
    /// table; segments whose bounds make no sense cannot tell.
    pub(super) fn new(segments: &[SegmentModel]) -> ObjectTypes {
        let sound = |s: &&SegmentModel| s.start <= s.allocated && s.allocated <= s.committed && s.committed <= s.reserved;
        let heap = union(segments.iter().filter(sound).map(|s| AddrRange::new(s.start, s.allocated)).collect(), 0);
        ObjectTypes { known: RwLock::default(), heap }
    }

    fn in_heap(&self, address: Addr) -> bool {
        let before = self.heap.partition_point(|r| r.start <= address).checked_sub(1);
        before.and_then(|i| self.heap.get(i)).is_some_and(|r| r.contains(address))
    }

    /// The types that were met, by their indices.
    pub fn list(&self) -> Vec<Arc<ObjectType>> {
        self.known.read().unwrap_or_else(PoisonError::into_inner).list.clone()
    }

    /// The type whose method table is at `mt`; `None` where there is none that could have objects.
    pub(super) fn get(&self, memory: &Memory, tables: &MethodTables, mt: Addr) -> Option<Arc<ObjectType>> {
        if let Some(known) = self.known.read().unwrap_or_else(PoisonError::into_inner).by_address.get(&mt.0) {
            return known.clone();
        }
        let made = if self.in_heap(mt) { None } else { make(memory, tables, mt) };
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(other) = known.by_address.get(&mt.0) {
            // Another thread was faster: its index counts.
            return other.clone();
        }
        let made = made.and_then(|t| {
            let index = u32::try_from(known.list.len()).ok()?;
            let t = Arc::new(ObjectType { index, ..t });
            known.list.push(Arc::clone(&t));
            Some(t)
        });
        if made.is_some() || known.by_address.len() < MAX_MISSES {
            known.by_address.insert(mt.0, made.clone());
        }
        made
    }
}

fn make(memory: &Memory, tables: &MethodTables, mt: Addr) -> Option<ObjectType> {
    if mt.is_null() {
        return None;
    }
    let info = tables.read(mt).ok()?;
    let base_size = u64::from(info.base_size);
    // The empty string is the smallest object: its base size is two bytes short of the smallest aligned one.
    let smallest = memory.ptr_bytes().saturating_mul(3);
    if base_size.saturating_add(8) < smallest || !(info.is_free || tables.is_valid(mt).unwrap_or(false)) {
        return None;
    }
    let gc_desc = if info.contains_pointers { GcDesc::read(memory, mt, base_size) } else { GcDesc::None };
    Some(ObjectType {
        index: 0,
        method_table: mt,
        base_size,
        component_size: u64::from(info.component_size),
        is_free: info.is_free,
        is_string: info.is_string,
        is_array: info.is_array,
        is_collectible: info.is_collectible,
        has_finalizer: info.has_finalizer,
        gc_desc,
    })
}

/// A small cache in front of [`ObjectTypes`], one per thread: the walk asks it for every object.
pub(super) struct Cache<'h> {
    types: &'h ObjectTypes,
    memory: &'h Memory,
    tables: &'h MethodTables,
    slots: Vec<Slot>,
}

/// A place of the cache. What sizes an object lies beside the method table: a second look elsewhere costs a tenth of the
/// whole walk.
#[derive(Clone, Debug, Default)]
pub(super) struct Slot {
    mt: u64,
    pub(super) base_size: u64,
    pub(super) component_size: u64,
    pub(super) ty: Option<Arc<ObjectType>>,
}

/// Slots of the cache: a heap has a few thousand types, of which some hundred make up most objects.
const SLOTS: usize = 1 << 12;

impl<'h> Cache<'h> {
    pub(super) fn new(types: &'h ObjectTypes, memory: &'h Memory, tables: &'h MethodTables) -> Cache<'h> {
        Cache { types, memory, tables, slots: vec![Slot::default(); SLOTS] }
    }

    /// The place of the type at `mt`; its `ty` is `None` where there is no type.
    #[inline(always)]
    pub(super) fn get(&mut self, mt: u64) -> Option<&Slot> {
        // Method tables are aligned to 8 bytes and lie a few hundred bytes apart.
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
        let ty = self.types.get(self.memory, self.tables, Addr(mt));
        let (base_size, component_size) = ty.as_ref().map_or((0, 0), |t| (t.base_size, t.component_size));
        if let Some(slot) = self.slots.get_mut(i) {
            *slot = Slot { mt, base_size, component_size, ty };
        }
    }
}
