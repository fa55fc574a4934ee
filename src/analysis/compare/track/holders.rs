//! Rule 7: the same slot of the same holder refers to the same object.
//!
//! A field, element or dependent handle of a matched holder refers to the same object before and after, unless the program changed it. This is
//! *calibrated*: for each array, and for each field of a type, the rule counts how often the slot agrees with matches from other rules. Slots that
//! contradict these matches are ignored, for example in a shuffled array, and so are slots with too little evidence. A slot whose earlier object is
//! known to have died is also a contradiction. Strong and weak handles are not used, because their slots are reused.
//!
//! A good slot makes a new match likely, and a likely match certain. Programs replace the object in a static field as a whole, so static fields match
//! only objects that are unique by type and size.

use rayon::prelude::*;
use rustc_hash::FxHashMap;

use super::ids::{New, Old};
use super::pairs::{Fate, Pairs};
use super::side::{Side, Traits};
use super::vetoes::Both;
use crate::base::{Addr, Collector, Count, Index, Indices};
use crate::gc::GcDesc;
use crate::heapgraph::Roots;
use crate::model::{Generation, RootKind};
use crate::session::roots::RootOptions;

/// Minimum number of known matches that a slot must agree with.
const AGREE: u32 = 3;
/// Number of agreements required per contradiction.
const TRUST: u32 = 20;
/// Maximum number of rounds in which new matches lead to further ones. It limits the depth in linked structures.
const ROUNDS: usize = 64;
/// Number of objects that one thread processes at a time.
const CHUNK: usize = 1 << 14;
/// Represents the offset of a dependent handle, which is not a field.
const DEPENDENT: u64 = u64::MAX;

/// A group of references that are calibrated together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Slot {
    /// The elements of this array.
    Elements(Old),
    /// A field: number of the type, and offset.
    Field(u32, u64),
}

#[derive(Clone, Copy, Debug, Default)]
struct Score {
    agree: u32,
    against: u32,
}

impl Score {
    fn good(self) -> bool {
        self.agree >= AGREE && self.against.saturating_mul(TRUST) <= self.agree
    }
}

/// Dependent handles of a dump. Keys with several values are omitted.
type Dependents<I> = FxHashMap<I, I>;

struct Holders<'b> {
    both: &'b Both<'b>,
    values: (Dependents<Old>, Dependents<New>),
}

/// Applies the rule until it finds no more matches.
pub(super) fn hold(both: &Both<'_>, pairs: &mut Pairs) {
    let roots = (roots(both.old, both.notes), roots(both.new, both.notes));
    statics(both, &roots, pairs);
    let holders = Holders { both, values: (dependents(both.old, &roots.0), dependents(both.new, &roots.1)) };
    let scores = holders.calibrate(pairs);
    let mut frontier: Vec<Old> = pairs.olds().filter(|old| pairs.stands(*old)).collect();
    for _ in 0..ROUNDS {
        let mut found = holders.follow(pairs, &scores, &frontier);
        found.sort_unstable();
        found.dedup();
        frontier.clear();
        for (old, new) in found {
            let before = pairs.fate(old);
            let raised = match before {
                Fate::Likely => Fate::Certain,
                // The pinned object is at the same address and has the same holder, so no other object can have taken its place.
                Fate::Doubtful if both.old.traits(old).has(Traits::PINNED) && both.old.at(old) == both.new.at(new) => Fate::Certain,
                _ => Fate::Likely,
            };
            pairs.join(old, new, raised);
            if !before.stands() && pairs.stands(old) {
                frontier.push(old);
            }
        }
        if frontier.is_empty() {
            break;
        }
    }
}

fn roots<I: Index + Send + Sync>(side: &Side<I>, notes: &Collector) -> Roots {
    let namer = side.heap.namer();
    let options = RootOptions::default();
    notes.take(Roots::collect(&side.heap, &namer, &options))
}

fn dependents<I: Index + Send + Sync + std::hash::Hash>(side: &Side<I>, roots: &Roots) -> Dependents<I> {
    let mut counts: FxHashMap<I, u32> = FxHashMap::default();
    let mut out = Dependents::default();
    for (key, value) in roots.dependents.iter().filter_map(|(k, v)| Some((side.id_of(*k)?, side.id_of(*v)?))) {
        counts.entry(key).or_default().bump();
        out.insert(key, value);
    }
    out.retain(|key, _| counts.get(key) == Some(&1));
    out
}

/// Matches objects in static fields that are unique by type and size in both dumps.
fn statics(both: &Both<'_>, (old, new): &(Roots, Roots), pairs: &mut Pairs) {
    let slots = |roots: &Roots| -> FxHashMap<Addr, Addr> {
        let statics = roots.roots.iter().filter(|r| r.kind == RootKind::Static);
        statics.filter_map(|r| Some((r.address?, r.object))).collect()
    };
    let (before, after) = (slots(old), slots(new));
    let held = before.iter().filter_map(|(slot, o)| Some((both.old.id_of(*o)?, both.new.id_of(*after.get(slot)?)?)));
    let open = |o: Old, n: New| !pairs.stands(o) && pairs.fate(o) != Fate::Dead && pairs.standing_from(n).is_none();
    let mut held: Vec<(Old, New)> = held.filter(|(o, n)| open(*o, *n) && both.possible(*o, *n)).collect();
    held.sort_unstable();
    held.dedup();
    if held.is_empty() {
        return;
    }
    let (olds, news) = rayon::join(|| census(both.old), || census(both.new));
    for (old, new) in held {
        let class = (both.old.kind.get(old).copied(), both.old.size.get(old).copied());
        if let (Some(kind), Some(size)) = class
            && olds.get(&(kind, size)) == Some(&1)
            && news.get(&(kind, size)) == Some(&1)
        {
            pairs.join(old, new, Fate::Likely);
        }
    }
}

/// Counts objects by type and size.
fn census<I: Index + Send + Sync>(side: &Side<I>) -> FxHashMap<(u32, u32), u32> {
    let mut out: FxHashMap<(u32, u32), u32> = FxHashMap::default();
    for class in side.kind.iter().copied().zip(side.size.iter().copied()) {
        out.entry(class).or_default().bump();
    }
    out
}

/// Collects the references of an object, by offset.
fn references<I>(side: &Side<I>, id: I, values: &Dependents<I>, out: &mut Vec<(u64, I)>) -> Option<bool>
where
    I: Index + Send + Sync + std::hash::Hash,
{
    out.clear();
    let ty = side.type_of(id)?;
    let is_array = ty.component_size > 0;
    if !matches!(ty.gc_desc, GcDesc::None | GcDesc::Unknown) {
        let object = side.walker().again(Addr(side.at(id)), ty, side.bytes_of(id), Generation::Gen2);
        object.references(|offset, target| out.extend(side.id_of(target).map(|t| (offset, t))));
        out.sort_unstable_by_key(|(offset, _)| *offset);
    }
    out.extend(values.get(&id).map(|value| (DEPENDENT, *value)));
    Some(is_array)
}

#[derive(Default)]
struct Buffers {
    old: Vec<(u64, Old)>,
    new: Vec<(u64, New)>,
}

impl Holders<'_> {
    /// Calls `visit` for each slot of a matched holder that refers to an object in both dumps.
    fn slots(&self, holder: (Old, New), buffers: &mut Buffers, mut visit: impl FnMut(Slot, Old, New)) {
        let Some(is_array) = references(self.both.old, holder.0, &self.values.0, &mut buffers.old) else { return };
        if buffers.old.is_empty() || references(self.both.new, holder.1, &self.values.1, &mut buffers.new).is_none() {
            return;
        }
        let kind = self.both.old.kind.get(holder.0).copied().unwrap_or(u32::MAX);
        let mut after = buffers.new.iter().peekable();
        for (offset, old) in &buffers.old {
            while after.next_if(|(there, _)| there < offset).is_some() {}
            if let Some((_, new)) = after.next_if(|(there, _)| there == offset) {
                let slot = if is_array && *offset != DEPENDENT { Slot::Elements(holder.0) } else { Slot::Field(kind, *offset) };
                visit(slot, *old, *new);
            }
        }
    }

    /// Releases the pages of these holders, because they are not read again soon.
    fn release(&self, pairs: &Pairs, holders: impl Iterator<Item = Old> + Clone) {
        self.both.old.release(holders.clone());
        self.both.new.release(holders.filter_map(|old| pairs.standing_to(old)));
    }

    /// Counts for each slot how often it agrees with known matches and contradicts them.
    fn calibrate(&self, pairs: &Pairs) -> FxHashMap<Slot, Score> {
        let starts: Vec<u32> = (0..self.both.old.len()).step_by(CHUNK).collect();
        let parts: Vec<FxHashMap<Slot, Score>> = starts
            .par_iter()
            .map(|start| {
                let (mut scores, mut buffers) = (FxHashMap::<Slot, Score>::default(), Buffers::default());
                let ids = Indices::new(Old::from_u32(*start), u32::try_from(CHUNK).unwrap_or(u32::MAX));
                for holder in ids.clone().filter_map(|old| Some((old, pairs.standing_to(old)?))) {
                    self.slots(holder, &mut buffers, |slot, old, new| {
                        let known = match (pairs.standing_to(old), pairs.standing_from(new)) {
                            (Some(to), _) => Some(to == new),
                            (None, Some(_)) => Some(false),
                            (None, None) => (pairs.fate(old) == Fate::Dead).then_some(false),
                        };
                        if let Some(agrees) = known {
                            let score = scores.entry(slot).or_default();
                            if agrees { score.agree.bump() } else { score.against.bump() }
                        }
                    });
                }
                self.release(pairs, ids);
                scores
            })
            .collect();
        let mut all: FxHashMap<Slot, Score> = FxHashMap::default();
        for (slot, score) in parts.into_iter().flatten() {
            let sum = all.entry(slot).or_default();
            sum.agree.grow(score.agree);
            sum.against.grow(score.against);
        }
        all.retain(|_, score| score.agree > 0 || score.against > 0);
        all
    }

    /// Follows the slots of these holders to objects that are not matched with certainty yet.
    fn follow(&self, pairs: &Pairs, scores: &FxHashMap<Slot, Score>, frontier: &[Old]) -> Vec<(Old, New)> {
        let found: Vec<Vec<(Old, New)>> = frontier
            .par_chunks(CHUNK)
            .map(|chunk| {
                let (mut found, mut buffers) = (Vec::new(), Buffers::default());
                for holder in chunk.iter().filter_map(|old| Some((*old, pairs.standing_to(*old)?))) {
                    self.slots(holder, &mut buffers, |slot, old, new| {
                        let open = match (pairs.fate(old), pairs.from(new)) {
                            (Fate::Certain | Fate::Dead, _) => false,
                            (Fate::Unknown, from) => from.is_none_or(|rival| !pairs.stands(rival)),
                            (Fate::Doubtful | Fate::Likely, _) => pairs.to(old) == Some(new),
                        };
                        if open && scores.get(&slot).is_some_and(|s| s.good()) && self.both.possible(old, new) {
                            found.push((old, new));
                        }
                    });
                }
                self.release(pairs, chunk.iter().copied());
                found
            })
            .collect();
        found.into_iter().flatten().collect()
    }
}
