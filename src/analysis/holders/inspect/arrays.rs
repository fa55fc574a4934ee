//! Arrays and boxes.

use super::sweep::Array;
use super::{Findings, Inspector, row};
use crate::analysis::InspectionRow;
use crate::base::hash::Set;
use crate::base::{Addr, thousands};

impl Inspector<'_> {
    pub(super) fn equal_arrays(&self) -> Findings<'_> {
        let several = self.swept.same.iter().filter(|(_, same)| same.count > 1);
        let same = |(key, same): (&super::sweep::ContentKey, &super::sweep::Same)| InspectionRow {
            detail: Some(format!("{} elements each", thousands(key.length))),
            ..row(same.first, same.count, same.size.saturating_mul(same.count.saturating_sub(1)))
        };
        Findings::of(several.map(same).collect())
    }

    fn array(&self, array: &Array, bytes: u64, detail: String) -> InspectionRow {
        InspectionRow { detail: Some(detail), ..row(array.object, 1, bytes) }
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
        let boxes = self.swept.boxes.values();
        Findings::of(boxes.map(|(count, bytes, first)| row(*first, *count, *bytes)).collect())
    }
}
