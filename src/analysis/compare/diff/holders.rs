//! Finds the containers that hold the growth. The search follows both dominator trees down from the same roots, along the objects that grew.
//!
//! Objects have no identity across dumps. On each step, the children of the objects followed so far are grouped by type, and the groups of both dumps
//! are compared. If one element makes up most of the growth of its group, only that element is followed. Elements in the same slot of the container
//! are treated as the same object; the others are matched in the order of their retained sizes. A snapshot has no slots: `counterparts` has the rules
//! for it.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use rustc_hash::{FxHashMap, FxHashSet};

use super::key::{Key, UNKNOWN};
use crate::analysis::{GainedType, GrowingHolder, HolderStep};
use crate::base::{Addr, Collector, Index, IndexVec, Name, change, growth, in_units, len64, thousands, total};
use crate::gc::{ObjectId, TypeIndex};
use crate::heapgraph::{Depends, DominatorTree, HeapGraph};
use crate::model::{RootCoverageModel, Stacks, Sum};
use crate::session::{Error, GraphSource, Namer};

/// Maximum length of the path from a root to a container.
const MAX_STEPS: usize = 64;
/// Maximum number of holders listed.
const MAX_HOLDERS: usize = 50;
/// Maximum number of types listed for a holder.
const MAX_GAINED: usize = 5;
/// A part of the growth is followed or reported if it is at least 1/`PART` of the whole.
const PART: i64 = 5;
/// Prefixes of the names of collections whose arrays have no gaps between elements.
const DENSE: [&str; 4] = [
    "System.Collections.Generic.List<",
    "System.Collections.Generic.List`1",
    "System.Collections.Generic.Stack<",
    "System.Collections.ArrayList",
];
/// Lowest address that may be that of an object. The reader of snapshots makes up lower addresses for nodes without one.
const LOWEST: Addr = Addr(0x1_0000);
/// Holders of less than 1/`WORTH_LISTING` of all growth are omitted.
const WORTH_LISTING: i64 = 100;

/// The dominator tree of one dump.
pub(super) struct Side<'h> {
    heap: &'h dyn GraphSource,
    graph: &'h HeapGraph,
    tree: &'h DominatorTree,
    namer: Namer,
    types: IndexVec<TypeIndex, Type>,
    /// Name of objects without a type.
    unknown: Name,
    /// Labels of the roots of rooted objects.
    roots: FxHashMap<ObjectId, String>,
    /// Whether the other side is of another kind: a snapshot for a dump, or a dump for a snapshot. Snapshots have fewer kinds of roots.
    mixed: bool,
}

/// A type, with the key that matches it to the types of the other dump.
struct Type {
    key: Key,
    /// Whether the type is not part of the framework.
    own: bool,
    /// Whether the type is storage of a collection of the framework, such as a node or a segment.
    storage: bool,
}

impl<'h> Side<'h> {
    /// Gets the graph and the dominator tree of `heap`. They are built if necessary.
    pub(super) fn open(heap: &'h dyn GraphSource, mixed: bool, notes: &Collector) -> Result<Side<'h>, Error> {
        let graph = heap.graph(false)?;
        heap.graph_notes(false, notes);
        let stacks = Stacks::default();
        graph.root_notes(stacks).into_iter().for_each(|n| notes.extend(n));
        graph.note_doubts(stacks, Depends::Dominators, notes);
        let tree = heap.dominators(stacks)?;
        let namer = graph.namer(heap.namer());
        let named = |mt| match namer.name(mt) {
            Some(name) => (name, namer.module(mt)),
            None => (Name::from(UNKNOWN), None),
        };
        let types = graph.types.iter().map(|t| {
            let key: Key = named(t.method_table);
            let own = key.1.as_deref().is_some_and(|module| !is_framework(module));
            Type { own, storage: !own && is_storage(&key.0), key }
        });
        let types = types.collect();
        namer.note(notes);
        let mut roots = if mixed { graph.root_groups_in_snapshots() } else { graph.root_groups() };
        if mixed {
            // Snapshots do not have the stack roots of objects that other roots reach as well.
            let starts = graph.starts(stacks);
            roots.retain(|id, _| starts.binary_search(id).is_ok());
        }
        Ok(Side { heap, graph, tree, types, roots, mixed, namer, unknown: UNKNOWN.into() })
    }

    /// Returns why retained sizes are unknown, if roots of an important kind are.
    pub(super) fn unknown_roots(&self) -> Option<String> {
        let coverage = self.graph.coverage(Stacks::default());
        let unknown = RootCoverageModel::unknown(&coverage)?;
        Some(unknown.reason.clone().unwrap_or_else(|| format!("roots of the kind {} are unknown", unknown.kind)))
    }

    fn type_of(&self, id: ObjectId) -> Option<&Type> {
        self.types.get(self.graph.type_index(id)?)
    }

    fn name(&self, id: ObjectId) -> &Name {
        self.type_of(id).map_or(&self.unknown, |t| &t.key.0)
    }

    fn is_storage(&self, id: ObjectId) -> bool {
        self.type_of(id).is_some_and(|t| t.storage)
    }

    fn retained(&self, ids: &[ObjectId]) -> u64 {
        total(ids.iter().map(|id| self.tree.retained(*id)))
    }

    /// Returns a label for the root that holds `id`, an object at the top of the dominator tree.
    fn label(&self, id: ObjectId) -> String {
        let is_frozen = || self.graph.frozen.binary_search(&id).is_ok();
        match self.roots.get(&id).filter(|_| !self.mixed || !is_frozen()) {
            Some(label) => label.clone(),
            None if is_frozen() => "(frozen segments)".into(),
            None => "(several roots)".into(),
        }
    }

    /// Returns the number and bytes of all objects by root, with a row for objects that several roots hold and, unless a
    /// snapshot is compared, a row for unreachable objects.
    pub(super) fn by_root(&self) -> BTreeMap<String, Sum> {
        let mut rows: BTreeMap<String, Sum> = BTreeMap::new();
        for id in self.tree.below(None) {
            let sum = Sum { count: self.tree.subtree(id), bytes: self.tree.retained(id) };
            rows.entry(self.label(id)).or_default().merge(sum);
        }
        for id in self.graph.ids().filter(|id| !self.mixed && !self.tree.is_reachable(*id)) {
            rows.entry("(unreachable)".into()).or_default().add(self.graph.size(id));
        }
        rows
    }

    /// Returns the bytes that objects of the types with the `wanted` names retain together.
    pub(super) fn retained_by(&self, wanted: impl Fn(&Name) -> bool) -> u64 {
        let wanted: IndexVec<TypeIndex, bool> = self.types.iter().map(|t| wanted(&t.key.0)).collect();
        let group = |id| self.graph.is_of(id, &wanted).then(|| TypeIndex::from_u32(0));
        total(self.tree.retained_by_type(group, 1))
    }

    /// Returns the bytes that the objects of each type retain together.
    pub(super) fn retained_by_type(&self) -> Retained {
        let mut groups: BTreeMap<&Key, TypeIndex> = BTreeMap::new();
        let mut keys: IndexVec<TypeIndex, &Key> = IndexVec::new();
        let mut group_of: IndexVec<TypeIndex, Option<TypeIndex>> = IndexVec::new();
        for t in self.types.iter() {
            let group = groups.get(&t.key).copied().or_else(|| keys.push(&t.key));
            groups.extend(group.map(|g| (&t.key, g)));
            group_of.push(group);
        }
        let of = |id| group_of.get(self.graph.type_index(id)?).copied().flatten();
        let sums = self.tree.retained_by_type(of, keys.len());
        let mut out = Retained::default();
        for ((name, module), sum) in keys.into_iter().zip(sums).filter(|(_, sum)| *sum > 0) {
            out.0.entry(name.clone()).or_default().push((module.clone(), sum));
        }
        out
    }

    /// Returns the references of an object: offset and target.
    fn slots(&self, id: ObjectId) -> Vec<(u64, ObjectId)> {
        let Some(kind) = self.graph.kind(id) else { return Vec::new() };
        let mut out = Vec::new();
        kind.gc_desc.references(self.heap.memory(), self.graph.address(id), self.graph.size(id), |offset, at| {
            out.extend(self.graph.index.id_of(at).map(|target| (offset, target)));
        });
        out
    }

    /// Returns the name of the field or element at an offset of an object.
    fn field(&self, id: ObjectId, offset: u64) -> Option<String> {
        self.namer.path_at(self.graph.kind(id)?.method_table, offset)
    }
}

/// Whether a module belongs to .NET, according to the name prefixes reserved for it.
fn is_framework(module: &str) -> bool {
    let name = module.strip_suffix(".dll").unwrap_or(module);
    let reserved = ["System.", "Microsoft."].iter().any(|prefix| name.starts_with(prefix));
    reserved || matches!(name, "System" | "mscorlib" | "netstandard" | "WindowsBase" | "PresentationCore" | "PresentationFramework")
}

/// Whether objects of a type of the framework store the elements of a collection, so that their number says nothing about the number of elements.
fn is_storage(name: &str) -> bool {
    const WITH_ELEMENTS: [&str; 2] =
        ["System.Collections.Concurrent.ConcurrentQueueSegment<", "System.Collections.Generic.LinkedListNode<"];
    /// Collections whose nested types store the elements. The name of a nested type goes on after the arguments: `ConcurrentStack<T>+Node`.
    const WITH_NODES: [&str; 7] = [
        "System.Collections.Concurrent.ConcurrentDictionary<",
        "System.Collections.Concurrent.ConcurrentStack<",
        "System.Collections.Concurrent.ConcurrentBag<",
        "System.Collections.Generic.SortedSet<",
        "System.Collections.Generic.Dictionary<",
        "System.Collections.Generic.HashSet<",
        "System.Threading.Channels.SingleProducerSingleConsumerQueue<",
    ];
    let is_of = |prefixes: &[&str]| prefixes.iter().any(|prefix| name.starts_with(prefix));
    is_of(&WITH_ELEMENTS) || name.contains(">+") && is_of(&WITH_NODES)
}

/// Retained sizes by name and module.
#[derive(Default)]
pub(super) struct Retained(BTreeMap<Name, Vec<(Option<String>, u64)>>);

impl Retained {
    /// Returns the retained size of a type. The module matters only if several modules have a type with this name, as in the rows of the report.
    pub(super) fn get(&self, name: &Name, module: Option<&str>) -> u64 {
        match self.0.get(name).map(Vec::as_slice) {
            Some([(_, only)]) => *only,
            Some(several) => several.iter().find(|(m, _)| m.as_deref() == module).map_or(0, |(_, n)| *n),
            None => 0,
        }
    }
}

/// Objects of both dumps that are compared.
#[derive(Clone, Default)]
struct Pair {
    before: Vec<ObjectId>,
    after: Vec<ObjectId>,
}

/// Groups objects of both dumps by key.
fn paired<K: Ord>(before: impl IntoIterator<Item = (K, ObjectId)>, after: impl IntoIterator<Item = (K, ObjectId)>) -> BTreeMap<K, Pair> {
    let mut groups: BTreeMap<K, Pair> = BTreeMap::new();
    before.into_iter().for_each(|(key, id)| groups.entry(key).or_default().before.push(id));
    after.into_iter().for_each(|(key, id)| groups.entry(key).or_default().after.push(id));
    groups
}

/// Children of one type.
struct Child {
    type_name: Name,
    field: Option<String>,
    pair: Pair,
    change: i64,
}

/// Objects that were reached on the way down, with the path from the root to them.
struct Branch {
    root: String,
    root_before: u64,
    root_after: u64,
    path: Vec<HolderStep>,
    pair: Pair,
    change: i64,
}

struct Comparison<'s, 'h> {
    before: &'s Side<'h>,
    after: &'s Side<'h>,
    /// Fewest bytes that a group or an object must gain to be followed.
    floor: i64,
}

/// Returns the containers that grew from `before` to `after`.
pub(super) fn growing(before: &Side<'_>, after: &Side<'_>) -> Vec<GrowingHolder> {
    let roots = paired(before.tree.below(None).map(|id| (before.label(id), id)), after.tree.below(None).map(|id| (after.label(id), id)));
    let place = |(root, pair): (String, Pair)| {
        let (root_before, root_after) = (before.retained(&pair.before), after.retained(&pair.after));
        Branch { root, root_before, root_after, path: Vec::new(), pair, change: change(root_before, root_after) }
    };
    let mut waiting: Vec<Branch> = roots.into_iter().map(place).collect();
    let all = waiting.iter().fold(0i64, |sum, p| sum.saturating_add(p.change.max(0)));
    let both = Comparison { before, after, floor: all.checked_div(WORTH_LISTING).unwrap_or(0).max(1) };
    waiting.retain(|p| p.change >= both.floor);
    let mut found = Vec::new();
    while let Some(place) = waiting.pop() {
        let (further, element) = both.step(&place);
        if further.is_empty() {
            found.push(both.holder(place, element));
        }
        waiting.extend(further);
    }
    let largest = found.iter().map(|h| h.change).max().unwrap_or(0);
    let first = |h: &GrowingHolder| h.own && h.change.saturating_mul(10) >= largest;
    found.sort_by(|a, b| (!first(a), Reverse(a.change), &a.text).cmp(&(!first(b), Reverse(b.change), &b.text)));
    found.truncate(MAX_HOLDERS);
    found
}

impl<'s, 'h> Comparison<'s, 'h> {
    /// Returns the type of the elements that accumulate in the storage of the collection at `place`: of the objects that storage dominates directly, the type
    /// that gained most bytes, or an own type that gained a good part of them. `None` if there are no more of any type than before.
    fn stored(&self, place: &Branch) -> Option<Name> {
        let mut types: BTreeMap<&Name, (Sum, Sum, bool)> = BTreeMap::new();
        let elements = |side: &'s Side<'h>, ids: &[ObjectId]| -> Vec<ObjectId> {
            let all = ids.iter().flat_map(|id| side.tree.dominated(*id));
            all.filter(|id| !side.is_storage(*id) && side.tree.dominator(*id).is_some_and(|above| side.is_storage(above))).collect()
        };
        for id in elements(self.before, &place.pair.before) {
            types.entry(self.before.name(id)).or_default().0.add(self.before.tree.retained(id));
        }
        for id in elements(self.after, &place.pair.after) {
            let entry = types.entry(self.after.name(id)).or_default();
            entry.1.add(self.after.tree.retained(id));
            entry.2 |= self.after.type_of(id).is_some_and(|t| t.own);
        }
        let more = types.into_iter().filter(|(_, (from, to, _))| to.count > from.count);
        let gained: Vec<(&Name, i64, bool)> = more.map(|(name, (from, to, own))| (name, change(from.bytes, to.bytes), own)).collect();
        let own = gained.iter().filter(|(_, bytes, own)| *own && bytes.saturating_mul(PART) >= place.change);
        let most = own.max_by_key(|(_, bytes, _)| *bytes).or_else(|| gained.iter().max_by_key(|(_, bytes, _)| *bytes));
        most.map(|(name, _, _)| (*name).clone())
    }

    /// Returns the branches to follow next. If objects accumulate in `place`, the list is empty, and the type of these objects is returned.
    fn step(&self, place: &Branch) -> (Vec<Branch>, Option<Name>) {
        let mut children = self.children(place);
        let part = |c: &Child| c.change >= self.floor && c.change.saturating_mul(PART) >= place.change;
        children.retain(part);
        let above = place.path.last().map(|step| &step.type_name);
        // Objects accumulate if there are more of a type than before, or in a linked list, where an element has the type of its container.
        let accumulates = |c: &&Child| c.pair.after.len() > c.pair.before.len().max(1) || above == Some(&c.type_name);
        let element = children.iter().find(accumulates).map(|c| {
            let stored = c.pair.after.first().filter(|id| self.after.is_storage(**id)).and_then(|_| self.stored(place));
            stored.unwrap_or_else(|| c.type_name.clone())
        });
        let followed = children.iter().fold(0i64, |sum, c| sum.saturating_add(c.change));
        if element.is_some() || followed.saturating_mul(2) < place.change || place.path.len() >= MAX_STEPS {
            return (Vec::new(), element);
        }
        let further = children.into_iter().map(|c| {
            let address = if let [only] = c.pair.after.as_slice() { Some(self.after.graph.address(*only)) } else { None };
            let (before, after) = (len64(c.pair.before.len()), len64(c.pair.after.len()));
            let step = HolderStep { type_name: c.type_name, field: c.field, address, before, after };
            let path = place.path.iter().cloned().chain([step]).collect();
            Branch { root: place.root.clone(), path, pair: c.pair, change: c.change, ..*place }
        });
        (further.collect(), None)
    }

    /// Returns the children of `place` by type, most bytes gained first. The children of a root are the objects that it holds.
    fn children(&self, place: &Branch) -> Vec<Child> {
        let at_root = place.path.is_empty();
        let named = |side: &'s Side<'h>, ids: &[ObjectId]| -> Vec<(&'s Name, ObjectId)> {
            let ids: Vec<ObjectId> = if at_root { ids.to_vec() } else { ids.iter().flat_map(|id| side.tree.below(Some(*id))).collect() };
            ids.into_iter().map(|id| (side.name(id), id)).collect()
        };
        let groups = paired(named(self.before, &place.pair.before), named(self.after, &place.pair.after));
        let slots = if at_root { None } else { self.slots(place) };
        let child = |(name, pair): (&Name, Pair)| {
            let gained = change(self.before.retained(&pair.before), self.after.retained(&pair.after));
            let child = Child { type_name: name.clone(), field: None, pair, change: gained };
            // The elements of a queue are in all of its segments.
            let several = child.pair.after.len() > 1 && child.pair.after.first().is_some_and(|id| self.after.is_storage(*id));
            if gained < self.floor || several { child } else { self.narrowed(child, slots.as_ref()) }
        };
        let mut children: Vec<Child> = groups.into_iter().map(child).collect();
        children.sort_by_key(|c| Reverse(c.change));
        children
    }

    /// Returns the references of the container; `None` if `place` has several objects of a dump.
    fn slots(&self, place: &Branch) -> Option<Slots> {
        let ([container], [] | [_]) = (place.pair.after.as_slice(), place.pair.before.as_slice()) else { return None };
        let old = place.pair.before.first();
        let above = place.path.iter().rev().nth(1);
        // Elements of a list have no gaps between them.
        let dense = above.is_some_and(|step| DENSE.iter().any(|begin| step.type_name.starts_with(begin)));
        let in_order = |side: &Side<'_>, id: &ObjectId| side.graph.edges.successors(*id).collect();
        Some(Slots {
            before: old.map(|id| self.before.slots(*id).into_iter().collect()).unwrap_or_default(),
            after: self.after.slots(*container).into_iter().map(|(offset, id)| (id, offset)).collect(),
            container: *container,
            in_order: old.filter(|_| dense && self.has_file()).map(|old| (in_order(self.before, old), in_order(self.after, container))),
        })
    }

    /// Whether a side is a snapshot, which has no slots.
    fn has_file(&self) -> bool {
        [self.before, self.after].iter().any(|side| side.heap.heap().is_none())
    }

    /// Returns the counterparts of elements of two dumps, which always have one as long as there are enough elements before.
    fn counterparts_in_dumps(&self, group: &Pair, slots: Option<&Slots>) -> FxHashMap<ObjectId, ObjectId> {
        let mut counterpart: FxHashMap<ObjectId, ObjectId> = FxHashMap::default();
        let mut rest = group.before.clone();
        if let Some(slots) = slots {
            let members: FxHashSet<ObjectId> = group.before.iter().copied().collect();
            for id in &group.after {
                let same = slots.after.get(id).and_then(|offset| slots.before.get(offset)).filter(|old| members.contains(old));
                counterpart.extend(same.map(|old| (*id, *old)));
            }
            let taken: FxHashSet<ObjectId> = counterpart.values().copied().collect();
            rest.retain(|id| !taken.contains(id));
        }
        // Elements without a common slot are matched by size, the largest with the largest.
        rest.sort_by_key(|id| Reverse((self.before.tree.retained(*id), Reverse(*id))));
        let mut new: Vec<ObjectId> = group.after.iter().copied().filter(|id| !counterpart.contains_key(id)).collect();
        new.sort_by_key(|id| Reverse((self.after.tree.retained(*id), Reverse(*id))));
        counterpart.extend(new.into_iter().zip(rest));
        counterpart
    }

    /// Returns the elements whose counterpart is known if a side is a snapshot: `None` for a new object. Objects at the same position of a list
    /// that has not become shorter are the same, and so are objects at the same address. If the two rules contradict each other, or if several
    /// elements are left on a side, the elements that are left are not in the result.
    fn counterparts(&self, group: &Pair, slots: Option<&Slots>) -> FxHashMap<ObjectId, Option<ObjectId>> {
        let addresses = |side: &Side<'_>, ids: &[ObjectId]| -> FxHashMap<Addr, ObjectId> {
            let all = ids.iter().map(|id| (side.graph.address(*id), *id));
            all.filter(|(address, _)| *address >= LOWEST).collect()
        };
        let old = addresses(self.before, &group.before);
        let unmoved = group.after.iter().filter_map(|id| Some((*id, *old.get(&self.after.graph.address(*id))?)));
        let unmoved: FxHashMap<ObjectId, ObjectId> = unmoved.collect();
        let mut known: FxHashMap<ObjectId, Option<ObjectId>> = FxHashMap::default();
        if let Some((before, after)) = slots.and_then(|s| s.in_order.as_ref()).filter(|(before, after)| before.len() <= after.len()) {
            let members = |ids: &[ObjectId]| -> FxHashSet<ObjectId> { ids.iter().copied().collect() };
            let (old, new) = (members(&group.before), members(&group.after));
            let counterparts = before.iter().map(|id| Some(*id)).chain(std::iter::repeat(None));
            for (id, same) in
                after.iter().zip(counterparts).filter(|(id, same)| new.contains(id) && same.is_none_or(|id| old.contains(&id)))
            {
                known.entry(*id).or_insert(same);
            }
        }
        if unmoved.iter().any(|(id, old)| known.get(id).is_some_and(|same| *same != Some(*old))) {
            return FxHashMap::default();
        }
        known.extend(unmoved.into_iter().map(|(id, old)| (id, Some(old))));
        let taken: FxHashSet<ObjectId> = known.values().flatten().copied().collect();
        let rest: Vec<ObjectId> = group.before.iter().copied().filter(|id| !taken.contains(id)).collect();
        let new: Vec<ObjectId> = group.after.iter().copied().filter(|id| !known.contains_key(id)).collect();
        match (rest.as_slice(), new.as_slice()) {
            ([], new) => known.extend(new.iter().map(|id| (*id, None))),
            ([old], [new]) => known.extend([(*new, Some(*old))]),
            _ => {}
        }
        known
    }

    /// Narrows a group to one object if this object makes up most of the growth.
    fn narrowed(&self, group: Child, slots: Option<&Slots>) -> Child {
        let known: FxHashMap<ObjectId, Option<ObjectId>> = if self.has_file() {
            self.counterparts(&group.pair, slots)
        } else {
            let old = self.counterparts_in_dumps(&group.pair, slots);
            group.pair.after.iter().map(|id| (*id, old.get(id).copied())).collect()
        };
        let gained = |id: &ObjectId| {
            let old = known.get(id)?.map_or(0, |old| self.before.tree.retained(old));
            Some((change(old, self.after.tree.retained(*id)), *id))
        };
        let Some((gain, id)) = group.pair.after.iter().filter_map(gained).max_by_key(|(gain, id)| (*gain, Reverse(*id))) else {
            return group;
        };
        // The object must make up at least four fifths of the growth.
        if gain.saturating_mul(PART) < group.change.saturating_mul(PART.saturating_sub(1)) {
            return group;
        }
        let field = slots.and_then(|s| self.after.field(s.container, *s.after.get(&id)?));
        let before = known.get(&id).copied().flatten().into_iter().collect();
        Child { field, pair: Pair { before, after: vec![id] }, change: gain, ..group }
    }

    fn holder(&self, place: Branch, element: Option<Name>) -> GrowingHolder {
        let (retained_before, retained_after) = (self.before.retained(&place.pair.before), self.after.retained(&place.pair.after));
        let mut types: BTreeMap<&Name, (Sum, Sum, bool)> = BTreeMap::new();
        for id in place.pair.before.iter().flat_map(|id| self.before.tree.dominated(*id)) {
            types.entry(self.before.name(id)).or_default().0.add(self.before.graph.size(id));
        }
        for id in place.pair.after.iter().flat_map(|id| self.after.tree.dominated(*id)) {
            let own = self.after.type_of(id).is_some_and(|t| t.own);
            let entry = types.entry(self.after.name(id)).or_default();
            entry.1.add(self.after.graph.size(id));
            entry.2 |= own;
        }
        let count_of = |name: &Name| types.get(name).map_or(0, |(from, to, _)| change(from.count, to.count));
        let own = types.iter().any(|(name, (from, to, own))| *own && (to.count > from.count || element.as_ref() == Some(*name)));
        let mut gained: Vec<GainedType> = types
            .iter()
            .map(|(name, (from, to, _))| GainedType {
                type_name: (*name).clone(),
                count: change(from.count, to.count),
                bytes: change(from.bytes, to.bytes),
            })
            .filter(|g| g.bytes > 0)
            .collect();
        gained.sort_by_key(|g| Reverse(g.bytes));
        gained.truncate(MAX_GAINED);
        let change = place.change;
        let mut text = way(&place.root, &place.path);
        let what = element.as_ref().or_else(|| gained.first().map(|g| &g.type_name));
        match what.map(|name| (name, count_of(name))).filter(|(_, n)| *n > 0) {
            Some((name, n)) => text.push_str(&format!(" grew by {} {name}, {}", digits(n), in_units(change.unsigned_abs()))),
            None => text.push_str(&format!(" grew by {}", in_units(change.unsigned_abs()))),
        }
        GrowingHolder {
            root: place.root,
            path: place.path,
            retained_before,
            retained_after,
            change,
            growth: growth(retained_before, retained_after),
            root_before: place.root_before,
            root_after: place.root_after,
            element,
            own,
            gained,
            text,
        }
    }
}

/// References from a container to its elements.
struct Slots {
    /// Elements in the first dump, by offset.
    before: FxHashMap<u64, ObjectId>,
    /// Offsets of elements in the last dump.
    after: FxHashMap<ObjectId, u64>,
    /// The container in the last dump.
    container: ObjectId,
    /// If a side is a snapshot and the container is the array of a list: all elements in both, in the order of the references.
    in_order: Option<(Vec<ObjectId>, Vec<ObjectId>)>,
}

fn digits(n: i64) -> String {
    thousands(n.unsigned_abs())
}

/// Formats a path: `Lab.Program.theCache → Dictionary<String, Entry> → Entry[]`.
fn way(root: &str, path: &[HolderStep]) -> String {
    const FIRST: usize = 4;
    const LAST: usize = 4;
    let mut out = root.to_string();
    let skipped = path.len().saturating_sub(FIRST.saturating_add(LAST));
    for (i, step) in path.iter().enumerate() {
        if skipped > 0 && i == FIRST {
            out.push_str(" → …");
        }
        if skipped > 0 && (FIRST..FIRST.saturating_add(skipped)).contains(&i) {
            continue;
        }
        out.push_str(" → ");
        if let Some(field) = step.field.as_deref().filter(|f| f.starts_with('[')) {
            out.push_str(&format!("{field} "));
        }
        out.push_str(&step.type_name.without_namespaces());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn storage_of_collections() {
        for name in [
            "System.Collections.Concurrent.ConcurrentQueueSegment<Lab.Order>",
            "System.Collections.Concurrent.ConcurrentQueueSegment<Lab.Order>+Slot[]",
            "System.Collections.Concurrent.ConcurrentDictionary<System.String, Lab.Order>+Node",
            "System.Collections.Generic.LinkedListNode<Lab.Order>",
            "System.Collections.Generic.SortedSet<Lab.Order>+Node",
        ] {
            assert!(is_storage(name), "{name}");
        }
        for name in [
            "System.Collections.Concurrent.ConcurrentQueue<Lab.Order>",
            "System.Collections.Generic.Dictionary<System.String, Lab.Order>",
            "System.Collections.Generic.List<System.Collections.Generic.LinkedListNode<Lab.Order>>",
            "Lab.ConcurrentStack<Lab.Order>+Node",
        ] {
            assert!(!is_storage(name), "{name}");
        }
    }

    #[test]
    fn modules_of_the_framework() {
        let own = |module: &str| !is_framework(module);
        assert!(own("lab.dll") && own("Systematic.dll") && own("MicrosoftLike.dll"));
        assert!(!own("System.Private.CoreLib.dll") && !own("Microsoft.Extensions.Caching.Memory.dll") && !own("mscorlib.dll"));
    }
}
