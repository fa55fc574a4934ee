//! The card table: which ranges of older generations may hold references to younger ones.
//!
//! Source: `gcpriv.h`, `gc.cpp`; `docs/internals/gc-structures.md#cards`. One bit covers 256 bytes on 64-bit targets and 128 on 32-bit
//! ones, 32 bits to a word. The pointer is biased: it is the address that the word for address 0 would have. No descriptor gives the card
//! size. It is confirmed by a check: the table must start right after the bookkeeping header.

use super::Gc;
use super::fields::card_table_info;
use crate::base::{Addr, AddrRange, NoteKind, Notes};
use crate::data::{CardTableInfo, GCHeap, globals};
use crate::memory::{Memory, Window};
use crate::model::SegmentModel;

/// Bits per word of the table.
const WORD_BITS: u64 = 32;
/// Bytes per word of the table.
const WORD_BYTES: u64 = 4;

/// Maximum size in bytes of the header of the bookkeeping memory (`card_table_info` in gcpriv.h; 64 on 64-bit targets).
pub(super) const LARGEST_HEADER: u64 = 128;

/// The card tables of all heaps.
#[derive(Clone, Debug)]
pub struct Cards {
    /// Heap index and biased table address.
    tables: Vec<(u64, Addr)>,
    /// Bytes covered by one card.
    card: u64,
}

impl Cards {
    /// Bytes covered by one card.
    pub fn card_bytes(&self) -> u64 {
        self.card
    }

    /// Location of the card for `address`: the address of its word and the bit within it.
    pub fn place(&self, heap: u64, address: Addr) -> Option<(Addr, u32)> {
        let table = self.tables.iter().find(|(h, _)| *h == heap)?.1;
        let card = address.0 / self.card.max(1);
        Some((table.element(card / WORD_BITS, WORD_BYTES), u32::try_from(card % WORD_BITS).ok()?))
    }

    /// Whether the card for `address` is set; `None` if it is not in the dump.
    #[inline]
    pub fn is_set(&self, window: &mut Window<'_>, heap: u64, address: Addr) -> Option<bool> {
        let (word, bit) = self.place(heap, address)?;
        Some(window.u32(word)? >> bit & 1 != 0)
    }

    /// Records that the cards of the objects in `segment` are read.
    pub(crate) fn touch(&self, memory: &Memory, segment: &SegmentModel) {
        let word = |address| self.place(segment.heap, address).map(|(word, _)| word);
        if let Some((first, last)) = word(segment.start).zip(word(segment.allocated)) {
            memory.touch(AddrRange::new(first, last.plus(WORD_BYTES)));
        }
    }
}

impl Gc {
    /// Notes about the parts of card tables that the descriptor describes in an unusable form.
    pub fn card_losses(&self) -> Notes {
        let d = self.descriptor.scope();
        // Read only for the losses: `cards` reads these again.
        let _ = (card_table_info(&d), globals::CardTableInfoSize.of(&d), globals::BookkeepingStart.of(&d));
        let mut notes = d.losses();
        if let Some(e) = self.places.unusable(GCHeap::CardTable) {
            notes.add(NoteKind::Invalid, None, e.to_string());
        }
        notes
    }

    /// The card tables.
    ///
    /// # Errors
    /// The reason they cannot be read.
    pub fn cards(&self) -> Result<Cards, &'static str> {
        let card = self.memory.ptr_bytes().saturating_mul(32);
        if !self.places.has(GCHeap::CardTable) {
            return Err("the descriptor does not give the address of the card table");
        }
        let mut tables = Vec::new();
        for heap in &self.facts.heaps {
            let table = self.heap_field(*heap, GCHeap::CardTable).filter(|a| !a.is_null());
            tables.push((heap.index, table.ok_or("the address of the card table is not in the dump")?));
        }
        let begin = self.bookkeeping_header()?;
        let lowest = self.facts.lowest.ok_or("the lowest address of the heap is not in the dump")?;
        let cards = Cards { tables, card };
        // Every heap's table covers the same range.
        let mut first = cards.tables.iter().map(|(heap, _)| cards.place(*heap, lowest).map(|(word, _)| word));
        let word = first.next().flatten();
        if word.is_none_or(|word| !begin.contains(word)) || first.any(|other| other != word) {
            return Err("the card table does not start where the bookkeeping memory says");
        }
        Ok(cards)
    }

    /// The range after the header of the bookkeeping memory, in which the card table begins; .NET 11 gives only the size of the published
    /// header fields. Fails if the table has grown since the last collection. The old table is then also in use, so that neither has all
    /// cards.
    fn bookkeeping_header(&self) -> Result<AddrRange, &'static str> {
        let info = card_table_info(&self.descriptor).map_err(|_| "the descriptor does not describe the bookkeeping memory")?;
        let header =
            globals::CardTableInfoSize.of(&self.descriptor).map_err(|_| "the descriptor does not describe the bookkeeping memory")?;
        let variable = globals::BookkeepingStart.of(&self.descriptor).ok().filter(|a| !a.is_null());
        let start = variable.and_then(|at| self.memory.ptr(at).ok()).filter(|a| !a.is_null());
        let absent = "the GC bookkeeping memory is not in the dump";
        let start = start.ok_or(absent)?;
        match info.read(&self.memory, start, CardTableInfo::NextCardTable) {
            Err(_) => Err(absent),
            Ok(next) if next.is_null() => Ok(AddrRange::new(start.plus(header), start.plus(header).plus(LARGEST_HEADER))),
            Ok(_) => Err("the card table has grown since the last collection; an older one is still in use"),
        }
    }
}
