//! What keeps objects alive: shortest paths from roots.

use super::on_graph::OnGraph;
use super::path_tree::PathTree;
use crate::base::store::caught;
use crate::base::{Addr, Answer, Collector, len64};
use crate::clr::values::{ValueLimits, Values};
use crate::gc::ObjectId;
use crate::model::{FieldValue, PathModel, PathStep, PathsReport, RootModel, Stacks, ValueKind};
use crate::session::{Error, GraphSource, Heap, HeapGraph, Library, Namer, TypePattern};

/// Maximum roots listed per object.
const MAX_ROOTS: usize = 16;
/// Most characters shown of a key.
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
    /// Which stack and register values count.
    pub stacks: Stacks,
    /// Depth of the merged tree.
    pub depth: u32,
    /// Maximum number of lines of the merged tree.
    pub lines: usize,
}

impl PathsQuery {
    /// Up to three paths to the object at or around `address`.
    pub fn to(address: Addr) -> PathsQuery {
        PathsQuery { object: Some(address), types: Vec::new(), paths: 3, weak: false, stacks: Stacks::default(), depth: 12, lines: 1000 }
    }
}

/// Finds what keeps objects alive.
///
/// # Errors
/// [`Error::NoObject`] or [`Error::Nothing`] if there is no target, [`Error::Graph`], [`Error::Memory`] or [`Error::Room`] if the graph cannot
/// be built.
pub fn paths(heap: &dyn GraphSource, query: &PathsQuery) -> Result<Answer<PathsReport>, Error> {
    caught(|| paths_of(heap, query))?
}

fn paths_of(heap: &dyn GraphSource, query: &PathsQuery) -> Result<Answer<PathsReport>, Error> {
    let on = OnGraph::open(heap, query.weak, query.stacks)?;
    let (targets, merged) = match query.object {
        Some(at) => (vec![on.object(at)?], false),
        None => (on.graph.of_types(&on.namer, &query.types, &on.notes), true),
    };
    if targets.is_empty() {
        on.namer.note(&on.notes);
        let why = on.notes.notes().no_match().map_or_else(|| "no object is of that type".into(), |n| n.message.clone());
        return Err(on.none(Error::Nothing(why)));
    }
    let keys = heap.heap().and_then(|heap| Keys::bind(heap, &on.namer));
    let report = Paths { graph: on.graph, heap, namer: &on.namer, keys, query }.report(&targets, merged);
    Ok(on.finish(report))
}

/// Finds paths in one heap.
struct Paths<'g> {
    graph: &'g HeapGraph,
    heap: &'g dyn GraphSource,
    namer: &'g Namer,
    /// `None` if the runtime does not describe types and fields.
    keys: Option<Keys>,
    query: &'g PathsQuery,
}

/// Reads keys of dictionaries.
struct Keys {
    library: Library,
    values: Values,
}

impl Keys {
    fn bind(heap: &Heap, namer: &Namer) -> Option<Keys> {
        let types = namer.types().ok()?;
        // Statics, which the descriptor may lack, are not asked for.
        let library = Library::of(heap.runtime(), types, &Collector::new());
        Some(Keys { library, values: Values::new(types, ValueLimits { string_chars: KEY_CHARS, ..ValueLimits::default() }) })
    }

    /// The key to whose value the reference at `offset` of the object at `object`, which `holder` refers to, belongs: text in quotes, a
    /// number, or the name of its type.
    fn text(&self, holder: Option<Addr>, object: Addr, method_table: Addr, offset: u64) -> Option<String> {
        let slot = self.library.collections().key_of(holder, object, method_table, offset)?;
        let mut key = self.values.value("key".into(), slot.type_name, &slot.place);
        if let Some(boxed) = key.object.and_then(|at| self.boxed(at)) {
            key = boxed;
        }
        match key.kind {
            ValueKind::Absent | ValueKind::Null => None,
            ValueKind::Object | ValueKind::Struct | ValueKind::Raw | ValueKind::Invalid => {
                Some(key.object_type.map_or(key.type_name, |name| name.to_string()))
            }
            _ => Some(key.text),
        }
    }

    /// The value in a box.
    fn boxed(&self, object: Addr) -> Option<FieldValue> {
        let mt = self.library.method_table(object)?;
        let info = self.library.types().names().method_tables().read(mt).ok()?;
        self.values.boxed(&info, object)
    }
}

impl Paths<'_> {
    /// Shortest paths to each of `targets`; with `merged`, all of them merged by type as well.
    fn report(&self, targets: &[ObjectId], merged: bool) -> PathsReport {
        // One example path per type; the tree shows the rest.
        let targets_told = if merged { 1 } else { targets.len() };
        let (most, stacks) = (self.query.paths.max(1), self.query.stacks);
        let holders = self.graph.holders(stacks, self.query.weak);
        let mut report = PathsReport {
            targets: len64(targets.len()),
            reachable: 0,
            paths: Vec::new(),
            tree: None,
            coverage: self.graph.coverage(stacks),
            stacks,
        };
        let edges = &self.graph.edges;
        if let ([target], true) = (targets, most > 1 && !merged) {
            // Backwards from one object, few others are met, and it is reachable if a root is among them.
            let found = edges.paths_to_roots(*target, |id| holders.rank(id), most);
            report.reachable = u64::from(!found.is_empty());
            report.paths = found.iter().map(|p| self.model(p)).collect();
            return report;
        }
        // One forward search for all targets finds out which are reachable, with one path each.
        let mut left = targets.len();
        let mut wanted = edges.no_objects();
        wanted.extend(targets.iter().copied());
        let search = edges.search_in_turn(&holders.groups(), |id| {
            if wanted.contains(id) {
                left = left.saturating_sub(1);
            }
            left > 0
        });
        let reached: Vec<ObjectId> = targets.iter().copied().filter(|t| search.reached(*t)).collect();
        report.reachable = len64(reached.len());
        let shown = reached.iter().take(targets_told);
        if most == 1 {
            report.paths = shown.map(|t| self.model(&search.path_to(*t))).collect();
        } else {
            for target in shown {
                let found = edges.paths_to_roots(*target, |id| holders.rank(id), most);
                report.paths.extend(found.iter().map(|p| self.model(p)));
            }
        }
        report.tree = merged.then(|| {
            let mut tree = PathTree::new(self.graph, &search, self.query.depth);
            tree.add(&reached, |top| self.roots(top, 1).first().map_or_else(|| "?".into(), |root| root.label.clone()));
            tree.rows(self.namer, self.query.lines)
        });
        report
    }

    fn model(&self, ids: &[ObjectId]) -> PathModel {
        let mut holder = None;
        let mut step = |(before, id): (Option<ObjectId>, ObjectId)| {
            let (field, key) = self.edge(holder, before, id);
            holder = before;
            let type_name = self.graph.type_name(self.namer, id);
            PathStep { address: self.graph.address(id), type_name, size: self.graph.size(id), field, key }
        };
        let before = std::iter::once(None).chain(ids.iter().copied().map(Some));
        let roots = ids.first().map(|id| self.roots(*id, MAX_ROOTS));
        PathModel { roots: roots.unwrap_or_default(), steps: before.zip(ids.iter().copied()).map(&mut step).collect() }
    }

    /// The roots of an object, best first.
    fn roots(&self, id: ObjectId, most: usize) -> Vec<RootModel> {
        self.graph.root_models(self.namer, id, (self.query.stacks, self.query.weak), most)
    }

    /// The field of `from`, which `holder` refers to, that refers to `to`; of an entry of a dictionary, its key as well.
    fn edge(&self, holder: Option<ObjectId>, from: Option<ObjectId>, to: ObjectId) -> (Option<String>, Option<String>) {
        let Some((address, method_table, offset)) = from.and_then(|from| self.slot(from, to)) else { return (None, None) };
        let field = self.namer.path_at(method_table, offset).unwrap_or_else(|| format!("+{offset:#x}"));
        let holder = holder.map(|id| self.graph.address(id));
        (Some(field), self.keys.as_ref().and_then(|keys| keys.text(holder, address, method_table, offset)))
    }

    /// Where `from` refers to `to`: its address, its method table, the offset.
    fn slot(&self, from: ObjectId, to: ObjectId) -> Option<(Addr, Addr, u64)> {
        let kind = self.graph.kind(from)?;
        let (address, target) = (self.graph.address(from), self.graph.address(to));
        let mut found = None;
        kind.gc_desc.references(self.heap.memory(), address, self.graph.size(from), |offset, to| {
            if found.is_none() && to == target {
                found = Some(offset);
            }
        });
        Some((address, kind.method_table, found?))
    }
}
