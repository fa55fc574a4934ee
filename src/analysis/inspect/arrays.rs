//! Arrays and boxes.

use super::sweep::Array;
use super::{Findings, Inspector};
use crate::base::hash::Set;
use crate::base::{Addr, thousands};
use crate::model::InspectionRow;

impl Inspector<'_> {
    pub(super) fn equal_arrays(&self) -> Findings<'_> {
        let several = self.swept.same.iter().filter(|(_, same)| same.count > 1);
        let row = |(key, same): (&super::sweep::ContentKey, &super::sweep::Same)| InspectionRow {
            object: Some(same.first),
            type_name: None,
            count: same.count,
            bytes: same.size.saturating_mul(same.count.saturating_sub(1)),
            detail: Some(format!("{} elements each", thousands(key.length))),
            held_here: None,
        };
        Findings::of(several.map(row).collect())
    }

    fn array(&self, array: &Array, bytes: u64, detail: String) -> InspectionRow {
        InspectionRow { object: Some(array.object), type_name: None, count: 1, bytes, detail: Some(detail), held_here: None }
    }

    pub(super) fn zero_arrays(&self) -> Findings<'_> {
        let row = |a: &Array| self.array(a, a.size, format!("{} elements", thousands(a.length)));
        Findings::of(self.swept.zeros.iter().map(row).collect())
    }

    pub(super) fn zero_tails(&self) -> Findings<'_> {
        let row = |a: &Array| self.array(a, a.part, format!("{} elements", thousands(a.length)));
        Findings::of(self.swept.tails.iter().map(row).collect())
    }

    pub(super) fn sparse_arrays(&self) -> Findings<'_> {
        let word = self.library.types().pointer_bytes();
        let of_collections: Set<Addr> = if self.swept.sparse.is_empty() { Set::default() } else { self.backing_arrays() };
        let row = |a: &Array| {
            let unset = a.length.saturating_sub(a.part);
            self.array(a, unset.saturating_mul(word), format!("{} of {} references set", thousands(a.part), thousands(a.length)))
        };
        Findings::of(self.swept.sparse.iter().filter(|a| !of_collections.contains(&a.object)).map(row).collect())
    }

    pub(super) fn boxed_values(&self) -> Findings<'_> {
        let row = |(count, bytes, first): &(u64, u64, Addr)| InspectionRow {
            object: Some(*first),
            type_name: None,
            count: *count,
            bytes: *bytes,
            detail: None,
            held_here: None,
        };
        Findings::of(self.swept.boxes.values().map(row).collect())
    }
}
