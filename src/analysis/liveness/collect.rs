//! `simulate collect`: what a collection would free now.

use std::collections::BTreeMap;

use super::{OnGraph, by_type, collected_by, generation, generations, reach, registered};
use crate::base::Answer;
use crate::model::{CollectGeneration, CollectReport, Generation, ObjectSum};
use crate::session::{Error, Heap};

/// Which collection.
#[derive(Clone, Copy, Debug, Default)]
pub struct CollectQuery {
    /// The oldest generation to collect: 0, 1 or 2; 2 also collects large and pinned objects.
    pub generation: u8,
    /// Types to list, 0 for all.
    pub top: usize,
}

/// What a collection would free now. Objects of older generations start the search as roots do, as if every reference of theirs
/// were known.
///
/// # Errors
/// [`Error::Graph`] and [`Error::Memory`] where there is no graph.
pub fn collect(heap: &Heap, query: &CollectQuery) -> Result<Answer<CollectReport>, Error> {
    let on = OnGraph::open(heap, true)?;
    let (graph, oldest) = (on.graph, query.generation);
    let of = generations(heap, graph);
    let condemned = |id: u32| collected_by(generation(&of, id)).is_some_and(|g| g <= oldest);
    let starts = (0..graph.len()).filter(|id| !condemned(*id)).chain(graph.held.iter().copied());
    let live = reach(&graph.edges, starts, |_, _| true);
    let due = registered(&on).into_iter().filter(|id| !live.test(*id));
    let resurrected = reach(&graph.edges, due, |_, to| !live.test(to));

    let (mut rows, mut untouched): (BTreeMap<Generation, CollectGeneration>, ObjectSum) = (BTreeMap::new(), ObjectSum::default());
    for id in 0..graph.len() {
        let size = graph.size(id);
        if !condemned(id) {
            untouched.add(size);
            continue;
        }
        let generation = generation(&of, id);
        let none = ObjectSum::default();
        let row = rows.entry(generation).or_insert(CollectGeneration {
            generation,
            objects: none,
            survivors: none,
            resurrected: none,
            freed: none,
        });
        row.objects.add(size);
        if live.test(id) {
            row.survivors.add(size);
        } else if resurrected.test(id) {
            row.resurrected.add(size);
        } else {
            row.freed.add(size);
        }
    }
    let sum = |wanted: &dyn Fn(&CollectGeneration) -> bool, part: fn(&CollectGeneration) -> ObjectSum| {
        rows.values()
            .filter(|r| wanted(r))
            .map(part)
            .fold(ObjectSum::default(), |a, b| ObjectSum { count: a.count.saturating_add(b.count), bytes: a.bytes.saturating_add(b.bytes) })
    };
    let young = |r: &CollectGeneration| collected_by(r.generation).is_some_and(|g| g < 2);
    let report = CollectReport {
        generation: oldest,
        freed: by_type(&on, (0..graph.len()).filter(|id| condemned(*id) && !live.test(*id) && !resurrected.test(*id)), query.top),
        survivors: sum(&|_| true, |r| r.survivors),
        promoted: sum(&young, |r| r.survivors),
        resurrected: sum(&|_| true, |r| r.resurrected),
        untouched,
        generations: rows.values().cloned().collect(),
        coverage: graph.roots.coverage.clone(),
    };
    Ok(on.finish(report))
}
