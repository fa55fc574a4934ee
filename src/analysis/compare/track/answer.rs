//! Sums of the matches by type, generation and certainty.

use std::collections::BTreeMap;

use rayon::prelude::*;
use rustc_hash::FxHashMap;

use super::ids::{New, Old};
use super::pairs::{Fate, Pairs};
use super::side::Side;
use super::vetoes::{Both, Space};
use crate::analysis::{Certainty, CertaintySum, GenerationFlow, TrackMatch, TrackSums, TrackType};
use crate::base::{Addr, Count, Index, Name};
use crate::model::{Generation, Sum};

/// Class of similar objects: type number, size, and kind of heap. Small objects of all generations are in the same kind of heap.
type Class = (u32, u32, u8);

/// Unmatched objects, by class.
pub(super) struct Unclaimed {
    youngest: FxHashMap<Class, u8>,
    oldest: FxHashMap<Class, u8>,
}

fn home(space: Space) -> (u8, u8) {
    match space {
        Space::Small(age) => (0, age),
        Space::Large => (1, 0),
        Space::Pinned => (2, 0),
        Space::Frozen => (3, 0),
    }
}

fn class<I: Index + Send + Sync>(side: &Side<I>, id: I) -> Option<(Class, u8)> {
    let (home, age) = home(Space::of(side.part_of(id)?.1.generation));
    Some(((*side.kind.get(id)?, *side.size.get(id)?, home), age))
}

impl Unclaimed {
    /// Collects the objects that are neither matched nor known to have died.
    pub(super) fn of(both: &Both<'_>, pairs: &Pairs) -> Unclaimed {
        let lost = || {
            let mut youngest = FxHashMap::default();
            let open = pairs.olds().filter(|old| matches!(pairs.fate(*old), Fate::Unknown | Fate::Doubtful));
            for (class, age) in open.filter_map(|old| class(both.old, old)) {
                youngest.entry(class).and_modify(|a: &mut u8| *a = age.min(*a)).or_insert(age);
            }
            youngest
        };
        let unnamed = || {
            let mut oldest = FxHashMap::default();
            let open = pairs.news().filter(|new| pairs.standing_from(*new).is_none());
            for (class, age) in open.filter_map(|new| class(both.new, new)) {
                oldest.entry(class).and_modify(|a: &mut u8| *a = age.max(*a)).or_insert(age);
            }
            oldest
        };
        let (youngest, oldest) = rayon::join(lost, unnamed);
        Unclaimed { youngest, oldest }
    }

    /// Whether an object of the first dump certainly died, because no unmatched object of the last dump can be the same object.
    fn died(&self, both: &Both<'_>, pairs: &Pairs, old: Old) -> bool {
        match pairs.fate(old) {
            Fate::Dead => true,
            Fate::Unknown => class(both.old, old).is_some_and(|(class, age)| self.oldest.get(&class).is_none_or(|oldest| *oldest < age)),
            _ => false,
        }
    }

    /// Whether an object of the last dump is certainly new, because no unmatched object of the first dump can be the same object.
    fn born(&self, both: &Both<'_>, pairs: &Pairs, new: New) -> bool {
        let open = pairs.from(new).is_none();
        open && class(both.new, new).is_some_and(|(class, age)| self.youngest.get(&class).is_none_or(|youngest| *youngest > age))
    }
}

/// Sums by type number.
pub(super) struct Sums {
    by_kind: Vec<TrackSums>,
    flows: BTreeMap<(Generation, Generation), (Sum, u64)>,
    certainty: [Sum; Certainty::ALL.len()],
}

/// Counts all objects.
pub(super) fn count(both: &Both<'_>, pairs: &Pairs, kinds: usize) -> Sums {
    let unclaimed = Unclaimed::of(both, pairs);
    let mut sums = Sums { by_kind: vec![TrackSums::default(); kinds], flows: BTreeMap::new(), certainty: Default::default() };
    for part in &both.old.parts {
        for old in part.ids() {
            sums.old(both, pairs, &unclaimed, old, part.generation);
        }
    }
    for new in pairs.news() {
        let bytes = both.new.bytes_of(new);
        let Some(row) = both.new.kind.get(new).and_then(|kind| sums.by_kind.get_mut(Old::from_u32(*kind).index())) else { continue };
        row.after.add(bytes);
        if pairs.standing_from(new).is_none() {
            if unclaimed.born(both, pairs, new) { &mut row.born } else { &mut row.unknown_after }.add(bytes);
        }
    }
    sums
}

impl Sums {
    fn old(&mut self, both: &Both<'_>, pairs: &Pairs, unclaimed: &Unclaimed, old: Old, from: Generation) {
        let bytes = both.old.bytes_of(old);
        let fate = pairs.fate(old);
        if let Some(certainty) = fate.certainty() {
            let sums = self.certainty.iter_mut().zip(Certainty::ALL);
            sums.filter(|(_, c)| *c == certainty).for_each(|(sum, _)| sum.add(bytes));
        }
        let Some(row) = both.old.kind.get(old).and_then(|kind| self.by_kind.get_mut(Old::from_u32(*kind).index())) else { return };
        row.before.add(bytes);
        let Some(new) = pairs.standing_to(old) else {
            if unclaimed.died(both, pairs, old) { &mut row.died } else { &mut row.unknown_before }.add(bytes);
            return;
        };
        let to = both.new.part_of(new).map_or(from, |(_, part)| part.generation);
        let moved = both.distance(old, new) != 0;
        row.survived.add(bytes);
        if moved {
            row.moved.add(bytes);
        }
        if let (Space::Small(was), Space::Small(is)) = (Space::of(from), Space::of(to))
            && is > was
        {
            row.promoted.add(bytes);
        }
        let flow = self.flows.entry((from, to)).or_default();
        flow.0.add(bytes);
        if moved {
            flow.1.bump();
        }
    }

    /// Returns the sums of all types.
    pub(super) fn totals(&self) -> TrackSums {
        let mut all = TrackSums::default();
        self.by_kind.iter().for_each(|row| all.merge(row));
        all
    }

    /// Returns the rows by type. Types with the most bytes in either dump come first.
    pub(super) fn types(&self, kinds: &[(Addr, Name)]) -> Vec<TrackType> {
        let rows = self.by_kind.iter().zip(kinds).filter(|(sums, _)| sums.before.count > 0 || sums.after.count > 0);
        let mut rows: Vec<TrackType> =
            rows.map(|(sums, (mt, name))| TrackType { type_name: name.clone(), method_table: *mt, sums: sums.clone() }).collect();
        let most = |t: &TrackType| t.sums.before.bytes.max(t.sums.after.bytes);
        rows.sort_by(|a, b| (most(b), &a.type_name, a.method_table).cmp(&(most(a), &b.type_name, b.method_table)));
        rows
    }

    /// Returns the survivors by generation in both dumps.
    pub(super) fn generations(&self) -> Vec<GenerationFlow> {
        self.flows.iter().map(|((from, to), (sum, moved))| GenerationFlow { from: *from, to: *to, sum: *sum, moved: *moved }).collect()
    }

    /// Returns the matches by certainty.
    pub(super) fn certainty(&self) -> Vec<CertaintySum> {
        self.certainty.iter().zip(Certainty::ALL).map(|(sum, certainty)| CertaintySum { certainty, sum: *sum }).collect()
    }
}

/// Returns the matches one by one; doubtful ones only on request.
pub(super) fn matches(both: &Both<'_>, pairs: &Pairs, kinds: &[(Addr, Name)], doubtful: bool) -> Vec<TrackMatch> {
    let unknown = Name::from("?");
    let row = |old: Old| -> Option<TrackMatch> {
        let new = pairs.to(old)?;
        let certainty = pairs.fate(old).certainty().filter(|c| doubtful || *c != Certainty::Doubtful)?;
        let kind = both.old.kind.get(old).and_then(|kind| kinds.get(Old::from_u32(*kind).index()));
        Some(TrackMatch {
            from: Addr(both.old.at(old)),
            to: Addr(both.new.at(new)),
            certainty,
            type_name: kind.map_or_else(|| unknown.clone(), |(_, name)| name.clone()),
            size: both.old.bytes_of(old),
            generation_before: both.old.part_of(old).map(|(_, part)| part.generation),
            generation_after: both.new.part_of(new).map(|(_, part)| part.generation),
        })
    };
    let parts: Vec<Vec<TrackMatch>> = both.old.parts.par_iter().map(|part| part.ids().filter_map(row).collect()).collect();
    parts.into_iter().flatten().collect()
}
