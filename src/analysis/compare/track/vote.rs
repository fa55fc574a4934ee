//! Rule 4: a witness is accepted if most of its neighboring witnesses moved in the same way.
//!
//! A collection keeps the order of the objects that it moves out of a generation of a segment. If its neighbors moved to another segment, or are now
//! on its other side, a witness is only a copy of the original. The vote is repeated without the losers. In the last vote, most neighbors must agree,
//! or half of them if an agreeing neighbor is still as close as before. The accepted witnesses must be in order: the longest increasing subsequence
//! is used.

use rayon::prelude::*;

use super::ids::{New, Old};
use super::rising::longest_rising;
use super::vetoes::Both;
use super::witnesses::Witness;
use crate::base::missed::Carried;
use crate::base::{Count, Index};
use crate::gc::SegmentIndex;

/// Maximum number of neighbors on each side that vote.
const NEIGHBORS: usize = 6;
/// Minimum number of neighbors that must agree. A single one may be a copy itself.
const AT_LEAST: usize = 2;

/// Maximum distance in bytes from a witness to a neighbor for a likely match.
const NEAR: u64 = 4096;
/// Maximum number of rounds in which losers are removed.
const ROUNDS: usize = 4;

/// Result of the vote.
#[derive(Debug, Default)]
pub(super) struct VoteResult {
    /// Witnesses that are in order with their neighbors.
    pub(super) sound: Vec<(Old, New)>,
    /// Witnesses close to their neighbors that are out of order, or at the end of a row that moved together.
    pub(super) near: Vec<(Old, New)>,
    /// Witnesses with too few neighbors to decide.
    pub(super) alone: Vec<(Old, New)>,
}

/// Holds the vote.
pub(super) fn vote(both: &Both<'_>, mut witnesses: Vec<Witness>) -> VoteResult {
    witnesses.par_sort_unstable();
    let part = |w: &Witness| both.old.part_of(w.old).map(|(at, _)| at);
    let wards: Vec<&[Witness]> = witnesses.chunk_by(|a, b| part(a) == part(b)).collect();
    let carried = Carried::here();
    let heard: Vec<VoteResult> = wards.par_iter().map(|ward| carried.run(|| of_part(both, ward))).collect();
    let mut all = VoteResult::default();
    for h in heard {
        all.sound.extend(h.sound);
        all.near.extend(h.near);
        all.alone.extend(h.alone);
    }
    all
}

/// A witness, and the segment to which it moved.
type Voter = (Witness, SegmentIndex);

fn of_part(both: &Both<'_>, witnesses: &[Witness]) -> VoteResult {
    let segment = |w: &Witness| both.new.part_of(w.new).map(|(_, part)| part.segment);
    let mut voters: Vec<Voter> = witnesses.iter().filter_map(|w| Some((*w, segment(w)?))).collect();
    // Witnesses with more votes against than for them are removed, so that they do not vote in the next round.
    for _ in 0..ROUNDS {
        let before = voters.len();
        let polls: Vec<(usize, usize)> = (0..voters.len()).map(|at| poll(&voters, at)).collect();
        let mut polls = polls.into_iter();
        voters.retain(|_| polls.next().is_some_and(|(agree, asked)| agree.saturating_mul(2) >= asked));
        if voters.len() == before {
            break;
        }
    }
    let mut out = VoteResult::default();
    let mut kept: Vec<(SegmentIndex, Old, New)> = Vec::with_capacity(voters.len());
    for (at, (w, to)) in voters.iter().enumerate() {
        let (agree, asked) = poll(&voters, at);
        let tie = agree.saturating_mul(2) == asked;
        if agree >= AT_LEAST && (agree.saturating_mul(2) > asked || tie && beside(both, &voters, at)) {
            kept.push((*to, w.old, w.new));
        } else if tie && agree >= NEIGHBORS && !w.known && last_of_row(both, &voters, at) {
            out.near.push((w.old, w.new));
        } else if agree == asked && !w.known {
            out.alone.push((w.old, w.new));
        }
    }
    kept.sort_by_key(|k| (k.0, k.1));
    for run in kept.chunk_by(|a, b| a.0 == b.0) {
        let places: Vec<u32> = run.iter().map(|(_, _, new)| new.as_u32()).collect();
        let rising = longest_rising(&places);
        let at = |place: usize| run.get(place).map_or(0, |(_, _, new)| both.new.at(*new));
        let mut ahead = rising.iter().copied().peekable();
        let mut behind = None;
        for (place, (_, old, new)) in run.iter().enumerate() {
            if ahead.next_if_eq(&place).is_some() {
                out.sound.push((*old, *new));
                behind = Some(place);
            } else if [behind, ahead.peek().copied()].into_iter().flatten().any(|sound| at(sound).abs_diff(at(place)) <= NEAR) {
                // The collection put the object into a free block near its neighbors.
                out.near.push((*old, *new));
            }
        }
    }
    out
}

/// Returns the number of neighbors that moved in the same way, and the number of neighbors.
fn poll(voters: &[Voter], at: usize) -> (usize, usize) {
    let Some((w, to)) = voters.get(at) else { return (0, 0) };
    let from = at.saturating_sub(NEIGHBORS);
    let around = voters.get(from..).unwrap_or_default().iter().take(at.saturating_sub(from).saturating_add(NEIGHBORS).saturating_add(1));
    let (mut agree, mut asked) = (0usize, 0usize);
    for (other, theirs) in around.filter(|(other, _)| other.old != w.old) {
        asked.bump();
        if together(&(*other, *theirs), &(*w, *to)) {
            agree.bump();
        }
    }
    (agree, asked)
}

/// Whether a witness is still as close as before to an adjacent one that moved in the same way. This decides a tie. The last object of a row that
/// moved together gets half of the votes. A copy after the row does too, but it is farther away.
fn beside(both: &Both<'_>, voters: &[Voter], at: usize) -> bool {
    let Some((w, to)) = voters.get(at) else { return false };
    let near = [at.checked_sub(1), at.checked_add(1)].into_iter().flatten().filter_map(|i| voters.get(i));
    near.filter(|other| together(other, &(*w, *to)))
        .any(|(other, _)| both.new.at(w.new).abs_diff(both.new.at(other.new)) <= both.old.at(w.old).abs_diff(both.old.at(other.old)))
}

/// Whether two witnesses moved in the same way.
fn together((a, to): &Voter, (b, there): &Voter) -> bool {
    to == there && (a.old < b.old) == (a.new < b.new)
}

/// Whether a row of objects that moved together ends at a witness. Its two neighbors must have moved in different ways, one of them together with the
/// witness and close to it. Around a copy, both neighbors moved in the same way.
fn last_of_row(both: &Both<'_>, voters: &[Voter], at: usize) -> bool {
    let (Some(w), Some(left), Some(right)) =
        (voters.get(at), at.checked_sub(1).and_then(|i| voters.get(i)), at.checked_add(1).and_then(|i| voters.get(i)))
    else {
        return false;
    };
    let near = |other: &Voter| together(other, w) && both.new.at(w.0.new).abs_diff(both.new.at(other.0.new)) <= NEAR;
    !together(left, right) && (near(left) || near(right))
}
