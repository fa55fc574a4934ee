//! The card table: which stretches of older generations may hold references to younger ones.
//!
//! Source: `gcpriv.h`, `gc.cpp`; `docs/internals/gc-structures.md#cards`. One bit stands for 256 bytes on 64-bit targets, for 128
//! on 32-bit ones, 32 bits to a word. The pointer is biased: it is where the word of address 0 would be. What a card
//! stands for is in no descriptor; that the table begins right behind the header of the bookkeeping memory proves it.

use super::Gc;
use super::layouts::CardTableInfoLayout;
use crate::base::Addr;
use crate::memory::Window;

/// Bits of a word of the table.
const WORD_BITS: u64 = 32;
/// Bytes of a word of the table.
const WORD_BYTES: u64 = 4;

/// The card tables of all heaps.
#[derive(Clone, Debug)]
pub struct Cards {
    /// By number of the heap.
    tables: Vec<(u64, Addr)>,
    /// Bytes that one card stands for.
    card: u64,
}

impl Cards {
    /// Bytes that one card stands for.
    pub fn card_bytes(&self) -> u64 {
        self.card
    }

    /// Where the card of `address` lies: its word, and the bit in it.
    pub fn place(&self, heap: u64, address: Addr) -> Option<(Addr, u32)> {
        let table = self.tables.iter().find(|(h, _)| *h == heap)?.1;
        let card = address.0 / self.card.max(1);
        Some((table.element(card / WORD_BITS, WORD_BYTES), u32::try_from(card % WORD_BITS).ok()?))
    }

    /// Whether the card of `address` is set; `None` where it is not in the dump.
    #[inline]
    pub fn is_set(&self, window: &mut Window<'_>, heap: u64, address: Addr) -> Option<bool> {
        let (word, bit) = self.place(heap, address)?;
        Some(window.u32(word)? >> bit & 1 != 0)
    }
}

impl Gc {
    /// The card tables.
    ///
    /// # Errors
    /// Why they cannot be read.
    pub fn cards(&self) -> Result<Cards, &'static str> {
        let card = self.memory.ptr_bytes().saturating_mul(32);
        let place = self.places.card_table.ok_or("the descriptor does not say where the card table is")?;
        let mut tables = Vec::new();
        for heap in &self.facts.heaps {
            let table = place.of(heap.address).and_then(|at| self.memory.ptr(at).ok()).filter(|a| !a.is_null());
            tables.push((heap.index, table.ok_or("the address of the card table is not in the dump")?));
        }
        let begin = self.first_card_word()?;
        let lowest = self.facts.lowest.ok_or("the lowest address of the heap is not in the dump")?;
        let cards = Cards { tables, card };
        // Every heap's table covers the same range.
        let expected = |heap: u64| cards.place(heap, lowest).map(|(word, _)| word);
        if cards.tables.iter().any(|(heap, _)| expected(*heap) != Some(begin)) {
            return Err("the card table does not begin where the bookkeeping memory says");
        }
        Ok(cards)
    }

    /// Where the only card table in use begins. After it has grown there is an older one until the next collection, and
    /// what is set in that one counts as well: then no card says anything alone.
    fn first_card_word(&self) -> Result<Addr, &'static str> {
        let layout = CardTableInfoLayout::bind(&self.descriptor).map_err(|_| "the descriptor does not describe the bookkeeping memory")?;
        let header = self.descriptor.number("CardTableInfoSize").map_err(|_| "the descriptor does not describe the bookkeeping memory")?;
        let variable = self.descriptor.pointer("BookkeepingStart").ok().filter(|a| !a.is_null());
        let start = variable.and_then(|at| self.memory.ptr(at).ok()).filter(|a| !a.is_null());
        let absent = "the bookkeeping memory of the garbage collector is not in the dump";
        let start = start.ok_or(absent)?;
        match self.memory.ptr(start.plus(layout.next)) {
            Err(_) => Err(absent),
            Ok(next) if next.is_null() => Ok(start.plus(header)),
            Ok(_) => Err("the card table has grown since the last collection, and there is an older one beside it"),
        }
    }
}
