//! References to and from an object, or the objects of a type.

mod report;

pub use report::*;

use std::cell::RefCell;

use crate::analysis::holders::young::{Ages, CardReader};
use crate::analysis::on_graph::OnGraph;
use crate::analysis::sort::{self, Key};
use crate::base::cancel::check_at;
use crate::base::hash::Map;
use crate::base::store::caught;
use crate::base::{Addr, Answer, Count, Index, Missing, Name, cut, len64};
use crate::gc::{ObjectId, TypeIndex};
use crate::heapgraph::{Depends, DominatorTree, HeapGraph, ObjectSet};
use crate::model::{Order, SortDirection, Stacks};
use crate::session::{Error, FieldNames, FieldPlace, GraphSource, Namer, TypePattern};

/// Maximum number of roots listed for an object.
const MAX_ROOTS: usize = 16;
/// Maximum number of targets that are looked up by address.
const FEW: usize = 4096;

/// Arguments of `refs`.
#[derive(Clone, Debug)]
pub struct RefsQuery {
    /// The object at or around this address; `None` for all objects of [`RefsQuery::types`].
    pub object: Option<Addr>,
    /// Selects all objects of these types.
    pub types: Vec<TypePattern>,
    /// Whether to list references to the objects.
    pub incoming: bool,
    /// Whether to list references from the objects.
    pub outgoing: bool,
    /// If set, references are grouped by this key instead of listed one by one.
    pub by: Option<RefBy>,
    /// Maximum number of references to follow from or to the objects, one after another.
    pub depth: u32,
    /// Whether to list only references of older objects to younger ones, with the state of their cards. If no object or type is given, all objects
    /// are selected.
    pub young: bool,
    /// Whether to compute retained sizes.
    pub retained: bool,
    /// Which stack values count as roots.
    pub stacks: Stacks,
    /// Order of the rows. By default, references are in heap order, and the groups with the most references come first.
    pub sort: Option<Order<RefSort>>,
    /// Maximum rows of each list, 0 for all.
    pub top: usize,
}

impl RefsQuery {
    /// Returns a query for all references from and to the object at or around `address`.
    pub fn of(address: Addr) -> RefsQuery {
        RefsQuery {
            object: Some(address),
            types: Vec::new(),
            incoming: true,
            outgoing: true,
            by: None,
            depth: 1,
            young: false,
            retained: false,
            stacks: Stacks::default(),
            sort: None,
            top: 0,
        }
    }
}

/// Lists references.
///
/// # Errors
/// [`Error::NoObject`] or [`Error::Nothing`] if no such object exists, [`Error::Query`] for a column that a list does not have,
/// [`Error::Graph`], [`Error::Memory`] or [`Error::Room`] if the graph cannot be built.
pub fn refs(heap: &dyn GraphSource, query: &RefsQuery) -> Result<Answer<RefsReport>, Error> {
    use RefSort::{Address, Field, References, Retained, Size, Type};
    let (has, what): (&[RefSort], &str) = match (query.by, query.retained) {
        (None, false) => (&[Address, Size, Type, Field], "references"),
        (None, true) => (&[Address, Size, Retained, Type, Field], "references"),
        (Some(_), false) => (&[References, Size, Type, Field], "references by type"),
        (Some(_), true) => (&[References, Size, Retained, Type, Field], "references by type"),
    };
    sort::check(query.sort.as_ref(), has, what)?;
    caught(|| refs_of(heap, query))?
}

fn refs_of(heap: &dyn GraphSource, query: &RefsQuery) -> Result<Answer<RefsReport>, Error> {
    let on = OnGraph::open(heap, false, query.stacks, query.retained.then_some(Depends::Dominators))?;
    let whole = query.young.then(|| heap.heap().ok_or_else(|| Error::Query("a snapshot does not have generations".into()))).transpose()?;
    let ages = whole.map(|heap| Ages::of(heap, on.graph));
    ages.iter().for_each(|ages| ages.note(&on.notes));
    let (object, targets) = match query.object {
        None if query.types.is_empty() => (None, ages.iter().flat_map(|ages| ages.young(on.graph)).collect()),
        Some(at) => {
            let id = on.object(at)?;
            (Some(id), vec![id])
        }
        None => (None, on.graph.of_types(&on.namer, &query.types, &on.notes)),
    };
    if targets.is_empty() && !query.young {
        on.namer.note(&on.notes);
        let why = on.notes.notes().no_match().map_or_else(|| "no object is of that type".into(), |n| n.message.clone());
        return Err(on.none(Error::Nothing(why)));
    }
    let tree = if query.retained { Some(heap.dominators(query.stacks)?) } else { None };
    let roots = object.filter(|_| query.incoming).map(|id| {
        on.graph.note_doubts_of(&[id], query.stacks, &on.notes);
        on.graph.root_models(&on.namer, id, (query.stacks, true), MAX_ROOTS)
    });
    let cards = whole.and_then(|heap| {
        let reader = CardReader::new(heap);
        reader.map_err(|why| on.notes.add(Missing::Heap, None, format!("cards cannot be read: {why}"))).ok()
    });
    let reader = Reader { graph: on.graph, heap, namer: &on.namer, tree, query, ages, cards: RefCell::new(cards) };
    let mut report = RefsReport {
        cards: None,
        object: object.map(|id| reader.object(id)),
        targets: len64(targets.len()),
        incoming: query.incoming.then(|| reader.list(&targets, Direction::In)),
        outgoing: query.outgoing.then(|| reader.list(&targets, Direction::Out)),
        roots,
        coverage: if query.incoming { on.coverage() } else { Vec::new() },
        stacks: query.stacks,
    };
    let cards = reader.cards.into_inner();
    report.cards = cards.map(|cards| cards.finish(&on.notes));
    Ok(on.finish(report))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    In,
    Out,
}

/// A reference between objects of the graph.
#[derive(Clone, Copy)]
struct Found {
    depth: u32,
    from: ObjectId,
    to: ObjectId,
    /// Offset in the source; `None` if the reference is not a field.
    offset: Option<u64>,
}

impl Found {
    /// Returns the object at the other end: the source of an incoming reference, the target of an outgoing one.
    fn end(&self, direction: Direction) -> ObjectId {
        match direction {
            Direction::In => self.from,
            Direction::Out => self.to,
        }
    }
}

/// Finds references in one heap.
struct Reader<'g> {
    graph: &'g HeapGraph,
    heap: &'g dyn GraphSource,
    namer: &'g Namer,
    tree: Option<&'g DominatorTree>,
    query: &'g RefsQuery,
    /// The ages of objects; `None` unless only references to younger objects are listed.
    ages: Option<Ages>,
    cards: RefCell<Option<CardReader<'g>>>,
}

/// The objects of a level, for quick look-ups of reference targets.
enum Wanted {
    /// Few objects: a map by address for references read from memory, and the sorted ids for edges of the graph. Edges are not converted to
    /// addresses, because that would be slow for an array with millions of references.
    Few(Map<Addr, ObjectId>, Vec<ObjectId>),
    Many(ObjectSet),
}

impl Reader<'_> {
    fn object(&self, id: ObjectId) -> RefObject {
        RefObject {
            address: self.graph.address(id),
            type_name: self.graph.type_name(self.namer, id),
            method_table: self.method_table(id),
            size: self.graph.size(id),
            retained: self.retained(id),
        }
    }

    fn method_table(&self, id: ObjectId) -> Addr {
        self.graph.kind(id).map_or(Addr::NULL, |kind| kind.method_table)
    }

    fn retained(&self, id: ObjectId) -> Option<u64> {
        Some(self.tree?.retained(id))
    }

    fn list(&self, targets: &[ObjectId], direction: Direction) -> RefList {
        let (mut references, mut objects, mut bytes) = (0u64, 0u64, 0u64);
        let mut ends = self.graph.edges.no_objects();
        let mut rows = Vec::new();
        let mut groups: Map<GroupKey, Group> = Map::default();
        let mut names = FieldNames::new(self.namer, self.heap.memory().ptr_bytes());
        self.visit(targets, direction, |found| {
            if self.ages.as_ref().is_some_and(|ages| !ages.leads_to_younger(found.from, found.to)) {
                return;
            }
            if let (Some(cards), Some(offset)) = (self.cards.borrow_mut().as_mut(), found.offset) {
                cards.reference(self.graph.address(found.from).plus(offset));
            }
            references.bump();
            let end = found.end(direction);
            if ends.insert(end) {
                objects.bump();
                bytes.grow(self.graph.size(end));
            }
            match self.query.by {
                None => rows.push(*found),
                Some(RefBy::Type) => {
                    let key = self.group(&mut names, found);
                    groups.entry(key).or_default().add(end, self.graph.size(end));
                }
            }
        });
        let (rows, shown) = match self.query.by {
            None => {
                self.sort(&mut rows, direction, &mut names);
                let shown = cut(&mut rows, self.query.top);
                (RefListRows::Each { list: rows.iter().map(|found| self.row(&mut names, found, direction)).collect() }, shown)
            }
            Some(RefBy::Type) => {
                let mut types = self.types(groups, direction);
                let shown = cut(&mut types, self.query.top);
                (RefListRows::Types { types }, shown)
            }
        };
        RefList { references, objects, bytes, rows, shown }
    }

    /// Visits the references from or to `targets`, level by level up to the depth of the query: the objects at the other ends are the next level.
    /// Each level is in heap order of the sources. Each object is expanded once.
    fn visit(&self, targets: &[ObjectId], direction: Direction, mut visit: impl FnMut(&Found)) {
        let mut seen = self.graph.edges.no_objects();
        seen.extend(targets.iter().copied());
        let mut level = targets.to_vec();
        for depth in 1..=self.query.depth.max(1) {
            let mut next = Vec::new();
            let (sources, wanted) = match direction {
                Direction::Out => (level.into_iter().map(|from| (from, self.graph.edges.successors(from).count())).collect(), None),
                Direction::In => (self.sources(&level), Some(self.wanted(&level))),
            };
            for (from, edges) in sources {
                check_at(from.as_u32());
                self.references((from, edges), wanted.as_ref(), |to, offset| {
                    let found = Found { depth, from, to, offset };
                    visit(&found);
                    let end = found.end(direction);
                    if seen.insert(end) {
                        next.push(end);
                    }
                });
            }
            if next.is_empty() {
                return;
            }
            next.sort_unstable();
            level = next;
        }
    }

    /// Returns the objects that refer to one of `level`, in ascending order, each with the number of its references to them.
    fn sources(&self, level: &[ObjectId]) -> Vec<(ObjectId, usize)> {
        let mut edges: Vec<ObjectId> = Vec::new();
        for to in level {
            check_at(to.as_u32());
            edges.extend(self.graph.edges.predecessors(*to));
        }
        edges.sort_unstable();
        edges.chunk_by(|a, b| a == b).filter_map(|same| Some((*same.first()?, same.len()))).collect()
    }

    fn wanted(&self, level: &[ObjectId]) -> Wanted {
        if level.len() <= FEW {
            let mut ids = level.to_vec();
            ids.sort_unstable();
            return Wanted::Few(level.iter().map(|id| (self.graph.address(*id), *id)).collect(), ids);
        }
        let mut set = self.graph.edges.no_objects();
        set.extend(level.iter().copied());
        Wanted::Many(set)
    }

    /// Calls `each` for the references of `from` to `wanted` objects: first for fields, by offset, then for references that are not fields. `edges` is
    /// their number; an array is read only up to the last one.
    fn references(&self, (from, edges): (ObjectId, usize), wanted: Option<&Wanted>, mut each: impl FnMut(ObjectId, Option<u64>)) {
        let target = |address: Addr| match wanted {
            None => self.graph.index.id_of(address),
            Some(Wanted::Few(few, _)) => few.get(&address).copied(),
            Some(Wanted::Many(set)) => self.graph.index.id_of(address).filter(|id| set.contains(*id)),
        };
        let is_wanted = |id: ObjectId| match wanted {
            None => true,
            Some(Wanted::Few(_, ids)) => ids.binary_search(&id).is_ok(),
            Some(Wanted::Many(set)) => set.contains(id),
        };
        let mut fields: Vec<(u64, ObjectId)> = Vec::new();
        if let Some(kind) = self.graph.kind(from) {
            kind.gc_desc.references_while(self.heap.memory(), self.graph.address(from), self.graph.size(from), |offset, to| {
                if let Some(id) = target(to) {
                    fields.push((offset, id));
                }
                fields.len() < edges
            });
        }
        fields.sort_unstable();
        for (offset, id) in &fields {
            each(*id, Some(*offset));
        }
        if edges <= fields.len() {
            return;
        }
        // An edge without a field is a dependent handle or a loader allocator. Snapshots have no fields at all.
        let mut of_fields: Map<ObjectId, u64> = Map::default();
        fields.iter().for_each(|(_, id)| of_fields.entry(*id).or_default().bump());
        for to in self.graph.edges.successors(from).filter(|to| is_wanted(*to)) {
            match of_fields.get_mut(&to).filter(|left| **left > 0) {
                Some(left) => *left = left.saturating_sub(1),
                None => each(to, None),
            }
        }
    }

    fn via(&self, found: &Found) -> RefVia {
        if found.offset.is_some() {
            return RefVia::Field;
        }
        if self.heap.heap().is_none() {
            return RefVia::Unknown;
        }
        let pair = (self.graph.address(found.from), self.graph.address(found.to));
        if self.graph.roots.dependents.contains(&pair) { RefVia::DependentHandle } else { RefVia::LoaderAllocator }
    }

    fn field(&self, names: &mut FieldNames<'_, TypeIndex>, found: &Found) -> Option<FieldPlace> {
        names.at(self.graph.type_index(found.from)?, self.graph.kind(found.from)?, found.offset?)
    }

    fn row(&self, names: &mut FieldNames<'_, TypeIndex>, found: &Found, direction: Direction) -> RefRow {
        let end = found.end(direction);
        RefRow {
            depth: found.depth,
            from: self.graph.address(found.from),
            from_type: self.graph.type_name(self.namer, found.from),
            field: self.field(names, found).map(|place| place.to_string()),
            via: self.via(found),
            to: self.graph.address(found.to),
            to_type: self.graph.type_name(self.namer, found.to),
            size: self.graph.size(end),
            retained: self.retained(end),
        }
    }

    fn sort(&self, rows: &mut [Found], direction: Direction, names: &mut FieldNames<'_, TypeIndex>) {
        let Some(order) = self.query.sort else { return };
        let direct = order.direction;
        match order.by {
            RefSort::Address => sort::sort(rows, direct, |r| Key::at(self.graph.address(r.end(direction)))),
            RefSort::Size | RefSort::References => sort::sort(rows, direct, |r| Key::most(self.graph.size(r.end(direction)))),
            RefSort::Retained => sort::sort(rows, direct, |r| Key::most(self.retained(r.end(direction)))),
            RefSort::Type => rows.sort_by_cached_key(|r| self.graph.type_name(self.namer, r.end(direction)).as_str().to_owned()),
            RefSort::Field => rows.sort_by_cached_key(|r| {
                let name = self.field(names, r).map(FieldPlace::into_name);
                (name.is_none() != order.reverses(SortDirection::Ascending), name.map(|name| name.as_str().to_owned()))
            }),
        }
        if order.reverses(SortDirection::Ascending) && matches!(order.by, RefSort::Type | RefSort::Field) {
            rows.reverse();
        }
    }

    fn group(&self, names: &mut FieldNames<'_, TypeIndex>, found: &Found) -> GroupKey {
        let field = self.field(names, found).map(|place| match place {
            FieldPlace::Field(name) => name,
            FieldPlace::Element(_, path) => Name::from(format!("[]{path}")),
        });
        GroupKey { from: self.graph.type_index(found.from), field, via: self.via(found), to: self.graph.type_index(found.to) }
    }

    /// Converts the groups to sorted rows.
    fn types(&self, groups: Map<GroupKey, Group>, direction: Direction) -> Vec<RefType> {
        let table = |ty: Option<TypeIndex>| ty.and_then(|ty| self.graph.types.get(ty)).map_or(Addr::NULL, |kind| kind.method_table);
        let row = |(key, group): (GroupKey, Group)| RefType {
            from_type: self.namer.name_or_address(table(key.from)),
            from_method_table: table(key.from),
            field: key.field.map(|name| name.as_str().to_owned()),
            via: key.via,
            to_type: self.namer.name_or_address(table(key.to)),
            to_method_table: table(key.to),
            references: group.references,
            objects: len64(group.ends.len()),
            bytes: group.bytes,
            retained: self.tree.map(|tree| tree.retained_jointly(group.ends.into_iter())),
        };
        let mut rows: Vec<RefType> = groups.into_iter().map(row).collect();
        rows.sort_by(|a, b| {
            let key = |r: &RefType| (r.from_method_table, r.to_method_table);
            b.references.cmp(&a.references).then_with(|| (&a.field, a.via.name()).cmp(&(&b.field, b.via.name()))).then(key(a).cmp(&key(b)))
        });
        sort::sort(&mut rows, self.query.sort.and_then(|order| order.direction), |r| match self.query.sort?.by {
            RefSort::Size => Key::most(r.bytes),
            RefSort::Retained => Key::most(r.retained),
            RefSort::Type if direction == Direction::In => Key::text(r.from_type.as_str()),
            RefSort::Type => Key::text(r.to_type.as_str()),
            RefSort::Field => Key::text(r.field.as_deref()),
            RefSort::Address | RefSort::References => Key::most(r.references),
        });
        rows
    }
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct GroupKey {
    from: Option<TypeIndex>,
    field: Option<Name>,
    via: RefVia,
    to: Option<TypeIndex>,
}

#[derive(Default)]
struct Group {
    references: u64,
    /// The objects at the other ends of the references.
    ends: crate::base::hash::Set<ObjectId>,
    bytes: u64,
}

impl Group {
    fn add(&mut self, end: ObjectId, size: u64) {
        self.references.bump();
        if self.ends.insert(end) {
            self.bytes.grow(size);
        }
    }
}
