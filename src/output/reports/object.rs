use serde::Serialize;

use super::{name_of, number};
use crate::base::Addr;
use crate::model::{
    ContainerKind, ContainerModel, CutShort, DelegateModel, DelegatePart, DimensionModel, FieldValue, HeaderModel, HeaderState, ItemModel,
    ObjectReport, SegmentPlace, TaskPart, TaskWaiter, ValueKind,
};
use crate::output::count;
use crate::output::report::{Report, Sections};
use crate::output::table::{Columns, Readers, Table, columns};

/// Maximum awaited objects, and waiters, of a task printed.
const MAX_LISTED: usize = 8;

/// Name of a kind in JSON.
pub(super) fn kind(kind: ValueKind) -> String {
    name_of(kind).unwrap_or_default()
}

/// Tables show the value next to the name, and the declaring type only if `inherited`.
fn field_columns<'r>(inherited: bool) -> Columns<'r, FieldValue> {
    columns::<FieldValue>()
        .id("offset", |f| f.offset)
        .keep(5)
        .text("name", 24, |f| &f.name)
        .keep(9)
        .text("value", 60, |f| &f.text)
        .lines(4)
        .keep(9)
        .only(Readers::People)
        .text("type", 32, |f| &f.type_name)
        .name()
        .keep(7)
        .address("address", |f| f.address)
        .only(Readers::Machines)
        .made("kind", 12, |f| kind(f.kind))
        .only(Readers::Machines)
        .text("text", 60, |f| &f.text)
        .only(Readers::Machines)
        .text_or_none("declaring_type", 32, |f| f.declaring_type.as_deref())
        .only(Readers::Machines)
        .text_or_none("declared_by", 40, |f| f.declaring_type.as_deref())
        .name()
        .extra()
        .only(Readers::People)
        .when(inherited)
}

fn part_columns<'r>() -> Columns<'r, DelegatePart> {
    columns::<DelegatePart>()
        .address("part", |p| p.object)
        .text_or_none("method", 60, |p| p.method.as_deref())
        .name()
        .address("target", |p| p.target)
        .text_or_none("target_type", 40, |p| p.target_type.as_deref())
        .name()
}

fn item_columns<'r>(keys: bool) -> Columns<'r, ItemModel> {
    columns::<ItemModel>()
        .text_or_none("key", 40, |i| i.key.as_ref().map(|k| k.text.as_str()))
        .lines(1)
        .when(keys)
        .text_or_none("value", 80, |i| i.value.as_ref().map(|v| v.text.as_str()))
        .lines(4)
}

/// Describes a header word; `None` if it is empty.
fn header(h: &HeaderModel) -> Option<String> {
    let thread = |id: Option<u32>| id.map_or_else(|| "an unknown thread".to_string(), |id| format!("thread {id}"));
    Some(match h.state {
        HeaderState::None => return None,
        HeaderState::ThinLock => {
            let again = h.recursion.filter(|n| *n > 0).map_or_else(String::new, |n| format!(", entered {} times", n.saturating_add(1)));
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
                text.push_str(&format!(", {n} threads waiting"));
            }
            if let Some(hash) = block.hash_code {
                text.push_str(&format!(", hash code {hash}"));
            }
            text
        }
    })
}

/// A task in words.
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
        let waiter = |w: &TaskWaiter| format!("{} {}", w.object, w.method.as_deref().or(w.type_name.as_deref()).unwrap_or("?"));
        facts.push(("Waiters", list(t.waiters.iter().map(waiter).collect())));
    }
    for e in &t.exceptions {
        let message = e.message.as_ref().map_or_else(String::new, |m| format!(": {m}"));
        let unobserved = if t.unobserved == Some(true) { " (unobserved)" } else { "" };
        facts.push(("Exception", format!("{} {}{message}{unobserved}", e.object, e.type_name.as_deref().unwrap_or("?"))));
    }
    facts
}

/// The object without its fields and elements.
#[derive(Clone, Serialize)]
struct Itself<'r> {
    address: Addr,
    #[serde(rename = "type")]
    type_name: &'r Option<String>,
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
        // Exhaustive, so that new fields are not forgotten.
        let ObjectReport { address, type_name, method_table, interior, segment, header, size, length, dimensions, .. } = self;
        let ObjectReport { string, boxed, delegate, collection, fields: _, elements: _, first_element, task, truncated, .. } = self;
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
            ("Type", self.type_name.clone().unwrap_or_else(|| "?".into())),
            ("Method table", self.method_table.to_string()),
            ("Size", format!("{} bytes", count(self.size))),
        ];
        facts.extend(self.interior.map(|a| ("Queried address", format!("{a} (offset {:#x})", a.since(self.address).unwrap_or(0)))));
        facts.extend(self.segment.as_ref().map(|s| ("Location", format!("{} of heap {}, segment {}", s.generation, s.heap, s.address))));
        facts.extend(self.header.as_ref().and_then(header).map(|text| ("Header", text)));
        facts.extend(self.length.map(|n| ("Length", count(n))));
        facts.extend(self.boxed.as_ref().map(|b| ("Value", b.text.clone())));
        facts.extend(self.string.as_ref().map(|s| ("Text", s.clone())));
        if let Some(delegate) = &self.delegate {
            let object = |a: Addr, ty: &Option<String>| format!("{a} {}", ty.as_deref().unwrap_or("?"));
            facts.push(("Method", delegate.method.clone().unwrap_or_else(|| "?".into())));
            facts.extend(delegate.target.map(|t| ("Target", object(t, &delegate.target_type))));
            facts.extend((!delegate.parts.is_empty()).then(|| ("Parts", count(number(&delegate.parts)))));
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
        let rows = self.fields.iter().chain(&self.elements);
        let inherited = self.fields.iter().any(|f| f.declaring_type.is_some() && f.declaring_type != self.type_name);
        let some = rows.clone().next().is_some();
        to.gap_if(some);
        to.table(Table::new(rows, field_columns(inherited)).csv(true).shown(some));
        if let Some(delegate) = self.delegate.as_ref().filter(|d| !d.parts.is_empty()) {
            to.gap();
            to.table(Table::new(delegate.parts.iter(), part_columns()));
        }
        if let Some(c) = self.collection.as_ref().filter(|c| !c.items.is_empty()) {
            to.gap();
            to.table(Table::new(c.items.iter(), item_columns(c.items.iter().any(|i| i.key.is_some()))));
            let shown = number(&c.items);
            if shown < c.count {
                to.line(format!("Showing {} of {} elements (--items N)", count(shown), count(c.count)));
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
