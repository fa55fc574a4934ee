//! Exact retained sizes, from the dominator tree of the heap.

mod groups;
mod holders;
mod icicle;
mod linked;
mod report;
#[cfg(test)]
mod tests;

pub use report::*;

use rustc_hash::FxHashMap;

pub(in crate::analysis) use holders::held_by;
use report::named_types;

use crate::analysis::on_graph::OnGraph;
use crate::base::store::caught;
use crate::base::{Addr, Answer, Collector, Count, IndexVec, in_units, len64, share, thousands, top_or_all};
use crate::gc::{ObjectId, TypeIndex};
use crate::heapgraph::{Depends, DominatorTree, HeapGraph};
use crate::model::{ReachTotals, Stacks, Sum};
use crate::session::{Error, GraphSource, Namer, TypePattern};

/// Maximum number of dominators listed above an object.
const MAX_CHAIN: usize = 1000;
/// Maximum number of groups and of children listed below an object.
const BELOW: usize = 10;
/// Default minimum share (0 to 1) of the reachable bytes for which an object or type is a suspect.
pub(crate) const SUSPECT_SHARE: f64 = 0.1;
/// Minimum share (0 to 1) of a dominator's bytes that a child must retain to become the accumulation point in its place.
const PASSES_ON: f64 = 0.8;

/// The dominator tree of a heap, with retained sizes.
#[derive(Debug)]
pub struct Retained<'g> {
    graph: &'g HeapGraph,
    tree: &'g DominatorTree,
    stacks: Stacks,
    totals: &'g ReachTotals,
}

/// Views of the dominator tree.
#[derive(Clone, Copy, Debug, Default)]
pub enum RetainedView {
    /// The objects and types with the largest retained size.
    #[default]
    Top,
    /// Groups of objects, or roots.
    By(RetainedBy),
    /// The object at or around this address.
    Object(Addr),
    /// The tree, limited by depth and share of the reachable bytes.
    Tree {
        /// Maximum depth.
        depth: u32,
        /// Minimum share (0 to 1) of the reachable bytes.
        threshold: f64,
    },
    /// Leak suspects: objects and types that retain at least this share (0 to 1) of the reachable bytes.
    Suspects(f64),
}

/// Arguments of `retained`.
#[derive(Clone, Debug)]
pub struct RetainedQuery {
    /// The view.
    pub view: RetainedView,
    /// Only objects of these types; empty for all.
    pub types: Vec<TypePattern>,
    /// Which stack values count as roots.
    pub stacks: Stacks,
    /// Maximum number of types, groups, or rows of the tree, 0 for all.
    pub top: usize,
    /// Maximum number of objects listed, 0 for all.
    pub objects: usize,
}

impl Default for RetainedQuery {
    fn default() -> RetainedQuery {
        RetainedQuery { view: RetainedView::Top, types: Vec::new(), stacks: Stacks::default(), top: 20, objects: 20 }
    }
}

/// Computes retained sizes.
///
/// # Errors
/// [`Error::NoObject`], [`Error::Graph`], [`Error::Memory`], [`Error::Room`].
pub fn retained(heap: &dyn GraphSource, query: &RetainedQuery) -> Result<Answer<RetainedReport>, Error> {
    caught(|| retained_of(heap, query))?
}

fn retained_of(heap: &dyn GraphSource, query: &RetainedQuery) -> Result<Answer<RetainedReport>, Error> {
    // The groups list the roots themselves.
    let lists_roots = matches!(query.view, RetainedView::By(RetainedBy::Thread | RetainedBy::Root));
    let depends = if lists_roots { Depends::Roots } else { Depends::Dominators };
    let on = OnGraph::open(heap, false, query.stacks, Some(depends))?;
    let object = if let RetainedView::Object(at) = query.view { Some(on.object(at)?) } else { None };
    let tree = Retained::compute(heap, on.graph, query.stacks)?;
    let rows = tree.rows(heap, &on.namer, query, object, &on.notes);
    let report = RetainedReport { rows, totals: tree.totals.clone(), coverage: on.graph.coverage(query.stacks), stacks: query.stacks };
    Ok(on.finish(report))
}

/// Returns the size of everything reachable from the object at or around `address`, and how much of it the object retains. `stacks`: which stack
/// values are roots.
///
/// # Errors
/// See [`retained`].
pub fn objsize(heap: &dyn GraphSource, address: Addr, stacks: Stacks) -> Result<Answer<ObjSizeReport>, Error> {
    let on = OnGraph::open(heap, false, stacks, Some(Depends::Dominators))?;
    let id = on.object(address)?;
    let report = Retained::compute(heap, on.graph, stacks)?.objsize(&on.namer, id);
    Ok(on.finish(report))
}

impl<'g> Retained<'g> {
    /// Gets the dominator tree of `graph` and its totals.
    ///
    /// # Errors
    /// See [`retained`].
    pub(in crate::analysis) fn compute(heap: &'g dyn GraphSource, graph: &'g HeapGraph, stacks: Stacks) -> Result<Retained<'g>, Error> {
        let tree = heap.dominators(stacks)?;
        Ok(Retained { graph, tree, stacks, totals: tree.totals(graph) })
    }

    fn model(&self, namer: &Namer, id: ObjectId) -> RetainedObject {
        let retained = self.tree.retained(id);
        RetainedObject {
            address: self.graph.address(id),
            type_name: self.graph.type_name(namer, id),
            method_table: self.graph.kind(id).map_or(Addr::NULL, |k| k.method_table),
            size: self.graph.size(id),
            retained,
            share: share(retained, self.totals.reachable_bytes).unwrap_or(1.0),
            dominated: self.tree.subtree(id),
            dominator: self.tree.dominator(id).map(|above| self.graph.address(above)),
        }
    }

    /// Returns the rows of the requested view. `object`: the requested object, if any.
    fn rows(
        &self,
        heap: &dyn GraphSource,
        namer: &Namer,
        query: &RetainedQuery,
        object: Option<ObjectId>,
        notes: &Collector,
    ) -> RetainedRows {
        let RetainedQuery { view, types: patterns, top, objects, .. } = query;
        let most = top_or_all(*top);
        match (object, view) {
            (Some(id), _) => RetainedRows::Object { object: self.detail(namer, id) },
            (None, RetainedView::By(by)) => {
                let mut groups = self.groups(namer, *by);
                let group_count = len64(groups.len());
                groups.truncate(most);
                RetainedRows::By { groups, group_count }
            }
            (None, RetainedView::Tree { depth, threshold }) => RetainedRows::Tree { tree: self.tree_rows(namer, *depth, *threshold, most) },
            (None, RetainedView::Suspects(least)) => RetainedRows::Suspects { suspects: self.suspects(heap, namer, *least) },
            (None, RetainedView::Top | RetainedView::Object(_)) => {
                let wanted = (!patterns.is_empty()).then(|| self.graph.wanted_types(namer, patterns, notes));
                let objects = self.top_objects(namer, wanted.as_ref(), top_or_all(*objects));
                let mut types = self.top_types(namer, wanted.as_ref());
                let object_count = types.iter().fold(0, |n: u64, t| n.saturating_add(t.count));
                let type_count = len64(types.len());
                types.truncate(most);
                RetainedRows::Top { objects, object_count, types, type_count }
            }
        }
    }

    fn top_objects(&self, namer: &Namer, wanted: Option<&IndexVec<TypeIndex, bool>>, most: usize) -> Vec<RetainedObject> {
        let ids = self.tree.largest(wanted.map(|w| self.graph.objects_of(w)), most);
        ids.into_iter().map(|id| self.model(namer, id)).collect()
    }

    fn top_types(&self, namer: &Namer, wanted: Option<&IndexVec<TypeIndex, bool>>) -> Vec<RetainedType> {
        let rows = self.graph.types.iter_enumerated().zip(self.tree.by_type(self.graph).iter());
        let mut rows: Vec<RetainedType> = rows
            .filter(|((t, _), of)| of.own.count > 0 && wanted.is_none_or(|w| w.get(*t) == Some(&true)))
            .map(|((_, kind), of)| RetainedType {
                type_name: namer.name_or_address(kind.method_table),
                method_table: kind.method_table,
                count: of.own.count,
                bytes: of.own.bytes,
                retained: of.retained,
                share: share(of.retained, self.totals.reachable_bytes).unwrap_or(1.0),
            })
            .collect();
        rows.sort_by(|a, b| (b.retained, &a.type_name, a.method_table).cmp(&(a.retained, &b.type_name, b.method_table)));
        rows
    }

    /// Sorts objects by retained size, the largest first, and keeps `most`.
    fn largest(&self, mut ids: Vec<ObjectId>, most: usize) -> Vec<ObjectId> {
        let key = |id: &ObjectId| (std::cmp::Reverse(self.tree.retained(*id)), *id);
        if ids.len() > most {
            ids.select_nth_unstable_by_key(most, key);
            ids.truncate(most);
        }
        ids.sort_unstable_by_key(key);
        ids
    }

    /// Returns the children of `id` in the dominator tree, and their number. Of the children, only those are listed that retain at least the share
    /// `least` of the reachable bytes, the largest first.
    fn large_children(&self, id: Option<ObjectId>, least: f64) -> (Vec<ObjectId>, usize) {
        let mut all = 0usize;
        let is_large = |c: &ObjectId| share(self.tree.retained(*c), self.totals.reachable_bytes).unwrap_or(1.0) >= least;
        let children = self.tree.below(id).inspect(|_| all.bump()).filter(is_large).collect();
        let large = self.largest(children, usize::MAX);
        (large, all)
    }

    fn detail(&self, namer: &Namer, id: ObjectId) -> RetainedDetail {
        let children: Vec<ObjectId> = self.tree.below(Some(id)).collect();
        let (way, ends) = self.accumulation(id);
        let is_linked = self.linked(&way, &ends).is_some();
        RetainedDetail {
            object: self.model(namer, id),
            reachable: self.tree.is_reachable(id),
            chain: self.tree.chain(id).take(MAX_CHAIN).map(|above| self.model(namer, above)).collect(),
            below: self.below(namer, &children),
            children: self.largest(children, BELOW).into_iter().map(|c| self.model(namer, c)).collect(),
            by_type: if is_linked { self.dominated_by_type(namer, id, None) } else { Vec::new() },
        }
    }

    fn below(&self, namer: &Namer, children: &[ObjectId]) -> Vec<BelowType> {
        let groups = self.sums_by_type(children);
        let named = |(ty, sum): (Option<TypeIndex>, Sum)| {
            let kind = ty.and_then(|t| self.graph.types.get(t));
            let type_name = kind.map_or_else(|| "?".into(), |k| namer.name_or_address(k.method_table));
            BelowType { type_name, count: sum.count, retained: sum.bytes }
        };
        let mut rows: Vec<BelowType> = groups.into_iter().map(named).collect();
        rows.sort_by(|a, b| (b.retained, &a.type_name).cmp(&(a.retained, &b.type_name)));
        rows.truncate(BELOW);
        rows
    }

    /// Returns number and retained bytes of `objects` by type.
    fn sums_by_type(&self, objects: &[ObjectId]) -> FxHashMap<Option<TypeIndex>, Sum> {
        let mut groups: FxHashMap<Option<TypeIndex>, Sum> = FxHashMap::default();
        for object in objects {
            groups.entry(self.graph.type_index(*object)).or_default().add(self.tree.retained(*object));
        }
        groups
    }

    fn tree_rows(&self, namer: &Namer, depth: u32, threshold: f64, most: usize) -> Vec<TreeRow> {
        let mut out = Vec::new();
        let push = |id: Option<ObjectId>, depth: u32, offset: u64, stack: &mut Vec<(ObjectId, u32, u64)>| -> u64 {
            let (large, all) = self.large_children(id, threshold);
            let n = large.len().min(most);
            let mut next = offset;
            let blocks = large.into_iter().take(n).map(|c| {
                let offset = next;
                next.grow(self.tree.retained(c));
                (c, depth, offset)
            });
            let blocks: Vec<_> = blocks.collect();
            stack.extend(blocks.into_iter().rev());
            len64(all.saturating_sub(n))
        };
        let mut stack: Vec<(ObjectId, u32, u64)> = Vec::new();
        push(None, 0, 0, &mut stack);
        while let Some((id, at, offset)) = stack.pop() {
            if out.len() >= most {
                break;
            }
            let hidden = match at < depth {
                true => push(Some(id), at.saturating_add(1), offset, &mut stack),
                false => len64(self.tree.below(Some(id)).count()),
            };
            out.push(TreeRow { depth: at, object: self.model(namer, id), hidden, offset });
        }
        out
    }

    /// Finds the accumulation point: follows the largest child, as long as it retains at least `PASSES_ON` of its dominator's bytes. Returns the path
    /// from `id` to the accumulation point, and the children of the accumulation point.
    fn accumulation(&self, id: ObjectId) -> (Vec<ObjectId>, Vec<ObjectId>) {
        let (mut at, mut way) = (id, vec![id]);
        let key = |id: &ObjectId| (self.tree.retained(*id), std::cmp::Reverse(*id));
        for _ in 0..MAX_CHAIN {
            match self.tree.below(Some(at)).max_by_key(key) {
                Some(largest) if share(self.tree.retained(largest), self.tree.retained(at)).unwrap_or(1.0) >= PASSES_ON => {
                    at = largest;
                    way.push(at);
                }
                _ => break,
            }
        }
        (way, self.tree.below(Some(at)).collect())
    }

    fn suspects(&self, heap: &dyn GraphSource, namer: &Namer, least: f64) -> Vec<Suspect> {
        let mut out = Vec::new();
        let mut reported: Vec<Option<TypeIndex>> = Vec::new();
        // Single objects: those without a dominator.
        let tops = self.large_children(None, least).0;
        let rootless = tops.iter().copied().filter(|id| self.graph.roots_of(*id, false).next().is_none());
        let mut holders = self.holders(namer, &rootless.collect::<Vec<_>>());
        for id in tops {
            reported.push(self.graph.type_index(id));
            let (mut way, mut children) = self.accumulation(id);
            let first = self.linked(&way, &children);
            if let Some(first) = first {
                way.truncate(first.saturating_add(1));
                children = self.tree.below(way.last().copied()).collect();
            }
            let point = way.last().copied().unwrap_or(id);
            let by_type = if first.is_some() { self.dominated_by_type(namer, point, Some(point)) } else { Vec::new() };
            let elements = self.elements(heap, namer, &way);
            let holders = holders.remove(&id).unwrap_or_default();
            let below = self.below(namer, &children);
            let roots = self.graph.root_models(namer, id, (self.stacks, false), 8);
            let object = self.model(namer, id);
            let held = roots.first().map_or_else(|| held_by(&object.type_name, &holders), |r| r.label.clone());
            let mut text = format!(
                "One {} at {}, held by {held}, retains {} ({:.1} %).",
                object.type_name,
                object.address,
                in_units(object.retained),
                object.share * 100.0
            );
            let accumulation = (point != id).then(|| self.model(namer, point));
            let location = accumulation.as_ref().map_or_else(|| "It".to_string(), |a| format!("{} at {}", a.type_name, a.address));
            if let Some(elements) = &elements {
                text.push_str(&format!(" {} at {} has {}.", elements.type_name, elements.address, elements.words()));
            } else if !by_type.is_empty() {
                let named = named_types(&by_type, accumulation.as_ref().unwrap_or(&object).retained);
                let words = named.iter().map(|t| format!("{} × {} ({})", thousands(t.count), t.type_name, in_units(t.bytes)));
                text.push_str(&format!(" {location} holds {}.", words.collect::<Vec<_>>().join(", ")));
            } else if let Some(largest) = below.first() {
                text.push_str(&format!(
                    " {location} holds {} × {} with {}.",
                    thousands(largest.count),
                    largest.type_name,
                    in_units(largest.retained)
                ));
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
                by_type,
                elements,
                holders,
                text,
            });
        }
        // Types: their objects retain a large share together.
        let index = |t: &RetainedType| self.graph.types.iter().find(|k| k.method_table == t.method_table).map(|k| k.index);
        let large = self.top_types(namer, None).into_iter().take_while(|t| t.share >= least);
        let indexed = large.map(|t| (index(&t), t)).filter(|(index, t)| t.count >= 2 && !(index.is_some() && reported.contains(index)));
        let candidates: Vec<(Option<TypeIndex>, RetainedType)> = indexed.collect();
        let within = self.within(&out, candidates.iter().filter_map(|(index, _)| *index));
        // A type is not a suspect if single suspects dominate at least half of its bytes.
        let inside = |index: Option<TypeIndex>| index.and_then(|t| within.get(t)).copied().flatten().unwrap_or(0);
        let apart = candidates.into_iter().filter(|(index, t)| share(inside(*index), t.retained).unwrap_or(1.0) < 0.5);
        let candidates: Vec<(Option<TypeIndex>, RetainedType)> = apart.collect();
        let nested = self.nested(&candidates.iter().filter_map(|(index, _)| *index).collect::<Vec<_>>());
        let mut types: Vec<(TypeIndex, usize)> = Vec::new();
        for (index, t) in candidates {
            // If objects of an earlier type dominate at least half of the bytes, the type is added to the text of the earlier one.
            let is_within = |outer: &&(TypeIndex, usize)| index.is_some_and(|t| nested.get(&(t, outer.0)).is_some_and(|part| *part >= 0.5));
            if let Some(outer) = types.iter().find(is_within).and_then(|(_, at)| out.get_mut(*at)) {
                let below = BelowType { type_name: t.type_name, count: t.count, retained: t.retained };
                outer.text.push_str(&format!(
                    " They hold {} × {} with {}.",
                    thousands(below.count),
                    below.type_name,
                    in_units(below.retained)
                ));
                outer.below.push(below);
                continue;
            }
            types.extend(index.map(|t| (t, out.len())));
            let text = format!(
                "{} objects of {} retain {} together ({:.1} %).",
                thousands(t.count),
                t.type_name,
                in_units(t.retained),
                t.share * 100.0
            );
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
                by_type: Vec::new(),
                elements: None,
                holders: Vec::new(),
                text,
            });
        }
        out
    }

    /// Returns, for each of `types`, the retained bytes of its objects that the suspects dominate.
    fn within(&self, suspects: &[Suspect], types: impl Iterator<Item = TypeIndex>) -> IndexVec<TypeIndex, Option<u64>> {
        let tops: Vec<ObjectId> = suspects.iter().filter_map(|s| self.graph.index.id_of(s.address?)).collect();
        let mut within: IndexVec<TypeIndex, Option<u64>> = IndexVec::new();
        within.grow_to(self.graph.types.len());
        let mut any = false;
        for t in types {
            if let Some(sum) = within.get_mut(t) {
                (*sum, any) = (Some(0), true);
            }
        }
        if !any || tops.is_empty() {
            return within;
        }
        let add = |within: &mut IndexVec<TypeIndex, Option<u64>>, id, retained| {
            if let Some(Some(sum)) = self.graph.type_index(id).and_then(|t| within.get_mut(t)) {
                sum.grow(retained);
            }
        };
        // The suspects have no dominator, so their subtrees are disjoint.
        let parts: Vec<_> = tops.into_iter().flat_map(|top| self.tree.visit_dominated(top, || within.clone(), add)).collect();
        for part in parts {
            within.iter_mut().zip(part).for_each(|(to, from)| {
                if let (Some(to), Some(from)) = (to, from) {
                    to.grow(from);
                }
            });
        }
        within
    }

    /// Returns the size of an object's closure, and how much of it the object retains.
    fn objsize(&self, namer: &Namer, id: ObjectId) -> ObjSizeReport {
        let all = self.graph.edges.closure(id, |n| self.graph.size(n));
        let object = self.model(namer, id);
        ObjSizeReport {
            closure_objects: all.nodes,
            closure_bytes: all.size,
            shared_bytes: all.size.saturating_sub(object.retained.max(object.size)),
            reachable: self.tree.is_reachable(id),
            object,
            coverage: self.graph.coverage(self.stacks),
            stacks: self.stacks,
        }
    }
}
