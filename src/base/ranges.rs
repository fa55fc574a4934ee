//! Set operations on lists of address ranges. Unless noted otherwise, a list is sorted, and its ranges neither overlap nor touch.
//!
//! The `rangemap` crate is not used. The lists are built once, in order, and then only searched, so a tree with insertions is not needed.

use super::AddrRange;

/// Sorts and merges `list`, which may be unsorted and overlapping. Ranges with a gap of at most `gap` bytes between them are merged, too.
pub fn union(mut list: Vec<AddrRange>, gap: u64) -> Vec<AddrRange> {
    list.retain(|r| !r.is_empty());
    list.sort_unstable_by_key(|r| (r.start, r.end));
    let mut out: Vec<AddrRange> = Vec::with_capacity(list.len());
    for range in list {
        match out.last_mut() {
            Some(last) if range.start <= last.end.plus(gap) => last.end = last.end.max(range.end),
            _ => out.push(range),
        }
    }
    out
}

/// The addresses that are in both lists.
pub fn intersect(a: &[AddrRange], b: &[AddrRange]) -> Vec<AddrRange> {
    let mut out = Vec::new();
    let (mut a, mut b) = (a.iter().peekable(), b.iter().peekable());
    while let (Some(x), Some(y)) = (a.peek(), b.peek()) {
        let both = AddrRange::new(x.start.max(y.start), x.end.min(y.end));
        let first = x.end <= y.end;
        if !both.is_empty() {
            out.push(both);
        }
        if first {
            a.next();
        } else {
            b.next();
        }
    }
    out
}

/// The addresses that are in `a` but not in `b`.
pub fn subtract(a: &[AddrRange], b: &[AddrRange]) -> Vec<AddrRange> {
    let mut out = Vec::new();
    let mut first = 0usize;
    for range in a {
        let mut at = range.start;
        while b.get(first).is_some_and(|r| r.end <= range.start) {
            first = first.saturating_add(1);
        }
        for hole in b.iter().skip(first).take_while(|r| r.start < range.end) {
            if at < hole.start {
                out.push(AddrRange::new(at, hole.start));
            }
            at = at.max(hole.end);
        }
        if at < range.end {
            out.push(AddrRange::new(at, range.end));
        }
    }
    out
}

/// Total length of the ranges in bytes.
pub fn bytes(list: &[AddrRange]) -> u64 {
    list.iter().fold(0, |n, r| n.saturating_add(r.len()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::base::Addr;

    fn list(marks: &[(u8, u8)]) -> Vec<AddrRange> {
        marks.iter().map(|(at, len)| AddrRange::new(Addr(u64::from(*at)), Addr(u64::from(*at) + u64::from(*len % 40)))).collect()
    }

    fn addresses(list: &[AddrRange]) -> Vec<u64> {
        assert!(list.windows(2).all(|w| w[0].end < w[1].start), "{list:?}");
        (0..400).filter(|n| list.iter().any(|r| r.contains(Addr(*n)))).collect()
    }

    proptest! {
        #[test]
        fn agree_with_sets_of_addresses(a: Vec<(u8, u8)>, b: Vec<(u8, u8)>) {
            let (x, y) = (union(list(&a), 0), union(list(&b), 0));
            let has = |l: &[AddrRange], n: &u64| l.iter().any(|r| r.contains(Addr(*n)));
            prop_assert_eq!(addresses(&x), (0..400).filter(|n| has(&list(&a), n)).collect::<Vec<_>>());
            prop_assert_eq!(addresses(&union(intersect(&x, &y), 0)), (0..400).filter(|n| has(&x, n) && has(&y, n)).collect::<Vec<_>>());
            prop_assert_eq!(addresses(&union(subtract(&x, &y), 0)), (0..400).filter(|n| has(&x, n) && !has(&y, n)).collect::<Vec<_>>());
            prop_assert_eq!(bytes(&x), addresses(&x).len() as u64);
        }
    }
}
