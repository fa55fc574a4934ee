//! Survivors as ranges, as in the profiling API: a range has adjacent objects that moved by the same distance.

use super::ids::{New, Old};
use super::pairs::{Fate, Pairs};
use super::vetoes::Both;
use crate::analysis::{MovedRange, SurvivingRange};
use crate::base::{Addr, Count};

/// A run of adjacent survivors.
#[derive(Clone, Copy)]
struct Run {
    from: u64,
    to: u64,
    length: u64,
    objects: u64,
    certain: bool,
}

/// Returns the ranges that moved and the ranges that stayed, both in the order of the first dump's objects.
pub(super) fn ranges(both: &Both<'_>, pairs: &Pairs) -> (Vec<MovedRange>, Vec<SurvivingRange>) {
    let (mut moved, mut stayed) = (Vec::new(), Vec::new());
    let mut close = |run: Option<Run>| {
        let Some(Run { from, to, length, objects, certain }) = run else { return };
        if from == to {
            stayed.push(SurvivingRange { start: Addr(from), length, objects, certain });
        } else {
            moved.push(MovedRange { from: Addr(from), to: Addr(to), length, objects, certain });
        }
    };
    let mut open: Option<Run> = None;
    for (old, new) in pairs.olds().filter_map(|old| Some((old, pairs.standing_to(old)?))) {
        let next = run_of(both, pairs, old, new);
        match &mut open {
            // The object is adjacent to the run in both dumps, so it moved by the same distance.
            Some(run) if run.from.checked_add(run.length) == Some(next.from) && run.to.checked_add(run.length) == Some(next.to) => {
                run.length.grow(next.length);
                run.objects.bump();
                run.certain &= next.certain;
            }
            _ => close(open.replace(next)),
        }
    }
    close(open);
    (moved, stayed)
}

fn run_of(both: &Both<'_>, pairs: &Pairs, old: Old, new: New) -> Run {
    let word = both.old.heap.memory().ptr_bytes();
    let length = both.old.bytes_of(old).checked_next_multiple_of(word).unwrap_or(0);
    Run { from: both.old.at(old), to: both.new.at(new), length, objects: 1, certain: pairs.fate(old) == Fate::Certain }
}
