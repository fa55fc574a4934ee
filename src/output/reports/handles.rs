use std::io;

use serde_json::Value;

use super::completeness;
use crate::model::{HandleBy, HandleGroup, HandleModel, HandlesReport};
use crate::output::{Cell, Column, Grid, Page, Report, count, record};

fn row(h: &HandleModel) -> Vec<Cell> {
    vec![
        Cell::Addr(h.address),
        Cell::Text(h.kind.name().into()),
        Cell::Addr(h.object),
        Cell::some(h.method_table, Cell::Addr),
        Cell::some(h.secondary, Cell::Addr),
        Cell::some(h.object_type.clone(), Cell::Text),
        Cell::some(h.secondary_type.clone(), Cell::Text),
    ]
}

/// People get the last column where a handle has something to show in it.
fn handles_grid(handles: &[HandleModel], with_secondary_type: bool) -> Grid<'_> {
    let columns = [
        Column::address("address"),
        Column::text("type", 21),
        Column::address("object"),
        Column::address("method_table"),
        Column::address("secondary"),
        Column::text("object_type", 40),
        Column::text("secondary_type", 40),
    ];
    let shown = if with_secondary_type { 7 } else { 6 };
    let cut = move |h: &HandleModel| row(h).into_iter().take(shown).collect();
    Grid::new(columns.into_iter().take(shown).collect(), move || handles.iter().map(cut))
}

impl HandlesReport {
    fn counts_grid(&self) -> Grid<'_> {
        let columns = vec![Column::text("type", 22), Column::number("count")];
        Grid::new(columns, || self.counts.iter().map(|c| vec![Cell::Text(c.kind.name().into()), Cell::Count(c.count)]))
    }

    fn groups_grid(&self) -> Grid<'_> {
        let name = match self.by {
            Some(HandleBy::ObjectType) => "object_type",
            Some(HandleBy::Generation) => "generation",
            Some(HandleBy::Type) | None => "type",
        };
        let columns = vec![Column::text(name, 60), Column::number("count")];
        let row = |g: &HandleGroup| vec![Cell::some(g.key.clone(), Cell::Text), Cell::Count(g.count)];
        Grid::new(columns, move || self.groups.iter().flatten().map(row))
    }
}

impl Report for HandlesReport {
    completeness!();

    fn grid(&self) -> Grid<'_> {
        let Some(handles) = &self.handles else {
            return if self.groups.is_some() { self.groups_grid() } else { self.counts_grid() };
        };
        handles_grid(handles, true)
    }

    fn records(&self) -> Box<dyn Iterator<Item = Value> + '_> {
        match (&self.handles, &self.groups) {
            (Some(list), _) => Box::new(list.iter().map(|h| record("handle", h))),
            (None, Some(groups)) => Box::new(groups.iter().map(|g| record("group", g))),
            (None, None) => Box::new(self.counts.iter().map(|c| record("count", c))),
        }
    }

    fn page(&self, page: &mut Page<'_>) -> io::Result<()> {
        if let Some(handles) = self.handles.as_ref().filter(|h| !h.is_empty()) {
            page.grid(&handles_grid(handles, handles.iter().any(|h| h.secondary_type.is_some())), None)?;
            page.gap()?;
        }
        if self.groups.as_ref().is_some_and(|g| !g.is_empty()) {
            page.grid(&self.groups_grid(), None)?;
            page.gap()?;
        } else if !self.counts.is_empty() {
            page.grid(&self.counts_grid(), None)?;
            page.gap()?;
        }
        let tables = if self.tables == 1 { "1 handle table".into() } else { format!("{} handle tables", self.tables) };
        let handles = if self.total == 1 { "1 handle".into() } else { format!("{} handles", count(self.total)) };
        page.line(&format!("{handles} in {tables}"))
    }
}
