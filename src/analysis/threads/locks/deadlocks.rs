//! Threads that wait for each other.

use std::collections::BTreeSet;

use super::waits::Blocked;
use crate::analysis::{BlockedStack, DeadlockModel, WaitEdge, WaitEdgeKind};
use crate::base::hash::{Map, Set};
use crate::base::{Addr, Count, Name};
use crate::graph::{Components, Csr, CsrBuilder, GraphError};

/// Maximum number of edges between waiting threads. There may be many, because each writer waits for all readers.
pub(super) const MAX_EDGES: usize = 1 << 22;
/// Most frames listed for each thread.
const MAX_FRAMES: usize = 16;

/// An edge from a thread to one that it waits for. Threads are numbered as in the runtime's list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Edge {
    pub(super) from: u32,
    pub(super) to: u32,
    pub(super) object: Addr,
    /// Whether the wait is certain, and is known to have no timeout.
    pub(super) certain: bool,
    pub(super) kind: WaitEdgeKind,
    /// Whether the thread waits for `to` only after the holder of the lock: `to` is a writer that waits for the same lock.
    pub(super) later: bool,
    /// The context or scheduler, if `kind` is [`WaitEdgeKind::Context`].
    pub(super) context: Option<Addr>,
    /// The number of a group of alternatives: the thread continues as soon as it need not wait for one of the threads in the group.
    pub(super) any: Option<u32>,
}

/// The graph of threads and the threads that they wait for.
#[derive(Debug)]
pub(super) struct WaitGraph {
    edges: Vec<Edge>,
    graph: Csr,
    /// The reversed edges.
    back: Csr,
}

impl WaitGraph {
    /// Builds the graph of `threads` threads. An edge from a thread to itself is dropped, because it can only be misread: monitors and `Lock`s are
    /// recursive, and reader-writer locks throw. Only a wait for what the thread's own context would run is kept. Alternatives are dropped if one of them leads to a thread that can continue.
    ///
    /// # Errors
    /// [`GraphError`] if there are too many edges.
    pub(super) fn new(threads: u32, mut edges: Vec<Edge>) -> Result<WaitGraph, GraphError> {
        edges.retain(|e| (e.from != e.to || e.kind == WaitEdgeKind::Context) && e.from < threads && e.to < threads);
        let met = met(threads, &edges);
        edges.retain(|e| e.any.is_none_or(|group| !met.contains(&(e.from, group))));
        edges.sort_by_key(|e| (e.from, e.to, e.object));
        let mut rows = CsrBuilder::default();
        for thread in 0..threads {
            let from = edges.partition_point(|e| e.from < thread);
            edges.iter().skip(from).take_while(|e| e.from == thread).for_each(|e| rows.push_edge(e.to));
            rows.end_node()?;
        }
        let graph = rows.finish()?;
        Ok(WaitGraph { back: graph.reversed(), graph, edges })
    }

    /// Returns the groups of threads that wait for each other; the threads of a group are sorted. A group may be one thread that waits for itself.
    pub(super) fn cycles(&self) -> Vec<Vec<u32>> {
        let members = Components::compute(&self.graph).members();
        let mut out: Vec<Vec<u32>> =
            (0..members.len()).map(|i| members.row(i).to_vec()).filter(|m| m.len() > 1 || self.is_own(m)).collect();
        out.sort();
        out
    }

    /// Whether these threads are one that waits for itself.
    fn is_own(&self, threads: &[u32]) -> bool {
        matches!(threads, [one] if self.owners(*one).contains(one))
    }

    /// Returns the graph without the edges that are marked `later`.
    ///
    /// # Errors
    /// See [`WaitGraph::new`].
    pub(super) fn first(&self) -> Result<WaitGraph, GraphError> {
        WaitGraph::new(self.graph.nodes(), self.edges.iter().filter(|e| !e.later).copied().collect())
    }

    /// The threads that wait for one of `cycle`, directly or not.
    pub(super) fn victims(&self, cycle: &[u32]) -> BTreeSet<u32> {
        let mut out = self.with_waiters(cycle.to_vec());
        cycle.iter().for_each(|thread| {
            out.remove(thread);
        });
        out
    }

    /// Returns `threads` and the threads that wait for one of them, directly or not.
    pub(super) fn with_waiters(&self, threads: Vec<u32>) -> BTreeSet<u32> {
        let (mut out, mut open) = (threads.iter().copied().collect::<BTreeSet<u32>>(), threads);
        while let Some(thread) = open.pop() {
            open.extend(self.waiters(thread).iter().copied().filter(|waiter| out.insert(*waiter)));
        }
        out
    }

    /// The threads that `thread` waits for.
    pub(super) fn owners(&self, thread: u32) -> &[u32] {
        self.graph.successors(thread)
    }

    /// The threads that wait for `thread`.
    pub(super) fn waiters(&self, thread: u32) -> &[u32] {
        self.back.successors(thread)
    }

    /// Returns the model of a deadlock. `id` returns the managed id of a thread, `name` the type name of an object or the name of a method table's
    /// type.
    pub(super) fn model(
        &self,
        cycle: &[u32],
        id: impl Fn(u32) -> u32,
        name: impl Fn(Addr, bool) -> Option<Name>,
        threads: &[(usize, Blocked<'_>)],
    ) -> DeadlockModel {
        // The edges are sorted by thread, and cycles are sorted too.
        let of = |thread: u32| {
            let from = self.edges.partition_point(|e| e.from < thread);
            self.edges.iter().skip(from).take_while(move |e| e.from == thread)
        };
        let inside: Vec<&Edge> = cycle.iter().flat_map(|t| of(*t)).filter(|e| cycle.binary_search(&e.to).is_ok()).collect();
        let mut edges: Vec<WaitEdge> = inside
            .iter()
            .map(|e| (e, name(e.object, e.kind == WaitEdgeKind::ClassConstructor)))
            .map(|(e, type_name)| WaitEdge {
                from: id(e.from),
                to: id(e.to),
                object: e.object,
                kind: e.kind,
                type_name,
                context: e.context,
                context_type: e.context.and_then(|at| name(at, false)),
            })
            .collect();
        edges.sort();
        edges.dedup();
        let stack = |thread: &u32| {
            let at = usize::try_from(*thread).ok().and_then(|t| threads.binary_search_by_key(&t, |(i, _)| *i).ok());
            let frames = at.and_then(|at| threads.get(at)).map(|(_, t)| t.frames.as_slice()).unwrap_or_default();
            BlockedStack { managed_id: id(*thread), frames: frames.iter().take(MAX_FRAMES).map(|f| f.name.to_string()).collect() }
        };
        DeadlockModel {
            threads: cycle.iter().map(|t| id(*t)).collect(),
            edges,
            possible: !inside.iter().all(|e| e.certain),
            victims: self.victims(cycle).into_iter().map(&id).collect(),
            stacks: cycle.iter().map(stack).collect(),
        }
    }
}

/// Returns the groups of alternatives, as waiting thread and number, of which at least one thread can continue: it does not wait for another
/// thread, or only for threads that can continue.
fn met(threads: u32, edges: &[Edge]) -> Set<(u32, u32)> {
    let mut met = Set::default();
    if edges.iter().all(|e| e.any.is_none()) {
        return met;
    }
    // For each thread, the number of threads and groups that it waits for.
    let mut open: Map<u32, usize> = Map::default();
    let mut groups = Set::default();
    let mut into: Vec<&Edge> = edges.iter().collect();
    into.sort_by_key(|e| e.to);
    for e in edges.iter().filter(|e| e.any.is_none_or(|group| groups.insert((e.from, group)))) {
        open.entry(e.from).or_default().bump();
    }
    let mut ready: Vec<u32> = (0..threads).filter(|thread| !open.contains_key(thread)).collect();
    while let Some(thread) = ready.pop() {
        let first = into.partition_point(|e| e.to < thread);
        for e in into.iter().skip(first).take_while(|e| e.to == thread) {
            if e.any.is_none_or(|group| met.insert((e.from, group)))
                && let Some(left) = open.get_mut(&e.from)
            {
                *left = left.saturating_sub(1);
                if *left == 0 {
                    ready.push(e.from);
                }
            }
        }
    }
    met
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edge(from: u32, to: u32) -> Edge {
        Edge { from, to, object: Addr(0x1000), certain: true, kind: WaitEdgeKind::Holds, later: false, context: None, any: None }
    }

    #[test]
    fn cycles_have_victims_and_no_thread_waits_for_itself() {
        // 0 ⇄ 1, 2 → 0, 3 → 2; 4 → 5 → 6 → 4; 7 → 7.
        let edges = [(0, 1), (1, 0), (2, 0), (3, 2), (4, 5), (5, 6), (6, 4), (7, 7)].map(|(a, b)| edge(a, b));
        let graph = WaitGraph::new(8, edges.to_vec()).unwrap();
        assert_eq!(graph.cycles(), [vec![0, 1], vec![4, 5, 6]]);
        assert_eq!(graph.victims(&[0, 1]), BTreeSet::from([2, 3]));
        assert!(graph.victims(&[4, 5, 6]).is_empty());
        assert!(graph.owners(7).is_empty());
        let model = graph.model(&[0, 1], |t| t + 10, |_, _| None, &[]);
        assert_eq!((model.threads, model.victims, model.possible), (vec![10, 11], vec![12, 13], false));
        assert_eq!(model.edges.iter().map(|e| (e.from, e.to)).collect::<Vec<_>>(), [(10, 11), (11, 10)]);
    }

    #[test]
    fn an_edge_that_is_not_certain_makes_a_deadlock_possible() {
        let graph = WaitGraph::new(2, vec![edge(0, 1), Edge { certain: false, ..edge(1, 0) }]).unwrap();
        assert!(graph.model(&[0, 1], |t| t, |_, _| None, &[]).possible);
    }

    #[test]
    fn a_thread_may_wait_for_its_own_context() {
        let context = Some(Addr(0x2000));
        let of = |from, to| Edge { kind: WaitEdgeKind::Context, context, ..edge(from, to) };
        let graph = WaitGraph::new(4, vec![of(0, 0), edge(1, 0), edge(2, 2)]).unwrap();
        assert_eq!(graph.cycles(), [[0]]);
        let model = graph.model(&[0], |t| t, |at, _| (at == Addr(0x2000)).then(|| "Lab.Ui".into()), &[]);
        assert_eq!((model.threads, model.victims, model.possible), (vec![0], vec![1], false));
        assert_eq!((model.edges[0].context, model.edges[0].context_type.as_deref()), (context, Some("Lab.Ui")));
        // A context of two threads, one of which can continue.
        let any = |from, to| Edge { any: Some(0), ..of(from, to) };
        assert!(WaitGraph::new(4, vec![any(0, 0), any(0, 1)]).unwrap().cycles().is_empty());
        assert_eq!(WaitGraph::new(4, vec![any(0, 0), any(0, 1), any(1, 0), any(1, 1)]).unwrap().cycles(), [[0, 1]]);
        assert_eq!(WaitGraph::new(4, vec![any(0, 0), any(0, 1), edge(1, 0)]).unwrap().cycles(), [[0, 1]]);
    }

    #[test]
    fn a_wait_for_one_of_several_is_a_deadlock_only_if_none_can_continue() {
        let any = |from, to| Edge { any: Some(0), ..edge(from, to) };
        let cycles = |edges: &[Edge]| WaitGraph::new(5, edges.to_vec()).unwrap().cycles();
        // 0 waits for 1 or 2; 1 waits for 0.
        let held = [any(0, 1), any(0, 2), edge(1, 0)];
        assert!(cycles(&held).is_empty(), "2 can continue");
        // 2 waits for 3, which can continue.
        assert!(cycles(&[&held[..], &[edge(2, 3)]].concat()).is_empty());
        assert_eq!(cycles(&[&held[..], &[edge(2, 0)]].concat()), [[0, 1, 2]]);
        // 2 is in another deadlock.
        assert_eq!(cycles(&[&held[..], &[edge(2, 3), edge(3, 2)]].concat()), [[0, 1], [2, 3]]);
        // 0 also waits for one of 3 and 4, which can continue, but that does not help.
        let other = [(0, 3), (0, 4)].map(|(a, b)| Edge { any: Some(1), ..edge(a, b) });
        assert_eq!(cycles(&[&held[..], &other, &[edge(2, 0)]].concat()), [[0, 1, 2]]);
        let model = WaitGraph::new(5, [&held[..], &[edge(2, 0)]].concat()).unwrap().model(&[0, 1, 2], |t| t, |_, _| None, &[]);
        assert!(!model.possible);
    }
}
