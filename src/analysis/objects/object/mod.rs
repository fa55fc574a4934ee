//! One object: its type and its fields or elements.

mod report;

pub use report::*;

use std::sync::Arc;

use crate::analysis::objects::types::find;
use crate::analysis::objects::where_is::{containing, heap_place};
use crate::analysis::threads::async_chains::task_part;
use crate::analysis::threads::continuation::captured;
use crate::analysis::threads::locks::with_hash_code;
use crate::base::{Addr, Answer, Collector, Missing, NoteKind, Notes, len64};
use crate::bcl::collections::Slot;
use crate::bcl::{Library, Texts};
use crate::clr::values::{ValueLimits, Values};
use crate::model::{ContainerKind, ContainerModel, ItemModel, ValueKind};
use crate::session::{Error, Heap, TypePattern};

/// Arguments of `object`.
#[derive(Clone, Copy, Debug)]
pub struct ObjectQuery {
    /// Address of the object, or an interior address.
    pub address: Addr,
    /// Index of the first array element to list.
    pub start: u64,
    /// Maximum number of elements to list.
    pub count: u64,
    /// Maximum number of elements of a collection, or of parts of a multicast delegate, to list.
    pub items: u64,
    /// Whether fields and elements are listed.
    pub fields: bool,
}

impl ObjectQuery {
    /// Returns a query for the object at `address`, with its first hundred elements.
    pub fn at(address: Addr) -> ObjectQuery {
        ObjectQuery { address, start: 0, count: 100, items: 100, fields: true }
    }
}

/// Describes the object at or around an address.
///
/// # Errors
/// [`Error::NoObject`] if no object is there; [`Error::Contract`] if the descriptor does not describe fields.
pub fn object(heap: &Heap, query: &ObjectQuery) -> Result<Answer<ObjectReport>, Error> {
    let (runtime, notes, namer) = (heap.runtime(), heap.begin(), heap.namer());
    let texts = Arc::new(Texts::bind(runtime, namer.types()?, &notes));
    let values = Values::new(namer.types()?, ValueLimits::default()).with_texts(texts.clone());
    // If the walk finds no object, one may still start at the address itself: outside the segments, or in a part that was not walked.
    let address = containing(heap, &namer, query.address, &notes).map_or(query.address, |o| o.address);
    // An address that is neither in the heap nor in the dump cannot be an object.
    let nowhere = heap.walker().segment_of(address).is_none() && !heap.memory().has(address);
    let report = if nowhere { None } else { report(&values, &ObjectQuery { address, ..*query }) };
    let report = report.ok_or_else(|| Error::NoObject(query.address).given(&notes.notes()))?;
    let mut report = notes.take(report);
    if !query.fields {
        report.fields.clear();
        report.elements.clear();
        report.truncated.retain(|part| *part != CutShort::Elements);
    } else {
        report.fields.extend(captured(runtime, &values, texts.suspended_methods(), report.method_table, report.address));
    }
    let headers = runtime.headers(&notes).map(|headers| Ok::<_, Error>(headers.with_locks(namer.types()?))).transpose()?;
    let report = ObjectReport {
        interior: (report.address != query.address).then_some(query.address),
        segment: heap_place(heap, report.address),
        header: headers.and_then(|h| h.read(report.address)).map(|h| with_hash_code(heap, &namer, report.address, h, &notes)),
        delegate: texts.delegates().model(report.address, query.items, &notes),
        collection: collection(&Library::of(runtime, namer.types()?, &notes), &values, report.address, query, &notes),
        task: task_part(runtime, &namer, report.address, &notes),
        ..report
    };
    texts.note(&notes);
    namer.note(&notes);
    Ok(notes.finish(report))
}

/// Describes the value of the structure, enum or primitive type `wanted` at `address`, which may be in an object, on a stack, or anywhere else.
///
/// # Errors
/// [`Error::Nothing`] if no type matches `wanted` or its method table cannot be read; [`Error::NoValueType`] for a reference type;
/// [`Error::Query`] if several types match; [`Error::Contract`] if the descriptor does not describe fields.
pub fn value(heap: &Heap, address: Addr, wanted: &TypePattern) -> Result<Answer<ObjectReport>, Error> {
    let (runtime, notes, namer) = (heap.runtime(), heap.begin(), heap.namer());
    let types = namer.types()?;
    let found = find(types, wanted, &notes);
    let nothing = |why: String| Error::Nothing(why).given(&notes.notes());
    let one = match found.as_slice() {
        [one] => one,
        [] => return Err(nothing(format!("no type matches {wanted}"))),
        several => {
            let why = format!("{} types match {wanted}; specify one by its method table", several.len());
            return Err(Error::Query(why).given(&notes.notes()));
        }
    };
    let texts = Arc::new(Texts::bind(runtime, types, &notes));
    let values = Values::new(types, ValueLimits::default()).with_texts(texts.clone());
    let info = types.names().method_tables().read(one.method_table).map_err(|e| nothing(format!("{}: {e}", one.name)))?;
    let word = types.pointer_bytes();
    // `box_place` takes the address of a box, which starts before the value.
    let boxed_at = types.names().method_tables().boxed_at();
    let place = address.minus(boxed_at).and_then(|start| values.box_place(&info, start));
    let place = place.ok_or_else(|| Error::NoValueType(one.name.clone(), address).given(&notes.notes()))?;
    let value = values.value("value".into(), one.name.as_str().into(), &place);
    if value.kind == ValueKind::Absent {
        notes.add(Missing::Objects, address, "the memory of the value is not in the dump");
    }
    texts.note(&notes);
    namer.note(&notes);
    Ok(notes.finish(ObjectReport {
        address,
        type_name: Some(one.name.clone()),
        method_table: one.method_table,
        interior: None,
        segment: heap_place(heap, address),
        header: None,
        // The base size includes the header and the method table of a box.
        size: u64::from(info.base_size).saturating_sub(word.saturating_mul(2)),
        length: None,
        dimensions: Vec::new(),
        string: None,
        delegate: None,
        collection: None,
        fields: value.fields.clone(),
        boxed: Some(value),
        elements: Vec::new(),
        first_element: 0,
        task: None,
        truncated: Vec::new(),
    }))
}

/// Returns the elements of the collection at `object`; `None` if it is not a collection.
pub(in crate::analysis) fn collection(
    library: &Library,
    values: &Values,
    object: Addr,
    query: &ObjectQuery,
    notes: &Collector,
) -> Option<ContainerModel> {
    let most = if query.fields { query.items } else { 0 };
    let read = library.collections().read(object, most);
    library.note(notes);
    let contents = match read {
        Ok(contents) => contents?,
        Err(missing) => {
            notes.add(Missing::Objects, None, format!("the elements of the collection cannot be read: {missing}"));
            return None;
        }
    };
    if contents.cut {
        notes.add(NoteKind::LimitHit, object, "the nodes of the collection have a cycle or exceed their limit");
    }
    let model = |name: &str, slot: Slot| values.value(name.into(), slot.type_name, &slot.place);
    let items = if contents.kind == ContainerKind::Array { Vec::new() } else { contents.items };
    let items = items
        .into_iter()
        .map(|item| ItemModel { key: item.key.map(|slot| model("key", slot)), value: item.value.map(|slot| model("value", slot)) });
    let (kind, count, capacity) = (contents.kind, contents.count, contents.capacity);
    Some(ContainerModel { kind, count, capacity, text: contents.text, items: items.collect() })
}

/// Describes the object that starts at the queried address; `None` if it has no valid method table.
pub(in crate::analysis) fn report(values: &Values, query: &ObjectQuery) -> Option<Answer<ObjectReport>> {
    let address = query.address;
    let mt = values.method_table(address)?;
    let names = values.types().names();
    let info = names.method_tables().read(mt).ok()?;
    let name = names.name(mt);
    let count = match info.component_size {
        0 => Some(0),
        _ if info.is_string => values.types().strings().length(address),
        _ => values.component_count(address),
    };
    let elements_bytes = u64::from(count?).checked_mul(u64::from(info.component_size))?;
    let size = u64::from(info.base_size).checked_add(elements_bytes)?.max(names.method_tables().smallest());
    let shape = values.array(&info, address);
    let string = if info.is_string { values.string(address) } else { None };
    let mut truncated = Vec::new();
    if string.as_ref().is_some_and(|(_, length)| *length > values.limits().string_chars) {
        truncated.push(CutShort::String);
    }
    let elements = shape.as_ref().map(|s| values.elements(s, query.start, query.count)).unwrap_or_default();
    let listed = len64(elements.len());
    if shape.as_ref().is_some_and(|s| listed < s.length) {
        truncated.push(CutShort::Elements);
    }
    let fields = if info.is_array || info.is_string { Some(Vec::new()) } else { values.fields(mt, address) };
    let mut notes = Notes::new();
    if fields.is_none() || (info.is_array && shape.is_none()) || (info.is_string && string.is_none()) {
        notes.add(Missing::Objects, address, "a part of the object, or of its type's description, is not in the dump");
    }
    let report = ObjectReport {
        address,
        type_name: Some(name.to_name()),
        method_table: mt,
        interior: None,
        segment: None,
        header: None,
        size,
        length: if info.is_array || info.is_string { count.map(u64::from) } else { None },
        dimensions: shape
            .iter()
            .flat_map(|s| &s.dimensions)
            .map(|d| DimensionModel { length: d.length, lower_bound: d.lower_bound })
            .collect(),
        string: string.map(|(text, _)| text),
        boxed: values.boxed(&info, address),
        delegate: None,
        collection: None,
        fields: fields.unwrap_or_default(),
        elements,
        first_element: query.start,
        task: None,
        truncated,
    };
    Some(Answer::new(report, notes))
}
