//! Tests of the components, of contracted references, and of the classes of garbage.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

use super::condense;
use super::unreachable::Garbage;
use super::whatif::cut_edges;
use crate::analysis::GarbageClass;
use crate::base::Index;
use crate::gc::ObjectId;
use crate::graph::{Csr, reach};
use crate::heapgraph::Edges;

fn graph(nodes: u32, edges: &[(u32, u32)]) -> Csr {
    Csr::from_edges(nodes, edges).unwrap()
}

fn ids<const N: usize>(nodes: [u32; N]) -> [ObjectId; N] {
    nodes.map(ObjectId::from_u32)
}

fn pair(from: u32, to: u32) -> (ObjectId, ObjectId) {
    (ObjectId::from_u32(from), ObjectId::from_u32(to))
}

#[test]
fn rings_are_components_and_what_is_between_is_contracted() {
    // 0 → 1 → 2 → 0 through unmarked 1; 2 → 3 → 4 → 5 through unmarked 3 and 4; 5 is a component by itself; unmarked 6 refers to 2 and 5.
    let g = graph(7, &[(0, 1), (1, 2), (2, 0), (2, 3), (3, 4), (4, 5), (6, 2), (6, 5)]);
    let c = condense(&g, &[0, 2, 5], |_| true, |_| false).unwrap();
    assert_eq!(c.components, [vec![0, 1, 2], vec![5]]);
    assert_eq!(c.references, [(0, 1)]);
    assert!(!c.cut);
    // Unmarked 3 is opaque: paths through it are ignored.
    let c = condense(&g, &[0, 2, 5], |_| true, |id| id == 3).unwrap();
    assert_eq!((c.components.len(), c.references.as_slice()), (2, [].as_slice()));
    // Marked 2 is opaque: the cycle breaks, but 0 still reaches 2.
    let c = condense(&g, &[0, 2, 5], |_| true, |id| id == 2).unwrap();
    let at = |id: u32| u32::try_from(c.components.iter().position(|m| m == &[id]).unwrap()).unwrap();
    assert_eq!(c.references, [(at(0), at(2))]);
}

#[test]
fn references_are_not_followed_through_marked_nodes() {
    // 0 → 1 → 2, all marked; 0 → 3 → 2 and 0 → 4 → 2 through unmarked 3 and 4.
    let g = graph(5, &[(0, 1), (1, 2), (0, 3), (3, 2), (0, 4), (4, 2)]);
    let c = condense(&g, &[0, 1, 2], |_| true, |_| false).unwrap();
    assert_eq!((c.components, c.references), (vec![vec![0], vec![1], vec![2]], vec![(0, 1), (0, 2), (1, 2)]));
    let g = graph(3, &[(0, 1), (1, 2)]);
    assert_eq!(condense(&g, &[0, 1, 2], |_| true, |_| false).unwrap().references, [(0, 1), (1, 2)]);
    // Nodes that are not `inside` are ignored.
    assert_eq!(condense(&g, &[0, 1, 2], |id| id != 1, |_| false).unwrap().references, []);
    assert_eq!(condense(&g, &[], |_| true, |_| false).unwrap(), super::condense::Condensed::default());
}

#[test]
fn contracted_references_are_those_of_a_search_from_each_component() {
    // Compares pseudo-random graphs with a search that stops at marked components.
    let mut state = 1u64;
    let mut random = |below: u32| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        u32::try_from((state >> 33) % u64::from(below)).unwrap()
    };
    for _ in 0..300 {
        let n = 2 + random(14);
        let edges: Vec<(u32, u32)> = (0..random(3 * n)).map(|_| (random(n), random(n))).collect();
        let g = graph(n, &edges);
        let marked: Vec<u32> = (0..n).filter(|_| random(3) == 0).collect();
        let c = condense(&g, &marked, |_| true, |_| false).unwrap();
        let of = |id: u32| c.components.iter().position(|m| m.contains(&id));
        let mut expected = Vec::new();
        for (i, members) in c.components.iter().enumerate() {
            assert!(members.iter().any(|id| marked.contains(id)));
            for a in members {
                for b in members {
                    assert!(reach(&g, [*a], |_, _| true).test(*b) && reach(&g, [*b], |_, _| true).test(*a));
                }
            }
            // Do not continue beyond another component with marks.
            let seen = reach(&g, members.iter().copied(), |from, _| of(from).is_none_or(|c| c == i));
            expected.extend((0..n).filter(|id| seen.test(*id)).filter_map(of).filter(|c| *c != i).map(|to| (i, to)));
        }
        expected.sort_unstable();
        expected.dedup();
        let ours: Vec<(usize, usize)> = c.references.iter().map(|(a, b)| (*a as usize, *b as usize)).collect();
        assert_eq!(ours, expected, "{edges:?} {marked:?}");
        assert!(ours.iter().all(|(a, b)| a < b));
        assert!(marked.iter().all(|id| of(*id).is_some()));
    }
}

#[test]
fn garbage_is_of_one_class_each() {
    // 0 root → 1. 2 finalizable → 3. 4 weak → 5. 6 old → 7 young → 8 young. 9 young. 10 middle → 11 middle, young 12.
    let g = graph(13, &[(0, 1), (2, 3), (4, 5), (6, 7), (7, 8), (10, 11), (10, 12)]);
    let g = Edges::from(g);
    let live = g.reachable(ids([0]));
    let level = |id: ObjectId| match id.as_u32() {
        6 => Some(2),
        10 | 11 => Some(1),
        _ => Some(0),
    };
    let garbage = Garbage::sort(&g, &live, (&ids([1, 2]), &ids([1, 4, 3])), level);
    let class = |node: u32| garbage.class(ObjectId::from_u32(node), level(ObjectId::from_u32(node)));
    use GarbageClass::{DeadOlder, FinalizerOnly, Unreachable, WeakOnly};
    let all: Vec<GarbageClass> = (2..13).map(class).collect();
    let expected = [
        FinalizerOnly,
        FinalizerOnly,
        WeakOnly,
        Unreachable,
        Unreachable,
        DeadOlder,
        DeadOlder,
        Unreachable,
        Unreachable,
        Unreachable,
        DeadOlder,
    ];
    assert_eq!(all, expected);
    assert!(ids([1]).iter().all(|id| garbage.live.contains(*id)) && ids([2]).iter().all(|id| !garbage.live.contains(*id)));
}

#[test]
fn a_dependent_handle_takes_only_its_own_edge() {
    let g = Edges::from(graph(3, &[(0, 1), (0, 2), (0, 2)]));
    assert!(cut_edges(&g, [pair(0, 1)].into_iter()).contains(&pair(0, 1)));
    // A field refers to 2 as well, so the edge remains.
    assert!(cut_edges(&g, [pair(0, 2)].into_iter()).is_empty());
    assert!(cut_edges(&g, [pair(0, 2), pair(0, 2)].into_iter()).contains(&pair(0, 2)));
}
