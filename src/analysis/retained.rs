//! Retained sizes: what would be freed without an object, from the exact dominator tree.

use rustc_hash::FxHashMap;

use super::on_graph::OnGraph;
use crate::base::{Addr, Answer, share};
use crate::gc::Gc;
use crate::graph::{Dominators, Idom, closure};
use crate::model::{
    BelowType, ObjSizeReport, ReachTotals, RetainedDetail, RetainedObject, RetainedReport, RetainedType, Stacks, Suspect, SuspectKind,
    TreeRow,
};
use crate::session::{Error, Heap, HeapGraph, Namer, Retention, TypePattern};

/// Dominators that are listed above an object.
const MAX_CHAIN: usize = 1000;
/// Groups and children that are listed below an object.
const BELOW: usize = 10;
/// A child that holds this part of its dominator's bytes is where these lie, not the dominator.
const PASSES_ON: f64 = 0.8;

/// The dominator tree of a heap, with retained sizes.
#[derive(Debug)]
pub struct Retained<'g> {
    graph: &'g HeapGraph,
    tree: &'g Dominators,
    retained: &'g [u64],
    stacks: Stacks,
    totals: ReachTotals,
}

/// What to show of the dominator tree.
#[derive(Clone, Copy, Debug, Default)]
pub enum RetainedView {
    /// The objects and the types that retain most.
    #[default]
    Top,
    /// The object at, or around, this address.
    Object(Addr),
    /// The tree, down to a depth and to a share of all bytes.
    Tree {
        /// How deep.
        depth: u32,
        /// Objects that retain less than this share (0 to 1) are hidden.
        threshold: f64,
    },
    /// Objects and types that retain more than this share (0 to 1) of all bytes.
    Suspects(f64),
}

/// What to show, and how much of it.
#[derive(Clone, Debug)]
pub struct RetainedQuery {
    /// What to show.
    pub view: RetainedView,
    /// Only objects of these types; empty for all.
    pub types: Vec<TypePattern>,
    /// Whether stack values count as roots.
    pub stacks: Stacks,
    /// Rows of each list, 0 for all.
    pub top: usize,
}

impl Default for RetainedQuery {
    fn default() -> RetainedQuery {
        RetainedQuery { view: RetainedView::Top, types: Vec::new(), stacks: Stacks::Fallback, top: 20 }
    }
}

/// Retained sizes: what would be freed without an object.
///
/// # Errors
/// [`Error::NoObject`], [`Error::Graph`], [`Error::Memory`].
pub fn retained(heap: &Heap, query: &RetainedQuery) -> Result<Answer<RetainedReport>, Error> {
    let on = OnGraph::open(heap, false)?;
    let object = if let RetainedView::Object(at) = query.view { Some(on.object(at)?) } else { None };
    let tree = Retained::compute(heap, on.graph, query.stacks)?;
    let report = tree.report(heap.gc(), &on.namer, query, object);
    Ok(on.finish(report))
}

/// Everything that the object at, or around, `address` leads to, and how much of that it retains.
///
/// # Errors
/// As [`retained`].
pub fn objsize(heap: &Heap, address: Addr) -> Result<Answer<ObjSizeReport>, Error> {
    let on = OnGraph::open(heap, false)?;
    let id = on.object(address)?;
    let report = Retained::compute(heap, on.graph, Stacks::Fallback)?.objsize(&on.namer, id);
    Ok(on.finish(report))
}

impl<'g> Retained<'g> {
    /// The tree of the heap whose graph this is, and sums over it.
    ///
    /// # Errors
    /// As [`retained`].
    pub(super) fn compute(heap: &'g Heap, graph: &'g HeapGraph, stacks: Stacks) -> Result<Retained<'g>, Error> {
        let Retention { tree, retained } = heap.retention(stacks)?;
        let mut totals =
            ReachTotals { objects: u64::from(graph.len()), references: u64::from(graph.edges.edges()), ..ReachTotals::default() };
        for id in 0..graph.len() {
            let size = graph.size(id);
            totals.bytes = totals.bytes.saturating_add(size);
            if tree.is_reachable(id) {
                totals.reachable_objects = totals.reachable_objects.saturating_add(1);
                totals.reachable_bytes = totals.reachable_bytes.saturating_add(size);
            }
        }
        Ok(Retained { graph, tree, retained, stacks, totals })
    }

    /// Bytes that an object retains; 0 for one that no root reaches.
    pub fn of(&self, id: u32) -> u64 {
        usize::try_from(id).ok().and_then(|i| self.retained.get(i)).copied().unwrap_or(0)
    }

    fn model(&self, namer: &Namer, id: u32) -> RetainedObject {
        let retained = self.of(id);
        RetainedObject {
            address: self.graph.address(id),
            type_name: self.graph.type_name(namer, id),
            method_table: self.graph.kind(id).map_or(Addr::NULL, |k| k.method_table),
            size: self.graph.size(id),
            retained,
            share: share(retained, self.totals.reachable_bytes).unwrap_or(1.0),
            dominated: u64::from(self.tree.subtree(id)),
            dominator: match self.tree.idom(id) {
                Idom::Node(above) => Some(self.graph.address(above)),
                _ => None,
            },
        }
    }

    fn report(&self, gc: &Gc, namer: &Namer, query: &RetainedQuery, object: Option<u32>) -> RetainedReport {
        let RetainedQuery { view, types: patterns, top, .. } = query;
        let most = if *top == 0 { usize::MAX } else { *top };
        let mut report = RetainedReport {
            objects: None,
            types: None,
            object: None,
            tree: None,
            suspects: None,
            totals: self.totals.clone(),
            coverage: self.graph.roots.coverage.clone(),
            stacks: self.stacks,
        };
        match view {
            RetainedView::Top => {
                let wanted = (!patterns.is_empty()).then(|| self.graph.wanted_types(namer, patterns));
                report.objects = Some(self.top_objects(namer, wanted.as_deref(), most));
                report.types = Some(self.top_types(namer, wanted.as_deref(), most));
            }
            RetainedView::Object(_) => report.object = object.map(|id| self.detail(namer, id)),
            RetainedView::Tree { depth, threshold } => report.tree = Some(self.rows(namer, *depth, *threshold, most)),
            RetainedView::Suspects(least) => report.suspects = Some(self.suspects(gc, namer, *least)),
        }
        report
    }

    fn top_objects(&self, namer: &Namer, wanted: Option<&[bool]>, most: usize) -> Vec<RetainedObject> {
        let is = |id: &u32| wanted.is_none_or(|w| usize::try_from(self.graph.type_index(*id)).ok().and_then(|i| w.get(i)) == Some(&true));
        let mut ids: Vec<u32> = (0..self.graph.len()).filter(|id| self.tree.is_reachable(*id)).filter(is).collect();
        let key = |id: &u32| (std::cmp::Reverse(self.of(*id)), *id);
        if ids.len() > most {
            // Only the top has to be in order.
            ids.select_nth_unstable_by_key(most, key);
            ids.truncate(most);
        }
        ids.sort_unstable_by_key(key);
        ids.into_iter().map(|id| self.model(namer, id)).collect()
    }

    fn top_types(&self, namer: &Namer, wanted: Option<&[bool]>, most: usize) -> Vec<RetainedType> {
        let kinds = u32::try_from(self.graph.types.len()).unwrap_or(u32::MAX);
        let retained = self.tree.retained_by_group(|id| self.graph.type_index(id), kinds, self.retained);
        let mut own: Vec<(u64, u64)> = vec![(0, 0); self.graph.types.len()];
        for id in (0..self.graph.len()).filter(|id| self.tree.is_reachable(*id)) {
            if let Some((count, bytes)) = usize::try_from(self.graph.type_index(id)).ok().and_then(|i| own.get_mut(i)) {
                *count = count.saturating_add(1);
                *bytes = bytes.saturating_add(self.graph.size(id));
            }
        }
        let rows = self.graph.types.iter().zip(own).zip(retained).enumerate();
        let mut rows: Vec<RetainedType> = rows
            .filter(|(i, ((_, own), _))| own.0 > 0 && wanted.is_none_or(|w| w.get(*i) == Some(&true)))
            .map(|(_, ((kind, (count, bytes)), retained))| RetainedType {
                type_name: namer.name_or_address(kind.method_table),
                method_table: kind.method_table,
                count,
                bytes,
                retained,
                share: share(retained, self.totals.reachable_bytes).unwrap_or(1.0),
            })
            .collect();
        rows.sort_by(|a, b| (b.retained, &a.type_name, a.method_table).cmp(&(a.retained, &b.type_name, b.method_table)));
        rows.truncate(most);
        rows
    }

    fn detail(&self, namer: &Namer, id: u32) -> RetainedDetail {
        let children = self.tree.children_sorted(Some(id), self.retained);
        RetainedDetail {
            object: self.model(namer, id),
            reachable: self.tree.is_reachable(id),
            chain: self.tree.chain(id).take(MAX_CHAIN).map(|above| self.model(namer, above)).collect(),
            below: self.below(namer, &children),
            children: children.iter().take(BELOW).map(|c| self.model(namer, *c)).collect(),
        }
    }

    fn below(&self, namer: &Namer, children: &[u32]) -> Vec<BelowType> {
        let mut groups: FxHashMap<u32, (u64, u64)> = FxHashMap::default();
        for child in children {
            let (count, retained) = groups.entry(self.graph.type_index(*child)).or_default();
            *count = count.saturating_add(1);
            *retained = retained.saturating_add(self.of(*child));
        }
        let named = |(index, (count, retained)): (u32, (u64, u64))| {
            let kind = usize::try_from(index).ok().and_then(|i| self.graph.types.get(i));
            BelowType { type_name: kind.map_or_else(|| "?".into(), |k| namer.name_or_address(k.method_table)), count, retained }
        };
        let mut rows: Vec<BelowType> = groups.into_iter().map(named).collect();
        rows.sort_by(|a, b| (b.retained, &a.type_name).cmp(&(a.retained, &b.type_name)));
        rows.truncate(BELOW);
        rows
    }

    fn rows(&self, namer: &Namer, depth: u32, threshold: f64, most: usize) -> Vec<TreeRow> {
        let mut out = Vec::new();
        let shown = |children: &[u32]| {
            let large =
                children.iter().take_while(|c| share(self.of(**c), self.totals.reachable_bytes).unwrap_or(1.0) >= threshold).count();
            large.min(most)
        };
        let push = |children: Vec<u32>, depth: u32, stack: &mut Vec<(u32, u32)>| -> u64 {
            let n = shown(&children);
            stack.extend(children.iter().take(n).rev().map(|c| (*c, depth)));
            u64::try_from(children.len().saturating_sub(n)).unwrap_or(u64::MAX)
        };
        let mut stack: Vec<(u32, u32)> = Vec::new();
        push(self.tree.children_sorted(None, self.retained), 0, &mut stack);
        while let Some((id, at)) = stack.pop() {
            if out.len() >= most {
                break;
            }
            let children = self.tree.children_sorted(Some(id), self.retained);
            let hidden = if at < depth {
                push(children, at.saturating_add(1), &mut stack)
            } else {
                u64::try_from(children.len()).unwrap_or(u64::MAX)
            };
            out.push(TreeRow { depth: at, object: self.model(namer, id), hidden });
        }
        out
    }

    /// The last object on the way down from `id` that still holds most of its bytes.
    fn accumulation(&self, id: u32) -> (u32, Vec<u32>) {
        let mut at = id;
        for _ in 0..MAX_CHAIN {
            let children = self.tree.children_sorted(Some(at), self.retained);
            match children.first() {
                Some(largest) if share(self.of(*largest), self.of(at)).unwrap_or(1.0) >= PASSES_ON => at = *largest,
                _ => return (at, children),
            }
        }
        (at, self.tree.children_sorted(Some(at), self.retained))
    }

    fn suspects(&self, gc: &Gc, namer: &Namer, least: f64) -> Vec<Suspect> {
        let total = self.totals.reachable_bytes;
        let mut out = Vec::new();
        let mut told: Vec<u32> = Vec::new();
        // Single objects: the tops of the tree.
        for id in self.tree.children_sorted(None, self.retained) {
            if share(self.of(id), total).unwrap_or(1.0) < least {
                break;
            }
            told.push(self.graph.type_index(id));
            let (point, children) = self.accumulation(id);
            let below = self.below(namer, &children);
            let roots = self.graph.root_models(gc, namer, id, false, 8);
            let object = self.model(namer, id);
            let held = roots.first().map_or_else(|| "several holders".to_string(), |r| r.label.clone());
            let mut text = format!(
                "One {} at {}, held by {held}, retains {} bytes ({:.1} %).",
                object.type_name,
                object.address,
                object.retained,
                object.share * 100.0
            );
            let accumulation = (point != id).then(|| self.model(namer, point));
            let place = accumulation.as_ref().map_or_else(|| "it".to_string(), |a| format!("{} at {}", a.type_name, a.address));
            if let Some(largest) = below.first() {
                text.push_str(&format!(" In {place}: {} × {} with {} bytes.", largest.count, largest.type_name, largest.retained));
            }
            out.push(Suspect {
                kind: SuspectKind::Object,
                address: Some(object.address),
                type_name: object.type_name,
                method_table: object.method_table,
                count: 1,
                retained: object.retained,
                share: object.share,
                roots,
                accumulation,
                below,
                text,
            });
        }
        // Types whose many objects hold it together.
        for t in self.top_types(namer, None, usize::MAX).into_iter().take_while(|t| t.share >= least) {
            let index = self.graph.types.iter().find(|k| k.method_table == t.method_table).map(|k| k.index);
            // What lies inside of one suspect is told with it.
            if t.count < 2 || index.is_some_and(|i| told.contains(&i)) || self.inside(&out, index, t.retained) {
                continue;
            }
            let text = format!("{} objects of {} retain {} bytes together ({:.1} %).", t.count, t.type_name, t.retained, t.share * 100.0);
            out.push(Suspect {
                kind: SuspectKind::Type,
                address: None,
                type_name: t.type_name,
                method_table: t.method_table,
                count: t.count,
                retained: t.retained,
                share: t.share,
                roots: Vec::new(),
                accumulation: None,
                below: Vec::new(),
                text,
            });
        }
        out
    }

    /// Whether most of what the objects of a type retain lies inside of what the suspects found so far retain.
    fn inside(&self, suspects: &[Suspect], index: Option<u32>, retained: u64) -> bool {
        let tops: Vec<u32> = suspects.iter().filter_map(|s| self.graph.index.id_of(s.address?)).collect();
        let mut within = 0u64;
        for id in (0..self.graph.len()).filter(|id| Some(self.graph.type_index(*id)) == index) {
            if tops.iter().any(|top| *top != id && self.tree.dominates(*top, id)) {
                within = within.saturating_add(self.of(id));
            }
        }
        share(within, retained).unwrap_or(1.0) >= 0.5
    }

    /// Everything that an object leads to, and how much of that it retains.
    fn objsize(&self, namer: &Namer, id: u32) -> ObjSizeReport {
        let all = closure(&self.graph.edges, &[id], |n| self.graph.size(n));
        let object = self.model(namer, id);
        ObjSizeReport {
            closure_objects: all.nodes,
            closure_bytes: all.size,
            shared_bytes: all.size.saturating_sub(object.retained.max(object.size)),
            reachable: self.tree.is_reachable(id),
            object,
            coverage: self.graph.roots.coverage.clone(),
        }
    }
}
