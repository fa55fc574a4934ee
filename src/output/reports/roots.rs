use std::io;

use serde_json::Value;

use super::completeness;
use crate::model::{RootModel, RootType, RootsReport};
use crate::output::{Cell, Column, Grid, Page, Report, count, record};

fn row(r: &RootModel) -> Vec<Cell> {
    vec![
        Cell::Text(r.kind.name().into()),
        Cell::some(r.address, Cell::Addr),
        Cell::Addr(r.object),
        Cell::some(r.type_name.clone(), Cell::Text),
        Cell::Text(r.flags.iter().map(|f| f.name()).collect::<Vec<_>>().join(" ")),
        Cell::Text(r.label.clone()),
        Cell::some(r.thread.map(u64::from), Cell::Count),
        Cell::some(r.method_table, Cell::Addr),
    ]
}

fn type_row(t: &RootType) -> Vec<Cell> {
    vec![Cell::Count(t.count), Cell::Count(t.objects), Cell::some(t.method_table, Cell::Addr), Cell::some(t.type_name.clone(), Cell::Text)]
}

impl RootsReport {
    /// For people the last two columns are left out: both can be told from others.
    fn roots_grid(&self, columns: usize) -> Grid<'_> {
        let all = [
            Column::text("kind", 19),
            Column::address("address"),
            Column::address("object"),
            Column::text("type", 40),
            Column::text("flags", 21),
            Column::text("label", 40),
            Column::number("thread"),
            Column::address("method_table"),
        ];
        let cut = move |r: &RootModel| row(r).into_iter().take(columns).collect();
        Grid::new(all.into_iter().take(columns).collect(), move || self.roots.iter().flatten().map(cut))
    }

    fn types_grid(&self) -> Grid<'_> {
        let columns = vec![Column::number("count"), Column::number("objects"), Column::address("method_table"), Column::text("type", 60)];
        Grid::new(columns, || self.types.iter().flatten().map(type_row))
    }

    /// Counts beside coverage: what was not found may be absent from the dump only.
    fn kinds_grid(&self) -> Grid<'_> {
        let columns = vec![
            Column::text("kind", 19),
            Column::number("count"),
            Column::number("objects"),
            Column::text("coverage", 12),
            Column::text("because", 60),
        ];
        let row = |c: &crate::model::RootCoverageModel| {
            let found = self.counts.iter().find(|n| n.kind == c.kind);
            vec![
                Cell::Text(c.kind.name().into()),
                Cell::Count(found.map_or(0, |n| n.count)),
                Cell::Count(found.map_or(0, |n| n.objects)),
                Cell::Text(c.coverage.name().into()),
                Cell::some(c.reason.clone(), Cell::Text),
            ]
        };
        Grid::new(columns, move || self.coverage.iter().map(row))
    }
}

impl Report for RootsReport {
    completeness!();

    fn grid(&self) -> Grid<'_> {
        if self.types.is_some() { self.types_grid() } else { self.roots_grid(usize::MAX) }
    }

    fn records(&self) -> Box<dyn Iterator<Item = Value> + '_> {
        let roots = self.roots.iter().flatten().map(|r| record("root", r));
        let types = self.types.iter().flatten().map(|t| record("type", t));
        let dependents = self.dependents.iter().flatten().map(|d| record("dependent", d));
        let counts = self.counts.iter().map(|c| record("count", c));
        let coverage = self.coverage.iter().map(|c| record("coverage", c));
        Box::new(roots.chain(types).chain(dependents).chain(counts).chain(coverage))
    }

    fn page(&self, page: &mut Page<'_>) -> io::Result<()> {
        let rows = self.roots.as_ref().map(Vec::len).or(self.types.as_ref().map(Vec::len)).unwrap_or(0);
        if rows > 0 {
            page.grid(&if self.types.is_some() { self.types_grid() } else { self.roots_grid(6) }, None)?;
            if self.shown.is_some() {
                page.line("… and more (--top 0 lists all)")?;
            }
            page.gap()?;
        }
        page.grid(&self.kinds_grid(), None)?;
        page.gap()?;
        let dependents = match self.dependents.as_ref().map_or(0, Vec::len) {
            0 => String::new(),
            1 => ", and 1 dependent handle".into(),
            n => format!(", and {} dependent handles", count(u64::try_from(n).unwrap_or(u64::MAX))),
        };
        let roots = if self.total == 1 { "1 root".into() } else { format!("{} roots", count(self.total)) };
        page.line(&format!("{roots}{dependents}"))
    }
}
