//! The rule for the sizes of a type: the one after which most often the next object follows.

use std::collections::BTreeMap;

use super::places::{Marks, Places};
use crate::base::hash::Map;
use crate::base::{Addr, Count};
use crate::contract::inferred_types::{InferredType, References};

/// Objects in a row that are taken for some.
const LONG: u64 = 16;

/// Objects of a type that are examined.
const SAMPLE: usize = 64;
/// Distances that may be the size of all objects of a type.
const DISTANCES: usize = 4;
/// Maximum size of the objects of types with one size, in words.
const LARGEST: u64 = 1 << 10;
/// Sizes of elements.
const ELEMENTS: [u32; 9] = [1, 2, 4, 8, 12, 16, 24, 32, 40];
/// Bytes of an array or a string at most.
const LARGEST_ARRAY: u64 = 1 << 31;
/// Bytes of memory for a type.
const TYPE_BYTES: u64 = 256;
/// Scores, in hundredths: an object follows; something follows that may be one; zeros follow, or the end of the memory.
const FOLLOWS: u64 = 100;
const MAY_FOLLOW: u64 = 85;
const EMPTY: u64 = 40;
/// If what follows is the next place that may be an object.
const NEXT: u64 = 10;
/// One of so many objects in a row must be a string, or one to which a word leads.
const KNOWN_PART: u64 = 8;
/// For text that ends in NUL and has none before.
const TEXT: u64 = 30;
/// Score of types without objects in a row.
const LEAST: u64 = 75;
/// Characters of a string that are examined.
const EXAMINED: u64 = 32;

/// Sizes of the objects of a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rule {
    pub(super) base: u64,
    /// 0 for objects of one size.
    pub(super) component: u64,
}

impl Rule {
    /// Where the object after that at `at` begins.
    fn end(self, places: &Places<'_>, at: Addr) -> Option<Addr> {
        let size = match self.component {
            0 => self.base,
            component => u64::from(places.length(at)?).checked_mul(component)?.checked_add(self.base)?,
        };
        (size <= LARGEST_ARRAY).then(|| size.checked_next_multiple_of(places.word).map(|size| at.plus(size)))?
    }
}

/// A rule for sizes, with the evidence for it.
#[derive(Clone, Copy, Debug)]
struct Chosen {
    rule: Rule,
    /// Objects in a row.
    objects: u64,
    /// In hundredths of an object that follows each of those examined.
    score: u64,
    /// Whether words lead to objects of the type.
    referenced: bool,
}

/// The result of a round.
pub(super) struct Found {
    /// Where objects in a row start.
    pub(super) starts: Marks,
    pub(super) rules: Rules,
}

impl Found {
    /// Whether an object starts at `at`, or may do so and leads to one.
    fn leads_on(&self, places: &Places<'_>, at: Addr) -> bool {
        let next = || self.rules.get(places.table(places.word_at(at)?))?.end(places, at);
        places.has(&self.starts, at) || next().is_some_and(|end| places.has(&self.starts, end))
    }
}

/// The rules of all types, by method table.
pub(super) struct Rules {
    rules: Map<Addr, Chosen>,
    string: Option<Addr>,
}

/// Objects of a type that are examined.
#[derive(Default)]
struct Sample {
    list: Vec<Addr>,
    /// Whether words lead to these. If there are any, others do not count.
    referenced: bool,
}

impl Sample {
    fn add(&mut self, at: Addr, referenced: bool) {
        if referenced && !self.referenced {
            self.list.clear();
            self.referenced = true;
        }
        if referenced == self.referenced && self.list.len() < SAMPLE {
            self.list.push(at);
        }
    }
}

impl Rules {
    /// Chooses the rules of the types with places among `seen`. `found` is what the round before has found.
    pub(super) fn choose(places: &Places<'_>, seen: &Marks, marked: &Marks, found: Option<&Found>) -> Option<Rules> {
        let mut samples: BTreeMap<Addr, Sample> = BTreeMap::new();
        for at in places.each(seen) {
            let Some(word) = places.word_at(at) else { continue };
            let mt = places.table(word);
            if !samples.contains_key(&mt) && !places.afford(TYPE_BYTES) {
                return None;
            }
            samples.entry(mt).or_default().add(at, places.has(marked, at));
        }
        let (mut rules, mut best) = (Map::default(), None);
        for (mt, Sample { list, referenced }) in samples {
            if let Some(known) = places.known(mt) {
                let rule = Rule { base: known.base.into(), component: known.component.into() };
                if rule == string_of(places.word) {
                    best = Some((u64::MAX, mt));
                }
                // Those that nothing proves must be in a row.
                let score = if known.is_unproven { 0 } else { FOLLOWS };
                rules.insert(mt, Chosen { rule, objects: 0, score, referenced });
                continue;
            }
            if !places.step(u64::try_from(list.len()).unwrap_or(u64::MAX)) {
                return None;
            }
            let Some((chosen, text)) = choose(places, (seen, marked), found, &list) else { continue };
            if text > best.map_or(0, |(most, _)| most) {
                best = Some((text, mt));
            }
            rules.insert(mt, Chosen { referenced, ..chosen });
        }
        // There is one type of strings.
        let string = best.map(|(_, mt)| mt);
        rules.retain(|mt, chosen: &mut Chosen| chosen.rule != string_of(places.word) || string == Some(*mt));
        Some(Rules { rules, string })
    }

    /// The method table of strings.
    pub(super) fn string(&self) -> Option<Addr> {
        self.string
    }

    pub(super) fn get(&self, mt: Addr) -> Option<Rule> {
        self.rules.get(&mt).map(|chosen| chosen.rule)
    }

    /// Marks the objects in rows, and counts them. Sets `seen` to what of `candidates` is not within one.
    pub(super) fn follow(mut self, places: &Places<'_>, (candidates, referenced): (&Marks, &Marks), seen: &mut Marks) -> Option<Found> {
        let mut starts = places.marks()?;
        let (mut covered, mut refused) = (Addr::NULL, Addr::NULL);
        for at in places.each(candidates) {
            let next = |at: Addr| {
                let mt = places.table(places.word_at(at)?);
                Some((mt, self.rules.get(&mt)?.rule.end(places, at)?))
            };
            if at < covered {
                // What lies within an object, but leads to the next one, may show that the object is smaller.
                let leads = || next(at).is_some_and(|(_, end)| end <= covered && (end == covered || places.has(&starts, end)));
                let may_be = places.has(&starts, at) || leads();
                places.set(seen, at, may_be);
                continue;
            }
            places.set(seen, at, true);
            let row = std::iter::successors(Some(at), |at| next(*at).map(|(_, end)| end).filter(|end| places.has(candidates, *end)));
            let most = usize::try_from(LONG).unwrap_or(usize::MAX);
            if at < refused || row.clone().take(most).count() < most {
                continue;
            }
            // Structures of native code in a row are not referred to where their method tables seem to be.
            let is_known = |at: &Addr| places.has(referenced, *at) || places.word_at(*at).map(|word| places.table(word)) == self.string;
            let (mut all, mut known) = (0u64, 0u64);
            for at in row.clone() {
                all.bump();
                known.grow(u64::from(is_known(&at)));
                refused = at.plus(places.word);
            }
            if known < all / KNOWN_PART {
                continue;
            }
            let mut types: Map<Addr, u64> = Map::default();
            for at in row {
                let Some((mt, end)) = next(at) else { break };
                places.set(&mut starts, at, true);
                types.entry(mt).or_default().bump();
                covered = end;
            }
            for (mt, n) in types {
                if let Some(chosen) = self.rules.get_mut(&mt) {
                    chosen.objects.grow(n);
                }
            }
        }
        Some(Found { starts, rules: self })
    }

    /// Number of the types whose method tables are lost and that have objects in rows, and of these objects.
    pub(super) fn in_rows(&self, places: &Places<'_>) -> (u64, u64) {
        let in_rows = |(mt, chosen): &(&Addr, &Chosen)| chosen.objects > 0 && Rules::is_lost(places, **mt);
        self.rules
            .iter()
            .filter(in_rows)
            .fold((0u64, 0u64), |(types, objects), (_, chosen)| (types.saturating_add(1), objects.saturating_add(chosen.objects)))
    }

    fn is_lost(places: &Places<'_>, mt: Addr) -> bool {
        places.known(mt).is_none_or(|known| known.is_unproven)
    }

    /// The types with enough evidence.
    pub(super) fn list(&self, places: &Places<'_>, mut references: Map<Addr, References>) -> BTreeMap<Addr, InferredType> {
        let is_sound = |chosen: &Chosen| chosen.objects > 0 || chosen.referenced && chosen.score >= LEAST;
        let sound = self.rules.iter().filter(|(mt, chosen)| Rules::is_lost(places, **mt) && is_sound(chosen));
        let of = |(mt, chosen): (&Addr, &Chosen)| {
            let Rule { base, component } = chosen.rule;
            let references = references.remove(mt).unwrap_or_default();
            let (base_size, component_size) = (u32::try_from(base).ok()?, u32::try_from(component).ok()?);
            Some((*mt, InferredType { base_size, component_size, references }))
        };
        sound.filter_map(of).collect()
    }
}

/// The rule of strings: header word, method table, length and the terminating NUL, and two bytes for each character.
fn string_of(word: u64) -> Rule {
    Rule { base: word.saturating_mul(2).saturating_add(6), component: 2 }
}

/// The best rule for the objects in `list`, with the number of those that are text if it is that of strings.
fn choose(places: &Places<'_>, (seen, referenced): (&Marks, &Marks), found: Option<&Found>, list: &[Addr]) -> Option<(Chosen, u64)> {
    let word = places.word;
    let nexts: Vec<Option<Addr>> = list.iter().map(|at| places.next(seen, *at, LARGEST)).collect();
    let mut distances: BTreeMap<u64, u64> = BTreeMap::new();
    for distance in list.iter().zip(&nexts).filter_map(|(at, next)| next.as_ref()?.since(*at)) {
        distances.entry(distance).or_default().bump();
    }
    let mut distances: Vec<(u64, u64)> = distances.into_iter().filter(|(d, _)| *d >= word.saturating_mul(3)).map(|(d, n)| (n, d)).collect();
    distances.sort_unstable_by(|a, b| b.cmp(a));
    let fixed = distances.iter().take(DISTANCES).map(|(_, base)| Rule { base: *base, component: 0 });
    // The upper half of the length's word is padding in arrays.
    let padded = word != 8 || list.iter().all(|at| places.word_at(at.plus(word)).is_some_and(|length| length >> 32 == 0));
    let elements = ELEMENTS.iter().filter(|_| padded).map(|n| Rule { base: word.saturating_mul(3), component: u64::from(*n) });
    let string = string_of(word);
    let count = u64::try_from(list.len()).ok()?.max(1);
    let mut best: Option<(Chosen, u64)> = None;
    for rule in fixed.chain(elements).chain([string]) {
        let follows = |(at, next): (&Addr, &Option<Addr>)| {
            let Some(end) = rule.end(places, *at) else { return 0 };
            if !places.has(seen, end) {
                return if places.word_at(end).is_none_or(|word| word == 0) { EMPTY } else { 0 };
            }
            let led = || found.is_some_and(|found| found.leads_on(places, end));
            let is_object = places.has(referenced, end) || places.is_free(end) || led();
            let score = if is_object { FOLLOWS } else { MAY_FOLLOW };
            if *next == Some(end) { score.saturating_add(NEXT) } else { score }
        };
        let sum = list.iter().zip(&nexts).map(follows).fold(0u64, u64::saturating_add);
        let mut score = sum.checked_div(count)?;
        let mut text = 0;
        if rule == string {
            text = u64::try_from(list.iter().filter(|at| is_text(places, **at)).count()).ok()?;
            score = score.saturating_add(text.saturating_mul(TEXT).checked_div(count)?);
        }
        if score > best.map_or(0, |(best, _)| best.score) {
            best = Some((Chosen { rule, objects: 0, score, referenced: false }, text));
        }
    }
    best
}

/// Whether a string may be at `at`: it ends in NUL, and has none at its beginning.
fn is_text(places: &Places<'_>, at: Addr) -> bool {
    let read = || {
        let length = u64::from(places.length(at)?);
        let first = at.plus(places.word).plus(4);
        let end = places.bytes(first.plus(length.checked_mul(2)?), 2)?;
        let beginning = places.bytes(first, length.min(EXAMINED).checked_mul(2)?)?;
        Some(length > 0 && end == [0, 0] && !beginning.chunks_exact(2).any(|c| c == [0, 0]))
    };
    read().unwrap_or(false)
}
