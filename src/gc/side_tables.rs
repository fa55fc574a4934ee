//! Card tables and mark arrays: the part of the heap that each of their words covers.
//!
//! Source: `gcpriv.h`; `docs/internals/gc-structures.md#cards` and `#mark-array`. A word has 32 bits. A bit of the card table covers 32
//! pointers, a bit of the mark array covers two. Both pointers are biased: they point to the place that the word for address 0 would have.

use super::Gc;
use crate::base::{Addr, AddrRange};
use crate::data::{Field, GCHeap};

/// Bits per word of a table.
const WORD_BITS: u64 = 32;
/// Bytes per word of a table.
const WORD_BYTES: u64 = 4;

/// A table outside the heap with bits for its addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SideTable {
    /// The card table: parts of older generations that may hold references to younger ones.
    Cards,
    /// The mark array: objects that a background collection has marked.
    Marks,
}

/// A place in a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SideTablePlace {
    /// The table.
    pub table: SideTable,
    /// The table's words for the whole reserved range of the heap.
    pub range: AddrRange,
    /// Addresses that the word covers; `None` for the biased pointer itself, which need not lie in the table.
    pub covers: Option<AddrRange>,
}

impl Gc {
    /// The card table or mark array that contains `address`, or whose biased pointer is `address`.
    pub fn side_table(&self, address: Addr) -> Option<SideTablePlace> {
        let pointer = self.memory.ptr_bytes();
        let (lowest, highest) = (self.facts.lowest?, self.facts.highest?);
        let tables = [(SideTable::Cards, GCHeap::CardTable, 32), (SideTable::Marks, GCHeap::MarkArray, 2)];
        let find = |(table, field, pointers): (SideTable, Field<GCHeap, Addr>, u64)| {
            let per_word = pointer.saturating_mul(pointers).saturating_mul(WORD_BITS).max(1);
            self.facts.heaps.iter().find_map(|heap| {
                let biased = self.heap_field(*heap, field).filter(|a| !a.is_null())?;
                let word = |index: u64| biased.element(index, WORD_BYTES);
                let range = AddrRange::new(word(lowest.0 / per_word), word(highest.0.div_ceil(per_word)));
                if !range.contains(address) {
                    return (address == biased).then_some(SideTablePlace { table, range, covers: None });
                }
                let start = Addr(address.since(biased)? / WORD_BYTES).0.checked_mul(per_word)?;
                let covers = AddrRange::new(Addr(start), Addr(start).plus(per_word));
                Some(SideTablePlace { table, range, covers: Some(covers) })
            })
        };
        tables.into_iter().find_map(find)
    }
}
