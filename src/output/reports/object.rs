use std::io;

use serde_json::Value;

use super::completeness;
use crate::model::{FieldValue, HeaderModel, HeaderState, ObjectReport, ValueKind};
use crate::output::{Cell, Column, Grid, Page, Report, record};

/// A kind as JSON has it.
pub(super) fn kind(kind: ValueKind) -> String {
    kind.name().into()
}

fn columns() -> Vec<Column> {
    vec![
        Column::number("offset"),
        Column::text("name", 24),
        Column::text("type", 32),
        Column::address("address"),
        Column::text("kind", 12),
        Column::text("text", 60),
        Column::text("declaring_type", 32),
    ]
}

fn row(f: &FieldValue) -> Vec<Cell> {
    vec![
        Cell::some(f.offset, |n| Cell::Text(n.to_string())),
        Cell::Text(f.name.clone()),
        Cell::Text(f.type_name.clone()),
        Cell::some(f.address, Cell::Addr),
        Cell::Text(kind(f.kind)),
        Cell::Text(f.text.clone()),
        Cell::some(f.declaring_type.clone(), Cell::Text),
    ]
}

/// A header word for people; `None` for one that holds nothing.
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
            let Some(block) = &h.sync_block else { return Some("a sync block".into()) };
            let mut text = format!("sync block {}", block.index);
            if block.held == Some(true) {
                text.push_str(&format!(", lock held by {}", thread(block.owner_managed_id)));
            }
            if let Some(n) = block.waiters.filter(|n| *n > 0) {
                text.push_str(&format!(", {n} threads wait for it"));
            }
            if let Some(hash) = block.hash_code {
                text.push_str(&format!(", hash code {hash}"));
            }
            text
        }
    })
}

impl ObjectReport {
    fn rows(&self) -> impl Iterator<Item = &FieldValue> {
        self.fields.iter().chain(&self.elements)
    }

    /// What people look for; the other columns are in CSV and JSON.
    fn for_people(&self) -> Grid<'_> {
        let inherited = self.fields.iter().any(|f| f.declaring_type.is_some() && f.declaring_type != self.type_name);
        let mut columns = vec![Column::number("offset"), Column::text("name", 24), Column::text("value", 60), Column::text("type", 40)];
        if inherited {
            columns.push(Column::text("declared_by", 40));
        }
        let row = move |f: &FieldValue| {
            let offset = Cell::some(f.offset, |n| Cell::Text(n.to_string()));
            let mut row = vec![offset, Cell::Text(f.name.clone()), Cell::Text(f.text.clone()), Cell::Text(f.type_name.clone())];
            if inherited {
                row.push(Cell::some(f.declaring_type.clone(), Cell::Text));
            }
            row
        };
        Grid::new(columns, move || self.rows().map(row))
    }
}

impl Report for ObjectReport {
    completeness!();

    fn grid(&self) -> Grid<'_> {
        Grid::new(columns(), || self.rows().map(row))
    }

    fn records(&self) -> Box<dyn Iterator<Item = Value> + '_> {
        let fields = self.fields.iter().map(|f| record("field", f));
        let elements = self.elements.iter().map(|f| record("element", f));
        // The object itself first, without what follows it.
        let itself = ObjectReport { fields: Vec::new(), elements: Vec::new(), ..self.clone() };
        let mut head = record("object", &itself);
        if let Value::Object(map) = &mut head {
            map.remove("fields");
            map.remove("elements");
        }
        Box::new(std::iter::once(head).chain(fields).chain(elements))
    }

    fn page(&self, page: &mut Page<'_>) -> io::Result<()> {
        let mut facts = vec![
            ("Address", self.address.to_string()),
            ("Type", self.type_name.clone().unwrap_or_else(|| "?".into())),
            ("Method table", self.method_table.to_string()),
            ("Size", format!("{} bytes", crate::output::count(self.size))),
        ];
        facts.extend(self.interior.map(|a| ("Asked for", format!("{a}, {:#x} bytes into it", a.since(self.address).unwrap_or(0)))));
        facts.extend(self.segment.as_ref().map(|s| ("Where", format!("{} of heap {}, segment {}", s.generation, s.heap, s.address))));
        facts.extend(self.header.as_ref().and_then(header).map(|text| ("Header", text)));
        facts.extend(self.length.map(|n| ("Length", crate::output::count(n))));
        facts.extend(self.boxed.as_ref().map(|b| ("Value", b.text.clone())));
        facts.extend(self.string.as_ref().map(|s| ("Text", s.clone())));
        page.facts(&facts)?;
        if self.rows().next().is_some() {
            page.gap()?;
            page.grid(&self.for_people(), None)?;
        }
        if !self.truncated.is_empty() {
            page.line(&format!("Cut short: {}", self.truncated.iter().map(|c| c.name()).collect::<Vec<_>>().join(", ")))?;
        }
        Ok(())
    }
}
