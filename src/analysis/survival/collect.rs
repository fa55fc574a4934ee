//! `simulate collect`: what a collection would free now.

use std::collections::BTreeMap;

use super::super::{HeapGraph, Namer};
use super::{by_type, collected_by, generation, generations, reach, registered};
use crate::gc::{Gc, Heap};
use crate::model::{CollectGeneration, CollectReport, Generation, ObjectSum};

/// What a collection of generation `oldest` (0, 1 or 2) would free. Objects of older generations start the search as roots do,
/// as if every reference of theirs were known.
pub fn collect(gc: &Gc, heap: &Heap, graph: &HeapGraph, namer: &Namer, oldest: u8) -> CollectReport {
    let of = generations(heap, graph);
    let condemned = |id: u32| collected_by(generation(&of, id)).is_some_and(|g| g <= oldest);
    let starts = (0..graph.len()).filter(|id| !condemned(*id)).chain(graph.held.iter().copied());
    let live = reach(&graph.edges, starts, |_, _| true);
    let due = registered(gc, graph).into_iter().filter(|id| !live.test(*id));
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
    CollectReport {
        generation: oldest,
        freed: by_type(graph, namer, (0..graph.len()).filter(|id| condemned(*id) && !live.test(*id) && !resurrected.test(*id))),
        survivors: sum(&|_| true, |r| r.survivors),
        promoted: sum(&young, |r| r.survivors),
        resurrected: sum(&|_| true, |r| r.resurrected),
        untouched,
        generations: rows.values().cloned().collect(),
        coverage: graph.roots.coverage.clone(),
    }
}
