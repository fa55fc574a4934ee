//! `whatif`: objects that would survive or be freed with other roots.

mod report;

pub use report::*;

use rustc_hash::{FxHashMap, FxHashSet};

use super::{OnGraph, by_type, registered};
use crate::base::store::caught;
use crate::base::{Addr, Answer, Count, Index, len64, top_or_all};
use crate::gc::{HandleFilter, ObjectId};
use crate::heapgraph::{Depends, Edges, HeapGraph, ObjectSet, RawRoot};
use crate::model::{HandleKind, HandleModel, RootKind, Stacks, Sum};
use crate::session::{Error, Heap, Namer, Strength};

/// Arguments of `whatif`.
#[derive(Clone, Debug, Default)]
pub struct WhatifQuery {
    /// Objects assumed to be rooted; interior addresses are accepted.
    pub alive: Vec<Addr>,
    /// Addresses of roots assumed to be removed: handles, static fields, stack words and others.
    pub dead: Vec<Addr>,
    /// Maximum number of types to list per total, 0 for all.
    pub top: usize,
    /// Maximum number of components to list, 0 for all.
    pub components: usize,
    /// Stack and register values that are treated as roots.
    pub stacks: Stacks,
}

/// Computes which objects would survive or be freed with the roots changed by `query`.
///
/// # Errors
/// [`Error::Nothing`] if an address is not an object or root; [`Error::Graph`], [`Error::Memory`] or [`Error::Room`] if the graph cannot be
/// built.
pub fn whatif(heap: &Heap, query: &WhatifQuery) -> Result<Answer<WhatifReport>, Error> {
    caught(|| whatif_of(heap, query))?
}

fn whatif_of(heap: &Heap, query: &WhatifQuery) -> Result<Answer<WhatifReport>, Error> {
    let on = OnGraph::open(heap, true, query.stacks, Some(Depends::Roots))?;
    let (graph, namer) = (on.graph, &on.namer);
    let no_object = |a: &Addr| on.none(Error::Nothing(format!("there is no heap object at {a}")));
    let id_of = |a: &Addr| graph.index.containing(heap.walker(), *a).map(|(id, _)| id).ok_or_else(|| no_object(a));
    let added: Vec<ObjectId> = query.alive.iter().map(id_of).collect::<Result<_, _>>()?;
    let mut handles: FxHashMap<Addr, HandleModel> = FxHashMap::default();
    // Only these parts of a handle are kept (address, kind, object), since there may be millions of handles.
    let mut weak: Vec<(Addr, HandleKind, Addr)> = Vec::new();
    let mut bridged = graph.edges.no_objects();
    let mut strength = Strength::bind(heap.runtime());
    let walked = heap.gc().walk_handles(&HandleFilter::default(), |mut h: HandleModel| {
        if query.dead.contains(&h.address) {
            handles.insert(h.address, h);
            return;
        }
        match h.kind {
            HandleKind::WeakShort | HandleKind::WeakLong | HandleKind::WeakNativeCom | HandleKind::WeakInteriorPointer => {
                weak.push((h.address, h.kind, h.object));
            }
            // The GC clears such a handle when its object dies (`Ref_CheckAlive`).
            HandleKind::RefCounted => {
                strength.decide(&mut h, heap.gc(), namer);
                if h.strong == Some(false) {
                    weak.push((h.address, h.kind, h.object));
                }
            }
            HandleKind::CrossReference => {
                bridged.extend(graph.index.id_of(h.object));
            }
            _ => {}
        }
    });
    on.notes.take(walked);
    on.notes.extend(&strength.losses());
    let gone = gone(&on, &query.dead, &handles)?;
    let dependents = handles.values().filter(|h| h.kind == HandleKind::Dependent);
    let pairs = dependents.filter_map(|h| Some((graph.index.id_of(h.object)?, graph.index.id_of(h.secondary?)?)));
    let cut = cut_edges(&graph.edges, pairs.chain(static_slots(&on, &gone)));

    let always = &graph.frozen;
    let before = heap.live(graph, query.stacks);
    let stays = |r: &&RawRoot| r.counts(query.stacks) && r.address.is_none_or(|a| !gone.contains(&a));
    let roots = graph.roots.roots.iter().filter(stays).filter_map(|r| graph.index.id_of(r.object));
    let after = graph.edges.reach(roots.chain(always.iter().copied()).chain(added), |from, to| !cut.contains(&(from, to)));
    let due = registered(&on).into_iter().filter(|id| !after.contains(*id));
    let finalized = graph.edges.reach(due, |_, to| !after.contains(to));

    let mut resurrected = Sum::default();
    let freed = |id: &ObjectId| before.contains(*id) && !after.contains(*id);
    graph.ids().filter(|id| freed(id) && finalized.contains(*id)).for_each(|id| resurrected.add(graph.size(id)));
    let total = weak.len();
    let mut cleared = 0u64;
    let mut rows = Vec::new();
    for (address, kind, object) in weak {
        let id = graph.index.id_of(object);
        let (now, then) = (id.is_some_and(|id| before.contains(id)), id.is_some_and(|id| after.contains(id)));
        let outlives = matches!(kind, HandleKind::WeakLong | HandleKind::RefCounted);
        let survives = then || outlives && id.is_some_and(|id| finalized.contains(id));
        cleared.grow(u64::from(!survives));
        if !now || !then {
            let type_name = id.map(|id| graph.type_name(namer, id));
            rows.push(WhatifWeak { address, kind, object, type_name, reached_now: now, survives });
        }
    }
    let mut components = components(graph, namer, &before, &after, &bridged);
    components.truncate(top_or_all(query.components));
    let report = WhatifReport {
        alive: query.alive.clone(),
        dead: query.dead.clone(),
        survivors: by_type(&on, graph.ids().filter(|id| after.contains(*id) && !before.contains(*id)), query.top),
        freed: by_type(&on, graph.ids().filter(freed), query.top),
        resurrected,
        components,
        weak_handles: rows,
        weak_total: len64(total),
        weak_cleared: cleared,
        coverage: on.coverage(),
        stacks: query.stacks,
    };
    Ok(on.finish(report))
}

/// Returns the addresses of the roots that `dead` selects. The address of a static structure, which is boxed, selects each reference in it.
fn gone(on: &OnGraph<'_>, dead: &[Addr], handles: &FxHashMap<Addr, HandleModel>) -> Result<FxHashSet<Addr>, Error> {
    let roots = &on.graph.roots.roots;
    let mut gone = FxHashSet::default();
    for address in dead {
        if handles.contains_key(address) || roots.iter().any(|r| r.address == Some(*address)) {
            gone.insert(*address);
            continue;
        }
        let boxed = address.minus(on.heap.memory().ptr_bytes()).and_then(|at| on.graph.index.id_of(at));
        let inside = |at: &Addr| boxed.is_some() && on.around(*at) == boxed;
        let fields: Vec<Addr> = roots.iter().filter(|r| is_static(r)).filter_map(|r| r.address).filter(inside).collect();
        if fields.is_empty() {
            let why = match on.around(*address) {
                Some(_) => Error::NoRoot(*address),
                None => Error::Nothing(format!("{address} is neither a handle nor another root of the dump")),
            };
            return Err(on.none(why));
        }
        gone.extend(fields);
    }
    Ok(gone)
}

fn is_static(root: &RawRoot) -> bool {
    matches!(root.kind, RootKind::Static | RootKind::ThreadStatic)
}

/// Returns the edges of the removed static fields: from the array or box on the heap that contains the field to the field's object. Such an edge
/// keeps the object alive even if the field is not treated as a root.
fn static_slots(on: &OnGraph<'_>, gone: &FxHashSet<Addr>) -> Vec<Pair> {
    let statics = on.graph.roots.roots.iter().filter(|r| is_static(r));
    // Two roots may have the same location.
    let places: FxHashMap<Addr, Addr> = statics.filter_map(|r| Some((r.address.filter(|a| gone.contains(a))?, r.object))).collect();
    places.into_iter().filter_map(|(at, object)| Some((on.around(at)?, on.graph.index.id_of(object)?))).collect()
}

/// A reference: source and target.
type Pair = (ObjectId, ObjectId);

/// Returns the edges that are removed with dependent handles and static fields, given as pairs of source and target. An edge is removed if there are
/// no more edges between two objects than pairs.
pub(super) fn cut_edges(edges: &Edges, pairs: impl Iterator<Item = Pair>) -> FxHashSet<Pair> {
    let mut count: FxHashMap<Pair, usize> = FxHashMap::default();
    pairs.for_each(|pair| count.entry(pair).or_default().bump());
    let all_gone = |((from, to), n): (Pair, usize)| {
        let there = edges.successors(from).filter(|t| *t == to).count();
        (there <= n).then_some((from, to))
    };
    count.into_iter().filter_map(all_gone).collect()
}

fn components(graph: &HeapGraph, namer: &Namer, before: &ObjectSet, after: &ObjectSet, bridged: &ObjectSet) -> Vec<WhatifComponent> {
    let found = graph.edges.components(|id| before.contains(id) != after.contains(id));
    let of = |id: ObjectId| found.of(id.as_u32());
    let sizes = found.sizes();
    let size = |c: u32| sizes.get(c as usize).copied().unwrap_or(0);
    let mut rows: FxHashMap<u32, WhatifComponent> = FxHashMap::default();
    let mut with_bridge: FxHashSet<u32> = FxHashSet::default();
    with_bridge.extend(bridged.iter().filter_map(of));
    for id in graph.ids() {
        let Some(c) = of(id).filter(|c| size(*c) > 1 || with_bridge.contains(c)) else { continue };
        let row = rows.entry(c).or_insert_with(|| WhatifComponent {
            address: graph.address(id),
            type_name: graph.type_name(namer, id),
            count: 0,
            bytes: 0,
            bridged: 0,
            survives: after.contains(id),
        });
        row.count.bump();
        row.bytes.grow(graph.size(id));
        row.bridged.grow(u64::from(bridged.contains(id)));
    }
    let mut rows: Vec<WhatifComponent> = rows.into_values().collect();
    rows.sort_by(|a, b| b.bytes.cmp(&a.bytes).then(a.address.cmp(&b.address)));
    rows
}
