use std::io;

use serde_json::Value;

use super::completeness;
use crate::model::{FieldValue, ObjectReport, ValueKind};
use crate::output::{Cell, Column, Grid, Page, Report, record};

/// A kind as JSON has it.
pub(super) fn kind(kind: ValueKind) -> String {
    serde_json::to_value(kind).ok().and_then(|v| v.as_str().map(ToString::to_string)).unwrap_or_default()
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

impl ObjectReport {
    fn rows(&self) -> impl Iterator<Item = &FieldValue> {
        self.fields.iter().chain(&self.elements)
    }
}

impl Report for ObjectReport {
    completeness!();

    fn grid(&self) -> Grid<'_> {
        Grid::new(columns(), || self.rows().map(row))
    }

    fn records(&self) -> Box<dyn Iterator<Item = Value> + '_> {
        let fields = self.fields.iter().map(|f| record("field", f));
        Box::new(fields.chain(self.elements.iter().map(|f| record("element", f))))
    }

    fn page(&self, page: &mut Page<'_>) -> io::Result<()> {
        let mut facts = vec![
            ("Address", self.address.to_string()),
            ("Type", self.type_name.clone().unwrap_or_else(|| "?".into())),
            ("Method table", self.method_table.to_string()),
            ("Size", crate::output::count(self.size)),
        ];
        facts.extend(self.length.map(|n| ("Length", crate::output::count(n))));
        facts.extend(self.boxed.as_ref().map(|b| ("Value", b.text.clone())));
        facts.extend(self.string.as_ref().map(|s| ("Text", s.clone())));
        page.facts(&facts)?;
        if self.rows().next().is_some() {
            page.gap()?;
            page.grid(&self.grid(), None)?;
        }
        if !self.truncated.is_empty() {
            page.line(&format!("Cut short: {}", self.truncated.join(", ")))?;
        }
        Ok(())
    }
}
