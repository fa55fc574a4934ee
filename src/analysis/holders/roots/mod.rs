//! GC roots: a list, and counts by kind and by object type.

mod report;

pub use report::*;

use std::collections::BTreeMap;

use crate::analysis::sort::{self, Key};
use crate::base::hash::{Map, Set};
use crate::base::{Addr, Answer, Count, Name, cut, len64};
use crate::gc::Gc;
use crate::heapgraph::Roots;
use crate::managed::Root;
use crate::model::{Order, RootKind, RootModel, RootSort, SortDirection};
use crate::session::roots::RootOptions;
use crate::session::roots::dangling::Pointed;
use crate::session::{Error, Heap, Namer, TypeFilter, TypePattern};

/// Arguments of `roots`.
#[derive(Clone, Debug, Default)]
pub struct RootsQuery {
    /// Kinds of roots to list (weak handles only on request), and treatment of stack values.
    pub options: RootOptions,
    /// Only roots of objects of these types; empty for all.
    pub types: Vec<TypePattern>,
    /// Whether to list object types instead of roots.
    pub stat: bool,
    /// Order of the rows. By default, roots are in the order of the walk, and the types with the most roots come first.
    pub sort: Option<Order<RootSort>>,
    /// Maximum rows to list, 0 for all.
    pub top: usize,
}

/// Method tables and type names of objects, each read once.
pub(in crate::analysis) struct ObjectTypes<'n> {
    gc: &'n Gc,
    namer: &'n Namer,
    names: Map<Addr, Name>,
}

impl<'n> ObjectTypes<'n> {
    pub(in crate::analysis) fn new(gc: &'n Gc, namer: &'n Namer) -> ObjectTypes<'n> {
        ObjectTypes { gc, namer, names: Map::default() }
    }

    pub(in crate::analysis) fn method_table(&self, object: Addr) -> Option<Addr> {
        self.gc.method_table(object)
    }

    pub(in crate::analysis) fn name(&mut self, method_table: Addr) -> Name {
        let namer = self.namer;
        self.names.entry(method_table).or_insert_with(|| namer.name_or_address(method_table)).clone()
    }

    pub(in crate::analysis) fn of(&mut self, object: Addr) -> Option<Name> {
        let mt = self.method_table(object)?;
        Some(self.of_object(object, mt))
    }

    fn of_object(&mut self, object: Addr, method_table: Addr) -> Name {
        let name = self.name(method_table);
        self.namer.of_object(object, method_table, name)
    }
}

#[derive(Default)]
struct Tally {
    count: u64,
    objects: Set<Addr>,
}

impl Tally {
    fn add(&mut self, object: Addr) {
        self.count.bump();
        self.objects.insert(object);
    }
}

/// Lists the GC roots.
///
/// # Errors
/// [`Error::Query`] for a column that the list does not have.
pub fn roots(heap: &Heap, query: &RootsQuery) -> Result<Answer<RootsReport>, Error> {
    let mut list = Vec::new();
    let mut answer = each_root(heap, query, &mut |root| list.push(root))?;
    if let RootsRows::Roots { roots } = &mut answer.data.rows {
        *roots = list;
    }
    Ok(answer)
}

/// Like [`roots`], but passes each root to `each`, so that the whole list need not be in memory.
pub(crate) fn each_root(heap: &Heap, query: &RootsQuery, each: &mut dyn FnMut(RootModel)) -> Result<Answer<RootsReport>, Error> {
    use RootSort::{Address, Count, Kind, Object, Objects, Type};
    let (has, what): (&[RootSort], &str) =
        if query.stat { (&[Type, Count, Objects], "roots by type") } else { (&[Kind, Address, Object, Type], "roots") };
    sort::check(query.sort.as_ref(), has, what)?;
    let (notes, namer) = (heap.begin(), heap.namer());
    let (roots, all) = heap.roots_with(&query.options, &namer, &notes);
    let wanted = heap.filter(&query.types, &namer, &notes);
    let mut pointed = Pointed::new(Some(heap));
    let certain = roots.iter().filter(|root| !root.is_conservative());
    certain.for_each(|root| pointed.check(root.address(), root.target()));
    all.dependents.iter().flat_map(|(from, to)| [from, to]).for_each(|object| pointed.check(None, *object));
    pointed.note("root", &notes);
    let report = report((&roots, &all), ObjectTypes::new(heap.gc(), &namer), query, &wanted, each);
    namer.note(&notes);
    Ok(notes.finish(report))
}

fn report(
    (roots, all): (&[Root], &Roots),
    mut objects: ObjectTypes<'_>,
    query: &RootsQuery,
    types: &TypeFilter,
    each: &mut dyn FnMut(RootModel),
) -> RootsReport {
    let mut known: Map<Option<Addr>, bool> = Map::default();
    let mut picked: Vec<(&Root, Option<Addr>)> = Vec::new();
    let mut kinds: BTreeMap<usize, Tally> = BTreeMap::new();
    for root in roots {
        let mt = objects.method_table(root.target());
        let wanted = types.is_empty() || *known.entry(mt).or_insert_with(|| mt.is_some_and(|mt| types.matches(mt, || objects.name(mt))));
        if wanted {
            picked.push((root, mt));
            let order = RootKind::ALL.iter().position(|k| *k == root.kind()).unwrap_or(usize::MAX);
            kinds.entry(order).or_default().add(root.target());
        }
    }
    let counts = kinds
        .into_iter()
        .filter_map(|(i, t)| Some(RootCount { kind: *RootKind::ALL.get(i)?, count: t.count, objects: len64(t.objects.len()) }));
    let mut report = RootsReport {
        total: len64(picked.len()),
        counts: counts.collect(),
        coverage: all.coverage(query.options.stacks),
        rows: RootsRows::Roots { roots: Vec::new() },
        stacks: query.options.stacks,
        shown: None,
        dependents: None,
    };
    if query.stat {
        let mut types: Map<Option<Addr>, Tally> = Map::default();
        for (root, mt) in &picked {
            types.entry(*mt).or_default().add(root.target());
        }
        let row = |(mt, t): (Option<Addr>, Tally)| RootType {
            type_name: mt.map(|mt| objects.name(mt)),
            method_table: mt,
            count: t.count,
            objects: len64(t.objects.len()),
        };
        let mut rows: Vec<RootType> = types.into_iter().map(row).collect();
        rows.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| (&a.type_name, a.method_table).cmp(&(&b.type_name, b.method_table))));
        sort::sort(&mut rows, query.sort.and_then(|order| order.direction), |t| match query.sort?.by {
            RootSort::Count => Key::most(t.count),
            RootSort::Objects => Key::most(t.objects),
            _ => Key::text(t.type_name.as_deref()),
        });
        report.shown = cut(&mut rows, query.top);
        report.rows = RootsRows::Types { types: rows };
        return report;
    }
    let direction = query.sort.and_then(|order| order.direction);
    match query.sort.map(|order| order.by) {
        None | Some(RootSort::Count | RootSort::Objects) => {}
        Some(RootSort::Kind) => sort::sort(&mut picked, direction, |(root, _)| Key::place(&RootKind::ALL, &root.kind())),
        Some(RootSort::Address) => sort::sort(&mut picked, direction, |(root, _)| Key::at(root.address())),
        Some(RootSort::Object) => sort::sort(&mut picked, direction, |(root, _)| Key::at(root.target())),
        Some(RootSort::Type) => {
            let names: Map<Addr, Name> = picked.iter().filter_map(|(_, mt)| Some(((*mt)?, objects.name((*mt)?)))).collect();
            picked.sort_by(|a, b| {
                let name = |mt: Option<Addr>| mt.and_then(|mt| names.get(&mt));
                let found = name(a.1).cmp(&name(b.1));
                a.1.is_none().cmp(&b.1.is_none()).then(if direction == Some(SortDirection::Descending) { found.reverse() } else { found })
            });
        }
    }
    report.shown = cut(&mut picked, query.top);
    let row = |(root, mt): &(&Root, Option<Addr>)| RootModel {
        kind: root.kind(),
        address: root.address(),
        object: root.target(),
        type_name: mt.map(|mt| objects.of_object(root.target(), mt)),
        method_table: *mt,
        flags: root.flags(),
        label: root.label(),
        thread: root.thread_id(),
    };
    picked.iter().map(row).for_each(each);
    if query.options.kinds.is_empty() && query.types.is_empty() {
        let dependent = |(primary, secondary): &(Addr, Addr)| DependentModel {
            primary: *primary,
            primary_type: objects.of(*primary),
            secondary: *secondary,
            secondary_type: objects.of(*secondary),
        };
        report.dependents = Some(all.dependents.iter().map(dependent).collect());
    }
    report
}
