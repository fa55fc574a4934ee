//! The inner parts of chains: from their roots up to given methods.

use super::graph::Graph;
use super::paths::{Path, paths};
use super::roots::Roots;
use crate::analysis::AsyncRoot;
use crate::analysis::threads::task_names::Names;
use crate::base::hash::Map;
use crate::base::{Addr, Budget, Collector, len64};
use crate::bcl::tasks::Tasks;
use crate::session::Heap;

/// Bytes of memory that a frame takes in an answer.
const FRAME: u64 = 128;

/// The inner part of a chain.
#[derive(Debug)]
pub(in crate::analysis) struct Inner {
    /// The root of the chain.
    pub(in crate::analysis) root: AsyncRoot,
    /// Boxes, continuations and tasks, innermost first. The last one is the owner's outermost method on this chain.
    pub(in crate::analysis) frames: Vec<Addr>,
    /// Managed id of the thread that runs the innermost frame.
    pub(in crate::analysis) thread: Option<u32>,
}

/// Finds an inner part of a chain for each owner: from the root up to the owner's outermost method. `ends` has the owner of each method (box or
/// continuation). If an owner has several such parts, the longest is returned.
pub(in crate::analysis) fn inner_chains(
    heap: &Heap,
    tasks: &Tasks,
    names: &mut Names<'_>,
    ends: &Map<Addr, Addr>,
    notes: &Collector,
) -> Map<Addr, Inner> {
    let runtime = heap.runtime();
    let graph = Graph::build(heap, tasks, names, notes);
    let budget = Budget::new(runtime.memory().dump_bytes(), runtime.limits().max_memory);
    let mut roots = Roots::new(heap, tasks, &graph, notes);
    let all = paths(&graph, &budget);
    let mut longest: Map<Addr, (&Path, usize)> = Map::default();
    for path in &all {
        let addresses = path.nodes.iter().map(|n| graph.node(*n).and_then(|node| ends.get(&node.address)));
        // The last frame of each owner. A chain through two owners, such as a proxy in the same process, belongs to both.
        let mut last: Map<Addr, usize> = Map::default();
        last.extend(addresses.enumerate().filter_map(|(i, owner)| Some((*owner?, i.saturating_add(1)))));
        for (owner, length) in last {
            let known = longest.entry(owner).or_insert((path, length));
            if known.1 < length {
                *known = (path, length);
            }
        }
    }
    let mut out = Map::default();
    let mut longest: Vec<(Addr, (&Path, usize))> = longest.into_iter().collect();
    longest.sort_unstable_by_key(|(owner, _)| *owner);
    for (owner, (path, length)) in longest {
        // In a forged dump, many owners may have methods on the same long chain.
        if !budget.memory(len64(length).saturating_mul(FRAME)) {
            break;
        }
        let Some(root) = roots.classify(path.root, path.cycle, names) else { continue };
        let nodes = path.nodes.iter().take(length).filter_map(|n| graph.node(*n));
        let frames: Vec<Addr> = nodes.map(|node| node.address).collect();
        let running = frames.first().and_then(|at| graph.running.get(at)).and_then(|running| running.thread);
        let on_stack = || frames.first().and_then(|at| roots.threads.get(at)).and_then(|ids| ids.first().copied());
        out.insert(owner, Inner { root, thread: running.or_else(on_stack), frames });
    }
    budget.note("following chains", notes);
    out
}
