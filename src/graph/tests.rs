//! Compares each algorithm with its definition on small random graphs, dominators with petgraph on larger graphs, and runs the algorithms on
//! deep graphs.

#![allow(clippy::cast_possible_truncation)]

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::csr::{check_edges, check_nodes};
use super::*;
use crate::base::Store;
use crate::base::store::tests::stand_in;

/// A graph given by its edges, with roots, and a group for each node.
#[derive(Debug, Clone)]
struct Sample {
    nodes: u32,
    edges: Vec<(u32, u32)>,
    roots: Vec<u32>,
    groups: Vec<u32>,
}

impl Sample {
    /// The graph. Half of the samples store derived arrays in a test double for files.
    fn graph(&self) -> Csr {
        let store = if self.edges.len().is_multiple_of(2) { Store::default() } else { stand_in() };
        Csr::from_edges(self.nodes, &self.edges).unwrap().with_store(&store)
    }

    fn size(node: u32) -> u64 {
        1 << node
    }

    /// Whether `from` reaches each node through `allowed` nodes, by repeated sweeps over the edges.
    fn reach(&self, from: &[u32], allowed: impl Fn(u32) -> bool) -> Vec<bool> {
        let mut seen = vec![false; self.nodes as usize];
        from.iter().filter(|n| allowed(**n)).for_each(|n| seen[*n as usize] = true);
        let mut changed = true;
        while changed {
            changed = false;
            for (a, b) in &self.edges {
                if seen[*a as usize] && !seen[*b as usize] && allowed(*b) {
                    seen[*b as usize] = true;
                    changed = true;
                }
            }
        }
        seen
    }

    /// A matrix: `[a][b]` is whether every path from the roots to `b` passes through `a`, determined by removing `a`.
    fn dominates(&self) -> Vec<Vec<bool>> {
        let all = self.reach(&self.roots, |_| true);
        let without = |a| self.reach(&self.roots, |n| n != a);
        let row = |a: u32| without(a).iter().zip(&all).map(|(w, r)| all[a as usize] && *r && !w).collect();
        (0..self.nodes).map(row).collect()
    }
}

/// Sparse to dense graphs of at most `max` nodes, with self loops, parallel edges, unreachable nodes and repeated roots.
fn sample(max: u32) -> impl Strategy<Value = Sample> {
    (1..=max, 0usize..4).prop_flat_map(|(nodes, density)| {
        let edges = prop::collection::vec((0..nodes, 0..nodes), 0..=(nodes as usize * (density + 1)));
        let roots = prop::collection::vec(0..nodes, 0..4);
        let groups = prop::collection::vec(0..5u32, nodes as usize);
        (edges, roots, groups).prop_map(move |(edges, roots, groups)| Sample { nodes, edges, roots, groups })
    })
}

fn config(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

fn expect_dominators(s: &Sample) {
    let tree = Dominators::compute(&s.graph(), &[&s.roots]);
    let dominates = s.dominates();
    let all = s.reach(&s.roots, |_| true);
    (0..s.nodes).for_each(|n| assert_eq!(tree.is_reachable(n), all[n as usize]));
    for b in 0..s.nodes {
        let strict: Vec<u32> = (0..s.nodes).filter(|a| *a != b && dominates[*a as usize][b as usize]).collect();
        // The immediate dominator is the strict dominator that all the others dominate.
        let nearest = strict.iter().copied().find(|a| strict.iter().all(|c| dominates[*c as usize][*a as usize]));
        let expected = if all[b as usize] { nearest.map_or(Idom::Root, Idom::Node) } else { Idom::Unreachable };
        assert_eq!(tree.idom(b), expected, "node {b}");
        assert_eq!(tree.chain(b).collect::<BTreeSet<_>>(), strict.iter().copied().collect());
        assert_eq!(tree.chain(b).next(), nearest);
        assert_eq!(tree.subtree(b) as usize, dominates[b as usize].iter().filter(|d| **d).count());
        (0..s.nodes).for_each(|a| assert_eq!(tree.dominates(a, b), dominates[a as usize][b as usize], "{a} over {b}"));
    }
}

fn expect_retained(s: &Sample) {
    let tree = Dominators::compute(&s.graph(), &[&s.roots]);
    let dominates = s.dominates();
    let naive = |a: u32| (0..s.nodes).filter(|b| dominates[a as usize][*b as usize]).map(Sample::size).sum::<u64>();
    let packed = tree.retained(Sample::size);
    let of = |n: u32| tree.position_of(n).and_then(|at| packed.get(at as usize)).unwrap_or(0);
    let retained: Vec<u64> = (0..s.nodes).map(of).collect();
    assert_eq!(retained, (0..s.nodes).map(naive).collect::<Vec<_>>());
    let group_of = |n: u32| s.groups[n as usize];
    let outermost = |group: u32| {
        let members: Vec<u32> = (0..s.nodes).filter(|n| group_of(*n) == group).collect();
        let alone = |n: &&u32| !members.iter().any(|a| a != *n && dominates[*a as usize][**n as usize]);
        members.iter().filter(alone).map(|n| retained[*n as usize]).sum::<u64>()
    };
    // Nodes in group 4 belong to no group.
    let sum = |group: u32| {
        let members = (0..s.nodes).filter(|n| group_of(*n) == group && tree.is_reachable(*n));
        let (nodes, size) = members.fold((0, 0), |(nodes, size), n| (nodes + 1, size + Sample::size(n)));
        GroupSum { nodes, size, retained: outermost(group) }
    };
    assert_eq!(tree.by_group(group_of, 4, Sample::size, &packed), (0..4).map(sum).collect::<Vec<_>>());
    for node in (0..s.nodes).map(Some).chain([None]) {
        let above = node.map_or(Idom::Root, Idom::Node);
        let expected: BTreeSet<u32> = (0..s.nodes).filter(|b| tree.idom(*b) == above).collect();
        assert_eq!(node.map_or_else(|| tree.top(), |n| tree.children(n)).collect::<BTreeSet<_>>(), expected);
    }
}

fn expect_components(s: &Sample, include: impl Fn(u32) -> bool + Copy) {
    let graph = s.graph();
    let found = Components::compute_where(&graph, include);
    let reach: Vec<Vec<bool>> = (0..s.nodes).map(|n| s.reach(&[n], include)).collect();
    let mut condensed = BTreeSet::new();
    for a in 0..s.nodes {
        assert_eq!(found.of(a).is_some(), include(a));
        for b in (0..s.nodes).filter(|b| include(a) && include(*b)) {
            let (there, back) = (reach[a as usize][b as usize], reach[b as usize][a as usize]);
            assert_eq!(found.of(a) == found.of(b), there && back, "{a} and {b}");
            assert!(!there || found.of(a) >= found.of(b), "reverse topological order");
        }
    }
    for (a, b) in s.edges.iter().filter_map(|(a, b)| found.of(*a).zip(found.of(*b))).filter(|(a, b)| a != b) {
        condensed.insert((a, b));
    }
    let graph = found.condensation(&graph).unwrap();
    let edges: Vec<(u32, u32)> = (0..graph.nodes()).flat_map(|a| graph.successors(a).iter().map(move |b| (a, *b))).collect();
    assert_eq!(edges, condensed.into_iter().collect::<Vec<_>>());
    assert_eq!(graph.nodes(), found.count());
    let members = found.members();
    for (component, size) in (0u32..).zip(found.sizes()) {
        assert_eq!(members.row(component).len(), size as usize);
        assert!(size > 0 && members.row(component).iter().all(|n| found.of(*n) == Some(component)));
        assert!(members.row(component).is_sorted());
    }
}

/// The distance of each node from the nearest source, by relaxing edges.
fn distances(nodes: u32, edges: &[(u32, u32)], sources: &[u32]) -> Vec<Option<u32>> {
    let mut best = vec![None; nodes as usize];
    sources.iter().for_each(|n| best[*n as usize] = Some(0));
    for _ in 0..nodes {
        for (a, b) in edges {
            if let Some(d) = best[*a as usize]
                && best[*b as usize].is_none_or(|known| known > d + 1)
            {
                best[*b as usize] = Some(d + 1);
            }
        }
    }
    best
}

fn expect_searches(s: &Sample) {
    let (graph, both) = (s.graph(), TwoWay::from(s.graph()));
    let is_edge = |w: &[u32]| s.edges.contains(&(w[0], w[1]));
    let is_root = |n: u32| s.roots.contains(&n);
    let unique: Vec<u32> = s.roots.iter().copied().collect::<BTreeSet<_>>().into_iter().collect();
    let search = Bfs::in_turn(&graph, &[&s.roots], |_, _| true);
    let forward = distances(s.nodes, &s.edges, &s.roots);
    let seen = reachable(&graph, &s.roots);
    let back: Vec<(u32, u32)> = s.edges.iter().map(|(a, b)| (*b, *a)).collect();
    for node in 0..s.nodes {
        let expected = forward[node as usize];
        assert_eq!(search.reached(node), expected.is_some());
        assert_eq!(seen.test(node), expected.is_some());
        let path = search.path_to(node);
        assert_eq!(path.len() as u32, expected.map_or(0, |d| d + 1));
        assert!(path.windows(2).all(is_edge) && path.first().is_none_or(|n| is_root(*n)) && path.last().is_none_or(|n| *n == node));

        let from_target = distances(s.nodes, &back, &[node]);
        let mut expected: Vec<u32> =
            s.roots.iter().copied().collect::<BTreeSet<_>>().iter().filter_map(|r| from_target[*r as usize]).collect();
        expected.sort_unstable();
        for limit in 0..4 {
            let rank = |n| is_root(n).then_some((0, 0));
            let RootPaths { paths, roots } = paths_to_roots(&both, node, (&unique, rank), |_, _| true, limit);
            let lengths: Vec<u32> = paths.iter().map(|p| p.len() as u32 - 1).collect();
            assert_eq!(lengths, expected[..limit.min(expected.len())]);
            assert_eq!(paths.iter().map(|p| p[0]).collect::<BTreeSet<_>>().len(), paths.len(), "roots differ");
            assert!(paths.iter().all(|p| is_root(p[0]) && p.windows(2).all(is_edge) && p[p.len() - 1] == node));
            let mut found: Vec<u32> = roots.iter().map(|root| from_target[*root as usize].unwrap()).collect();
            found.sort_unstable();
            assert_eq!((found, roots.iter().collect::<BTreeSet<_>>().len()), (expected.clone(), roots.len()));
        }
    }
    // These searches follow only some of the edges.
    let is_open = |a: u32, b: u32| !(a + b).is_multiple_of(3);
    let open: Vec<(u32, u32)> = s.edges.iter().copied().filter(|(a, b)| is_open(*a, *b)).map(|(a, b)| (b, a)).collect();
    for node in 0..s.nodes {
        let from_target = distances(s.nodes, &open, &[node]);
        let expected: BTreeSet<u32> = s.roots.iter().copied().filter(|root| from_target[*root as usize].is_some()).collect();
        let rank = |n| is_root(n).then_some((0, 0));
        let found = paths_to_roots(&both, node, (&unique, rank), is_open, 1);
        assert_eq!((found.roots.iter().copied().collect::<BTreeSet<_>>(), found.paths.len()), (expected.clone(), expected.len().min(1)));
    }
    let sum = (0..s.nodes).filter(|n| forward[*n as usize].is_some()).map(Sample::size).sum();
    assert_eq!(closure(&graph, &s.roots, Sample::size), Closure { nodes: seen.count(), size: sum });
}

proptest! {
    #![proptest_config(config(4000))]

    #[test]
    fn dominators_of_small_graphs(s in sample(12)) { expect_dominators(&s); }

    #[test]
    fn retained_sums(s in sample(12)) { expect_retained(&s); }

    #[test]
    fn components_of_small_graphs(s in sample(12)) {
        expect_components(&s, |_| true);
        expect_components(&s, |n| s.groups[n as usize] != 0);
    }

    #[test]
    fn searches_of_small_graphs(s in sample(12)) { expect_searches(&s); }
}

proptest! {
    #![proptest_config(config(500))]

    #[test]
    fn dominators_of_larger_graphs(s in sample(40)) { expect_dominators(&s); }

    #[test]
    fn components_of_larger_graphs(s in sample(40)) { expect_components(&s, |_| true); }

    #[test]
    fn rows_keep_their_edges(s in sample(30)) {
        let graph = s.graph();
        let mut builder = CsrBuilder::default();
        // About every third edge is added by `with_edges`, after the other edges of its source.
        let (mut first, mut later, mut all) = (CsrBuilder::default(), Vec::new(), CsrBuilder::with_capacity(&Store::default(), 4, 4));
        for node in 0..s.nodes {
            let expected: Vec<u32> = s.edges.iter().filter(|e| e.0 == node).map(|e| e.1).collect();
            prop_assert_eq!(graph.successors(node), &expected[..]);
            expected.iter().for_each(|target| builder.push_edge(*target));
            prop_assert_eq!(builder.end_node(), Ok(node));
            let (more, kept): (Vec<u32>, Vec<u32>) = expected.iter().partition(|target| **target % 3 == 0);
            kept.iter().for_each(|target| { first.push_edge(*target); all.push_edge(*target); });
            more.iter().for_each(|target| { later.push((node, *target)); all.push_edge(*target); });
            first.end_node().unwrap();
            all.end_node().unwrap();
        }
        prop_assert_eq!(&builder.finish().unwrap(), &graph);
        prop_assert_eq!(first.finish().unwrap().with_edges(&later).unwrap(), all.finish().unwrap());
        let reversed = graph.reversed();
        for node in 0..s.nodes {
            let mut expected: Vec<u32> = s.edges.iter().filter(|e| e.1 == node).map(|e| e.0).collect();
            expected.sort_unstable();
            prop_assert_eq!(reversed.successors(node), &expected[..]);
        }
        prop_assert_eq!((graph.nodes(), graph.edges() as usize), (s.nodes, s.edges.len()));
    }

    #[test]
    fn bits_are_a_set(bound in 0u32..300, steps in prop::collection::vec((any::<bool>(), 0u32..300), 0..200)) {
        let (mut bits, mut set) = (BitSet::new(bound), BTreeSet::new());
        for (add, n) in steps {
            if add {
                prop_assert_eq!(bits.set(n), n < bound && set.insert(n));
            } else {
                prop_assert_eq!(bits.clear(n), set.remove(&n));
            }
        }
        prop_assert!((0..400).all(|n| bits.test(n) == set.contains(&n)));
        prop_assert_eq!((bits.count(), bits.is_empty(), bits.bound()), (set.len() as u64, set.is_empty(), bound));
        prop_assert_eq!(&BitSet::of_words(bound, bits.words()), &bits);
        prop_assert_eq!(bits.iter_others().collect::<Vec<_>>(), (0..bound).filter(|n| !set.contains(n)).collect::<Vec<_>>());
        prop_assert_eq!(bits.iter().collect::<Vec<_>>(), set.into_iter().collect::<Vec<_>>());
    }
}

/// A small random number generator (splitmix64) with the same numbers on every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: u32) -> u32 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((((z ^ (z >> 31)) >> 32) * u64::from(bound)) >> 32) as u32
    }
}

#[test]
fn dominators_agree_with_petgraph() {
    const NODES: u32 = 10_000;
    for (seed, edges) in [(1, 9_000), (2, 12_000), (3, 20_000), (4, 60_000), (5, 15_000), (6, 30_000)] {
        let mut numbers = Numbers(seed);
        let near = seed > 4;
        let mut edge = || {
            let a = numbers.below(NODES);
            (a, if near { (a + numbers.below(40)).saturating_sub(10).min(NODES - 1) } else { numbers.below(NODES) })
        };
        let edges: Vec<(u32, u32)> = (0..edges).map(|_| edge()).collect();
        let roots: Vec<u32> = (0..50).map(|_| numbers.below(NODES)).chain([0, 0]).collect();
        let tree = Dominators::compute(&Csr::from_edges(NODES, &edges).unwrap(), &[&roots]);

        let all = edges.iter().copied().chain(roots.iter().map(|r| (NODES, *r)));
        let other = petgraph::graph::DiGraph::<(), ()>::from_edges(all);
        let expected = petgraph::algo::dominators::simple_fast(&other, NODES.into());
        let mut nested = 0;
        for node in 0..NODES {
            let idom = match expected.immediate_dominator(node.into()).map(|n| n.index() as u32) {
                None => Idom::Unreachable,
                Some(NODES) => Idom::Root,
                Some(n) => Idom::Node(n),
            };
            assert_eq!(tree.idom(node), idom, "seed {seed}, node {node}");
            nested += u32::from(matches!(idom, Idom::Node(_)));
        }
        assert!(nested > 20, "seed {seed}: only {nested} nodes below others");
    }
}

/// Runs the algorithms on a long list, without and with an edge from each node back to the first. Recursion would overflow the stack.
#[test]
fn long_lists_do_not_overflow_the_stack() {
    const NODES: u32 = 200_000;
    for back in [false, true] {
        let mut builder = CsrBuilder::with_capacity(&Store::default(), NODES as usize, 2 * NODES as usize);
        for node in 1..=NODES {
            builder.push_edge(node % NODES);
            if back {
                builder.push_edge(0);
            }
            builder.end_node().unwrap();
        }
        let graph = builder.finish().unwrap();
        let tree = Dominators::compute(&graph, &[&[0]]);
        assert!((1..NODES).all(|n| tree.idom(n) == Idom::Node(n - 1)));
        assert_eq!(tree.idom(0), Idom::Root);
        let packed = tree.retained(|_| 8);
        let retained: Vec<u64> = (0..NODES).map(|n| packed.get(tree.position_of(n).unwrap() as usize).unwrap()).collect();
        assert!((0..NODES).all(|n| retained[n as usize] == 8 * u64::from(NODES - n)));
        let by_group = tree.by_group(|n| n % 3, 3, |_| 8, &packed);
        assert!(by_group.iter().map(|sum| sum.retained).eq([retained[0], retained[1], retained[2]]));
        assert_eq!(tree.chain(NODES - 1).count(), NODES as usize - 1);
        assert_eq!(Components::compute(&graph).count(), 1);
        assert_eq!(Components::compute_where(&graph, |n| n > 0).count(), NODES - 1);
        assert_eq!(Bfs::in_turn(&graph, &[[0]], |_, _| true).path_to(NODES - 1).len(), NODES as usize);
        assert_eq!(reachable(&graph, &[5]).count(), u64::from(NODES));
    }
}

#[test]
fn graphs_that_are_too_large_or_have_missing_nodes_are_rejected() {
    assert_eq!(check_nodes(MAX_NODES as usize), Ok(MAX_NODES));
    assert_eq!(check_nodes(MAX_NODES as usize + 1), Err(GraphError::TooManyNodes(u64::from(MAX_NODES) + 1)));
    assert_eq!(check_edges(u32::MAX as usize), Ok(u32::MAX));
    assert_eq!(check_edges(1 << 32), Err(GraphError::TooManyEdges(1 << 32)));
    assert_eq!(Csr::from_edges(u32::MAX, &[]), Err(GraphError::TooManyNodes(u64::from(u32::MAX))));
    let missing = Err(GraphError::NoSuchNode { node: 2, nodes: 2 });
    assert_eq!(Csr::from_edges(2, &[(0, 1), (1, 2)]), missing);
    assert_eq!(Csr::from_edges(2, &[(2, 0)]), missing);
    let mut builder = CsrBuilder::default();
    builder.push_edge(2);
    assert_eq!((builder.end_node(), builder.end_node()), (Ok(0), Ok(1)));
    assert_eq!(builder.finish(), missing);
    assert!(GraphError::TooManyEdges(1 << 32).to_string().contains("4294967296 edges, but at most 4294967295"));
}

/// Roots and targets come from a dump and may be invalid, and a graph may be empty.
#[test]
fn indices_that_are_not_nodes_are_ignored() {
    let empty = Csr::from_edges(0, &[]).unwrap();
    let tree = Dominators::compute(&empty, &[&[0, 7, u32::MAX]]);
    assert_eq!((tree.idom(0), tree.top().count()), (Idom::Unreachable, 0));
    assert_eq!(tree.retained(|_| 1).iter().collect::<Vec<_>>(), [0]);
    assert_eq!(Components::compute(&empty).count(), 0);
    let graph = Csr::from_edges(2, &[(0, 1)]).unwrap();
    let tree = Dominators::compute(&graph, &[&[2, u32::MAX, u32::MAX - 1, 0]]);
    assert_eq!((tree.idom(0), tree.idom(1), tree.idom(2)), (Idom::Root, Idom::Node(0), Idom::Unreachable));
    assert_eq!(tree.children(9).chain(tree.chain(9)).count(), 0);
    assert_eq!(tree.retained(|_| u64::MAX).iter().collect::<Vec<_>>(), [0, u64::MAX, u64::MAX]);
    let search = Bfs::in_turn(&graph, &[[2, u32::MAX, 1]], |_, _| true);
    assert_eq!((search.path_to(1), search.path_to(u32::MAX), search.path_to(0)), (vec![1], vec![], vec![]));
    assert_eq!(reachable(&graph, &[2, 1]).iter().collect::<Vec<_>>(), [1]);
    assert!(graph.successors(2).is_empty() && graph.successors(u32::MAX).is_empty());
}
