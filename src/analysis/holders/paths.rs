//! Shortest paths from roots, which show why objects are alive.

use crate::analysis::holders::path_fold::{self, Run};
use crate::analysis::holders::path_tree::PathTree;
use crate::analysis::on_graph::OnGraph;
use crate::analysis::{PathFold, PathModel, PathStep, PathsReport};
use crate::base::store::caught;
use crate::base::{Addr, Answer, Collector, len64, total};
use crate::bcl::{Library, Texts};
use crate::clr::values::{ValueLimits, Values};
use crate::gc::ObjectId;
use crate::heapgraph::{HeapGraph, Holders, Search};
use crate::model::{FieldValue, RootModel, Stacks, ValueKind};
use crate::session::{Error, GraphSource, Heap, Namer, TypePattern};

/// Maximum number of roots listed per object.
const MAX_ROOTS: usize = 16;
/// Maximum number of characters shown of a key.
const KEY_CHARS: u32 = 100;

/// Arguments of `path`.
#[derive(Clone, Debug)]
pub struct PathsQuery {
    /// Target: the object at or around this address; `None` for all objects of [`PathsQuery::types`].
    pub object: Option<Addr>,
    /// Targets: all objects of these types, with merged paths.
    pub types: Vec<TypePattern>,
    /// Maximum number of paths per object, each from a different root.
    pub paths: usize,
    /// Whether weak handles count as roots.
    pub weak: bool,
    /// Which stack and register values are roots.
    pub stacks: Stacks,
    /// Depth of the merged tree.
    pub depth: u32,
    /// Maximum number of lines of the merged tree; 0: all.
    pub lines: usize,
    /// Whether to list every step of long chains. In the merged tree, whether to list every level if objects of one type refer to each other.
    pub full: bool,
}

impl PathsQuery {
    /// Returns a query for up to three paths to the object at or around `address`.
    pub fn to(address: Addr) -> PathsQuery {
        PathsQuery {
            object: Some(address),
            types: Vec::new(),
            paths: 3,
            weak: false,
            stacks: Stacks::default(),
            depth: 12,
            lines: 0,
            full: false,
        }
    }
}

/// Finds the paths that keep objects alive.
///
/// # Errors
/// [`Error::NoObject`] or [`Error::Nothing`] if no target is found, [`Error::Graph`], [`Error::Memory`] or [`Error::Room`] if the graph cannot
/// be built.
pub fn paths(heap: &dyn GraphSource, query: &PathsQuery) -> Result<Answer<PathsReport>, Error> {
    caught(|| paths_of(heap, query))?
}

fn paths_of(heap: &dyn GraphSource, query: &PathsQuery) -> Result<Answer<PathsReport>, Error> {
    let on = OnGraph::open(heap, query.weak, query.stacks, None)?;
    let (targets, merged) = match query.object {
        Some(at) => (vec![on.object(at)?], false),
        None => (on.graph.of_types(&on.namer, &query.types, &on.notes), true),
    };
    if targets.is_empty() {
        on.namer.note(&on.notes);
        let why = on.notes.notes().no_match().map_or_else(|| "no object is of that type".into(), |n| n.message.clone());
        return Err(on.none(Error::Nothing(why)));
    }
    on.graph.note_doubts_of(&targets, query.stacks, &on.notes);
    let keys = heap.heap().and_then(|heap| Keys::bind(heap, &on.namer));
    let holders = on.graph.holders(query.stacks, query.weak);
    let report = Paths { graph: on.graph, heap, namer: &on.namer, holders, keys, query }.report(&targets, merged);
    Ok(on.finish(report))
}

/// Finds paths in one heap.
struct Paths<'g> {
    graph: &'g HeapGraph,
    heap: &'g dyn GraphSource,
    namer: &'g Namer,
    holders: Holders,
    /// `None` if the runtime does not describe types and fields.
    keys: Option<Keys>,
    query: &'g PathsQuery,
}

/// Reads keys of dictionaries.
struct Keys {
    library: Library,
    values: Values,
    texts: Texts,
}

impl Keys {
    fn bind(heap: &Heap, namer: &Namer) -> Option<Keys> {
        let types = namer.types().ok()?;
        // Static fields are not needed here, so notes on missing descriptions of them are dropped.
        let library = Library::of(heap.runtime(), types, &Collector::new());
        let texts = Texts::bind(heap.runtime(), types, &Collector::new());
        Some(Keys { library, texts, values: Values::new(types, ValueLimits { string_chars: KEY_CHARS, ..ValueLimits::default() }) })
    }

    /// Returns the key of a dictionary entry as text in quotes, a number, a tuple of these, or the name of its type. The value of the entry has the reference
    /// at `offset` in `object`, an array or node; `holder` refers to `object`.
    fn text(&self, holder: Option<Addr>, object: Addr, method_table: Addr, offset: u64) -> Option<String> {
        let slot = self.library.collections().key_of(holder, object, method_table, offset)?;
        self.worded(self.values.value("key".into(), slot.type_name, &slot.place))
    }

    fn worded(&self, mut key: FieldValue) -> Option<String> {
        if let Some(boxed) = key.object.and_then(|at| self.boxed(at)) {
            key = boxed;
        }
        match key.kind {
            ValueKind::Absent | ValueKind::Null => None,
            ValueKind::Struct if is_tuple(&key.type_name) && !key.fields.is_empty() && !key.truncated => {
                let parts: Vec<String> = key.fields.into_iter().map(|part| self.worded(part).unwrap_or_else(|| "null".into())).collect();
                Some(format!("({})", parts.join(", ")))
            }
            ValueKind::Object | ValueKind::Struct | ValueKind::Raw | ValueKind::Invalid => {
                let text = || self.texts.of_value(self.library.method_table(key.object?)?, key.object?);
                Some(text().unwrap_or_else(|| key.object_type.map_or(key.type_name, |name| name.to_string())))
            }
            _ => Some(key.text),
        }
    }

    /// Returns the value in the box at `object`.
    fn boxed(&self, object: Addr) -> Option<FieldValue> {
        let mt = self.library.method_table(object)?;
        let info = self.library.types().names().method_tables().read(mt).ok()?;
        self.values.boxed(&info, object)
    }
}

/// Whether the structure with this type name consists of values that together are a key.
fn is_tuple(type_name: &str) -> bool {
    ["System.ValueTuple<", "System.Collections.Generic.KeyValuePair<"].iter().any(|begin| type_name.starts_with(begin))
}

/// A step of a path: the object, and the reference to it from the previous step.
#[derive(Clone, Copy)]
struct Hop {
    id: ObjectId,
    slot: Option<Slot>,
}

/// A reference: the object that has it, the object's type, and the offset.
#[derive(Clone, Copy)]
struct Slot {
    object: Addr,
    method_table: Addr,
    offset: u64,
}

impl Paths<'_> {
    /// Finds the paths to the first reachable target. With `merged`, also merges the shortest paths to all targets by type.
    fn report(&self, targets: &[ObjectId], merged: bool) -> PathsReport {
        let stacks = self.query.stacks;
        let mut report = PathsReport {
            targets: len64(targets.len()),
            reachable: 0,
            roots: 0,
            paths: Vec::new(),
            tree: None,
            coverage: self.graph.coverage(stacks),
            stacks,
        };
        let search = merged.then(|| self.search(targets));
        let reached = |target: &&ObjectId| search.as_ref().is_none_or(|search| search.reached(**target));
        let reached: Vec<ObjectId> = targets.iter().filter(reached).copied().collect();
        // Paths are listed for one target only: if there are several, the tree shows the others.
        if let Some(target) = reached.first() {
            (report.roots, report.paths) = self.paths_to(*target);
        }
        report.reachable = if merged { len64(reached.len()) } else { u64::from(report.roots > 0) };
        report.tree = search.map(|search| {
            let mut tree = PathTree::new(self.graph, &search, self.query.depth, !self.query.full);
            let label = self.graph.root_labels((stacks, self.query.weak));
            tree.add(&reached, |top| label(top).unwrap_or_else(|| "?".into()));
            tree.rows(self.namer, self.query.lines)
        });
        report
    }

    /// Searches forward from the roots until all of `targets` are found. The result has one path to each reachable target.
    fn search(&self, targets: &[ObjectId]) -> Search {
        let edges = &self.graph.edges;
        let mut left = targets.len();
        let mut wanted = edges.no_objects();
        wanted.extend(targets.iter().copied());
        edges.search_in_turn(&self.holders.groups(), |id| {
            if wanted.contains(id) {
                left = left.saturating_sub(1);
            }
            left > 0
        })
    }

    /// Returns the number of roots that reach `target`, and paths from the best of these roots. Searches backward, because few objects usually lead
    /// to one object.
    fn paths_to(&self, target: ObjectId) -> (u64, Vec<PathModel>) {
        let holders = &self.holders;
        let rank = |id| holders.rank(id);
        let open = |from, to| !holders.are_statics(self.graph, from, to);
        let found = self.graph.edges.paths_to_roots(target, (&holders.ids(), rank), open, self.query.paths.max(1));
        (total(found.rooted.iter().map(|id| holders.count(*id))), found.paths.iter().map(|ids| self.model(ids)).collect())
    }

    fn model(&self, ids: &[ObjectId]) -> PathModel {
        let before = std::iter::once(None).chain(ids.iter().copied().map(Some));
        let hops: Vec<Hop> = before.zip(ids).map(|(from, id)| Hop { id: *id, slot: self.slot(from, *id) }).collect();
        let first = ids.first().copied();
        PathModel {
            roots: first.map(|id| self.roots(id, MAX_ROOTS)).unwrap_or_default(),
            root_count: first.map_or(0, |id| self.holders.count(id)),
            steps: self.steps(&hops),
        }
    }

    /// Returns the steps of a path. Long chains are folded.
    fn steps(&self, hops: &[Hop]) -> Vec<PathStep> {
        let single = |start| Run { start, period: 1, count: 1 };
        let keys: Vec<Option<String>> = (0..hops.len()).map(|at| self.key(hops, at)).collect();
        let runs = if self.query.full {
            (0..hops.len()).map(single).collect()
        } else {
            path_fold::runs(hops.len(), |a, b| self.are_equal(hops, &keys, a, b))
        };
        runs.iter().flat_map(|run| (0..run.period).filter_map(|n| self.step(hops, &keys, *run, n))).collect()
    }

    /// Whether two steps use the same field of objects of the same types. Steps through entries of dictionaries are never equal, because their keys
    /// differ.
    fn are_equal(&self, hops: &[Hop], keys: &[Option<String>], a: usize, b: usize) -> bool {
        let shape = |at: usize| {
            let (from, hop) = (hops.get(at.checked_sub(1)?)?, hops.get(at)?);
            keys.get(at)?.is_none().then_some(())?;
            Some((self.graph.type_index(from.id), hop.slot.map(|slot| slot.offset), self.graph.type_index(hop.id)))
        };
        shape(a).is_some_and(|of_a| shape(b) == Some(of_a))
    }

    /// Returns the step that represents step `n` of all repetitions in a run.
    fn step(&self, hops: &[Hop], keys: &[Option<String>], run: Run, n: usize) -> Option<PathStep> {
        let at = run.start.saturating_add(n);
        let all = || hops.iter().skip(at).step_by(run.period).take(run.count);
        let hop = hops.get(at)?;
        let field = |slot: Slot| self.namer.path_at(slot.method_table, slot.offset).unwrap_or_else(|| format!("+{:#x}", slot.offset));
        let fold = || {
            Some(PathFold {
                count: len64(run.count),
                last: self.graph.address(all().next_back()?.id),
                bytes: total(all().map(|hop| self.graph.size(hop.id))),
                period: u32::try_from(run.period).ok()?,
            })
        };
        Some(PathStep {
            address: self.graph.address(hop.id),
            type_name: self.graph.type_name(self.namer, hop.id),
            size: self.graph.size(hop.id),
            field: hop.slot.map(field),
            key: keys.get(at).cloned().flatten(),
            fold: if run.count > 1 { fold() } else { None },
        })
    }

    /// Returns the key of the dictionary entry through which the path reaches step `at`.
    fn key(&self, hops: &[Hop], at: usize) -> Option<String> {
        let (keys, slot) = (self.keys.as_ref()?, hops.get(at)?.slot?);
        let holder = at.checked_sub(2).and_then(|holder| hops.get(holder)).map(|hop| self.graph.address(hop.id));
        keys.text(holder, slot.object, slot.method_table, slot.offset)
    }

    /// Returns the roots of an object, best first.
    fn roots(&self, id: ObjectId, most: usize) -> Vec<RootModel> {
        self.graph.root_models(self.namer, id, (self.query.stacks, self.query.weak), most)
    }

    /// Returns the first reference from `from` to `to`.
    fn slot(&self, from: Option<ObjectId>, to: ObjectId) -> Option<Slot> {
        let from = from?;
        let kind = self.graph.kind(from)?;
        let (object, target) = (self.graph.address(from), self.graph.address(to));
        let mut found = None;
        kind.gc_desc.references_while(self.heap.memory(), object, self.graph.size(from), |offset, to| {
            found = (to == target).then_some(offset);
            found.is_none()
        });
        Some(Slot { object, method_table: kind.method_table, offset: found? })
    }
}

#[cfg(test)]
mod tests {
    use super::is_tuple;

    #[test]
    fn tuples_are_keys_of_several_values() {
        assert!(is_tuple("System.ValueTuple<System.Int32, System.String>"));
        assert!(is_tuple("System.Collections.Generic.KeyValuePair<System.Int32, Lab.Order>"));
        assert!(!is_tuple("System.ValueTuple") && !is_tuple("Lab.Pair<System.Int32>") && !is_tuple("System.Guid"));
    }
}
