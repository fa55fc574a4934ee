//! Liveness: garbage, simulated collections, hypothetical roots, and the bridge to another collector.

mod bridge;
mod by_type;
mod condense;
mod dead;
mod simulate;
#[cfg(test)]
mod tests;
mod unreachable;
mod whatif;

pub use bridge::{BridgeClass, BridgeClassKind, BridgeHandle, BridgeObject, BridgeReport, BridgeScc, BridgeWeakLink, BridgeXref};
pub use by_type::*;
pub use simulate::{CollectGeneration, CollectReport};
pub use unreachable::{GarbageClass, GarbageObject, GarbageTotal, GarbageType, UnreachableReport, UnreachableRows};
pub use whatif::{WhatifComponent, WhatifReport, WhatifWeak};

use std::cell::Cell;
use std::ops::Range;

use rustc_hash::FxHashMap;

pub use bridge::{BridgeQuery, bridge};
pub(in crate::analysis) use condense::condense;
pub(in crate::analysis) use dead::{Dead, dead, garbage_among};
pub use simulate::{CollectQuery, collect};
pub use unreachable::{UnreachableQuery, unreachable};
pub use whatif::{WhatifQuery, whatif};

use crate::analysis::on_graph::OnGraph;
use crate::base::{Addr, Index, Missing, top_or_all};
use crate::clr::header::{finalizer_suppressed, header_distance};
use crate::gc::{ObjectId, TypeIndex};
use crate::heapgraph::HeapGraph;
use crate::model::{FinalizerState, Generation, Sum};
use crate::session::{Heap, Namer};

/// Looks up the generation of an object.
struct Generations<'h> {
    heap: &'h Heap,
    graph: &'h HeapGraph,
    /// The objects of each segment with their generation, ascending.
    segments: Vec<(Range<ObjectId>, Generation)>,
    /// Index of the segment found last.
    last: Cell<usize>,
}

impl<'h> Generations<'h> {
    fn of(heap: &'h Heap, graph: &'h HeapGraph) -> Generations<'h> {
        let objects = |index| {
            let ids = graph.index.of_segment(index)?;
            let (first, count) = (ids.clone().next()?, u32::try_from(ids.len()).ok()?);
            Some(first..ObjectId::from_u32(first.as_u32().saturating_add(count)))
        };
        let segments = heap.walker().segments_enumerated().filter_map(|(index, s)| Some((objects(index)?, s.generation)));
        let mut segments: Vec<(Range<ObjectId>, Generation)> = segments.collect();
        segments.sort_by_key(|(ids, _)| ids.start);
        Generations { heap, graph, segments, last: Cell::new(0) }
    }

    fn get(&self, id: ObjectId) -> Generation {
        let here = |at: usize| self.segments.get(at).filter(|(ids, _)| ids.contains(&id));
        let found = here(self.last.get()).or_else(|| {
            self.last.set(self.segments.partition_point(|(ids, _)| ids.start <= id).saturating_sub(1));
            here(self.last.get())
        });
        match found.map(|(_, generation)| *generation) {
            Some(Generation::Ephemeral) => self.heap.generation_of(self.graph.address(id)).unwrap_or(Generation::Ephemeral),
            Some(generation) => generation,
            None => Generation::Ephemeral,
        }
    }
}

/// Returns the youngest generation whose collection examines objects of `generation`; collections of older generations examine them as well. `None`
/// for objects that no collection examines.
fn collected_by(generation: Generation) -> Option<u8> {
    match generation {
        // With unknown parts, the whole ephemeral segment is treated as young.
        Generation::Ephemeral | Generation::Gen0 => Some(0),
        Generation::Gen1 => Some(1),
        Generation::Gen2 | Generation::Loh | Generation::Poh | Generation::Unknown => Some(2),
        Generation::Frozen => None,
    }
}

/// Returns the objects that are registered for finalization and that the GC has not found dead yet. `GC.SuppressFinalize` leaves an object in the queue and
/// sets a bit of its header word: the GC that finds such an object dead frees it at once, so it is left out.
fn registered(on: &OnGraph<'_>) -> Vec<ObjectId> {
    let queues = on.notes.take(on.heap.gc().finalizer_queues());
    let entries = queues.iter().flat_map(|q| &q.entries).filter(|e| e.state == FinalizerState::Registered);
    let mut entries = entries.filter_map(|e| Some((e.object, on.graph.index.id_of(e.object)?))).peekable();
    if entries.peek().is_none() {
        return Vec::new();
    }
    let Some(before) = on.heap.runtime().scoped(&on.notes, |d| header_distance(d).ok()) else {
        let what = "objects whose finalizers were suppressed count as finalizable: the runtime does not describe object headers";
        on.notes.add(Missing::Layouts, None, what);
        return entries.map(|(_, id)| id).collect();
    };
    let word = |object: Addr| on.heap.memory().u32(object.minus(before)?).ok();
    entries.filter(|(object, _)| !word(*object).is_some_and(finalizer_suppressed)).map(|(_, id)| id).collect()
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

    /// Returns the rows, largest first.
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

/// Returns the totals of `ids`, by type; at most `top` types, 0 for all.
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
