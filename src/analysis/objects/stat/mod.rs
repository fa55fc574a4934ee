//! Heap statistics: object count and bytes by type, or by another key.

mod report;

pub use report::*;

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use crate::analysis::select::{Picker, Selection};
use crate::base::cancel::check_at;
use crate::base::{Addr, Answer, Collector, Index, cut, len64, share, total};
use crate::gc::{Object, ObjectType, Piece, SegmentIndex, Visitor, coverage, note_walks};
use crate::heapgraph::{Depends, HeapGraph, ObjectSet, Sums, add_sums};
use crate::model::{CoverageModel, Generation, Order, SegmentModel, SortDirection, Stacks, Sum};
use crate::session::{Error, GraphSource, Heap, Namer, TypeFilter};

/// Arguments of `stat`.
#[derive(Clone, Debug, Default)]
pub struct StatQuery {
    /// The objects to count.
    pub selection: Selection,
    /// Grouping key.
    pub by: StatBy,
    /// Sort order. Generations, heaps, segments and sizes keep their natural order.
    pub sort: Order<StatSort>,
    /// Maximum number of types to list, 0 for all. Groups by another key are all listed, and totals always cover everything.
    pub top: usize,
}

/// Objects and free space of a group.
#[derive(Clone, Copy, Debug, Default)]
struct GroupSums {
    objects: Sum,
    free: Sum,
}

impl GroupSums {
    fn add(&mut self, free: bool, sum: Sum) {
        if free { &mut self.free } else { &mut self.objects }.merge(sum);
    }

    fn totals(self, types: usize) -> StatTotals {
        StatTotals {
            count: self.objects.count,
            bytes: self.objects.bytes,
            free_count: self.free.count,
            free_bytes: self.free.bytes,
            types: len64(types),
        }
    }
}

/// Second key, in addition to the type, by which a visitor splits its sums.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Split {
    Nothing,
    Generation,
    Segment,
    Size,
}

struct Counter<'s> {
    picker: Picker<'s>,
    split: Split,
    /// The sums of the current part, by type.
    types: Sums,
    part: Part,
    parts: FxHashMap<Part, Sums>,
}

/// Value of the second key: position of the generation, segment index, or binary logarithm of the size.
type Part = u32;
/// The only part without a second key.
const WHOLE: Part = u32::MAX;

impl Counter<'_> {
    /// Makes `part` the current one.
    fn switch(&mut self, part: Part) {
        if part != self.part {
            let next = self.parts.remove(&part).unwrap_or_default();
            let previous = std::mem::replace(&mut self.types, next);
            self.parts.insert(self.part, previous);
            self.part = part;
        }
    }

    fn into_parts(mut self) -> FxHashMap<Part, Sums> {
        if self.split == Split::Nothing {
            return FxHashMap::from_iter([(WHOLE, self.types)]);
        }
        self.switch(WHOLE);
        self.parts
    }
}

impl Visitor for Counter<'_> {
    fn piece(&mut self, piece: &Piece<'_>) -> bool {
        let wanted = self.picker.segment(piece.segment);
        if wanted && self.split == Split::Segment {
            self.switch(piece.index.as_u32());
        }
        wanted
    }

    #[inline]
    fn object(&mut self, object: &Object<'_>) {
        if !self.picker.wants(object) {
            return;
        }
        match self.split {
            Split::Nothing | Split::Segment => {}
            Split::Generation => self.switch(ordinal(object.generation)),
            Split::Size => self.switch(object.size.max(1).ilog2()),
        }
        if let Some(sum) = self.types.slot(object.ty.index) {
            sum.add(object.size);
        }
    }
}

fn ordinal(generation: Generation) -> Part {
    Generation::ALL.iter().zip(0u32..).find(|(g, _)| **g == generation).map_or(0, |(_, i)| i)
}

impl Heap {
    /// Heap statistics by type, largest first. [`stat`] also has other groups, and selects objects.
    ///
    /// # Errors
    /// See [`stat`].
    pub fn stat(&self) -> Result<Answer<TypeStats>, Error> {
        Ok(stat(self, &StatQuery::default())?.map(StatReport::of_types))
    }
}

/// Counts the objects selected by `query`.
///
/// # Errors
/// [`Error::Query`] for keys that a heap snapshot does not have (generations, heaps, segments), and for a condition on texts that are hidden.
pub fn stat(source: &dyn GraphSource, query: &StatQuery) -> Result<Answer<StatReport>, Error> {
    let (notes, namer) = (source.begin(), source.namer());
    let mut report = match source.heap() {
        Some(heap) => {
            query.selection.refuse_hidden(heap)?;
            count(heap, &namer, query, &notes)
        }
        None => count_graph(source.graph(false)?, &namer, query, None, &notes)?,
    };
    match &mut report.rows {
        StatRows::Types { types } => {
            sort(types, query.sort, |t| (t.count, &t.type_name));
            report.shown = cut(types, query.top);
        }
        StatRows::Groups { .. } if matches!(query.by, StatBy::Generation | StatBy::Heap | StatBy::Segment | StatBy::Size) => {}
        StatRows::Groups { groups } => sort(groups, query.sort, |g| (g.count, &g.key)),
    }
    namer.note(&notes);
    Ok(notes.finish(report))
}

/// Sorts rows by what `keys` returns of each: its number of objects and its name. The rows are already sorted by bytes, and the sort is stable.
fn sort<T>(rows: &mut [T], order: Order<StatSort>, keys: impl Fn(&T) -> (u64, &str)) {
    match order.by {
        StatSort::Bytes => {}
        StatSort::Count => rows.sort_by_key(|row| std::cmp::Reverse(keys(row).0)),
        StatSort::Name => rows.sort_by(|a, b| keys(a).1.cmp(keys(b).1)),
    }
    let usual = if order.by == StatSort::Name { SortDirection::Ascending } else { SortDirection::Descending };
    if order.reverses(usual) {
        rows.reverse();
    }
}

fn count(heap: &Heap, namer: &Namer, query: &StatQuery, notes: &Collector) -> StatReport {
    let StatQuery { selection, by, .. } = query;
    let by = *by;
    let split = match by {
        StatBy::Type | StatBy::Assembly | StatBy::Namespace => Split::Nothing,
        StatBy::Generation => Split::Generation,
        StatBy::Heap | StatBy::Segment => Split::Segment,
        StatBy::Size => Split::Size,
    };
    let filter = selection.filter(heap, namer, notes);
    let (parts, coverage) = sums(heap, selection, split, &filter, namer, notes);
    let types = heap.walker().types().list();
    let mut all = GroupSums::default();
    let mut by_type: BTreeMap<Addr, Sum> = BTreeMap::new();
    for sums in parts.values() {
        for (kind, sum) in types.iter().zip(sums).filter(|(_, s)| s.count > 0) {
            all.add(kind.is_free, *sum);
            if !kind.is_free {
                by_type.entry(kind.method_table).or_default().merge(*sum);
            }
        }
    }
    if all.objects.count == 0 {
        selection.note_unknown_fields(heap, &filter, namer, notes);
    }
    let whole = if selection.is_everything() { all.objects.bytes } else { bytes_of_objects(heap, notes) };
    let rows = match by {
        StatBy::Type | StatBy::Assembly | StatBy::Namespace => rows_of_types(by, namer, &by_type, whole),
        StatBy::Generation | StatBy::Heap | StatBy::Segment | StatBy::Size => {
            let mut groups: BTreeMap<u64, GroupSums> = BTreeMap::new();
            for (part, sums) in &parts {
                let key = if by == StatBy::Heap { segment_at(heap, *part).map_or(0, |s| s.heap) } else { u64::from(*part) };
                for (kind, sum) in types.iter().zip(sums).filter(|(_, s)| s.count > 0) {
                    groups.entry(key).or_default().add(kind.is_free, *sum);
                }
            }
            let part = |key: u64| Part::try_from(key).unwrap_or(WHOLE);
            let label = |key: u64| match by {
                StatBy::Generation => Generation::ALL.get(part(key) as usize).map_or("?", |g| g.name()).to_string(),
                StatBy::Segment => segment_at(heap, part(key)).map_or_else(String::new, |s| s.address.to_string()),
                StatBy::Size => 1u64.checked_shl(part(key)).unwrap_or(0).to_string(),
                _ => key.to_string(),
            };
            let rows = groups.iter().map(|(key, both)| {
                let segment = if by == StatBy::Segment { segment_at(heap, part(*key)) } else { None };
                GroupStat { generation: segment.map(|s| s.generation), heap: segment.map(|s| s.heap), ..group(label(*key), *both, whole) }
            });
            StatRows::Groups { groups: rows.collect() }
        }
    };
    let totals = all.totals(by_type.len());
    StatReport { by, rows, totals, coverage, shown: None, not_listed: None, carved: heap.gc().carved_model() }
}

/// Returns the totals of the objects that `selection` accepts, and the coverage of the walk.
pub(in crate::analysis) fn totals(
    heap: &Heap,
    selection: &Selection,
    filter: &TypeFilter,
    namer: &Namer,
    notes: &Collector,
) -> (StatTotals, CoverageModel) {
    let (parts, coverage) = sums(heap, selection, Split::Nothing, filter, namer, notes);
    let types = heap.walker().types().list();
    let mut all = GroupSums::default();
    let sums = parts.values().flat_map(|sums| types.iter().zip(sums)).filter(|(_, sum)| sum.count > 0);
    let types = sums.map(|(kind, sum)| all.add(kind.is_free, *sum)).count();
    (all.totals(types), coverage)
}

/// Returns the bytes of all objects of the heap, without free blocks.
fn bytes_of_objects(heap: &Heap, notes: &Collector) -> u64 {
    let kept = notes.with(heap.type_sums());
    let types = heap.walker().types().list();
    let objects = types.iter().zip(&kept.sums).filter(|(kind, _)| !kind.is_free);
    objects.fold(0, |bytes, (_, sum)| bytes.saturating_add(sum.bytes))
}

/// Returns the sums by type for each part, and the coverage of the walk. If the selection depends only on types, uses the sums that the heap caches.
fn sums(
    heap: &Heap,
    selection: &Selection,
    split: Split,
    filter: &TypeFilter,
    namer: &Namer,
    notes: &Collector,
) -> (BTreeMap<Part, Sums>, CoverageModel) {
    if split == Split::Nothing && selection.is_of_types() {
        sums_of_types(heap, filter, namer, notes)
    } else {
        sums_by_part(heap, selection, split, filter, namer, notes)
    }
}

/// Selects types from the cached sums of all objects.
fn sums_of_types(heap: &Heap, filter: &TypeFilter, namer: &Namer, notes: &Collector) -> (BTreeMap<Part, Sums>, CoverageModel) {
    let kept = notes.with(heap.type_sums());
    let types = heap.walker().types().list();
    let wanted = |ty: &ObjectType| filter.is_empty() || filter.takes(ty, namer);
    let sums = types.iter().zip(&kept.sums).map(|(ty, sum)| if sum.count > 0 && wanted(ty) { *sum } else { Sum::default() });
    (BTreeMap::from([(WHOLE, sums.collect())]), coverage(heap.walker(), &kept.walks))
}

/// Walks the heap and sums up the selected objects.
fn sums_by_part(
    heap: &Heap,
    selection: &Selection,
    split: Split,
    filter: &TypeFilter,
    namer: &Namer,
    notes: &Collector,
) -> (BTreeMap<Part, Sums>, CoverageModel) {
    let walked = heap.walker().walk_once(heap.progress(), || Counter {
        picker: Picker::new(heap, selection, filter, namer),
        split,
        types: Sums::new(),
        part: WHOLE,
        parts: FxHashMap::default(),
    });
    note_walks(heap.walker(), &walked.segments, notes);
    let mut parts: BTreeMap<Part, Sums> = BTreeMap::new();
    for visitor in walked.visitors {
        visitor.into_parts().into_iter().for_each(|(part, sums)| add_sums(parts.entry(part).or_default(), sums));
    }
    (parts, coverage(heap.walker(), &walked.segments))
}

/// Counts the live objects selected by `selection` by type, also if the graph has others.
///
/// # Errors
/// See [`GraphSource::graph`]; [`Error::Query`] if the selection is not by type or size.
pub(in crate::analysis) fn live(source: &dyn GraphSource, selection: &Selection) -> Result<Answer<TypeStats>, Error> {
    let (notes, graph, stacks) = (source.begin(), source.graph(false)?, Stacks::default());
    source.graph_notes(false, &notes);
    graph.root_notes(stacks).into_iter().for_each(|n| notes.extend(n));
    graph.note_doubts(stacks, Depends::Live, &notes);
    let namer = graph.namer(source.namer());
    let query = StatQuery { selection: selection.clone(), ..StatQuery::default() };
    let report = count_graph(graph, &namer, &query, Some(&graph.live(stacks)), &notes)?;
    namer.note(&notes);
    Ok(notes.finish(report.of_types()))
}

/// Counts the objects of a graph; if `live` is given, only these.
fn count_graph(
    graph: &HeapGraph,
    namer: &Namer,
    query: &StatQuery,
    live: Option<&ObjectSet>,
    notes: &Collector,
) -> Result<StatReport, Error> {
    let StatQuery { selection, by, .. } = query;
    let supported = matches!(by, StatBy::Type | StatBy::Assembly | StatBy::Namespace | StatBy::Size);
    if !supported
        || !selection.generations.is_empty()
        || !selection.heaps.is_empty()
        || !selection.segments.is_empty()
        || selection.condition.is_some()
    {
        return Err(Error::Query("a .gcdump file has no generations, heaps, segments or fields: use a dump".into()));
    }
    let wanted = (!selection.types.is_empty()).then(|| graph.wanted_types(namer, &selection.types, notes));
    let mut by_type: BTreeMap<Addr, Sum> = BTreeMap::new();
    let mut by_size: BTreeMap<u32, GroupSums> = BTreeMap::new();
    let mut all = Sum::default();
    let ids = || graph.ids().filter(|id| live.is_none_or(|live| live.contains(*id)));
    let whole = total(ids().map(|id| graph.size(id)));
    for id in ids().filter(|id| wanted.as_ref().is_none_or(|w| graph.is_of(*id, w))) {
        check_at(id.as_u32());
        let size = graph.size(id);
        if size < selection.min_size || selection.max_size.is_some_and(|most| size > most) {
            continue;
        }
        all.add(size);
        if *by == StatBy::Size {
            by_size.entry(size.max(1).ilog2()).or_default().objects.add(size);
        }
        by_type.entry(graph.kind(id).map_or(Addr::NULL, |kind| kind.method_table)).or_default().add(size);
    }
    let totals = GroupSums { objects: all, free: Sum::default() }.totals(by_type.len());
    let coverage = CoverageModel { walked_bytes: all.bytes, complete: true, share: 1.0, ..CoverageModel::default() };
    let rows = match by {
        StatBy::Size => {
            let rows = by_size.into_iter().map(|(log, both)| group(1u64.checked_shl(log).unwrap_or(0).to_string(), both, whole));
            StatRows::Groups { groups: rows.collect() }
        }
        by => rows_of_types(*by, namer, &by_type, whole),
    };
    Ok(StatReport { by: *by, rows, totals, coverage, shown: None, not_listed: None, carved: None })
}

/// Returns the rows by type, or by a key that the type determines.
fn rows_of_types(by: StatBy, namer: &Namer, by_type: &BTreeMap<Addr, Sum>, whole: u64) -> StatRows {
    match by {
        StatBy::Assembly => StatRows::Groups { groups: named_groups(by_type, whole, |mt| namer.module(mt)) },
        StatBy::Namespace => StatRows::Groups { groups: named_groups(by_type, whole, |mt| namer.name(mt).map(|n| namespace(&n))) },
        _ => StatRows::Types { types: type_rows(namer, by_type, whole) },
    }
}

fn segment_at(heap: &Heap, part: Part) -> Option<&SegmentModel> {
    heap.walker().segment(SegmentIndex::from_u32(part))
}

fn group(key: String, both: GroupSums, total: u64) -> GroupStat {
    let Sum { count, bytes } = both.objects;
    GroupStat {
        key,
        heap: None,
        generation: None,
        count,
        bytes,
        share: share(bytes, total).unwrap_or(1.0),
        free_count: both.free.count,
        free_bytes: both.free.bytes,
    }
}

/// Returns the rows by type, largest first.
fn type_rows(namer: &Namer, by_type: &BTreeMap<Addr, Sum>, total: u64) -> Vec<TypeStat> {
    let mut rows: Vec<TypeStat> = by_type
        .iter()
        .map(|(mt, sum)| TypeStat {
            type_name: namer.name_or_address(*mt),
            method_table: *mt,
            module: namer.module(*mt),
            count: sum.count,
            bytes: sum.bytes,
            share: share(sum.bytes, total).unwrap_or(1.0),
        })
        .collect();
    rows.sort_by(|a, b| (b.bytes, b.count, &a.type_name, a.method_table).cmp(&(a.bytes, a.count, &b.type_name, b.method_table)));
    rows
}

/// Groups by a name derived from the type, largest first.
fn named_groups(by_type: &BTreeMap<Addr, Sum>, total: u64, name: impl Fn(Addr) -> Option<String>) -> Vec<GroupStat> {
    let mut groups: BTreeMap<String, GroupSums> = BTreeMap::new();
    for (mt, sum) in by_type {
        groups.entry(name(*mt).unwrap_or_else(|| "(unknown)".into())).or_default().add(false, *sum);
    }
    let mut rows: Vec<GroupStat> = groups.into_iter().map(|(key, both)| group(key, both, total)).collect();
    rows.sort_by(|a, b| (b.bytes, b.count, &a.key).cmp(&(a.bytes, a.count, &b.key)));
    rows
}

/// Returns the namespace of a type name: for an array, of the element type; for an instantiation, of the generic type.
pub(in crate::analysis) fn namespace(name: &str) -> String {
    let plain = name.split(['<', '[', '+', '*', '&']).next().unwrap_or(name);
    plain.rsplit_once('.').map_or_else(|| "(global)".to_string(), |(namespace, _)| namespace.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn namespaces() {
        let n = |s: &str| namespace(s);
        assert_eq!(n("System.String"), "System");
        assert_eq!(n("System.Collections.Generic.Dictionary<Lab.A, Lab.B>+Entry[]"), "System.Collections.Generic");
        assert_eq!(n("Lab.Outer+Inner"), "Lab");
        assert_eq!(n("Node[]"), "(global)");
    }
}
