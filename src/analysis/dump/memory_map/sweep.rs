//! Divides the address space into pieces that each have one listed range and one claim.

use std::collections::BTreeSet;

use crate::base::{Addr, AddrRange};

/// A range that competes with others for its addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    /// Addresses.
    pub(super) range: AddrRange,
    /// The span with the lowest rank wins; of spans with equal rank, the first in the list.
    pub(super) rank: u8,
}

/// A range of addresses for which the same spans win.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    /// Addresses.
    pub(super) range: AddrRange,
    /// Index of the winner in the first list.
    pub(super) listed: Option<usize>,
    /// Index of the winner in the second list.
    pub(super) claim: Option<usize>,
}

/// Divides the addresses of `listed` and `claims` into pieces, in the order of addresses. Each piece has the winning span of each list.
pub(super) fn sweep(listed: &[Span], claims: &[Span]) -> Vec<Piece> {
    let of = |claim: bool, list: &[Span]| -> Vec<(Addr, bool, bool, u8, usize)> {
        let spans = list.iter().enumerate().filter(|(_, s)| !s.range.is_empty());
        spans.flat_map(|(i, s)| [(s.range.start, true, claim, s.rank, i), (s.range.end, false, claim, s.rank, i)]).collect()
    };
    let mut bounds = of(false, listed);
    bounds.extend(of(true, claims));
    bounds.sort_unstable();
    let (mut lists, mut claimed) = (BTreeSet::new(), BTreeSet::new());
    let (mut out, mut from) = (Vec::<Piece>::new(), Addr::NULL);
    for (at, begins, claim, rank, index) in bounds {
        let first = |active: &BTreeSet<(u8, usize)>| active.first().map(|(_, index)| *index);
        let piece = Piece { range: AddrRange::new(from, at), listed: first(&lists), claim: first(&claimed) };
        if !piece.range.is_empty() && (piece.listed.is_some() || piece.claim.is_some()) {
            match out.last_mut() {
                Some(last) if last.range.end == from && (last.listed, last.claim) == (piece.listed, piece.claim) => last.range.end = at,
                _ => out.push(piece),
            }
        }
        from = at;
        let active = if claim { &mut claimed } else { &mut lists };
        if begins {
            active.insert((rank, index));
        } else {
            active.remove(&(rank, index));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::base::ranges;

    fn spans(marks: &[(u8, u8, u8)]) -> Vec<Span> {
        let range = |at: u8, len: u8| AddrRange::new(Addr(u64::from(at)), Addr(u64::from(at) + u64::from(len % 60)));
        marks.iter().map(|(at, len, rank)| Span { range: range(*at, *len), rank: rank % 4 }).collect()
    }

    /// Finds the winner at an address by examining every span.
    fn winner(list: &[Span], at: u64) -> Option<usize> {
        let here = list.iter().enumerate().filter(|(_, s)| s.range.contains(Addr(at)));
        here.min_by_key(|(i, s)| (s.rank, *i)).map(|(i, _)| i)
    }

    proptest! {
        #[test]
        fn each_address_belongs_to_the_winners_of_both_lists(a: Vec<(u8, u8, u8)>, b: Vec<(u8, u8, u8)>) {
            let (listed, claims) = (spans(&a), spans(&b));
            let pieces = sweep(&listed, &claims);
            prop_assert!(pieces.windows(2).all(|w| w[0].range.end <= w[1].range.start));
            for at in 0..400 {
                let piece = pieces.iter().find(|p| p.range.contains(Addr(at)));
                prop_assert_eq!(piece.and_then(|p| p.listed), winner(&listed, at));
                prop_assert_eq!(piece.and_then(|p| p.claim), winner(&claims, at));
                prop_assert_eq!(piece.is_some(), winner(&listed, at).is_some() || winner(&claims, at).is_some());
            }
            let union = ranges::union(listed.iter().map(|s| s.range).collect(), 0);
            let sum: u64 = pieces.iter().filter(|p| p.listed.is_some()).map(|p| p.range.len()).sum();
            prop_assert_eq!(sum, ranges::bytes(&union));
        }
    }
}
