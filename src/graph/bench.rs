//! Measures time and memory on a graph with the size and shape of a large heap. Run it in a release build, with `-- --ignored --nocapture`.

#![allow(clippy::cast_possible_truncation)]

use std::time::Instant;

use super::*;

const NODES: u32 = 16_800_000;
const EDGES: u32 = 18_900_000;
const ROOTS: u32 = 1000;

/// A field of `/proc/self/status`, in MiB.
fn status(name: &str) -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|l| l.strip_prefix(name)).unwrap_or("0");
    line.split_whitespace().find_map(|w| w.parse::<u64>().ok()).unwrap_or(0) / 1024
}

/// CPU time of this thread in seconds. Unlike elapsed time, it does not include other work on the machine.
fn processor() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split_whitespace().next().and_then(|w| w.parse::<f64>().ok()).unwrap_or(0.0) / 1e9
}

fn timed<T>(what: &str, work: impl FnOnce() -> T) -> T {
    // Resets the peak to the memory in use now.
    let _ = std::fs::write("/proc/self/clear_refs", "5");
    let (start, used, before) = (Instant::now(), processor(), status("VmRSS:"));
    let out = work();
    let (wall, used) = (start.elapsed().as_secs_f64(), processor() - used);
    println!("{what}: {used:.2} s on the processor, {wall:.2} s in all; before {before} MB, peak {} MB", status("VmHWM:"));
    out
}

/// A graph in which each node except the roots has an edge from an earlier node. In the second quarter of the nodes, the earlier node is the
/// previous one, which makes long lists. In the other quarters, the earlier node is mostly a near one. Half of the remaining edges lead to near
/// nodes, half to any node. `scattered` renumbers the nodes within blocks of a million, so that neighbors in the graph are not neighbors in memory.
fn heap(scattered: bool) -> Csr {
    let mut seed = 1u64;
    let mut below = |bound: u32| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (((seed >> 33) * u64::from(bound)) >> 31) as u32
    };
    let name = |n: u32| match n | 0xf_ffff {
        last if scattered && last < NODES => (n & !0xf_ffff) | (n.wrapping_mul(0x9e37_79b1) & 0xf_ffff),
        _ => n,
    };
    let mut edges = Vec::with_capacity(EDGES as usize);
    for node in ROOTS..NODES {
        let list = (NODES / 4..NODES / 2).contains(&node) && below(100_000) > 0;
        let reach = if below(5) > 0 { node.min(10_000) } else { node };
        let back = if list { 0 } else { below(reach) };
        edges.push((name(node - 1 - back), name(node)));
    }
    while edges.len() < EDGES as usize {
        let a = below(NODES);
        let b = if a % 2 == 0 { below(NODES) } else { (a + below(2000)).saturating_sub(1000).min(NODES - 1) };
        edges.push((name(a), name(b)));
    }
    Csr::from_edges(NODES, &edges).unwrap()
}

#[test]
#[ignore = "a benchmark that takes a minute"]
fn dominators_of_a_large_heap() {
    for scattered in [false, true] {
        println!("--- {}", if scattered { "scattered" } else { "in allocation order" });
        let graph = timed("build (edge list of 151 MB within)", || heap(scattered));
        println!("{} nodes, {} edges", graph.nodes(), graph.edges());
        let roots: Vec<u32> = (0..ROOTS).map(|n| if scattered { n.wrapping_mul(0x9e37_79b1) & 0xf_ffff } else { n }).collect();
        let tree = timed("dominators", || Dominators::compute(&graph, &[&roots]));
        println!("{} at the top", tree.top().count());
        let retained = timed("retained", || tree.retained(|_| 24));
        let groups = timed("by 20000 groups", || tree.by_group(|n| n.wrapping_mul(0x9e37_79b1) % 20_000, 20_000, |_| 24, &retained));
        println!("largest group {} kB", groups.iter().map(|sum| sum.retained).max().unwrap() >> 10);
        drop((tree, retained));
        let components = timed("components", || Components::compute(&graph));
        println!("{} components", components.count());
        timed("condensation", || components.condensation(&graph).unwrap());
        drop(components);
        let reversed = timed("reversed", || graph.reversed());
        drop(reversed);
        timed("breadth first", || Bfs::in_turn(&graph, &[&roots], |_, _| true));
        println!("{} reached", timed("reachable", || reachable(&graph, &roots)).count());
    }
}
