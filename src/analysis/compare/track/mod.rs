//! Determines which objects of a process survived, moved, died and were allocated between two dumps.
//!
//! Dumps do not record object identity. Rules infer whether two objects are the same; they were tested with programs whose results are known
//! (`docs/internals/track.md`). A pair with evidence against it ([`vetoes`]) is dropped, however strong the evidence for it is. Evidence is used in
//! this order: objects that cannot move, hash codes, contents ([`witnesses`]), agreement of neighbors ([`vote`]), objects between two known ones
//! ([`place`]), large objects ([`large`]), holders ([`holders`]). Each match has a certainty.
//!
//! All rules work on dense arrays by object id, process parts of the heap in parallel, and record their findings in the order of ids. The answer does
//! not depend on the number of threads.

mod answer;
mod contents;
mod fit;
mod holders;
mod ids;
mod large;
mod pairs;
mod place;
mod process;
mod ranges;
mod report;
mod rising;
mod side;
mod vetoes;
mod vote;
mod witnesses;

pub use report::*;

pub(in crate::analysis) use process::in_wrong_order;

use crate::base::hash::Map;
use crate::base::{Addr, Answer, Collector, Index, IndexVec, Name, cut};
use crate::gc::ObjectId;
use crate::session::{Error, Heap, Namer};
use ids::{New, Old};
use pairs::{Fate, Pairs};
use side::{Side, Traits};
use vetoes::Both;

/// View of the matches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TrackView {
    /// Sums by type and by generation.
    #[default]
    Types,
    /// Each match.
    Objects,
    /// Ranges of survivors.
    Ranges,
}

/// Arguments of `track`.
#[derive(Clone, Copy, Debug, Default)]
pub struct TrackQuery {
    /// The view: sums, matches or ranges.
    pub view: TrackView,
    /// Whether doubtful matches are listed too.
    pub doubtful: bool,
    /// Number of types to list, 0 for all; sums always cover everything.
    pub top: usize,
}

/// Tracks the objects from `before` to `after`, two dumps of one process.
///
/// # Errors
/// [`Error::Unrelated`] if the dumps are not of one process, or not in this order; [`Error::Contract`] if the descriptor does not describe objects;
/// [`Error::Memory`] if the answer would exceed the memory limit.
pub fn track(before: &Heap, after: &Heap, query: &TrackQuery) -> Result<Answer<TrackReport>, Error> {
    let Matched { old, new, kinds, pairs, nothing_moved, notes, namers } = matched(before, after)?;
    let both = Both { old: &old, new: &new, nothing_moved, notes: &notes.2 };
    let sums = answer::count(&both, &pairs, kinds.len());
    let mut shown = None;
    let rows = match query.view {
        TrackView::Types => {
            let mut types = sums.types(&kinds);
            shown = cut(&mut types, query.top);
            TrackRows::Types { types, generations: sums.generations() }
        }
        TrackView::Objects => TrackRows::Objects { matches: answer::matches(&both, &pairs, &kinds, query.doubtful) },
        TrackView::Ranges => {
            let (moved, surviving) = ranges::ranges(&both, &pairs);
            TrackRows::Ranges { moved, surviving }
        }
    };
    Ok(finish(TrackReport { totals: sums.totals(), certainty: sums.certainty(), rows, shown }, notes, &namers))
}

/// Returns, for each object of `after`, the same object in `before`; `None` without a match that is at least likely.
///
/// # Errors
/// The errors of [`track`].
pub(crate) fn survivors(before: &Heap, after: &Heap) -> Result<Answer<IndexVec<ObjectId, Option<ObjectId>>>, Error> {
    let Matched { pairs, notes, namers, .. } = matched(before, after)?;
    let was = pairs.news().map(|new| pairs.standing_from(new).map(|old| ObjectId::from_u32(old.as_u32()))).collect();
    Ok(finish(was, notes, &namers))
}

/// Two dumps with their matches.
struct Matched {
    old: Side<Old>,
    new: Side<New>,
    kinds: Vec<(Addr, Name)>,
    pairs: Pairs,
    nothing_moved: bool,
    /// Notes on the first dump, on the last dump, and on later failed reads of either dump.
    notes: (Collector, Collector, Collector),
    namers: (Namer, Namer),
}

fn matched(before: &Heap, after: &Heap) -> Result<Matched, Error> {
    process::check(before, after)?;
    let notes = (before.begin(), after.begin(), Collector::new());
    let namers = (before.namer(), after.namer());
    let mut old: Side<Old> = Side::read(before, &notes.0);
    let mut new: Side<New> = Side::read(after, &notes.1);
    let kinds = number(&mut old, &mut new, &namers)?;
    let nothing_moved = process::compactions(before).zip(process::compactions(after)).is_some_and(|(a, b)| a == b && a > 0);
    let mut pairs = Pairs::new(old.len(), new.len());
    conclude((&mut old, &new), nothing_moved, &notes.2, &mut pairs);
    Ok(Matched { old, new, kinds, pairs, nothing_moved, notes, namers })
}

/// Returns the answer with the notes of both dumps.
fn finish<T>(report: T, (before, after, reads): (Collector, Collector, Collector), namers: &(Namer, Namer)) -> Answer<T> {
    namers.0.note(&before);
    namers.1.note(&after);
    let notes = Collector::new();
    notes.extend(&reads.notes());
    notes.extend(&before.notes().about("the first dump"));
    notes.extend(&after.notes().about("the second dump"));
    notes.finish(report)
}

/// Applies the rules.
fn conclude((old, new): (&mut Side<Old>, &Side<New>), nothing_moved: bool, notes: &Collector, pairs: &mut Pairs) {
    let anchors = {
        let both = Both { old, new, nothing_moved, notes };
        witnesses::unmoved(&both, pairs);
        let mut all = witnesses::hashed(&both, pairs);
        all.extend(witnesses::distinctive(&both, pairs));
        let heard = vote::vote(&both, all);
        heard.sound.iter().for_each(|(o, n)| pairs.join(*o, *n, Fate::Certain));
        heard.near.iter().for_each(|(o, n)| pairs.join(*o, *n, Fate::Likely));
        heard.alone.iter().for_each(|(o, n)| pairs.join(*o, *n, Fate::Doubtful));
        heard.sound
    };
    anchors.iter().for_each(|(o, _)| old.mark(*o, Traits::ANCHOR));
    drop(anchors);
    let both = Both { old, new, nothing_moved, notes };
    place::place(&both, pairs);
    large::large(&both, pairs);
    holders::hold(&both, pairs);
    large::stayed(&both, pairs);
}

/// Numbers the types of both dumps and returns them by number. Equal method tables with equal names are the same type.
fn number(old: &mut Side<Old>, new: &mut Side<New>, namers: &(Namer, Namer)) -> Result<Vec<(Addr, Name)>, Error> {
    let tables = |types: &mut dyn Iterator<Item = Addr>, namer: &Namer| -> Vec<(Addr, Name)> {
        let mut list: Vec<(Addr, Name)> = types.map(|mt| (mt, namer.name_or_address(mt))).collect();
        list.sort();
        list
    };
    let before = tables(&mut old.walker().types().list().iter().filter(|t| !t.is_free).map(|t| t.method_table), &namers.0);
    let after = tables(&mut new.walker().types().list().iter().filter(|t| !t.is_free).map(|t| t.method_table), &namers.1);
    let of_before: Map<Addr, &Name> = before.iter().map(|(mt, name)| (*mt, name)).collect();
    let common = after.iter().filter(|(mt, _)| of_before.contains_key(mt)).count();
    let same = after.iter().filter(|(mt, name)| of_before.get(mt) == Some(&name)).count();
    // A dump without a heap has no types and proves nothing either way.
    let none_in_common = same == 0 && !before.is_empty() && !after.is_empty();
    if none_in_common || same.saturating_mul(2) < common {
        return Err(Error::Unrelated("the dumps are from two processes: the same method tables belong to different types".into()));
    }
    let mut kinds = before.clone();
    kinds.extend(after.iter().cloned());
    kinds.sort();
    kinds.dedup();
    let numbers: Map<&(Addr, Name), u32> = kinds.iter().zip(0u32..).collect();
    let of = |list: &[(Addr, Name)]| -> Map<Addr, u32> { list.iter().filter_map(|t| Some((t.0, *numbers.get(t)?))).collect() };
    let (b, a) = (of(&before), of(&after));
    old.number(&b);
    new.number(&a);
    Ok(kinds)
}
