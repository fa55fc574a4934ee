//! Collections that hold little or nothing.

use super::{Findings, Inspector};
use crate::base::hash::{Map, Set};
use crate::base::{Addr, Count, NoteKind, thousands};
use crate::model::InspectionRow;

/// Room from which a collection may be called oversized.
const ROOM: u64 = 100;

/// A collection with the number of its elements.
#[derive(Clone, Copy)]
pub(super) struct Counted {
    object: Addr,
    /// Its own bytes.
    size: u64,
    count: u64,
    capacity: Option<u64>,
}

impl Inspector<'_> {
    /// The collections with their count and capacity. Those that this runtime keeps differently are noted, once for each field.
    fn counted(&self) -> &[Counted] {
        self.counted.get_or_init(|| self.count())
    }

    fn count(&self) -> Vec<Counted> {
        let mut missing = Set::default();
        let mut read = |(object, size): &(Addr, u64)| match self.collections.read(*object, 0) {
            Ok(contents) => contents.map(|c| Counted { object: *object, size: *size, count: c.count, capacity: c.capacity }),
            Err(e) => {
                if missing.insert(e.to_string()) {
                    self.notes.add(NoteKind::Missing, None, format!("collections: {e}"));
                }
                None
            }
        };
        self.swept.collections.iter().filter_map(&mut read).collect()
    }

    /// The arrays that collections refer to.
    pub(super) fn backing_arrays(&self) -> Set<Addr> {
        let mut out = Set::default();
        for (object, _) in &self.swept.collections {
            if let Some((ty, size)) = self.heap.walker().object(*object) {
                let generation = self.heap.generation_of(*object).unwrap_or(crate::model::Generation::Gen0);
                self.heap.walker().again(*object, &ty, size, generation).references(|_, target| {
                    out.insert(target);
                });
            }
        }
        out
    }

    pub(super) fn empty_collections(&self) -> Findings {
        let mut by_type: Map<Option<Addr>, (u64, u64, Addr)> = Map::default();
        for Counted { object, size, .. } in self.counted().iter().copied().filter(|c| c.count == 0) {
            let row = by_type.entry(self.library.method_table(object)).or_insert((0, 0, object));
            row.0.bump();
            row.1.grow(size);
            row.2 = row.2.min(object);
        }
        let row = |(mt, (count, bytes, first)): (Option<Addr>, (u64, u64, Addr))| InspectionRow {
            object: Some(first),
            type_name: mt.and_then(|mt| self.name(mt)),
            count,
            bytes,
            detail: None,
            held_here: None,
        };
        Findings::of(by_type.into_iter().map(row).collect())
    }

    pub(super) fn oversized_collections(&self) -> Findings {
        let word = self.library.types().pointer_bytes();
        let wide = |Counted { object, count, capacity, .. }: Counted| {
            let room = capacity.filter(|room| *room >= ROOM && count > 0 && count.saturating_mul(4) < *room)?;
            Some(InspectionRow {
                object: Some(object),
                type_name: self.type_of(object),
                count: 1,
                // At least a word for each element: entries of dictionaries are larger.
                bytes: room.saturating_sub(count).saturating_mul(word),
                detail: Some(format!("{} of {} used", thousands(count), thousands(room))),
                held_here: None,
            })
        };
        Findings::of(self.counted().iter().copied().filter_map(wide).collect())
    }
}
