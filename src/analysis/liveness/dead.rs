//! Garbage by generation.

use std::collections::{BTreeMap, BTreeSet};

use super::{ByType, Generations, OnGraph, collected_by};
use crate::base::store::caught;
use crate::base::{Addr, Answer};
use crate::heapgraph::Depends;
use crate::model::{Generation, Stacks, Sum, TypeBytes};
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
        for id in live.others() {
            let generation = of.get(id);
            generations.entry(generation).or_default().add(graph.size(id));
            if collected_by(generation).is_some_and(|youngest| youngest > 0) {
                types.add(graph, (), id);
            }
        }
        let types = types.rows(graph, &on.namer).into_iter().take(TYPES).map(|(_, t)| t).collect();
        let all = Sum { count: graph.len().into(), bytes: graph.bytes() };
        Ok(on.finish(Dead { all, generations, types }))
    })?
}

/// Returns the `objects` that are garbage.
///
/// # Errors
/// The errors of [`dead`].
pub(in crate::analysis) fn garbage_among(heap: &Heap, objects: &[Addr]) -> Result<Answer<BTreeSet<Addr>>, Error> {
    caught(|| {
        let on = OnGraph::open(heap, false, Stacks::default(), Some(Depends::Live))?;
        let live = heap.live(on.graph, on.stacks);
        let wanted: BTreeSet<Addr> = objects.iter().copied().collect();
        let garbage = live.others().map(|id| on.graph.address(id)).filter(|at| wanted.contains(at)).collect();
        Ok(on.finish(garbage))
    })?
}
