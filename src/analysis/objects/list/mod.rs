//! The objects of the heap, streamed in batches.

mod report;

pub use report::*;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::io;
use std::ops::ControlFlow;
use std::sync::Arc;

use crate::analysis::objects::asked_fields::{AskedFields, BoundFields};
use crate::analysis::select::{Picker, Selection};
use crate::base::{Addr, Answer, IndexVec, Name, index_type, len64};
use crate::gc::{Object, ObjectType, TypeIndex, coverage, note_walks};
use crate::model::{CoverageModel, FieldValue, Generation, ObjectSort, Order, SegmentModel, SortDirection, Sum};
use crate::session::{FieldNames, FieldPlace, Heap, Namer};

/// Arguments of `objects`.
#[derive(Clone, Debug, Default)]
pub struct ObjectsQuery {
    /// Selection of the objects.
    pub selection: Selection,
    /// Sort order; heap order if not given.
    pub sort: Option<Order<ObjectSort>>,
    /// Number of objects to skip.
    pub start: u64,
    /// Maximum number of objects to list, 0 for all.
    pub count: u64,
    /// Whether to list references.
    pub refs: bool,
    /// Fields whose values are listed: names, or paths of names separated by dots.
    pub fields: Vec<String>,
}

/// Size of the first batch: small, so that short lists start quickly.
const FIRST_BATCH: usize = 64;
/// Size of the largest batch.
const FULL_BATCH: usize = 1 << 13;

/// Passes the objects selected by `query` to `sink` in batches, in the requested order; stops if `sink` fails. The rows of a batch are made later, on
/// any thread, with names from `namer`. After the last row, the caller must add the notes on missing names with [`Namer::noted`].
///
/// # Errors
/// Errors of `sink`.
pub fn objects<'h>(
    heap: &'h Heap,
    namer: &'h Namer,
    query: &'h ObjectsQuery,
    mut sink: impl FnMut(ObjectBatch<'h>) -> io::Result<()>,
) -> io::Result<Answer<ObjectsTail>> {
    let by: Option<KeyOf> = match query.sort {
        None => None,
        Some(Order { by: ObjectSort::Address, direction }) => {
            (direction == Some(SortDirection::Descending)).then_some(|object: &Object<'_>| object.address.0)
        }
        Some(order @ Order { by: ObjectSort::Size, .. }) if order.reverses(SortDirection::Descending) => Some(|object| !object.size),
        Some(order @ Order { by: ObjectSort::Length, .. }) if order.reverses(SortDirection::Descending) => Some(|object| !length(object)),
        Some(Order { by: ObjectSort::Size, .. }) => Some(|object| object.size),
        Some(Order { by: ObjectSort::Length, .. }) => Some(length),
    };
    if let Some(key) = by {
        return largest(heap, namer, query, key, sink);
    }
    let notes = heap.begin();
    let ObjectsQuery { selection, start, count, refs, fields, .. } = query;
    let most = if *count == 0 { u64::MAX } else { *count };
    let filter = selection.filter(heap, namer, &notes);
    let mut picker = Picker::new(heap, selection, &filter, namer);
    let mut names = TypeNames::default();
    // Sums of the objects found, of the free blocks found, and of the listed rows.
    let (mut met, mut free, mut listed) = (Sum::default(), Sum::default(), Sum::default());
    let mut asked = AskedFields::of(fields);
    let mut more = false;
    let mut result = Ok(());
    let new = || ObjectBatch::new(heap, namer, *refs, fields);
    let (mut batch, mut size) = (new(), FIRST_BATCH);
    let of_type = |ty: &ObjectType| filter.takes(ty, namer);
    let walks = heap.visit(
        |s| selection.segment(s),
        (!filter.is_empty()).then_some(&of_type),
        |object| {
            if !picker.wants(object) {
                return ControlFlow::Continue(());
            }
            if met.count.saturating_add(free.count) >= *start && listed.count >= most {
                more = true;
                return ControlFlow::Break(());
            }
            if object.ty.is_free { &mut free } else { &mut met }.add(object.size);
            if met.count.saturating_add(free.count) <= *start {
                return ControlFlow::Continue(());
            }
            listed.add(object.size);
            batch.add(object, &mut names, &mut asked);
            if batch.objects.len() >= size {
                size = size.saturating_mul(2).min(FULL_BATCH);
                result = sink(std::mem::replace(&mut batch, new()));
            }
            if result.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        },
    );
    result?;
    sink(batch)?;
    note_walks(heap.walker(), &walks, &notes);
    let mut walked = coverage(heap.walker(), &walks);
    if more {
        // The walk ended early, at the end of the page. The rest is only counted.
        let (totals, all) = crate::analysis::objects::stat::totals(heap, selection, &filter, namer, &notes);
        met = Sum { count: totals.count, bytes: totals.bytes };
        free = Sum { count: totals.free_count, bytes: totals.free_bytes };
        walked = all;
    }
    if listed.count > 0 {
        asked.note(heap, &notes);
    }
    if met.count == 0 {
        selection.note_unknown_fields(heap, &filter, namer, &notes);
    }
    let next_start = more.then(|| start.saturating_add(listed.count));
    Ok(notes.finish(tail(listed, met, free, next_start, walked)))
}

/// The end of a list: `listed` of the objects `met` and the blocks `free`.
fn tail(listed: Sum, met: Sum, free: Sum, next_start: Option<u64>, coverage: CoverageModel) -> ObjectsTail {
    ObjectsTail {
        listed: listed.count,
        bytes: listed.bytes,
        total: met.count,
        total_bytes: met.bytes,
        free_count: free.count,
        free_bytes: free.bytes,
        next_start,
        coverage,
    }
}

/// Returns the number of elements, or 0 for an object without elements.
fn length(object: &Object<'_>) -> u64 {
    object.length().filter(|_| !object.ty.is_free).unwrap_or(0)
}

/// A function that returns the sort key of an object; larger keys come first.
type KeyOf = fn(&Object<'_>) -> u64;

/// Returns the objects of `query` with the largest keys first, and in heap order if keys are equal. Keeps only the skipped and the listed objects in
/// memory.
fn largest<'h>(
    heap: &'h Heap,
    namer: &'h Namer,
    query: &'h ObjectsQuery,
    key: KeyOf,
    mut sink: impl FnMut(ObjectBatch<'h>) -> io::Result<()>,
) -> io::Result<Answer<ObjectsTail>> {
    let notes = heap.begin();
    let ObjectsQuery { selection, start, count, refs, fields, .. } = query;
    let filter = selection.filter(heap, namer, &notes);
    let mut picker = Picker::new(heap, selection, &filter, namer);
    let most = if *count == 0 { u64::MAX } else { start.saturating_add(*count) };
    // The top of the heap is the kept object with the smallest key, which is removed next.
    let mut kept: BinaryHeap<Reverse<(u64, Reverse<Addr>, u64)>> = BinaryHeap::new();
    let (mut met, mut free) = (Sum::default(), Sum::default());
    let of_type = |ty: &ObjectType| filter.takes(ty, namer);
    let walks = heap.visit(
        |s| selection.segment(s),
        (!filter.is_empty()).then_some(&of_type),
        |object| {
            if picker.wants(object) {
                if object.ty.is_free { &mut free } else { &mut met }.add(object.size);
                kept.push(Reverse((key(object), Reverse(object.address), object.size)));
                if len64(kept.len()) > most {
                    kept.pop();
                }
            }
            ControlFlow::Continue(())
        },
    );
    note_walks(heap.walker(), &walks, &notes);
    let (mut listed, mut names, mut asked) = (Sum::default(), TypeNames::default(), AskedFields::of(fields));
    let mut batch = ObjectBatch::new(heap, namer, *refs, fields);
    let (walker, skipped) = (heap.walker(), usize::try_from(*start).unwrap_or(usize::MAX));
    for Reverse((_, Reverse(address), size)) in kept.into_sorted_vec().into_iter().skip(skipped) {
        // These reads succeeded during the walk.
        let Some(ty) = walker.method_table(address).and_then(|table| walker.type_at(table)) else { continue };
        let Some(generation) = walker.generation_of(address) else { continue };
        listed.add(size);
        batch.add(&walker.again(address, &ty, size, generation), &mut names, &mut asked);
        if batch.objects.len() >= FULL_BATCH {
            sink(std::mem::replace(&mut batch, ObjectBatch::new(heap, namer, *refs, fields)))?;
        }
    }
    sink(batch)?;
    if listed.count > 0 {
        asked.note(heap, &notes);
    }
    if met.count == 0 {
        selection.note_unknown_fields(heap, &filter, namer, &notes);
    }
    // `met` and `free` have only objects that the query selects, so there are more of them if the rows end before their sum. The other order of
    // `objects` stops at the first of these further objects instead.
    let end = start.saturating_add(listed.count);
    let next_start = (listed.count > 0 && end < met.count.saturating_add(free.count)).then_some(end);
    Ok(notes.finish(tail(listed, met, free, next_start, coverage(walker, &walks))))
}

index_type! {
    /// Index of a type in a batch.
    struct BatchType;
}

/// An object of a batch.
struct Met {
    address: Addr,
    size: u64,
    ty: BatchType,
    length: Option<u32>,
    generation: Generation,
    heap: u64,
}

/// A batch of consecutive objects. The consumer makes the rows with [`ObjectBatch::each`], on any thread.
pub struct ObjectBatch<'h> {
    heap: &'h Heap,
    namer: &'h Namer,
    refs: bool,
    fields: &'h [String],
    /// Types of the objects. Each batch has its own copy of the names: otherwise threads would contend for their reference counts.
    types: IndexVec<BatchType, (Arc<ObjectType>, Name, BoundFields)>,
    /// Index in the batch of each heap type.
    slots: IndexVec<TypeIndex, Option<BatchType>>,
    segment: Option<&'h SegmentModel>,
    objects: Vec<Met>,
}

impl std::fmt::Debug for ObjectBatch<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ObjectBatch").field("objects", &self.objects.len()).finish_non_exhaustive()
    }
}

impl<'h> ObjectBatch<'h> {
    fn new(heap: &'h Heap, namer: &'h Namer, refs: bool, fields: &'h [String]) -> ObjectBatch<'h> {
        let (types, slots) = (IndexVec::new(), IndexVec::new());
        ObjectBatch { fields, heap, namer, refs, types, slots, segment: None, objects: Vec::new() }
    }
}

impl ObjectBatch<'_> {
    fn add(&mut self, object: &Object<'_>, names: &mut TypeNames, asked: &mut AskedFields) {
        let Some(ty) = self.type_of(object, names, asked) else { return };
        // Objects arrive ordered by segment.
        if self.segment.is_none_or(|s| object.address < s.start || object.address >= s.allocated) {
            self.segment = self.heap.walker().segment_of(object.address).map(|(_, s)| s);
        }
        let length = if object.ty.is_free { None } else { object.length() };
        self.objects.push(Met {
            address: object.address,
            size: object.size,
            ty,
            length: length.and_then(|n| u32::try_from(n).ok()),
            generation: object.generation,
            heap: self.segment.map_or(0, |s| s.heap),
        });
    }

    fn type_of(&mut self, object: &Object<'_>, names: &mut TypeNames, asked: &mut AskedFields) -> Option<BatchType> {
        let slot = self.slots.slot(object.ty.index)?;
        if slot.is_none() {
            let name = names.get(self.namer, object.ty).unshared();
            *slot = self.types.push((Arc::new(object.ty.clone()), name, asked.meet(self.heap, object)));
        }
        *slot
    }

    /// Reads the requested values, by path.
    fn values(&self, met: &Met, bound: &BoundFields) -> BTreeMap<String, Option<FieldValue>> {
        let read = |i: usize| bound.get(i)?.as_ref()?.read(self.heap, met.address);
        self.fields.iter().enumerate().map(|(i, path)| (path.clone(), read(i))).collect()
    }

    /// Number of objects.
    pub fn len(&self) -> usize {
        self.objects.len()
    }

    /// Returns the addresses of the objects.
    pub fn addresses(&self) -> impl Iterator<Item = Addr> {
        self.objects.iter().map(|met| met.address)
    }

    /// Passes the objects to `row` until it fails.
    ///
    /// # Errors
    /// Errors of `row`.
    pub fn each(self, row: &mut dyn FnMut(&ObjectBrief) -> io::Result<()>) -> io::Result<()> {
        let mut fields = FieldNames::new(self.namer, self.heap.memory().ptr_bytes());
        let mut refs = self.refs.then(Vec::new);
        for met in &self.objects {
            let Some((kind, name, bound)) = self.types.get(met.ty) else { continue };
            if let Some(list) = &mut refs {
                list.clear();
                let object = self.heap.walker().again(met.address, kind, met.size, met.generation);
                let mut name = |offset| fields.at(met.ty, kind, offset).map(FieldPlace::into_name);
                object.references(|offset, to| list.push(ReferenceModel { offset, to, field: name(offset) }));
            }
            let brief = ObjectBrief {
                address: met.address,
                free: kind.is_free,
                type_name: self.namer.of_object(met.address, kind.method_table, name.clone()),
                method_table: kind.method_table,
                size: met.size,
                generation: met.generation,
                heap: met.heap,
                length: met.length.map(u64::from),
                refs,
                fields: (!self.fields.is_empty()).then(|| self.values(met, bound)),
            };
            row(&brief)?;
            refs = brief.refs;
        }
        Ok(())
    }
}

/// A cache of type names.
#[derive(Default)]
pub(in crate::analysis) struct TypeNames(IndexVec<TypeIndex, Option<Name>>);

impl TypeNames {
    pub(in crate::analysis) fn get(&mut self, namer: &Namer, kind: &ObjectType) -> Name {
        let make = || if kind.is_free { "Free".into() } else { namer.name_or_address(kind.method_table) };
        self.0.slot(kind.index).map_or_else(make, |slot| slot.get_or_insert_with(make).clone())
    }
}

/// Returns the summary of an object.
pub(in crate::analysis) fn brief(heap: &Heap, namer: &Namer, object: &Object<'_>) -> ObjectBrief {
    ObjectBrief {
        address: object.address,
        free: object.ty.is_free,
        type_name: namer.of_object(object.address, object.ty.method_table, TypeNames::default().get(namer, object.ty)),
        method_table: object.ty.method_table,
        size: object.size,
        generation: object.generation,
        heap: heap.walker().segment_of(object.address).map_or(0, |(_, s)| s.heap),
        length: if object.ty.is_free { None } else { object.length() },
        refs: None,
        fields: None,
    }
}
