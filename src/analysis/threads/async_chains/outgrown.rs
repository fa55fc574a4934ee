//! Arrays of delegates that a list has outgrown.
//!
//! A `List<Action>` that grows copies its delegates to a larger array. Until the next collection, the smaller arrays look like further sources of
//! the same methods.

use crate::analysis::threads::referrers::referrers;
use crate::base::hash::{Map, Set};
use crate::base::{Addr, Collector};
use crate::heapgraph::Roots;
use crate::session::Heap;
use crate::session::roots::RootOptions;

/// Removes edges from arrays that nothing refers to. Nodes are numbers. Each of `edges` leads from an object that holds a delegate to the method that the delegate resumes.
/// `array` returns the address of such an object if it is an array. A method keeps all its arrays if nothing refers to any of them.
pub(super) fn drop_outgrown(heap: &Heap, edges: &mut Vec<(u32, u32)>, array: impl Fn(u32) -> Option<Addr>, notes: &Collector) {
    let shared = shared(edges, &array);
    if shared.is_empty() {
        return;
    }
    let wanted: Map<Addr, _> = shared.iter().map(|at| (*at, [None; 2])).collect();
    let found = referrers(heap, &wanted, notes);
    let mut unused: Set<Addr> = shared.into_iter().filter(|at| !found.contains_key(at)).collect();
    if !unused.is_empty() {
        let roots = notes.take(Roots::collect(heap, &heap.namer(), &RootOptions::default()));
        roots.roots.iter().for_each(|root| {
            unused.remove(&root.object);
        });
    }
    retain(edges, |from| array(from).is_some_and(|at| unused.contains(&at)));
}

/// Returns the arrays that share a method with another array.
fn shared(edges: &[(u32, u32)], array: impl Fn(u32) -> Option<Addr>) -> Set<Addr> {
    let mut first: Map<u32, Addr> = Map::default();
    let mut out = Set::default();
    for (from, to) in edges {
        let Some(at) = array(*from) else { continue };
        let known = *first.entry(*to).or_insert(at);
        if known != at {
            out.extend([known, at]);
        }
    }
    out
}

/// Removes the edges from `unused` nodes to nodes that other nodes lead to as well.
fn retain(edges: &mut Vec<(u32, u32)>, unused: impl Fn(u32) -> bool) {
    let used: Set<u32> = edges.iter().filter(|(from, _)| !unused(*from)).map(|(_, to)| *to).collect();
    edges.retain(|(from, to)| !unused(*from) || !used.contains(to));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_that_share_a_method_are_compared() {
        // 10, 11 and 12 are arrays, 20 is not.
        let array = |node: u32| (10..20).contains(&node).then(|| Addr(u64::from(node)));
        let edges = [(10, 1), (11, 1), (12, 2), (20, 2), (20, 3), (10, 1)];
        assert_eq!(shared(&edges, array), Set::from_iter([Addr(10), Addr(11)]));
    }

    #[test]
    fn a_method_keeps_a_source() {
        let mut edges = vec![(10, 1), (11, 1), (11, 2), (12, 3)];
        retain(&mut edges, |from| from == 11 || from == 12);
        // Nothing else leads to 2 and 3.
        assert_eq!(edges, [(10, 1), (11, 2), (12, 3)]);
    }
}
