//! SGen's variables in the writable memory of Mono, found by their contents.

use super::reader::{FIRST_BUCKET, FLAGS, Reader};
use super::roots::ROOT_TABLES;
use crate::base::{Addr, len64};
use crate::data::{SgenArrayList, SgenBlock, SgenFragment, SgenHashTable, SgenNursery};
use crate::memory::Image;

/// Possible sizes of a nursery in bytes.
const NURSERY: std::ops::RangeInclusive<u64> = 1 << 16..=1 << 32;
/// Number of kinds of handles. Each kind has a separate list.
pub(super) const HANDLE_LISTS: u64 = 5;

/// The addresses of the variables.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Variables {
    pub(super) nursery: Option<Addr>,
    /// The list of the blocks of the major heap.
    pub(super) blocks: Option<Addr>,
    /// The header of the first large object.
    pub(super) large: Option<Addr>,
    /// The first of the lists of handles.
    pub(super) handles: Option<Addr>,
    /// The first of the tables of registered roots.
    pub(super) roots: Option<Addr>,
}

impl Variables {
    pub(super) fn find(reader: &mut Reader<'_>, image: &Image) -> Variables {
        let (mut out, memory, word) = (Variables::default(), reader.memory, reader.memory.ptr_bytes());
        let mut longest = 0;
        for range in &image.writable {
            for (start, bytes) in memory.stretches(*range) {
                let first = start.0.checked_next_multiple_of(word).map_or(start, Addr);
                let words = len64(bytes.len()).checked_div(word).unwrap_or(0);
                for at in (0..words).map(|i| first.element(i, word)) {
                    if !reader.budget.steps(1) {
                        return out;
                    }
                    if out.nursery.is_none() && reader.is_nursery(at) {
                        out.nursery = Some(at);
                    }
                    if out.handles.is_none() && reader.are_handles(at) {
                        out.handles = Some(at);
                    }
                    if out.blocks.is_none() && reader.are_blocks(at) {
                        out.blocks = Some(at);
                    }
                    if out.roots.is_none() && reader.are_roots(at) {
                        out.roots = Some(at);
                    }
                    let to = memory.ptr(at).unwrap_or(Addr::NULL);
                    if !to.is_null() && to.is_aligned(word) && memory.has(to) {
                        let objects = reader.large_objects(to).len();
                        if objects > longest {
                            longest = objects;
                            out.large = Some(to);
                        }
                    }
                }
            }
        }
        out
    }
}

impl Reader<'_> {
    /// Whether the variables of the nursery are at `at`. The size must be a power of two to which the start is aligned, and the first
    /// fragment must be within the nursery.
    fn is_nursery(&self, at: Addr) -> bool {
        let field = |field| self.nursery.get(self.memory, at, field);
        let size = self.nursery.get(self.memory, at, SgenNursery::size).unwrap_or(0);
        let (Some(start), Some(end)) = (field(SgenNursery::start), field(SgenNursery::end)) else { return false };
        if !NURSERY.contains(&size) || !size.is_power_of_two() || end.since(start) != Some(size) || !start.is_aligned(size) {
            return false;
        }
        let first = field(SgenNursery::fragments).map(|at| Addr(at.0 & !FLAGS)).unwrap_or(Addr::NULL);
        let of = |field| self.fragment.get(self.memory, first, field).unwrap_or(Addr::NULL);
        first.is_null() || (start <= of(SgenFragment::start) && of(SgenFragment::end) <= end)
    }

    /// The number of used slots of the array list at `at`; `None` if the capacity is not plausible.
    fn list_at(&self, at: Addr) -> Option<u32> {
        let capacity = u64::from(self.list.get(self.memory, at, SgenArrayList::capacity)?);
        let next = self.list.get(self.memory, at, SgenArrayList::next_slot)?;
        // The buckets have 32, 64, 128 … slots.
        let whole = capacity == 0 || (capacity / FIRST_BUCKET + 1).is_power_of_two() && capacity.is_multiple_of(FIRST_BUCKET);
        (whole && u64::from(next) <= capacity).then_some(next)
    }

    /// Whether the lists of handles begin at `at`. Each list must have the number of its kind, and one of them must have handles.
    fn are_handles(&self, at: Addr) -> bool {
        let mut used = 0u32;
        for kind in 0..HANDLE_LISTS {
            let list = at.element(kind, self.list_bytes);
            if self.list.get(self.memory, list, SgenArrayList::handle_type).map(u64::from) != Some(kind) {
                return false;
            }
            let Some(next) = self.list_at(list) else { return false };
            used = used.saturating_add(next);
        }
        used > 0
    }

    /// Whether the tables of roots begin at `at`. They are hash tables with the same hash function and entries of the expected size.
    fn are_roots(&self, at: Addr) -> bool {
        let (memory, hash) = (self.memory, &self.hash);
        let function = hash.get(memory, at, SgenHashTable::hash).unwrap_or(Addr::NULL);
        let mut slots = 0u64;
        for kind in 0..ROOT_TABLES {
            let table = at.element(kind, self.hash_bytes);
            let is_one = hash.get(memory, table, SgenHashTable::data_size) == Some(self.root_bytes)
                && !function.is_null()
                && hash.get(memory, table, SgenHashTable::hash) == Some(function);
            if !is_one {
                return false;
            }
            slots = slots.saturating_add(hash.get(memory, table, SgenHashTable::Slots).unwrap_or(0).into());
        }
        slots > 0
    }

    /// Whether the list of the blocks of the major heap is at `at`.
    fn are_blocks(&self, at: Addr) -> bool {
        if self.list_at(at).is_none_or(|n| n == 0) {
            return false;
        }
        let first = self.list.place(at, SgenArrayList::entries).and_then(|at| self.memory.ptr(at).ok()).filter(|at| !at.is_null());
        let Some(block) = first.and_then(|at| self.memory.ptr(at).ok()).map(|at| Addr(at.0 & !FLAGS)) else { return false };
        let size = self.block.get(self.memory, block, SgenBlock::obj_size).map(u64::from);
        !block.is_null()
            && block.is_aligned(self.block_bytes)
            && size.is_some_and(|n| n >= self.tables.smallest() && n.is_multiple_of(8) && n <= self.block_bytes / 2)
    }
}
