use std::io;

use serde_json::Value;

use super::completeness;
use crate::model::{FinalizerHeap, FinalizerObject, FinalizerType, FinalizersReport, Generation};
use crate::output::{Cell, Column, Grid, Page, Report, count, record};

const GENERATIONS: [(Generation, &str); 5] = [
    (Generation::Gen0, "gen0"),
    (Generation::Gen1, "gen1"),
    (Generation::Gen2, "gen2"),
    (Generation::Loh, "loh"),
    (Generation::Poh, "poh"),
];

fn heap_row(h: &FinalizerHeap) -> Vec<Cell> {
    let of = |g: Generation| h.generations.iter().find(|n| n.generation == g).map_or(0, |n| n.count);
    let mut row = vec![Cell::Count(h.heap), Cell::Count(h.registered)];
    row.extend(GENERATIONS.map(|(g, _)| Cell::Count(of(g))));
    row.extend([Cell::Count(h.ready), Cell::Count(h.critical)]);
    row
}

fn type_row(t: &FinalizerType) -> Vec<Cell> {
    vec![
        Cell::some(t.method_table, Cell::Addr),
        Cell::Count(t.registered),
        Cell::Count(t.ready),
        Cell::Count(t.critical),
        Cell::some(t.type_name.clone(), Cell::Text),
    ]
}

fn object_row(o: &FinalizerObject) -> Vec<Cell> {
    vec![
        Cell::Addr(o.object),
        Cell::Text(o.state.name().into()),
        Cell::some(o.generation, |g| Cell::Text(g.name().into())),
        Cell::Count(o.heap),
        Cell::some(o.type_name.clone(), Cell::Text),
    ]
}

impl FinalizersReport {
    fn heaps_grid(&self) -> Grid<'_> {
        let mut columns = vec![Column::number("heap"), Column::number("registered")];
        columns.extend(GENERATIONS.map(|(_, name)| Column::number(name)));
        columns.extend(["ready", "critical"].map(Column::number));
        Grid::new(columns, || self.heaps.iter().map(heap_row))
    }

    fn types_grid(&self) -> Grid<'_> {
        let mut columns = vec![Column::address("method_table")];
        columns.extend(["registered", "ready", "critical"].map(Column::number));
        columns.push(Column::text("type", 60));
        Grid::new(columns, || self.types.iter().map(type_row))
    }

    fn objects_grid(&self) -> Grid<'_> {
        let columns = vec![
            Column::address("object"),
            Column::text("state", 10),
            Column::text("generation", 10),
            Column::number("heap"),
            Column::text("type", 60),
        ];
        Grid::new(columns, || self.objects.iter().flatten().map(object_row))
    }
}

impl Report for FinalizersReport {
    completeness!();

    fn grid(&self) -> Grid<'_> {
        if self.objects.is_some() { self.objects_grid() } else { self.types_grid() }
    }

    fn records(&self) -> Box<dyn Iterator<Item = Value> + '_> {
        let objects = self.objects.iter().flatten().map(|o| record("object", o));
        let types = self.types.iter().map(|t| record("type", t));
        Box::new(objects.chain(types).chain(self.heaps.iter().map(|h| record("heap", h))))
    }

    fn page(&self, page: &mut Page<'_>) -> io::Result<()> {
        if self.objects.as_ref().is_some_and(|o| !o.is_empty()) {
            page.grid(&self.objects_grid(), None)?;
            page.gap()?;
        }
        if !self.types.is_empty() {
            page.grid(&self.types_grid(), None)?;
            if self.shown.is_some() {
                page.line("… and more types (--top 0 lists all)")?;
            }
            page.gap()?;
        }
        page.grid(&self.heaps_grid(), None)?;
        page.gap()?;
        let due = self.ready.saturating_add(self.critical);
        let thread = self.thread.as_ref().map_or_else(
            || "unknown".to_string(),
            |t| {
                let id = |n: Option<u64>| n.map_or_else(|| "?".to_string(), |n| n.to_string());
                format!("managed id {}, os id {}", id(t.managed_id.map(u64::from)), id(t.os_id))
            },
        );
        page.facts(&[
            ("registered", count(self.registered)),
            ("due", format!("{} of which {} critical", count(due), count(self.critical))),
            ("thread", thread),
        ])
    }
}
