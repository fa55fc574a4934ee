//! Collections with few or no elements.

use super::sweep::Counted;
use super::{Findings, Inspector, row};
use crate::analysis::InspectionRow;
use crate::base::hash::{Map, Set};
use crate::base::{Addr, Count, Missing, thousands};
use crate::bcl::collections::Storage;

impl Inspector<'_> {
    /// The collections whose number of elements is known. Fields that this runtime does not have are noted.
    fn counted(&self) -> impl Iterator<Item = (&Counted, u64)> {
        for lacking in &self.swept.lacking {
            self.notes.add(Missing::Objects, None, format!("collections: {lacking}"));
        }
        self.swept.collections.iter().filter_map(|c| Some((c, c.count?)))
    }

    /// The arrays that collections refer to.
    pub(super) fn backing_arrays(&self) -> Set<Addr> {
        let mut out = Set::default();
        for Counted { object, .. } in &self.swept.collections {
            if let Some((ty, size)) = self.heap.walker().object(*object) {
                let generation = self.heap.generation_of(*object).unwrap_or(crate::model::Generation::Gen0);
                self.heap.walker().again(*object, &ty, size, generation).references(|_, target| {
                    out.insert(target);
                });
            }
        }
        out
    }

    /// The arrays of a collection. If other collections use the array as well, as streams may, only the first one has it.
    fn storage_of(&self, object: Addr, seen: &mut Set<Addr>) -> Storage {
        let own = self.swept.storage.get(&object).filter(|storage| storage.array.is_none_or(|array| seen.insert(array)));
        own.copied().unwrap_or_default()
    }

    pub(super) fn empty_collections(&self) -> Findings<'_> {
        let mut by_type: Map<Addr, (u64, u64, Addr)> = Map::default();
        let mut seen = Set::default();
        for (c, _) in self.counted().filter(|(c, _)| c.is_empty()) {
            let row = by_type.entry(c.method_table).or_insert((0, 0, c.object));
            row.0.bump();
            row.1.grow(c.size.saturating_add(self.storage_of(c.object, &mut seen).bytes));
            row.2 = row.2.min(c.object);
        }
        Findings::of(by_type.into_values().map(|(count, bytes, first)| row(first, count, bytes)).collect())
    }

    pub(super) fn oversized_collections(&self) -> Findings<'_> {
        let mut seen = Set::default();
        let mut rows = Vec::new();
        for (c, count) in self.counted().filter(|(c, _)| c.is_oversized()) {
            let room = c.capacity.unwrap_or(count);
            let bytes = unused(self.storage_of(c.object, &mut seen), count, room);
            let detail = Some(format!("{} of {} used", thousands(count), thousands(room)));
            rows.push(InspectionRow { detail, ..row(c.object, 1, bytes) });
        }
        Findings::of(rows)
    }
}

/// Bytes of the unused elements of a collection with `count` elements and room for `room`.
fn unused(storage: Storage, count: u64, room: u64) -> u64 {
    room.saturating_sub(count).saturating_mul(storage.element_bytes).min(storage.bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unused_elements_have_the_size_of_elements() {
        let storage = |length: u64, element_bytes| Storage { array: Some(Addr(8)), element_bytes, bytes: length * element_bytes + 24 };
        assert_eq!(unused(storage(1000, 1), 10, 1000), 990);
        assert_eq!(unused(storage(1000, 28), 10, 1000), 27_720);
        // Only the last chunk of a builder has room.
        assert_eq!(unused(storage(500, 2), 600, 1000), 800);
        // A damaged capacity is larger than the array.
        assert_eq!(unused(storage(10, 8), 10, u64::MAX), 104);
        assert_eq!(unused(Storage::default(), 10, 1000), 0);
    }
}
