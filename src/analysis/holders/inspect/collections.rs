//! Collections with few or no elements.

use super::sweep::Counted;
use super::{Findings, Inspector, row};
use crate::analysis::InspectionRow;
use crate::base::hash::{Map, Set};
use crate::base::{Addr, Count, Missing, thousands};

/// Smallest capacity of a collection that may be reported as oversized.
const ROOM: u64 = 100;

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

    pub(super) fn empty_collections(&self) -> Findings<'_> {
        let mut by_type: Map<Addr, (u64, u64, Addr)> = Map::default();
        for (c, _) in self.counted().filter(|(_, count)| *count == 0) {
            let row = by_type.entry(c.method_table).or_insert((0, 0, c.object));
            row.0.bump();
            row.1.grow(c.size);
            row.2 = row.2.min(c.object);
        }
        Findings::of(by_type.into_values().map(|(count, bytes, first)| row(first, count, bytes)).collect())
    }

    pub(super) fn oversized_collections(&self) -> Findings<'_> {
        let word = self.library.types().pointer_bytes();
        let wide = |(Counted { object, capacity, .. }, count): (&Counted, u64)| {
            let room = capacity.filter(|room| *room >= ROOM && count > 0 && count.saturating_mul(4) < *room)?;
            // Each unused element is counted as one word, although entries of dictionaries are larger.
            let bytes = room.saturating_sub(count).saturating_mul(word);
            let detail = Some(format!("{} of {} used", thousands(count), thousands(room)));
            Some(InspectionRow { detail, ..row(*object, 1, bytes) })
        };
        Findings::of(self.counted().filter_map(wide).collect())
    }
}
