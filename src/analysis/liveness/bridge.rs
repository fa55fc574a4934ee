//! `bridge`: dead bridged objects as strongly connected components, and the references between these.

use rustc_hash::FxHashMap;

use super::{OnGraph, condense, reach};
use crate::base::{Addr, Answer, NoteKind};
use crate::gc::HandleFilter;
use crate::model::{BridgeClass, BridgeClassKind, BridgeObject, BridgeReport, BridgeScc, BridgeXref, HandleKind, HandleModel, ObjectSum};
use crate::session::roots::{Origin, Root, RootFlags};
use crate::session::{Error, Heap, TypePattern};

/// What `bridge` is asked.
#[derive(Clone, Debug, Default)]
pub struct BridgeQuery {
    /// Types whose objects are bridged, besides the objects that cross-reference handles lead to.
    pub bridged: Vec<TypePattern>,
    /// Types whose objects are not looked into.
    pub opaque: Vec<TypePattern>,
    /// Exceptions from these.
    pub transparent: Vec<TypePattern>,
    /// Also bridged objects that are alive.
    pub all: bool,
}

/// What a bridge to another collector would be told about the heap.
///
/// # Errors
/// [`Error::Graph`] and [`Error::Memory`] where there is no graph.
pub fn bridge(heap: &Heap, query: &BridgeQuery) -> Result<Answer<BridgeReport>, Error> {
    let on = OnGraph::open(heap, true)?;
    let (graph, namer) = (on.graph, &on.namer);
    let mut handles: FxHashMap<u32, (Addr, Option<Addr>)> = FxHashMap::default();
    let walked = heap.gc().walk_handles(&HandleFilter { kinds: vec![HandleKind::CrossReference] }, |h: HandleModel| {
        if let Some(id) = graph.index.id_of(h.object) {
            handles.entry(id).or_insert((h.address, h.secondary));
        }
    });
    on.notes.take(walked);
    let mut bridged = graph.of_types(namer, &query.bridged);
    bridged.extend(handles.keys());
    bridged.sort_unstable();
    bridged.dedup();

    let (opaque, transparent) = (graph.wanted_types(namer, &query.opaque), graph.wanted_types(namer, &query.transparent));
    let is = |list: &[bool], index: u32| usize::try_from(index).ok().and_then(|i| list.get(i)).copied().unwrap_or(false);
    let closed = |index: u32| is(&opaque, index) && !is(&transparent, index);

    // What keeps bridged objects alive besides the bridge itself.
    let own = |r: &&Root| {
        let of_bridge = matches!(r.origin, Origin::Handle(HandleKind::CrossReference | HandleKind::RefCounted));
        of_bridge && graph.index.id_of(r.object).is_some_and(|id| bridged.binary_search(&id).is_ok())
    };
    let others = graph.roots.roots.iter().filter(|r| !r.flags.has(RootFlags::WEAK) && !own(r));
    let starts = others.filter_map(|r| graph.index.id_of(r.object)).chain(graph.frozen.iter().copied());
    let alive = reach(&graph.edges, starts, |_, _| true);
    let dead = bridged.iter().filter(|id| !alive.test(**id)).count();

    let condensed = condense(&graph.edges, &bridged, |id| query.all || !alive.test(id), |id| closed(graph.type_index(id)))?;
    if condensed.cut {
        on.notes.add(NoteKind::LimitHit, None, "there are too many cross references: some are left out");
    }
    let object = |id: &u32| {
        bridged.binary_search(id).ok()?;
        let handle = handles.get(id);
        Some(BridgeObject {
            address: graph.address(*id),
            type_name: graph.type_name(namer, *id),
            method_table: graph.kind(*id).map_or(Addr::NULL, |k| k.method_table),
            handle: handle.map(|h| h.0),
            context: handle.and_then(|h| h.1),
        })
    };
    let scc = |(ids, index): (&Vec<u32>, u32)| {
        let mut sum = ObjectSum::default();
        ids.iter().for_each(|id| sum.add(graph.size(*id)));
        let mut objects: Vec<BridgeObject> = ids.iter().filter_map(object).collect();
        objects.sort_by_key(|o| o.address);
        BridgeScc { index, alive: ids.iter().any(|id| alive.test(*id)), objects, members: sum.count, bytes: sum.bytes }
    };
    let mut counts: FxHashMap<u32, u64> = FxHashMap::default();
    bridged.iter().for_each(|id| {
        let n = counts.entry(graph.type_index(*id)).or_default();
        *n = n.saturating_add(1);
    });
    let class = |(kind, index): (&std::sync::Arc<crate::gc::ObjectType>, u32)| {
        let bridged = counts.get(&index).copied().unwrap_or(0);
        let kind_of = match (bridged > 0, closed(index)) {
            (true, false) => BridgeClassKind::TransparentBridge,
            (true, true) => BridgeClassKind::OpaqueBridge,
            (false, true) => BridgeClassKind::Opaque,
            (false, false) => return None,
        };
        let type_name = namer.name_or_address(kind.method_table);
        Some(BridgeClass { type_name, method_table: kind.method_table, kind: kind_of, bridged })
    };
    let mut classes: Vec<BridgeClass> = graph.types.iter().zip(0u32..).filter_map(class).collect();
    classes.sort_by(|a, b| b.bridged.cmp(&a.bridged).then_with(|| a.type_name.cmp(&b.type_name)).then(a.method_table.cmp(&b.method_table)));
    let report = BridgeReport {
        bridged: u64::try_from(bridged.len()).unwrap_or(u64::MAX),
        dead: u64::try_from(dead).unwrap_or(u64::MAX),
        all: query.all,
        sccs: condensed.components.iter().zip(0u32..).map(scc).collect(),
        xrefs: condensed.references.iter().map(|(src, dst)| BridgeXref { src: *src, dst: *dst }).collect(),
        classes,
        coverage: graph.roots.coverage.clone(),
    };
    Ok(on.finish(report))
}
