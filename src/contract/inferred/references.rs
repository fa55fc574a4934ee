//! Which words of objects are references: those that lead to objects in all objects of a type that were examined.

use super::places::{Marks, Places};
use super::rules::{Rule, Rules};
use crate::base::hash::Map;
use crate::base::{Addr, len64};
use crate::contract::inferred_types::References;

/// Objects of a type that are examined.
const SAMPLE: u32 = 64;
/// Bytes of an object, or elements of an array, that are examined.
const EXAMINED: u64 = 4096;
const EXAMINED_ELEMENTS: u64 = 64;

/// The values of a word in the objects that were examined.
#[derive(Clone, Copy, Default)]
struct Slot {
    leads_to_object: bool,
    is_other: bool,
}

#[derive(Default)]
struct Slots {
    examined: u32,
    slots: Vec<Slot>,
}

/// The references in the objects at `starts`, by method table. What leads to one of these or to a place that was `seen` is one.
pub(super) fn all(places: &Places<'_>, starts: &Marks, seen: &Marks, rules: &Rules) -> Map<Addr, References> {
    let mut found: Map<Addr, Slots> = Map::default();
    for at in places.each(starts) {
        let Some(mt) = places.word_at(at).map(|word| places.table(word)) else { continue };
        let Some(rule) = rules.get(mt).filter(|rule| rule.component.is_multiple_of(places.word)) else { continue };
        let slots = found.entry(mt).or_default();
        if slots.examined < SAMPLE && places.step(1) {
            slots.examined = slots.examined.saturating_add(1);
            slots.examine(places, (starts, seen), at, rule);
        }
    }
    found.into_iter().map(|(mt, slots)| (mt, slots.references(places.word, rules.get(mt)))).collect()
}

impl Slots {
    fn examine(&mut self, places: &Places<'_>, (starts, seen): (&Marks, &Marks), at: Addr, rule: Rule) {
        let word = places.word;
        // The base size covers the header word.
        let (first, size, count) = match rule.component {
            0 => (at, rule.base.saturating_sub(word).min(EXAMINED), 1),
            size => {
                let length = places.length(at).map_or(0, u64::from);
                (at.plus(rule.base.saturating_sub(word)), size, length.min(EXAMINED_ELEMENTS))
            }
        };
        let words = size.checked_div(word).unwrap_or(0);
        let needed = usize::try_from(words).unwrap_or(0);
        if self.slots.len() < needed && places.afford(words.saturating_mul(2)) {
            self.slots.resize(needed, Slot::default());
        }
        for element in 0..count {
            let element = first.element(element, size);
            for (i, slot) in (0..words).zip(&mut self.slots) {
                let Some(value) = places.word_at(element.element(i, word)).filter(|value| *value != 0) else { continue };
                let to = Addr(value);
                if places.has(starts, to) || places.has(seen, to) {
                    slot.leads_to_object = true;
                } else if !places.is_lost(to) || !to.is_aligned(word) {
                    slot.is_other = true;
                }
            }
        }
    }

    fn references(&self, word: u64, rule: Option<Rule>) -> References {
        let mut runs: Vec<(u64, u64)> = Vec::new();
        // The first word of an object is its method table.
        let skipped = if rule.is_some_and(|rule| rule.component == 0) { 1 } else { 0 };
        for (i, slot) in self.slots.iter().enumerate().skip(skipped) {
            if !slot.leads_to_object || slot.is_other {
                continue;
            }
            let at = len64(i).saturating_mul(word);
            match runs.last_mut() {
                Some((start, n)) if start.saturating_add(n.saturating_mul(word)) == at => *n = n.saturating_add(1),
                _ => runs.push((at, 1)),
            }
        }
        References { runs }
    }
}
