//! `whatif`: what would live and die if other things were roots.

use rustc_hash::{FxHashMap, FxHashSet};

use super::{OnGraph, by_type, reach, registered};
use crate::base::{Addr, Answer};
use crate::gc::HandleFilter;
use crate::graph::{BitSet, Components, Csr, reachable};
use crate::model::{HandleKind, HandleModel, ObjectSum, Stacks, WhatifComponent, WhatifReport, WhatifWeak};
use crate::session::roots::{Root, RootFlags};
use crate::session::{Error, Heap, HeapGraph, Namer};

/// What `whatif` is asked.
#[derive(Clone, Debug, Default)]
pub struct WhatifQuery {
    /// Objects to take for alive; any address inside of one will do.
    pub alive: Vec<Addr>,
    /// Handles, or other places of roots, to take for gone.
    pub dead: Vec<Addr>,
    /// Types to list of each sum, 0 for all.
    pub top: usize,
    /// Components to list, 0 for all.
    pub components: usize,
}

/// What would live and die if the roots were changed as `query` says.
///
/// # Errors
/// [`Error::Nothing`] for an address that does not fit; [`Error::Graph`] and [`Error::Memory`] where there is no graph.
pub fn whatif(heap: &Heap, query: &WhatifQuery) -> Result<Answer<WhatifReport>, Error> {
    let on = OnGraph::open(heap, true)?;
    let (graph, namer) = (on.graph, &on.namer);
    let no_object = |a: &Addr| Error::Nothing(format!("no object of the heap is at {a}"));
    let id_of = |a: &Addr| graph.index.containing(heap.walker(), *a).map(|(id, _)| id).ok_or_else(|| no_object(a));
    let added: Vec<u32> = query.alive.iter().map(id_of).collect::<Result<_, _>>()?;
    let mut handles: FxHashMap<Addr, HandleModel> = FxHashMap::default();
    let mut weak: Vec<HandleModel> = Vec::new();
    let mut bridged = BitSet::new(graph.len());
    let walked = heap.gc().walk_handles(&HandleFilter::default(), |h: HandleModel| {
        if query.dead.contains(&h.address) {
            handles.insert(h.address, h);
            return;
        }
        match h.kind {
            HandleKind::WeakShort | HandleKind::WeakLong | HandleKind::WeakNativeCom | HandleKind::WeakInteriorPointer => weak.push(h),
            HandleKind::CrossReference => {
                graph.index.id_of(h.object).map(|id| bridged.set(id));
            }
            _ => {}
        }
    });
    on.notes.take(walked);
    let gone: FxHashSet<Addr> = query.dead.iter().copied().collect();
    for address in &query.dead {
        if !handles.contains_key(address) && !graph.roots.roots.iter().any(|r| r.address == Some(*address)) {
            return Err(Error::Nothing(format!("{address} is neither a handle nor another root of the dump")));
        }
    }
    let dependents = handles.values().filter(|h| h.kind == HandleKind::Dependent);
    let pairs = dependents.filter_map(|h| Some((graph.index.id_of(h.object)?, graph.index.id_of(h.secondary?)?)));
    let cut = cut_edges(&graph.edges, pairs);

    let always = &graph.frozen;
    let before = reachable(&graph.edges, &graph.starts(Stacks::All));
    let stays = |r: &&Root| !r.flags.has(RootFlags::WEAK) && r.address.is_none_or(|a| !gone.contains(&a));
    let roots = graph.roots.roots.iter().filter(stays).filter_map(|r| graph.index.id_of(r.object));
    let after = reach(&graph.edges, roots.chain(always.iter().copied()).chain(added), |from, to| !cut.contains(&(from, to)));
    let due = registered(&on).into_iter().filter(|id| !after.test(*id));
    let finalized = reach(&graph.edges, due, |_, to| !after.test(to));

    let mut resurrected = ObjectSum::default();
    let freed = |id: &u32| before.test(*id) && !after.test(*id);
    (0..graph.len()).filter(|id| freed(id) && finalized.test(*id)).for_each(|id| resurrected.add(graph.size(id)));
    let total = weak.len();
    let mut cleared = 0u64;
    let mut rows = Vec::new();
    for h in weak {
        let id = graph.index.id_of(h.object);
        let (now, then) = (id.is_some_and(|id| before.test(id)), id.is_some_and(|id| after.test(id)));
        let survives = then || h.kind == HandleKind::WeakLong && id.is_some_and(|id| finalized.test(id));
        cleared = cleared.saturating_add(u64::from(!survives));
        if !now || !then {
            let type_name = id.map(|id| graph.type_name(namer, id));
            rows.push(WhatifWeak { address: h.address, kind: h.kind, object: h.object, type_name, reached_now: now, survives });
        }
    }
    let mut components = components(graph, namer, &before, &after, &bridged);
    components.truncate(if query.components == 0 { usize::MAX } else { query.components });
    let report = WhatifReport {
        alive: query.alive.clone(),
        dead: query.dead.clone(),
        survivors: by_type(&on, (0..graph.len()).filter(|id| after.test(*id) && !before.test(*id)), query.top),
        freed: by_type(&on, (0..graph.len()).filter(freed), query.top),
        resurrected,
        components,
        weak_handles: rows,
        weak_total: u64::try_from(total).unwrap_or(u64::MAX),
        weak_cleared: cleared,
        coverage: graph.roots.coverage.clone(),
    };
    Ok(on.finish(report))
}

/// Which edges go with dependent handles: those between two objects that have no more edges than handles.
pub(super) fn cut_edges(edges: &Csr, pairs: impl Iterator<Item = (u32, u32)>) -> FxHashSet<(u32, u32)> {
    let mut count: FxHashMap<(u32, u32), usize> = FxHashMap::default();
    for pair in pairs {
        let n = count.entry(pair).or_default();
        *n = n.saturating_add(1);
    }
    let all_gone = |((from, to), n): ((u32, u32), usize)| {
        let there = edges.successors(from).iter().filter(|t| **t == to).count();
        (there <= n).then_some((from, to))
    };
    count.into_iter().filter_map(all_gone).collect()
}

fn components(graph: &HeapGraph, namer: &Namer, before: &BitSet, after: &BitSet, bridged: &BitSet) -> Vec<WhatifComponent> {
    let found = Components::compute_where(&graph.edges, |id| before.test(id) != after.test(id));
    let sizes = found.sizes();
    let size = |c: u32| usize::try_from(c).ok().and_then(|i| sizes.get(i)).copied().unwrap_or(0);
    let mut rows: FxHashMap<u32, WhatifComponent> = FxHashMap::default();
    let mut with_bridge: FxHashSet<u32> = FxHashSet::default();
    with_bridge.extend(bridged.iter().filter_map(|id| found.of(id)));
    for id in 0..graph.len() {
        let Some(c) = found.of(id).filter(|c| size(*c) > 1 || with_bridge.contains(c)) else { continue };
        let row = rows.entry(c).or_insert_with(|| WhatifComponent {
            address: graph.address(id),
            type_name: graph.type_name(namer, id),
            count: 0,
            bytes: 0,
            bridged: 0,
            survives: after.test(id),
        });
        row.count = row.count.saturating_add(1);
        row.bytes = row.bytes.saturating_add(graph.size(id));
        row.bridged = row.bridged.saturating_add(u64::from(bridged.test(id)));
    }
    let mut rows: Vec<WhatifComponent> = rows.into_values().collect();
    rows.sort_by(|a, b| b.bytes.cmp(&a.bytes).then(a.address.cmp(&b.address)));
    rows
}
