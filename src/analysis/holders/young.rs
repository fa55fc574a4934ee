//! `refs --young`: references from older objects to younger ones, and the state of their cards.
//!
//! A collection of the young generations looks for such references only in the ranges of set cards
//! (`docs/internals/gc-structures.md#cards`). A card stays set until a collection has found no such reference in its range.

use crate::analysis::YoungCards;
use crate::base::cancel::check_at;
use crate::base::{Addr, Budget, Collector, Count, Index, Missing, len64, plural};
use crate::gc::{Cards, ObjectId};
use crate::heapgraph::HeapGraph;
use crate::memory::Window;
use crate::model::{Generation, SegmentModel};
use crate::session::Heap;

/// Ages of all objects: 0 and 1 for the young generations, [`OLD`] for the others, [`UNKNOWN`] if the generation is not known.
pub(in crate::analysis) struct Ages(Vec<u8>);

const OLD: u8 = 2;
const UNKNOWN: u8 = u8::MAX;

const fn age(generation: Generation) -> u8 {
    match generation {
        Generation::Gen0 => 0,
        Generation::Gen1 => 1,
        Generation::Gen2 | Generation::Loh | Generation::Poh | Generation::Frozen => OLD,
        // The segment of a carved heap, or an ephemeral segment whose parts are not known.
        Generation::Unknown | Generation::Ephemeral => UNKNOWN,
    }
}

impl Ages {
    pub(in crate::analysis) fn of(heap: &Heap, graph: &HeapGraph) -> Ages {
        // Ids are in the order of addresses, so consecutive objects are mostly in the same segment.
        let mut segment: Option<(&SegmentModel, u8)> = None;
        let ages = graph.ids().map(|id| {
            check_at(id.as_u32());
            let address = graph.address(id);
            if let Some((last, age)) = segment
                && last.start <= address
                && address < last.allocated
            {
                return age;
            }
            let of_one_age = |s: &&SegmentModel| s.generation != Generation::Ephemeral;
            segment = heap.walker().segment_of(address).map(|(_, s)| s).filter(of_one_age).map(|s| (s, age(s.generation)));
            segment.map_or_else(|| heap.generation_of(address).map_or(UNKNOWN, age), |(_, age)| age)
        });
        Ages(ages.collect())
    }

    fn age(&self, id: ObjectId) -> u8 {
        self.0.get(id.index()).copied().unwrap_or(UNKNOWN)
    }

    /// Adds a note about objects whose generation is not known.
    pub(in crate::analysis) fn note(&self, notes: &Collector) {
        let unknown = len64(self.0.iter().filter(|age| **age == UNKNOWN).count());
        if unknown > 0 {
            let what = format!("the generation of {} is not known: references between them are not counted", plural(unknown, "object"));
            notes.add(Missing::Heap, None, what);
        }
    }

    /// Returns the objects of the young generations.
    pub(in crate::analysis) fn young<'a>(&'a self, graph: &'a HeapGraph) -> impl Iterator<Item = ObjectId> + 'a {
        graph.ids().filter(|id| self.age(*id) < OLD)
    }

    /// Whether a reference leads to a younger generation; false if the generation of either object is not known.
    pub(in crate::analysis) fn leads_to_younger(&self, from: ObjectId, to: ObjectId) -> bool {
        self.age(from) != UNKNOWN && self.age(from) > self.age(to)
    }
}

/// Looks up the cards of references.
pub(in crate::analysis) struct CardReader<'h> {
    cards: Cards,
    heap: &'h Heap,
    window: Window<'h>,
    absent: u64,
    /// Limits the number of cards that are looked up, because a forged segment may have any length.
    budget: Budget,
    pub(in crate::analysis) of: YoungCards,
}

impl<'h> CardReader<'h> {
    /// Creates a reader, or returns the reason why the cards cannot be read.
    pub(in crate::analysis) fn new(heap: &'h Heap) -> Result<CardReader<'h>, &'static str> {
        let cards = heap.gc().cards()?;
        let of = YoungCards { card_bytes: cards.card_bytes(), set: 0, set_bytes: 0, references_on_set: 0, references_on_clear: 0 };
        let window = Window::new(heap.memory());
        let budget = Budget::new(heap.memory().dump_bytes(), None);
        Ok(CardReader { cards, heap, window, absent: 0, budget, of })
    }

    /// Counts the card of a reference at `place`.
    pub(in crate::analysis) fn reference(&mut self, place: Addr) {
        let Some((_, segment)) = self.heap.walker().segment_of(place) else { return };
        match self.cards.is_set(&mut self.window, segment.heap, place) {
            Some(true) => self.of.references_on_set.bump(),
            Some(false) => self.of.references_on_clear.bump(),
            None => self.absent.bump(),
        }
    }

    /// Counts the set cards of older objects, and returns all counts.
    pub(in crate::analysis) fn finish(mut self, notes: &Collector) -> YoungCards {
        let step = self.cards.card_bytes().max(1);
        let is_old = |s: &&SegmentModel| !matches!(s.generation, Generation::Gen0 | Generation::Frozen);
        let mut segments: Vec<&SegmentModel> = self.heap.segment_models().iter().filter(is_old).collect();
        segments.sort_by_key(|s| s.start);
        let mut next = Addr::NULL;
        for segment in segments {
            // The first card may begin before the segment, in the last card of the preceding one.
            let first = Addr(segment.start.0.saturating_sub(segment.start.0.checked_rem(step).unwrap_or(0)));
            let mut at = first.max(next);
            let mut seen = 0u32;
            while at < segment.allocated && self.budget.steps(1) {
                seen = seen.wrapping_add(1);
                check_at(seen);
                let young = segment.generation == Generation::Ephemeral
                    && self.heap.generation_of(at.max(segment.start)).is_some_and(|g| age(g) == 0);
                match self.cards.is_set(&mut self.window, segment.heap, at) {
                    _ if young => {}
                    Some(set) => self.of.set.grow(u64::from(set)),
                    None => self.absent.bump(),
                }
                at = at.plus(step);
            }
            next = next.max(at);
        }
        self.of.set_bytes = self.of.set.saturating_mul(step);
        if self.absent > 0 {
            let text = format!("{} cards are not in the dump, so the numbers of cards are too small", self.absent);
            notes.add(Missing::Heap, None, text);
        }
        self.budget.note("counting the cards", notes);
        self.of
    }
}
