//! Liveness: garbage, simulated collections, hypothetical roots, and the bridge to another collector.

mod bridge;
mod collect;
mod condense;
#[cfg(test)]
mod tests;
mod unreachable;
mod whatif;

use rustc_hash::FxHashMap;

pub use bridge::{BridgeQuery, bridge};
pub use collect::{CollectQuery, collect};
pub(super) use condense::condense;
pub use unreachable::{UnreachableQuery, unreachable};
pub use whatif::{WhatifQuery, whatif};

use super::on_graph::OnGraph;
use crate::base::{Addr, IndexVec, top_or_all};
use crate::gc::{ObjectId, TypeIndex};
use crate::model::{FinalizerState, Generation, ObjectsByType, Sum, TypeBytes};
use crate::session::{Heap, HeapGraph, Namer};

/// The generation of each object.
fn generations(heap: &Heap, graph: &HeapGraph) -> Generations {
    let mut of: Generations = vec![Generation::Ephemeral; graph.ids().len()].into();
    for (index, segment) in heap.walker().segments_enumerated() {
        for id in graph.index.of_segment(index).into_iter().flatten() {
            let generation = match segment.generation {
                Generation::Ephemeral => heap.generation_of(graph.address(id)).unwrap_or(Generation::Ephemeral),
                other => other,
            };
            if let Some(slot) = of.get_mut(id) {
                *slot = generation;
            }
        }
    }
    of
}

type Generations = IndexVec<ObjectId, Generation>;

fn generation(of: &Generations, id: ObjectId) -> Generation {
    of.get(id).copied().unwrap_or(Generation::Ephemeral)
}

/// The youngest collection that examines objects of a generation; older ones do so too. `None` for objects that no
/// collection examines.
fn collected_by(generation: Generation) -> Option<u8> {
    match generation {
        // With unknown parts, the whole ephemeral segment counts as young.
        Generation::Ephemeral | Generation::Gen0 => Some(0),
        Generation::Gen1 => Some(1),
        Generation::Gen2 | Generation::Loh | Generation::Poh => Some(2),
        Generation::Frozen => None,
    }
}

/// Objects registered for finalization and not yet found dead.
fn registered(on: &OnGraph<'_>) -> Vec<ObjectId> {
    let queues = on.notes.take(on.heap.gc().finalizer_queues());
    let entries = queues.iter().flat_map(|q| &q.entries).filter(|e| e.state == FinalizerState::Registered);
    entries.filter_map(|e| on.graph.index.id_of(e.object)).collect()
}

/// Counts objects by a key and by type.
struct ByType<K> {
    rows: FxHashMap<(K, Option<TypeIndex>), Sum>,
}

impl<K> Default for ByType<K> {
    fn default() -> Self {
        ByType { rows: FxHashMap::default() }
    }
}

impl<K: Copy + Eq + std::hash::Hash + Ord> ByType<K> {
    fn add(&mut self, graph: &HeapGraph, key: K, id: ObjectId) {
        self.rows.entry((key, graph.type_index(id))).or_default().add(graph.size(id));
    }

    /// The rows, largest first.
    fn rows(self, graph: &HeapGraph, namer: &Namer) -> Vec<(K, TypeBytes)> {
        let row = |((key, ty), sum): ((K, Option<TypeIndex>), Sum)| {
            let kind = ty.and_then(|t| graph.types.get(t));
            let method_table = kind.map_or(Addr::NULL, |k| k.method_table);
            (key, TypeBytes { type_name: namer.name_or_address(method_table), method_table, count: sum.count, bytes: sum.bytes })
        };
        let mut rows: Vec<(K, TypeBytes)> = self.rows.into_iter().map(row).collect();
        rows.sort_by(|(ka, a), (kb, b)| {
            b.bytes.cmp(&a.bytes).then_with(|| a.type_name.cmp(&b.type_name)).then(a.method_table.cmp(&b.method_table)).then(ka.cmp(kb))
        });
        rows
    }
}

/// Totals of `ids`, by type; `top` types, 0 for all.
fn by_type(on: &OnGraph<'_>, ids: impl IntoIterator<Item = ObjectId>, top: usize) -> ObjectsByType {
    let graph = on.graph;
    let (mut total, mut types) = (Sum::default(), ByType::default());
    for id in ids {
        total.add(graph.size(id));
        types.add(graph, (), id);
    }
    let mut rows: Vec<TypeBytes> = types.rows(graph, &on.namer).into_iter().map(|(_, t)| t).collect();
    rows.truncate(top_or_all(top));
    ObjectsByType { count: total.count, bytes: total.bytes, types: rows }
}
