//! Recognizes objects by their own properties, wherever they moved.
//!
//! 1. **Frozen and pinned objects** do not move. A frozen object is never freed, so the object at its address is the same. The memory of a freed
//!    pinned object may be reused, so a match requires distinctive contents. Without them it is doubtful until a holder confirms it.
//! 2. **Identity hash codes** are random and never change. If exactly one object of a type and size has a given hash code in each dump, the two are
//!    the same object. If many objects got hash codes between the dumps, this may be a coincidence, and the pair is only a witness.
//! 3. **Contents** that exactly one object has in each dump make the pair a *witness*, not yet a match: the original may have died while a copy
//!    survived. The [vote](super::vote) distinguishes the two cases.

use rayon::prelude::*;
use rustc_hash::FxHashMap;

use super::ids::{New, Old};
use super::pairs::{Fate, Pairs};
use super::side::{Side, Traits};
use super::vetoes::{Both, Space};
use crate::base::missed::Carried;
use crate::base::{Addr, Count, Index};

/// A candidate of the vote.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Witness {
    pub(super) old: Old,
    pub(super) new: New,
    /// Whether the match is already known from a hash code. If the vote rejects the witness, it remains a match, but it is not an anchor: a
    /// collection has moved the object in another way than its neighbors.
    pub(super) known: bool,
}

/// Applies rule 1.
pub(super) fn unmoved(both: &Both<'_>, pairs: &mut Pairs) {
    for part in &both.old.parts {
        let frozen = Space::of(part.generation) == Space::Frozen;
        for old in part.ids() {
            if !frozen && !both.old.traits(old).has(Traits::PINNED) {
                continue;
            }
            let Some(new) = both.new.id_of(Addr(both.old.at(old))).filter(|new| both.possible(old, *new)) else { continue };
            if frozen || both.distinctive(old, new) {
                pairs.join(old, new, Fate::Certain);
            } else if both.new.traits(new).has(Traits::PINNED) {
                pairs.join(old, new, Fate::Doubtful);
            }
        }
    }
}

/// Number of different hash codes (`HASHCODE_BITS`, syncblk.h).
const HASH_CODES: u64 = 1 << 26;

/// Applies rule 2. Pairs that may be coincidences are only witnesses.
pub(super) fn hashed(both: &Both<'_>, pairs: &mut Pairs) -> Vec<Witness> {
    let mut old: Vec<((u32, u32, u32), Old)> = rows(both.old);
    let mut new: Vec<((u32, u32, u32), New)> = rows(both.new);
    let found = once_each(&mut old, &mut new);
    // By type: number of objects with hash codes that have no pair, in the first dump (died) and in the last (got a hash code since).
    let mut strangers: FxHashMap<u32, (u64, u64)> = FxHashMap::default();
    let kind_of = |o: Old| both.old.kind.get(o).copied().unwrap_or(u32::MAX);
    old.iter().for_each(|((kind, ..), _)| strangers.entry(*kind).or_default().0.bump());
    new.iter().for_each(|((kind, ..), _)| strangers.entry(*kind).or_default().1.bump());
    for (o, _) in &found {
        let n = strangers.entry(kind_of(*o)).or_default();
        *n = (n.0.saturating_sub(1), n.1.saturating_sub(1));
    }
    let mut out = Vec::new();
    for (o, n) in found.into_iter().filter(|(o, n)| both.possible(*o, *n)) {
        let (died, born) = strangers.get(&kind_of(o)).copied().unwrap_or_default();
        let known = died.saturating_mul(born).saturating_mul(100) < HASH_CODES;
        if known {
            pairs.join(o, n, Fate::Certain);
        }
        if !both.old.traits(o).has(Traits::PINNED) {
            out.push(Witness { old: o, new: n, known });
        }
    }
    out
}

fn rows<I: Index + Send + Sync>(side: &Side<I>) -> Vec<((u32, u32, u32), I)> {
    let row = |(id, hash): &(I, u32)| Some(((*side.kind.get(*id)?, *side.size.get(*id)?, *hash), *id));
    side.hashes().iter().filter_map(row).collect()
}

/// Number of passes over the keys. Each pass sorts only the keys of one remainder.
const PASSES: u64 = 16;

/// Applies rule 3 to objects whose distinctive contents occur once in each dump.
pub(super) fn distinctive(both: &Both<'_>, pairs: &Pairs) -> Vec<Witness> {
    let carried = Carried::here();
    let passes: Vec<Vec<Witness>> = (0..PASSES)
        .into_par_iter()
        .map(|pass| {
            let (mut old, mut new) = carried.run(|| (keys(both.old, pass), keys(both.new, pass)));
            let found = once_each(&mut old, &mut new);
            let free = found.into_iter().filter(|(o, n)| pairs.to(*o).is_none() && pairs.from(*n).is_none() && both.possible(*o, *n));
            free.map(|(old, new)| Witness { old, new, known: false }).collect()
        })
        .collect();
    passes.into_iter().flatten().collect()
}

fn keys<I: Index + Send + Sync>(side: &Side<I>, pass: u64) -> Vec<(u64, I)> {
    let rows = side.key.iter_enumerated().filter(|(_, key)| **key % PASSES == pass);
    rows.filter(|(id, key)| **key != 0 && side.traits(*id).has(Traits::DISTINCTIVE)).map(|(id, key)| (*key, id)).collect()
}

/// Returns the pairs of values whose key occurs once in each list.
pub(super) fn once_each<K: Ord + Copy, A: Copy + Ord, B: Copy + Ord>(a: &mut [(K, A)], b: &mut [(K, B)]) -> Vec<(A, B)> {
    a.sort_unstable();
    b.sort_unstable();
    let mut out = Vec::new();
    let (mut groups, mut others) = (a.chunk_by(|x, y| x.0 == y.0), b.chunk_by(|x, y| x.0 == y.0));
    let (mut left, mut right) = (groups.next(), others.next());
    while let (Some([(x, old), more @ ..]), Some([(y, new), rest @ ..])) = (left, right) {
        match x.cmp(y) {
            std::cmp::Ordering::Less => left = groups.next(),
            std::cmp::Ordering::Greater => right = others.next(),
            std::cmp::Ordering::Equal => {
                if more.is_empty() && rest.is_empty() {
                    out.push((*old, *new));
                }
                (left, right) = (groups.next(), others.next());
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_that_occur_twice_make_no_pair() {
        let mut a = [(5, 'a'), (3, 'b'), (3, 'c'), (9, 'd'), (7, 'e')];
        let mut b = [(9, 1), (3, 2), (7, 3), (7, 4), (1, 5), (5, 6)];
        assert_eq!(once_each(&mut a, &mut b), [('a', 6), ('d', 1)]);
    }
}
