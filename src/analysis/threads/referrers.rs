//! Finds the objects that refer to given ones.

use crate::base::hash::Map;
use crate::base::{Addr, Collector};
use crate::gc::{Object, Visitor};
use crate::session::Heap;

/// Maximum number of referrers kept of an object.
pub(super) const MAX_REFERRERS: usize = 32;

/// An object whose referrers are wanted: its own address, and those of up to two objects that do not count as referrers.
pub(super) type Ignored = [Option<Addr>; 2];

/// Collects the referrers of each wanted object: address and method table.
struct Referrers<'r> {
    wanted: &'r Map<Addr, Ignored>,
    /// The lowest and the highest wanted object.
    range: (Addr, Addr),
    found: Map<Addr, Vec<(Addr, Addr)>>,
}

impl Visitor for Referrers<'_> {
    fn object(&mut self, object: &Object<'_>) {
        let (wanted, (low, high), found) = (self.wanted, self.range, &mut self.found);
        object.references(|_, target| {
            if target < low || target > high {
                return;
            }
            let Some(ignored) = wanted.get(&target) else { return };
            if target != object.address && !ignored.contains(&Some(object.address)) {
                add(found.entry(target).or_default(), (object.address, object.ty.method_table));
            }
        });
    }
}

/// Adds an object to a sorted list, which keeps the lowest [`MAX_REFERRERS`].
fn add(list: &mut Vec<(Addr, Addr)>, by: (Addr, Addr)) {
    if let Err(at) = list.binary_search(&by)
        && at < MAX_REFERRERS
    {
        list.insert(at, by);
        list.truncate(MAX_REFERRERS);
    }
}

/// Returns the objects that refer to each of the `wanted` ones, with their method tables, in the order of their addresses: at most [`MAX_REFERRERS`] of
/// each. An object does not count as its own referrer. The heap is walked only if objects are wanted.
pub(super) fn referrers(heap: &Heap, wanted: &Map<Addr, Ignored>, notes: &Collector) -> Map<Addr, Vec<(Addr, Addr)>> {
    let mut out: Map<Addr, Vec<(Addr, Addr)>> = Map::default();
    let Some(range) = wanted.keys().min().copied().zip(wanted.keys().max().copied()) else { return out };
    let types = heap.types_where(notes, |ty| !ty.is_free && !ty.gc_desc.is_empty());
    let visitors = heap.walk_where(&types, || Referrers { wanted, range, found: Map::default() });
    for (target, list) in visitors.into_iter().flat_map(|visitor| visitor.found) {
        let of = out.entry(target).or_default();
        list.into_iter().for_each(|by| add(of, by));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_referrers_are_kept_in_any_order() {
        let all: Vec<(Addr, Addr)> = (0..100).map(|n| (Addr(n * 8), Addr(1))).collect();
        let (mut up, mut down) = (Vec::new(), Vec::new());
        all.iter().for_each(|by| add(&mut up, *by));
        all.iter().rev().chain(&all).for_each(|by| add(&mut down, *by));
        assert_eq!(up, all[..MAX_REFERRERS]);
        assert_eq!(down, up);
    }
}
