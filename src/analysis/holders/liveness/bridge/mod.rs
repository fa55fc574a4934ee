//! `bridge`: strongly connected components with dead bridged objects, and the references between these components.

mod report;

pub use report::*;

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::condense::Condensed;
use super::{OnGraph, condense};
use crate::base::store::caught;
use crate::base::{Addr, Answer, Count, Index, IndexVec, NoteKind, len64};
use crate::gc::{HandleFilter, ObjectId, ObjectType, TypeIndex};
use crate::heapgraph::{Depends, ObjectSet, Origin, RawRoot, RootFlags};
use crate::model::{HandleKind, HandleModel, RootKind, Stacks, Sum};
use crate::session::{Error, Heap, TypePattern};

/// Arguments of `bridge`.
#[derive(Clone, Debug, Default)]
pub struct BridgeQuery {
    /// Types whose objects are bridged, in addition to the targets of cross-reference handles.
    pub bridged: Vec<TypePattern>,
    /// Opaque types: references of their objects are not followed.
    pub opaque: Vec<TypePattern>,
    /// Exceptions to [`BridgeQuery::opaque`].
    pub transparent: Vec<TypePattern>,
    /// Include live bridged objects.
    pub all: bool,
    /// Stack and register values that are treated as roots.
    pub stacks: Stacks,
}

/// Computes the data that the GC passes to a bridge to another collector.
///
/// # Errors
/// [`Error::Graph`], [`Error::Memory`] or [`Error::Room`] if the graph cannot be built.
pub fn bridge(heap: &Heap, query: &BridgeQuery) -> Result<Answer<BridgeReport>, Error> {
    caught(|| bridge_of(heap, query))?
}

fn bridge_of(heap: &Heap, query: &BridgeQuery) -> Result<Answer<BridgeReport>, Error> {
    let on = OnGraph::open(heap, true, query.stacks, Some(Depends::Roots))?;
    let (graph, namer) = (on.graph, &on.namer);
    let mut handles: FxHashMap<ObjectId, Vec<BridgeHandle>> = FxHashMap::default();
    let walked = heap.gc().walk_handles(&HandleFilter { kinds: vec![HandleKind::CrossReference] }, |h: HandleModel| {
        if let Some(id) = graph.index.id_of(h.object) {
            handles.entry(id).or_default().push(BridgeHandle { handle: h.address, context: h.secondary });
        }
    });
    on.notes.take(walked);
    let (bridged_by_runtime, opaque_by_runtime) = of_the_runtime(&on);
    let mut bridged = graph.of_types(namer, &query.bridged, &on.notes);
    bridged.extend(graph.objects_of(&bridged_by_runtime));
    bridged.extend(handles.keys());
    bridged.sort_unstable();
    bridged.dedup();

    let asked = graph.wanted_types(namer, &query.opaque, &on.notes);
    let transparent = graph.wanted_types(namer, &query.transparent, &on.notes);
    let is = |list: &IndexVec<TypeIndex, bool>, ty: TypeIndex| list.get(ty).copied().unwrap_or(false);
    let closed = |ty: TypeIndex| (is(&asked, ty) || is(&opaque_by_runtime, ty)) && !is(&transparent, ty);

    // The bridge's own handles are ref-counted handles of bridged objects, since the other collector decides their strength. All other roots keep
    // objects alive.
    let own = |r: &&RawRoot| {
        let decided_elsewhere = r.flags.has(RootFlags::REF_COUNTED) && r.kind != RootKind::UnknownHandle;
        decided_elsewhere && graph.index.id_of(r.object).is_some_and(|id| bridged.binary_search(&id).is_ok())
    };
    let others = graph.roots.roots.iter().filter(|r| r.counts(query.stacks) && !own(r));
    let starts = others.filter_map(|r| graph.index.id_of(r.object)).chain(graph.frozen.iter().copied());
    let alive = graph.edges.reachable(starts);
    let dead = bridged.iter().filter(|id| !alive.contains(**id)).count();

    let marked: Vec<u32> = bridged.iter().map(|id| id.as_u32()).collect();
    let inside = |node| query.all || !alive.contains(ObjectId::from_u32(node));
    let opaque = |node| graph.type_index(ObjectId::from_u32(node)).is_some_and(closed);
    let condensed = condense(graph.edges.csr(), &marked, inside, opaque)?;
    if condensed.cut {
        on.notes.add(NoteKind::LimitHit, None, "there are too many cross references: some are left out");
    }
    let mut registered = graph.edges.no_objects();
    registered.extend(super::registered(&on));
    let object = |id: ObjectId| {
        bridged.binary_search(&id).ok()?;
        let (first, further) = handles.get(&id).and_then(|list| list.split_first()).unzip();
        Some(BridgeObject {
            address: graph.address(id),
            type_name: graph.type_name(namer, id),
            method_table: graph.kind(id).map_or(Addr::NULL, |k| k.method_table),
            handle: first.map(|h| h.handle),
            context: first.and_then(|h| h.context),
            further_handles: further.unwrap_or_default().to_vec(),
            registered: registered.contains(id),
        })
    };
    let scc = |(nodes, index): (&Vec<u32>, u32)| {
        let ids = || nodes.iter().copied().map(ObjectId::from_u32);
        let mut sum = Sum::default();
        ids().for_each(|id| sum.add(graph.size(id)));
        let mut objects: Vec<BridgeObject> = ids().filter_map(object).collect();
        objects.sort_by_key(|o| o.address);
        BridgeScc { index, alive: ids().any(|id| alive.contains(id)), objects, members: sum.count, bytes: sum.bytes }
    };
    let mut counts: FxHashMap<TypeIndex, u64> = FxHashMap::default();
    bridged.iter().filter_map(|id| graph.type_index(*id)).for_each(|ty| counts.entry(ty).or_default().bump());
    let class = |(ty, kind): (TypeIndex, &Arc<ObjectType>)| {
        let bridged = counts.get(&ty).copied().unwrap_or(0);
        let kind_of = match (bridged > 0, closed(ty)) {
            (true, false) => BridgeClassKind::TransparentBridge,
            (true, true) => BridgeClassKind::OpaqueBridge,
            // Mono's test bridge marks each class without references as opaque.
            (false, true) if is(&asked, ty) => BridgeClassKind::Opaque,
            (false, true) => return None,
            (false, false) => return None,
        };
        let type_name = namer.name_or_address(kind.method_table);
        Some(BridgeClass { type_name, method_table: kind.method_table, kind: kind_of, bridged })
    };
    let mut classes: Vec<BridgeClass> = graph.types.iter_enumerated().filter_map(class).collect();
    classes.sort_by(|a, b| b.bridged.cmp(&a.bridged).then_with(|| a.type_name.cmp(&b.type_name)).then(a.method_table.cmp(&b.method_table)));
    let weak_links = weak_links(&on, &bridged, &alive, &condensed);
    let report = BridgeReport {
        bridged: len64(bridged.len()),
        dead: len64(dead),
        all: query.all,
        sccs: condensed.components.iter().zip(0u32..).map(scc).collect(),
        xrefs: condensed.references.into_iter().map(|(src, dst)| BridgeXref { src, dst }).collect(),
        classes,
        weak_links,
        coverage: on.coverage(),
        stacks: query.stacks,
    };
    Ok(on.finish(report))
}

/// The types whose objects are bridged, and those whose references are not followed, as a bridge registered with Mono has said.
fn of_the_runtime(on: &OnGraph<'_>) -> (IndexVec<TypeIndex, bool>, IndexVec<TypeIndex, bool>) {
    let tables = on.namer.names().map(|names| names.method_tables());
    let said = |kind: &Arc<ObjectType>| tables.map(|tables| tables.bridged(kind.method_table)).unwrap_or_default();
    let all: Vec<[bool; 2]> = on.graph.types.iter().map(said).collect();
    (all.iter().map(|[bridged, _]| *bridged).collect(), all.iter().map(|[_, opaque]| *opaque).collect())
}

/// Returns the weak handles of dead bridged objects, and of the dead objects that these reach, sorted by component, then by object.
fn weak_links(on: &OnGraph<'_>, bridged: &[ObjectId], alive: &ObjectSet, condensed: &Condensed) -> Vec<BridgeWeakLink> {
    let graph = on.graph;
    let kept = graph.edges.reach(bridged.iter().copied().filter(|id| !alive.contains(*id)), |_, to| !alive.contains(to));
    let members = (0u32..).zip(&condensed.components).flat_map(|(index, nodes)| nodes.iter().map(move |node| (*node, index)));
    let components: FxHashMap<u32, u32> = members.collect();
    let link = |root: &RawRoot| {
        let (Origin::Handle(kind), true) = (root.origin, root.flags.has(RootFlags::WEAK)) else { return None };
        let id = graph.index.id_of(root.object).filter(|id| kept.contains(*id))?;
        let is_bridged = bridged.binary_search(&id).is_ok();
        Some(BridgeWeakLink {
            handle: root.address?,
            kind,
            object: root.object,
            type_name: graph.type_name(&on.namer, id),
            scc: components.get(&id.as_u32()).copied(),
            bridged: is_bridged,
            nulled: is_bridged,
        })
    };
    let mut links: Vec<BridgeWeakLink> = graph.roots.roots.iter().filter_map(link).collect();
    links.sort_by_key(|l| (l.scc.is_none(), l.scc, l.object, l.handle));
    links
}
