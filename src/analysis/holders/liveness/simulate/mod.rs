//! `simulate collect`: objects that a garbage collection would free now.

mod report;

pub use report::*;

use std::collections::BTreeMap;

use super::{Generations, OnGraph, by_type, collected_by, registered};
use crate::base::Answer;
use crate::base::store::caught;
use crate::gc::ObjectId;
use crate::heapgraph::Depends;
use crate::model::{Generation, Stacks, Sum};
use crate::session::{Error, Heap};

/// Arguments of `simulate collect`.
#[derive(Clone, Copy, Debug, Default)]
pub struct CollectQuery {
    /// Oldest generation to collect: 0, 1 or 2; 2 includes LOH and POH.
    pub generation: u8,
    /// Maximum number of types to list, 0 for all.
    pub top: usize,
    /// Stack and register values that are treated as roots.
    pub stacks: Stacks,
}

/// Simulates a collection. Objects of older generations are treated as roots, as if the card table marked all of their
/// references.
///
/// # Errors
/// [`Error::Graph`], [`Error::Memory`] or [`Error::Room`] if the graph cannot be built.
pub fn collect(heap: &Heap, query: &CollectQuery) -> Result<Answer<CollectReport>, Error> {
    caught(|| collect_of(heap, query))?
}

fn collect_of(heap: &Heap, query: &CollectQuery) -> Result<Answer<CollectReport>, Error> {
    let on = OnGraph::open(heap, true, query.stacks, Some(Depends::Live))?;
    let (graph, oldest) = (on.graph, query.generation);
    let of = Generations::of(heap, graph);
    let condemned = |id: ObjectId| collected_by(of.get(id)).is_some_and(|g| g <= oldest);
    let starts = graph.ids().filter(|id| !condemned(*id)).chain(graph.rooted(query.stacks));
    let live = graph.edges.reachable(starts);
    let due = registered(&on).into_iter().filter(|id| !live.contains(*id));
    let resurrected = graph.edges.reach(due, |_, to| !live.contains(to));

    let (mut rows, mut untouched): (BTreeMap<Generation, CollectGeneration>, Sum) = (BTreeMap::new(), Sum::default());
    for id in graph.ids() {
        let size = graph.size(id);
        if !condemned(id) {
            untouched.add(size);
            continue;
        }
        let generation = of.get(id);
        let none = Sum::default();
        let row = rows.entry(generation).or_insert(CollectGeneration {
            generation,
            objects: none,
            survivors: none,
            resurrected: none,
            freed: none,
        });
        row.objects.add(size);
        if live.contains(id) {
            row.survivors.add(size);
        } else if resurrected.contains(id) {
            row.resurrected.add(size);
        } else {
            row.freed.add(size);
        }
    }
    let sum = |wanted: &dyn Fn(&CollectGeneration) -> bool, part: fn(&CollectGeneration) -> Sum| {
        Sum::of(rows.values().filter(|r| wanted(r)).map(part))
    };
    let young = |r: &CollectGeneration| collected_by(r.generation).is_some_and(|g| g < 2);
    let report = CollectReport {
        generation: oldest,
        freed: by_type(&on, graph.ids().filter(|id| condemned(*id) && !live.contains(*id) && !resurrected.contains(*id)), query.top),
        survivors: sum(&|_| true, |r| r.survivors),
        promoted: sum(&young, |r| r.survivors),
        resurrected: sum(&|_| true, |r| r.resurrected),
        untouched,
        generations: rows.values().cloned().collect(),
        coverage: on.coverage(),
        stacks: query.stacks,
    };
    Ok(on.finish(report))
}
