use std::io;

use serde_json::Value;

use super::completeness;
use crate::model::{StaticModel, StaticsReport};
use crate::output::{Cell, Column, Grid, Page, Report, record};

/// Columns of static fields.
pub(super) fn columns() -> Vec<Column> {
    vec![
        Column::text("declaring_type", 40),
        Column::text("name", 24),
        Column::text("type", 24),
        Column::text("storage", 14),
        Column::number("thread"),
        Column::address("address"),
        Column::text("kind", 12),
        Column::text("text", 40),
    ]
}

/// A row of them.
pub(super) fn row(s: &StaticModel) -> Vec<Cell> {
    vec![
        Cell::some(s.field.declaring_type.clone(), Cell::Text),
        Cell::Text(s.field.name.clone()),
        Cell::Text(s.field.type_name.clone()),
        Cell::Text(s.storage.name().into()),
        Cell::some(s.thread.and_then(|t| t.managed_id), |n| Cell::Text(n.to_string())),
        Cell::some(s.field.address, Cell::Addr),
        Cell::Text(super::object::kind(s.field.kind)),
        Cell::Text(s.field.text.clone()),
    ]
}

impl Report for StaticsReport {
    completeness!();

    fn grid(&self) -> Grid<'_> {
        Grid::new(columns(), || self.statics.iter().map(row))
    }

    fn records(&self) -> Box<dyn Iterator<Item = Value> + '_> {
        Box::new(self.statics.iter().map(|s| record("static", s)))
    }

    fn page(&self, page: &mut Page<'_>) -> io::Result<()> {
        if !self.statics.is_empty() {
            page.grid(&self.grid(), None)?;
            page.gap()?;
        }
        page.line(&format!(
            "{} static fields with a value in {} types; {} not initialised{}",
            self.initialised,
            self.types,
            self.not_initialised,
            if self.unknown > 0 { format!("; {} whose place is not in the dump", self.unknown) } else { String::new() }
        ))
    }
}
