//! The common parts of the readers of SGen's structures: layouts, sizes of objects, lists.

use std::sync::Arc;

use crate::base::hash::{Map, Set};
use crate::base::{Addr, Budget};
use crate::clr::method_table::MethodTables;
use crate::clr::objects::Objects;
use crate::contract::{ContractError, Descriptor};
use crate::data::{Bound, SgenArrayList, SgenBlock, SgenFragment, SgenHashTable, SgenLargeObject, SgenNursery, SgenRoot, Structure, bind};
use crate::gc::walk::{ObjectType, ObjectTypes};
use crate::memory::Memory;

/// Slots in the first bucket of an array list. Each further bucket has twice as many as the previous one.
pub(super) const FIRST_BUCKET: u64 = 32;
/// Maximum number of buckets of an array list.
pub(super) const BUCKETS: u64 = 32;
/// Low bits of addresses in lists. They are flags.
pub(super) const FLAGS: u64 = 7;

/// Reads SGen's structures and the sizes of objects.
pub(super) struct Reader<'m> {
    pub(super) memory: &'m Memory,
    pub(super) tables: MethodTables,
    pub(super) objects: Objects,
    pub(super) types: ObjectTypes,
    pub(super) known: Map<u64, Option<Arc<ObjectType>>>,
    pub(super) budget: Budget,
    pub(super) nursery: Bound<SgenNursery>,
    pub(super) fragment: Bound<SgenFragment>,
    pub(super) list: Bound<SgenArrayList>,
    pub(super) list_bytes: u64,
    pub(super) block: Bound<SgenBlock>,
    pub(super) large: Bound<SgenLargeObject>,
    pub(super) large_header: u64,
    pub(super) hash: Bound<SgenHashTable>,
    pub(super) hash_bytes: u64,
    pub(super) root: Bound<SgenRoot>,
    pub(super) root_bytes: u64,
    pub(super) block_bytes: u64,
    pub(super) smallest_large: u64,
}

impl<'m> Reader<'m> {
    pub(super) fn bind(memory: &'m Arc<Memory>, d: &Descriptor) -> Result<Reader<'m>, ContractError> {
        Ok(Reader {
            memory,
            tables: MethodTables::bind(memory, d)?,
            objects: Objects::bind(memory, d)?,
            types: ObjectTypes::new(&[], memory),
            known: Map::default(),
            budget: Budget::of_types(memory.dump_bytes(), None),
            nursery: SgenNursery::bind_all(d)?,
            fragment: SgenFragment::bind_all(d)?,
            list: SgenArrayList::bind_all(d)?,
            list_bytes: SgenArrayList::size(d)?,
            block: bind!(d, SgenBlock { obj_size, mark_words })?,
            large: SgenLargeObject::bind_all(d)?,
            large_header: SgenLargeObject::size(d)?,
            hash: SgenHashTable::bind_all(d)?,
            hash_bytes: SgenHashTable::size(d)?,
            root: SgenRoot::bind_all(d)?,
            root_bytes: d.number("SgenRootBytes")?,
            block_bytes: d.number("SgenBlockBytes")?,
            smallest_large: d.number("SgenSmallestLargeObject")?,
        })
    }

    /// The type of an object with the first word `word`.
    pub(super) fn type_in(&mut self, word: u64) -> Option<Arc<ObjectType>> {
        let mt = self.objects.table_in(word);
        if let Some(known) = self.known.get(&mt.0) {
            return known.clone();
        }
        let found = self.types.get(self.memory, &self.tables, mt);
        if found.is_some() || self.budget.memory(64) {
            self.known.insert(mt.0, found.clone());
        }
        found
    }

    /// Size of the object at `at`, rounded up; `None` if the memory is not an object.
    pub(super) fn size(&mut self, at: Addr) -> Option<u64> {
        let word = self.memory.word(at).ok()?;
        let ty = self.type_in(word)?;
        let size = ty.size(|length| self.memory.u32(at.plus(length)).ok())?;
        size.max(self.tables.smallest()).checked_next_multiple_of(self.memory.ptr_bytes())
    }

    /// The words of an array list with their indices. A word is an address with flags.
    pub(super) fn items(&self, list: Addr) -> Vec<(u64, u64)> {
        let (memory, word) = (self.memory, self.memory.ptr_bytes());
        let (Some(entries), Some(count)) =
            (self.list.place(list, SgenArrayList::entries), self.list.get(memory, list, SgenArrayList::next_slot))
        else {
            return Vec::new();
        };
        let (mut out, mut from, count) = (Vec::new(), 0u64, u64::from(count));
        for bucket in 0..BUCKETS {
            let slots = FIRST_BUCKET.checked_shl(u32::try_from(bucket).unwrap_or(0)).unwrap_or(0);
            if from >= count {
                break;
            }
            if let Ok(start) = memory.ptr(entries.element(bucket, word)) {
                for i in 0..slots.min(count.saturating_sub(from)) {
                    let Ok(value) = memory.word(start.element(i, word)) else { break };
                    if !self.budget.steps(1) || !self.budget.memory(16) {
                        return out;
                    }
                    out.push((from.saturating_add(i), value));
                }
            }
            from = from.saturating_add(slots);
        }
        out
    }

    /// The large objects and their sizes in the linked list that begins with the header at `first`. Empty if the list is not a list of
    /// large objects.
    pub(super) fn large_objects(&mut self, first: Addr) -> Vec<(Addr, u64)> {
        let (memory, word) = (self.memory, self.memory.ptr_bytes());
        let (mut out, mut at, mut seen) = (Vec::new(), first, Set::default());
        while !at.is_null() {
            let size = self.large.get(memory, at, SgenLargeObject::Bytes).unwrap_or(0) & !FLAGS;
            let object = at.plus(self.large_header);
            let is_one = at.is_aligned(word) && size > self.smallest_large && seen.insert(at) && self.budget.steps(1);
            let own = if is_one { self.size(object) } else { None };
            let (Some(own), true) = (own, self.budget.memory(32)) else { return Vec::new() };
            if own > size.saturating_add(word) {
                return Vec::new();
            }
            out.push((object, own));
            let Some(next) = self.large.get(memory, at, SgenLargeObject::next) else { break };
            at = next;
        }
        out
    }
}
