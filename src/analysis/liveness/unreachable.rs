//! `unreachable`: garbage, and what is still between it and being freed.

use std::collections::BTreeMap;

use super::{ByType, OnGraph, collected_by, generation, generations, outside, registered};
use crate::base::{Addr, Answer};
use crate::graph::{BitSet, Csr, reach, reachable};
use crate::model::{GarbageClass, GarbageObject, GarbageTotal, GarbageType, ObjectSum, Stacks, UnreachableReport};
use crate::session::roots::RootFlags;
use crate::session::{Error, Heap};

/// What `unreachable` is asked.
#[derive(Clone, Copy, Debug, Default)]
pub struct UnreachableQuery {
    /// The objects instead of their types.
    pub objects: bool,
    /// Rows to list, 0 for all.
    pub top: usize,
    /// Whether words of stacks and registers count as roots.
    pub stacks: Stacks,
}

/// Garbage, sorted: each object that is not `live` is of one class.
pub(super) struct Garbage<'g> {
    pub(super) live: &'g BitSet,
    finalizable: BitSet,
    weak: BitSet,
    /// Reached from dead objects of generation 2 and of large and pinned objects; and of generation 1.
    older: [BitSet; 2],
}

impl<'g> Garbage<'g> {
    /// `level` says which collection looks at an object: 0, 1, 2, `None` for none.
    pub(super) fn sort(edges: &Csr, live: &'g BitSet, finalizable: &[u32], weak: &[u32], level: impl Fn(u32) -> Option<u8>) -> Garbage<'g> {
        let dead = |ids: &[u32]| ids.iter().copied().filter(|id| !live.test(*id)).collect::<Vec<u32>>();
        let mut targets = BitSet::new(edges.nodes());
        weak.iter().for_each(|id| {
            targets.set(*id);
        });
        let from = |at_least: u8| reach(edges, outside(live).filter(|id| level(*id) >= Some(at_least)), |_, to| !live.test(to));
        Garbage { live, finalizable: reach(edges, dead(finalizable), |_, to| !live.test(to)), weak: targets, older: [from(2), from(1)] }
    }

    pub(super) fn class(&self, id: u32, level: Option<u8>) -> GarbageClass {
        let [old, middle] = &self.older;
        if self.finalizable.test(id) {
            GarbageClass::FinalizerOnly
        } else if self.weak.test(id) {
            GarbageClass::WeakOnly
        } else if level == Some(0) && middle.test(id) || level == Some(1) && old.test(id) {
            GarbageClass::DeadOlder
        } else {
            GarbageClass::Unreachable
        }
    }
}

/// Garbage that has not been collected.
///
/// # Errors
/// [`Error::Graph`] and [`Error::Memory`] where there is no graph.
pub fn unreachable(heap: &Heap, query: &UnreachableQuery) -> Result<Answer<UnreachableReport>, Error> {
    let on = OnGraph::open(heap, true)?;
    let (graph, namer) = (on.graph, &on.namer);
    let live = reachable(&graph.edges, &graph.starts(query.stacks));
    let of = generations(heap, graph);
    let level = |id: u32| collected_by(generation(&of, id));
    let weak = graph.roots.roots.iter().filter(|r| r.flags.has(RootFlags::WEAK));
    let weak: Vec<u32> = weak.filter_map(|r| graph.index.id_of(r.object)).collect();
    let garbage = Garbage::sort(&graph.edges, &live, &registered(&on), &weak, level);

    let (mut reached, mut lost) = (ObjectSum::default(), ObjectSum::default());
    let mut totals: BTreeMap<GarbageClass, ObjectSum> = BTreeMap::new();
    let mut types: ByType<GarbageClass> = ByType::default();
    let mut objects = Vec::new();
    let most = if query.top == 0 { usize::MAX } else { query.top };
    for id in 0..graph.len() {
        let size = graph.size(id);
        if garbage.live.test(id) {
            reached.add(size);
            continue;
        }
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
                generation: generation(&of, id),
                class,
            });
        }
    }
    let mut rows: Vec<GarbageType> = types
        .rows(graph, namer)
        .into_iter()
        .map(|(class, t)| GarbageType { type_name: t.type_name, method_table: t.method_table, count: t.count, bytes: t.bytes, class })
        .collect();
    let all = if query.objects { usize::try_from(lost.count).unwrap_or(usize::MAX) } else { rows.len() };
    rows.truncate(most);
    let report = UnreachableReport {
        reached,
        unreachable: lost,
        classes: GarbageClass::ALL
            .into_iter()
            .map(|class| {
                let sum = totals.get(&class).copied().unwrap_or_default();
                GarbageTotal { class, count: sum.count, bytes: sum.bytes }
            })
            .collect(),
        types: (!query.objects).then_some(rows),
        objects: query.objects.then_some(objects),
        shown: (all > most).then(|| u64::try_from(most).unwrap_or(u64::MAX)),
        coverage: graph.roots.coverage.clone(),
        stacks: query.stacks,
    };
    Ok(on.finish(report))
}
