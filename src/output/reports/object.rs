//! The answer of `object`: facts about the object, its fields or elements, and what waits for a task.

use std::borrow::Cow;

use serde::Serialize;

use super::{name_of, number};
use crate::analysis::{CutShort, DimensionModel, ObjectReport, SegmentPlace, TaskPart, TaskWaiter};
use crate::base::{Addr, Name};
use crate::model::{
    ContainerKind, ContainerModel, DelegateModel, DelegatePart, FieldValue, HeaderModel, HeaderState, ItemModel, ValueKind,
};
use crate::output::columns::{Columns, Readers, columns};
use crate::output::report::{Report, Sections};
use crate::output::table::Table;
use crate::output::{count, plural};

/// Maximum number of awaited objects, and of waiters, to print for a task.
const MAX_LISTED: usize = 8;

/// Nested structures are listed field by field up to this depth and number of fields. Of other structures, only the text is shown.
const MAX_DEPTH: usize = 3;
const MAX_FIELDS: usize = 32;

/// Returns the JSON name of a kind.
pub(super) fn kind(kind: ValueKind) -> String {
    name_of(kind).unwrap_or_default()
}

/// A field or element, or a field of a structure inside it.
#[derive(Clone)]
struct Row<'r> {
    /// Name with the path within structures: `_span.Start`.
    name: Cow<'r, str>,
    /// Offset from the start of the object.
    offset: Option<u64>,
    /// Number of enclosing structures.
    depth: usize,
    field: &'r FieldValue,
}

/// Returns the rows of `fields`, each structure followed by its fields.
fn rows<'r>(fields: &'r [FieldValue]) -> Vec<Row<'r>> {
    let row = |field: &'r FieldValue| Row { name: Cow::Borrowed(&field.name), offset: field.offset, depth: 0, field };
    let mut out = Vec::with_capacity(fields.len());
    let mut left: Vec<Row<'r>> = fields.iter().rev().map(row).collect();
    while let Some(row) = left.pop() {
        let inner = row.field.fields.as_slice();
        if row.depth < MAX_DEPTH && inner.len() <= MAX_FIELDS {
            left.extend(inner.iter().rev().map(|field| Row {
                name: format!("{}.{}", row.name, field.name).into(),
                offset: row.offset.zip(field.offset).map(|(outer, own)| outer.saturating_add(own)),
                depth: row.depth.saturating_add(1),
                field,
            }));
        }
        out.push(row);
    }
    out
}

/// Columns of fields. Tables show the value next to the name, and the declaring type only if `inherited`.
fn row_columns<'r>(inherited: bool) -> Columns<'r, Row<'r>> {
    columns![
        Row<'r>,
        id(offset),
        text(name, 24).keep(9),
        text("value" = field.text, 60).lines(4).keep(9),
        text(field.type_name, 32).name(),
        names("declared_by", 40, |r| r.field.declaring_type.as_ref().filter(|_| r.depth == 0)).extra().when(inherited),
        address(field.object).only(Readers::Links)
    ]
}

/// Columns of CSV.
fn field_columns<'r>() -> Columns<'r, FieldValue> {
    columns![
        FieldValue,
        id(offset),
        text(name, 24),
        text(type_name, 32),
        address(address),
        text("kind", 12, |f| kind(f.kind)),
        text("text", 60, |f| f.unquoted()),
        text(declaring_type, 32)
    ]
}

fn part_columns<'r>() -> Columns<'r, DelegatePart> {
    columns![DelegatePart, address("part" = object), names(method, 60), address(target), names(target_type, 40)]
}

fn item_columns<'r>(keys: bool) -> Columns<'r, ItemModel> {
    columns![
        ItemModel,
        text("key", 40, |i| i.key.as_ref().map(|k| k.text.as_str())).lines(1).when(keys),
        text("value", 80, |i| i.value.as_ref().map(|v| v.text.as_str())).lines(4),
        address("object", |i| i.value.as_ref().and_then(|v| v.object)).only(Readers::Links),
        address("key_object", |i| i.key.as_ref().and_then(|k| k.object)).only(Readers::Links)
    ]
}

/// Describes a header word; `None` if it is empty.
fn header(h: &HeaderModel) -> Option<String> {
    let thread = |id: Option<u32>| id.map_or_else(|| "an unknown thread".to_string(), |id| format!("thread {id}"));
    Some(match h.state {
        HeaderState::None => return None,
        HeaderState::ThinLock => {
            let again = h
                .recursion
                .filter(|n| *n > 0)
                .map_or_else(String::new, |n| format!(", entered {}", plural(u64::from(n).saturating_add(1), "time")));
            format!("thin lock held by {}{again}", thread(h.owner_managed_id))
        }
        HeaderState::Hash => format!("hash code {}", h.hash_code.unwrap_or(0)),
        HeaderState::SyncBlock => {
            let Some(block) = &h.sync_block else { return Some("sync block".into()) };
            let mut text = format!("sync block {}", block.index);
            if block.held == Some(true) {
                text.push_str(&format!(", lock held by {}", thread(block.owner_managed_id)));
            }
            if let Some(n) = block.waiters.filter(|n| *n > 0) {
                text.push_str(&format!(", {} waiting", plural(u64::from(n), "thread")));
            }
            if let Some(hash) = block.hash_code {
                text.push_str(&format!(", hash code {hash}"));
            }
            text
        }
    })
}

/// Describes a task.
fn task(t: &TaskPart) -> Vec<(&'static str, String)> {
    let list = |all: Vec<String>| {
        let more = all.len().checked_sub(MAX_LISTED).filter(|n| *n > 0).map_or_else(String::new, |n| format!(" and {n} more"));
        format!("{}{more}", all.into_iter().take(MAX_LISTED).collect::<Vec<_>>().join(", "))
    };
    let mut facts = Vec::new();
    facts.extend(t.status.map(|s| ("Status", s.to_string())));
    facts.extend(t.method.as_ref().map(|m| ("Method", format!("{m}{}", t.state.map_or_else(String::new, |s| format!(", state {s}"))))));
    if !t.awaits.is_empty() {
        facts.push(("Awaits", list(t.awaits.iter().map(ToString::to_string).collect())));
    }
    if !t.waiters.is_empty() {
        let waiter = |w: &TaskWaiter| format!("{} {}", w.object, w.method.as_ref().or(w.type_name.as_ref()).map_or("?", Name::shown));
        facts.push(("Waiters", list(t.waiters.iter().map(waiter).collect())));
    }
    for e in &t.exceptions {
        let message = e.message.as_ref().map_or_else(String::new, |m| format!(": {m}"));
        let unobserved = if t.unobserved == Some(true) { " (unobserved)" } else { "" };
        facts.push(("Exception", format!("{} {}{message}{unobserved}", e.object, e.type_name.as_ref().map_or("?", Name::shown))));
    }
    facts
}

/// Returns the runtime's name of a type, if it is displayed differently.
pub(super) fn exact_type(name: &Name) -> Option<(&'static str, String)> {
    (name.shown() != name.as_str()).then(|| ("Exact type", name.as_str().into()))
}

/// The object without its fields and elements.
#[derive(Clone, Serialize)]
struct Itself<'r> {
    address: Addr,
    #[serde(rename = "type")]
    type_name: &'r Option<Name>,
    method_table: Addr,
    interior: Option<Addr>,
    segment: &'r Option<SegmentPlace>,
    header: &'r Option<HeaderModel>,
    size: u64,
    length: Option<u64>,
    dimensions: &'r [DimensionModel],
    string: &'r Option<String>,
    boxed: &'r Option<FieldValue>,
    delegate: &'r Option<DelegateModel>,
    collection: &'r Option<ContainerModel>,
    first_element: u64,
    task: &'r Option<TaskPart>,
    truncated: &'r [CutShort],
}

impl ObjectReport {
    fn itself(&self) -> Itself<'_> {
        // `fields` and `elements` are left out, because they are separate records.
        #[rustfmt::skip]
        let ObjectReport {
            address, type_name, method_table, interior, segment, header, size, length, dimensions,
            string, boxed, delegate, collection, fields: _, elements: _, first_element, task, truncated,
        } = self;
        Itself {
            address: *address,
            type_name,
            method_table: *method_table,
            interior: *interior,
            segment,
            header,
            size: *size,
            length: *length,
            dimensions,
            string,
            boxed,
            delegate,
            collection,
            first_element: *first_element,
            task,
            truncated,
        }
    }
}

impl Report for ObjectReport {
    fn describe<'r>(&'r self, to: &mut Sections<'r>) {
        let mut facts = vec![
            ("Address", self.address.to_string()),
            ("Type", self.type_name.as_ref().map_or_else(|| "?".into(), ToString::to_string)),
            ("Method table", self.method_table.to_string()),
            ("Size", plural(self.size, "byte")),
        ];
        facts.splice(2..2, self.type_name.as_ref().and_then(exact_type));
        facts.extend(self.interior.map(|a| ("Queried address", format!("{a} (offset {:#x})", a.since(self.address).unwrap_or(0)))));
        facts.extend(self.segment.as_ref().map(|s| ("Location", format!("{} of heap {}, segment {}", s.generation, s.heap, s.address))));
        facts.extend(self.header.as_ref().and_then(header).map(|text| ("Header", text)));
        facts.extend(self.length.map(|n| ("Length", count(n))));
        facts.extend(self.boxed.as_ref().map(|b| ("Value", b.text.clone())));
        facts.extend(self.string.as_ref().map(|s| ("Text", s.clone())));
        if let Some(delegate) = &self.delegate {
            let object = |a: Addr, ty: &Option<Name>| format!("{a} {}", ty.as_ref().map_or("?", Name::shown));
            facts.push(("Method", delegate.method.as_ref().map_or_else(|| "?".into(), ToString::to_string)));
            facts.extend(delegate.target.map(|t| ("Target", object(t, &delegate.target_type))));
            facts.extend((delegate.part_count > 0).then(|| ("Parts", count(delegate.part_count))));
        }
        if let Some(c) = &self.collection {
            let name = if c.kind == ContainerKind::Array { "Not null" } else { "Count" };
            facts.push((name, count(c.count)));
            facts.extend(c.capacity.filter(|_| c.kind != ContainerKind::Array).map(|n| ("Capacity", count(n))));
            facts.extend(c.text.as_ref().map(|text| ("Text", text.clone())));
        }
        facts.extend(self.task.iter().flat_map(task));
        to.facts(facts);
        to.itself("object", self.itself());
        to.records("field", &self.fields);
        to.records("element", &self.elements);
        to.table(Table::new(self.fields.iter().chain(&self.elements), field_columns()).csv(true).shown(false));
        let elements = self.elements.iter().map(|field| Row { name: Cow::Borrowed(&field.name), offset: field.offset, depth: 0, field });
        let rows: Vec<Row<'r>> = rows(&self.fields).into_iter().chain(elements).collect();
        let inherited = self.fields.iter().any(|f| f.declaring_type.is_some() && f.declaring_type != self.type_name);
        let some = !rows.is_empty();
        to.gap_if(some);
        to.table(Table::new(rows, row_columns(inherited)).shown(some));
        if let Some(delegate) = self.delegate.as_ref().filter(|d| !d.parts.is_empty()) {
            to.gap();
            to.table(Table::new(delegate.parts.iter(), part_columns()));
            let shown = number(&delegate.parts);
            if shown < delegate.part_count {
                to.line(format!("Showing {} of {} parts (--items N shows more)", count(shown), count(delegate.part_count)));
            }
        }
        if let Some(c) = self.collection.as_ref().filter(|c| !c.items.is_empty()) {
            to.gap();
            to.table(Table::new(c.items.iter(), item_columns(c.items.iter().any(|i| i.key.is_some()))));
            let shown = number(&c.items);
            if shown < c.count {
                to.line(format!("Showing {} of {} elements (--items N shows more)", count(shown), count(c.count)));
            }
        }
        for part in &self.truncated {
            match part {
                CutShort::Elements => {
                    let shown = number(&self.elements);
                    let next = self.first_element.saturating_add(shown);
                    let total = self.length.map_or_else(|| "?".into(), count);
                    to.line(format!("Showing {} of {total} elements (next: --start {next})", count(shown)));
                }
                CutShort::String => to.line("String truncated"),
            }
        }
    }
}
