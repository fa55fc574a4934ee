//! Who lives, who dies, and why: the bridge to another collector, other roots than there are, garbage, collections.

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
pub use condense::{Condensed, condense};
pub use unreachable::{UnreachableQuery, unreachable};
pub use whatif::{WhatifQuery, whatif};

use super::on_graph::OnGraph;
use crate::base::Addr;
use crate::graph::{BitSet, reach};
use crate::model::{FinalizerState, Generation, ObjectSum, ObjectsByType, TypeBytes};
use crate::session::{Heap, HeapGraph, Namer};

/// The generation of each object, by its number.
fn generations(heap: &Heap, graph: &HeapGraph) -> Vec<Generation> {
    let mut of = vec![Generation::Ephemeral; usize::try_from(graph.len()).unwrap_or(0)];
    for (number, segment) in heap.segments().iter().enumerate() {
        let Some((first, count)) = graph.index.of_segment(number) else { continue };
        for id in first..first.saturating_add(count) {
            let generation = match segment.generation {
                Generation::Ephemeral => heap.generation_of(graph.address(id)).unwrap_or(Generation::Ephemeral),
                other => other,
            };
            if let Some(slot) = usize::try_from(id).ok().and_then(|i| of.get_mut(i)) {
                *slot = generation;
            }
        }
    }
    of
}

fn generation(of: &[Generation], id: u32) -> Generation {
    usize::try_from(id).ok().and_then(|i| of.get(i)).copied().unwrap_or(Generation::Ephemeral)
}

/// Up to which collection objects of a generation are left alone: they are looked at by collections of this generation and
/// of older ones. `None` for those that no collection looks at.
fn collected_by(generation: Generation) -> Option<u8> {
    match generation {
        // Where its parts are not known, all of the ephemeral segment counts as young.
        Generation::Ephemeral | Generation::Gen0 => Some(0),
        Generation::Gen1 => Some(1),
        Generation::Gen2 | Generation::Loh | Generation::Poh => Some(2),
        Generation::Frozen => None,
    }
}

/// Numbers of the objects whose finalizer has not been found due.
fn registered(on: &OnGraph<'_>) -> Vec<u32> {
    let queues = on.notes.take(on.heap.gc().finalizer_queues());
    let entries = queues.iter().flat_map(|q| &q.entries).filter(|e| e.state == FinalizerState::Registered);
    entries.filter_map(|e| on.graph.index.id_of(e.object)).collect()
}

/// The numbers that are not in `set`, ascending.
fn outside(set: &BitSet) -> impl Iterator<Item = u32> + '_ {
    (0..set.bound()).filter(|id| !set.test(*id))
}

/// Counts objects by something and by type.
struct ByType<K> {
    rows: FxHashMap<(K, u32), ObjectSum>,
}

impl<K> Default for ByType<K> {
    fn default() -> Self {
        ByType { rows: FxHashMap::default() }
    }
}

impl<K: Copy + Eq + std::hash::Hash + Ord> ByType<K> {
    fn add(&mut self, graph: &HeapGraph, key: K, id: u32) {
        self.rows.entry((key, graph.type_index(id))).or_default().add(graph.size(id));
    }

    /// The most bytes first.
    fn rows(self, graph: &HeapGraph, namer: &Namer) -> Vec<(K, TypeBytes)> {
        let row = |((key, index), sum): ((K, u32), ObjectSum)| {
            let kind = usize::try_from(index).ok().and_then(|i| graph.types.get(i));
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

/// The sums over `ids`, by type; `top` types, 0 for all.
fn by_type(on: &OnGraph<'_>, ids: impl IntoIterator<Item = u32>, top: usize) -> ObjectsByType {
    let graph = on.graph;
    let (mut total, mut types) = (ObjectSum::default(), ByType::default());
    for id in ids {
        total.add(graph.size(id));
        types.add(graph, (), id);
    }
    let mut rows: Vec<TypeBytes> = types.rows(graph, &on.namer).into_iter().map(|(_, t)| t).collect();
    rows.truncate(if top == 0 { usize::MAX } else { top });
    ObjectsByType { count: total.count, bytes: total.bytes, types: rows }
}
