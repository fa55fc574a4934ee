//! `unreachable`: uncollected garbage, and the reasons that delay its collection.

mod report;

pub use report::*;

use std::collections::BTreeMap;

use super::{ByType, Generations, OnGraph, collected_by, registered};
use crate::base::store::caught;
use crate::base::{Addr, Answer, len64, top_or_all};
use crate::gc::ObjectId;
use crate::heapgraph::{Depends, Edges, ObjectSet, RootFlags};
use crate::model::{Stacks, Sum};
use crate::session::{Error, Heap, TypePattern};

/// Arguments of `unreachable`.
#[derive(Clone, Debug, Default)]
pub struct UnreachableQuery {
    /// Only objects of these types; empty for all. Totals cover only these.
    pub types: Vec<TypePattern>,
    /// List objects instead of types.
    pub objects: bool,
    /// Maximum number of rows to list, 0 for all.
    pub top: usize,
    /// Stack and register values that are treated as roots.
    pub stacks: Stacks,
}

/// Classifies garbage: each object that is not `live` belongs to one class.
pub(super) struct Garbage<'g> {
    pub(super) live: &'g ObjectSet,
    finalizable: ObjectSet,
    weak: ObjectSet,
    /// Objects reachable from dead objects of gen2, LOH and POH, and objects reachable from dead objects of gen1 or older.
    older: [ObjectSet; 2],
}

impl<'g> Garbage<'g> {
    /// Sorts garbage into classes. `level` returns the youngest collection that examines an object: 0, 1 or 2; `None` if no collection does.
    pub(super) fn sort(
        edges: &Edges,
        live: &'g ObjectSet,
        (finalizable, weakly_held): (&[ObjectId], &[ObjectId]),
        level: impl Fn(ObjectId) -> Option<u8>,
    ) -> Garbage<'g> {
        let dead = |_, to| !live.contains(to);
        let finalizable = edges.reach(finalizable.iter().copied().filter(|id| !live.contains(*id)), dead);
        let mut weak = edges.no_objects();
        weak.extend(weakly_held.iter().copied());
        let older = [2, 1].map(|least| edges.reach(live.others().filter(|id| level(*id) >= Some(least)), dead));
        Garbage { live, finalizable, weak, older }
    }

    pub(super) fn class(&self, id: ObjectId, level: Option<u8>) -> GarbageClass {
        let [old, middle] = &self.older;
        if self.finalizable.contains(id) {
            GarbageClass::FinalizerOnly
        } else if self.weak.contains(id) {
            GarbageClass::WeakOnly
        } else if level == Some(0) && middle.contains(id) || level == Some(1) && old.contains(id) {
            GarbageClass::DeadOlder
        } else {
            GarbageClass::Unreachable
        }
    }
}

/// Lists uncollected garbage.
///
/// # Errors
/// [`Error::Graph`], [`Error::Memory`] or [`Error::Room`] if the graph cannot be built.
pub fn unreachable(heap: &Heap, query: &UnreachableQuery) -> Result<Answer<UnreachableReport>, Error> {
    caught(|| unreachable_of(heap, query))?
}

fn unreachable_of(heap: &Heap, query: &UnreachableQuery) -> Result<Answer<UnreachableReport>, Error> {
    let on = OnGraph::open(heap, true, query.stacks, Some(Depends::Live))?;
    let (graph, namer) = (on.graph, &on.namer);
    let live = heap.live(graph, query.stacks);
    let of = Generations::of(heap, graph);
    let level = |id: ObjectId| collected_by(of.get(id));
    let weak = graph.roots.roots.iter().filter(|r| r.flags.has(RootFlags::WEAK));
    let weak: Vec<ObjectId> = weak.filter_map(|r| graph.index.id_of(r.object)).collect();
    let garbage = Garbage::sort(&graph.edges, &live, (&registered(&on), &weak), level);

    let mut lost = Sum::default();
    let mut totals: BTreeMap<GarbageClass, Sum> = BTreeMap::new();
    let mut types: ByType<GarbageClass> = ByType::default();
    let mut objects = Vec::new();
    let most = top_or_all(query.top);
    let wanted = (!query.types.is_empty()).then(|| graph.wanted_types(namer, &query.types, &on.notes));
    for id in garbage.live.others().filter(|id| wanted.as_ref().is_none_or(|w| graph.is_of(*id, w))) {
        let size = graph.size(id);
        let class = garbage.class(id, level(id));
        lost.add(size);
        totals.entry(class).or_default().add(size);
        if !query.objects {
            types.add(graph, class, id);
        } else if objects.len() < most {
            objects.push(GarbageObject {
                address: graph.address(id),
                type_name: graph.type_name(namer, id),
                method_table: graph.kind(id).map_or(Addr::NULL, |k| k.method_table),
                bytes: size,
                generation: of.get(id),
                class,
            });
        }
    }
    let all = match &wanted {
        Some(wanted) => Sum::of_sizes(graph.objects_of(wanted).into_iter().map(|id| graph.size(id))),
        None => Sum { count: graph.len().into(), bytes: graph.bytes() },
    };
    let mut rows: Vec<GarbageType> = types
        .rows(graph, namer)
        .into_iter()
        .map(|(class, t)| GarbageType { type_name: t.type_name, method_table: t.method_table, count: t.count, bytes: t.bytes, class })
        .collect();
    let listed = if query.objects { usize::try_from(lost.count).unwrap_or(usize::MAX) } else { rows.len() };
    rows.truncate(most);
    let report = UnreachableReport {
        reached: all.without(lost),
        unreachable: lost,
        classes: GarbageClass::ALL
            .into_iter()
            .map(|class| {
                let sum = totals.get(&class).copied().unwrap_or_default();
                GarbageTotal { class, count: sum.count, bytes: sum.bytes }
            })
            .collect(),
        rows: if query.objects { UnreachableRows::Objects { objects } } else { UnreachableRows::Types { types: rows } },
        shown: (listed > most).then(|| len64(most)),
        coverage: on.coverage(),
        stacks: query.stacks,
    };
    Ok(on.finish(report))
}
