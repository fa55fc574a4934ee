//! Garbage by generation.

use std::collections::{BTreeMap, BTreeSet};

use super::{ByType, Generations, OnGraph, collected_by, registered};
use crate::analysis::TypeBytes;
use crate::base::store::caught;
use crate::base::{Addr, Answer};
use crate::gc::ObjectId;
use crate::heapgraph::{Depends, RootFlags};
use crate::model::{Generation, RootKind, Stacks, Sum};
use crate::session::{Error, Heap};

/// Maximum number of types kept.
const TYPES: usize = 10;

/// Garbage by generation, and by type outside of gen0.
#[derive(Debug)]
pub(in crate::analysis) struct Dead {
    /// All objects.
    pub(in crate::analysis) all: Sum,
    /// Garbage by generation.
    pub(in crate::analysis) generations: BTreeMap<Generation, Sum>,
    /// Types with the most garbage outside of gen0.
    pub(in crate::analysis) types: Vec<TypeBytes>,
    /// Garbage outside of gen0 that survives the next collection: objects whose finalizers have not run, and the garbage that they reach.
    pub(in crate::analysis) unfinalized: Sum,
    /// Objects that are alive only because their finalizers are about to run, and the objects that only they keep alive.
    pub(in crate::analysis) ready: Sum,
    /// Objects that only pinned handles keep alive.
    pub(in crate::analysis) pinned: Sum,
}

/// Computes the garbage of a heap.
///
/// # Errors
/// [`Error::Graph`], [`Error::Memory`] or [`Error::Room`] if the graph cannot be built.
pub(in crate::analysis) fn dead(heap: &Heap) -> Result<Answer<Dead>, Error> {
    caught(|| {
        let on = OnGraph::open(heap, false, Stacks::default(), Some(Depends::Live))?;
        let graph = on.graph;
        let live = heap.live(graph, on.stacks);
        let of = Generations::of(heap, graph);
        let mut generations: BTreeMap<Generation, Sum> = BTreeMap::new();
        let mut types = ByType::default();
        let finalizable = registered(&on).into_iter().filter(|id| !live.contains(*id));
        let survives = graph.edges.reach(finalizable, |_, to| !live.contains(to));
        let mut unfinalized = Sum::default();
        for id in live.others() {
            let generation = of.get(id);
            generations.entry(generation).or_default().add(graph.size(id));
            if collected_by(generation).is_some_and(|youngest| youngest > 0) {
                types.add(graph, (), id);
                if survives.contains(id) {
                    unfinalized.add(graph.size(id));
                }
            }
        }
        let only = |kinds: &[RootKind]| {
            // The search is not needed without such roots.
            if !graph.roots.roots.iter().any(|r| kinds.contains(&r.kind)) {
                return Sum::default();
            }
            let others = graph.rooted_by(|r| r.counts(on.stacks) && !kinds.contains(&r.kind));
            let held = graph.edges.reachable(others.into_iter().chain(graph.frozen.iter().copied()));
            Sum::of_sizes(held.others().filter(|id| live.contains(*id)).map(|id| graph.size(id)))
        };
        let ready = only(&[RootKind::FinalizerReady]);
        let pinned = only(&[RootKind::PinnedHandle, RootKind::AsyncPinnedHandle]);
        let types = types.rows(graph, &on.namer).into_iter().take(TYPES).map(|(_, t)| t).collect();
        let all = Sum { count: graph.len().into(), bytes: graph.bytes() };
        Ok(on.finish(Dead { all, generations, types, unfinalized, ready, pinned }))
    })?
}

/// Returns the `objects` that are garbage.
///
/// # Errors
/// The errors of [`dead`].
pub(in crate::analysis) fn garbage_among(heap: &Heap, objects: &[Addr]) -> Result<Answer<BTreeSet<Addr>>, Error> {
    caught(|| {
        let on = OnGraph::open(heap, false, Stacks::default(), None)?;
        let live = heap.live(on.graph, on.stacks);
        let wanted: BTreeSet<Addr> = objects.iter().copied().collect();
        // Roots that may be stale matter only for objects that no certain root keeps alive.
        let certain = on.graph.rooted_by(|r| r.counts(on.stacks) && !r.flags.has(RootFlags::DOUBTFUL));
        let certain = on.graph.edges.reachable(certain.into_iter().chain(on.graph.frozen.iter().copied()));
        let doubtful = |id: &ObjectId| live.contains(*id) && !certain.contains(*id);
        let targets: Vec<ObjectId> = wanted.iter().filter_map(|at| on.around(*at)).filter(doubtful).collect();
        on.graph.note_doubts_of(&targets, on.stacks, &on.notes);
        let garbage = live.others().map(|id| on.graph.address(id)).filter(|at| wanted.contains(at)).collect();
        Ok(on.finish(garbage))
    })?
}
