use std::io;

use serde_json::{Value, json};

use super::completeness;
use super::retained::root_coverage;
use crate::model::{
    CollectGeneration, CollectReport, GarbageObject, GarbageType, ObjectSum, ObjectsByType, TypeBytes, UnreachableReport, WhatifReport,
    WhatifWeak,
};
use crate::output::{Cell, Column, Grid, Page, Report, bytes, count, plural, record};

fn objects(n: u64, b: u64) -> String {
    let (human, exact) = (bytes(b), format!("{} bytes", count(b)));
    if human == exact { format!("{}, {exact}", plural(n, "object")) } else { format!("{}, {human} ({exact})", plural(n, "object")) }
}

fn sum(s: &ObjectSum) -> String {
    objects(s.count, s.bytes)
}

/// Says so where `--top` cut the list.
fn cut(page: &mut Page<'_>, by: &ObjectsByType) -> io::Result<()> {
    let listed = by.types.iter().fold(0u64, |n, t| n.saturating_add(t.count));
    if listed < by.count { page.line("… and more types (--top 0 lists all)") } else { Ok(()) }
}

fn type_cells(t: &TypeBytes) -> Vec<Cell> {
    vec![Cell::Count(t.count), Cell::Bytes(t.bytes), Cell::Addr(t.method_table), Cell::Text(t.type_name.clone())]
}

fn type_columns() -> Vec<Column> {
    vec![Column::number("count"), Column::number("bytes"), Column::address("method_table"), Column::text("type", 60)]
}

fn types(by: &ObjectsByType) -> Grid<'_> {
    Grid::new(type_columns(), || by.types.iter().map(type_cells))
}

impl WhatifReport {
    fn weak_grid(&self) -> Grid<'_> {
        let columns = vec![
            Column::address("address"),
            Column::text("kind", 21),
            Column::address("object"),
            Column::text("now", 9),
            Column::text("then", 9),
            Column::text("type", 50),
        ];
        let row = |w: &WhatifWeak| {
            vec![
                Cell::Addr(w.address),
                Cell::Text(w.kind.name().into()),
                Cell::Addr(w.object),
                Cell::Text(if w.reached_now { "reached" } else { "lost" }.into()),
                Cell::Text(if w.survives { "survives" } else { "cleared" }.into()),
                Cell::some(w.type_name.clone(), Cell::Text),
            ]
        };
        Grid::new(columns, move || self.weak_handles.iter().map(row))
    }

    fn components_grid(&self) -> Grid<'_> {
        let columns = vec![
            Column::address("component"),
            Column::text("then", 9),
            Column::number("count"),
            Column::number("bytes"),
            Column::number("bridged"),
            Column::text("type", 50),
        ];
        let row = |c: &crate::model::WhatifComponent| {
            vec![
                Cell::Addr(c.address),
                Cell::Text(if c.survives { "survives" } else { "freed" }.into()),
                Cell::Count(c.count),
                Cell::Bytes(c.bytes),
                Cell::Count(c.bridged),
                Cell::Text(c.type_name.clone()),
            ]
        };
        Grid::new(columns, move || self.components.iter().map(row))
    }
}

impl Report for WhatifReport {
    completeness!();

    fn grid(&self) -> Grid<'_> {
        let mut columns = vec![Column::text("change", 9)];
        columns.extend(type_columns());
        let rows = |change: &'static str, by: &'_ ObjectsByType| -> Vec<Vec<Cell>> {
            by.types.iter().map(|t| [vec![Cell::Text(change.into())], type_cells(t)].concat()).collect()
        };
        Grid::new(columns, move || [rows("survives", &self.survivors), rows("freed", &self.freed)].concat().into_iter())
    }

    fn records(&self) -> Box<dyn Iterator<Item = Value> + '_> {
        let survivors = self.survivors.types.iter().map(|t| record("survivor", t));
        let freed = self.freed.types.iter().map(|t| record("freed", t));
        let components = self.components.iter().map(|c| record("component", c));
        let weak = self.weak_handles.iter().map(|w| record("weak-handle", w));
        let totals = json!({
            "survivors": { "count": self.survivors.count, "bytes": self.survivors.bytes },
            "freed": { "count": self.freed.count, "bytes": self.freed.bytes },
            "resurrected": self.resurrected, "weak_total": self.weak_total, "weak_cleared": self.weak_cleared,
        });
        let coverage = self.coverage.iter().map(|c| record("coverage", c));
        Box::new(survivors.chain(freed).chain(components).chain(weak).chain([record("totals", &totals)]).chain(coverage))
    }

    fn page(&self, page: &mut Page<'_>) -> io::Result<()> {
        for (title, by) in [("These would survive:", &self.survivors), ("These would be freed:", &self.freed)] {
            if by.count > 0 {
                page.line(title)?;
                page.grid(&types(by), None)?;
                cut(page, by)?;
                page.gap()?;
            }
        }
        if !self.components.is_empty() {
            page.grid(&self.components_grid(), None)?;
            page.gap()?;
        }
        if !self.weak_handles.is_empty() {
            page.grid(&self.weak_grid(), None)?;
            page.gap()?;
        }
        let facts = [
            ("would survive", objects(self.survivors.count, self.survivors.bytes)),
            ("would be freed", objects(self.freed.count, self.freed.bytes)),
            ("finalizers keep", format!("{} of those for one collection", sum(&self.resurrected))),
            ("weak handles", format!("{} of {} would be cleared", count(self.weak_cleared), count(self.weak_total))),
        ];
        page.facts(&facts)?;
        page.gap()?;
        root_coverage(page, &self.coverage)
    }
}

impl UnreachableReport {
    fn types_grid(&self) -> Grid<'_> {
        let mut columns = type_columns();
        columns.push(Column::text("class", 14));
        let row = |t: &GarbageType| {
            vec![
                Cell::Count(t.count),
                Cell::Bytes(t.bytes),
                Cell::Addr(t.method_table),
                Cell::Text(t.type_name.clone()),
                Cell::Text(t.class.name().into()),
            ]
        };
        Grid::new(columns, move || self.types.iter().flatten().map(row))
    }

    fn objects_grid(&self) -> Grid<'_> {
        let columns = vec![
            Column::address("address"),
            Column::address("method_table"),
            Column::number("bytes"),
            Column::text("generation", 10),
            Column::text("class", 14),
            Column::text("type", 50),
        ];
        let row = |o: &GarbageObject| {
            vec![
                Cell::Addr(o.address),
                Cell::Addr(o.method_table),
                Cell::Bytes(o.bytes),
                Cell::Text(o.generation.name().into()),
                Cell::Text(o.class.name().into()),
                Cell::Text(o.type_name.clone()),
            ]
        };
        Grid::new(columns, move || self.objects.iter().flatten().map(row))
    }
}

impl Report for UnreachableReport {
    completeness!();

    fn grid(&self) -> Grid<'_> {
        if self.objects.is_some() { self.objects_grid() } else { self.types_grid() }
    }

    fn records(&self) -> Box<dyn Iterator<Item = Value> + '_> {
        let types = self.types.iter().flatten().map(|t| record("type", t));
        let objects = self.objects.iter().flatten().map(|o| record("object", o));
        let classes = self.classes.iter().map(|c| record("class", c));
        let totals = json!({ "reached": self.reached, "unreachable": self.unreachable });
        let coverage = self.coverage.iter().map(|c| record("coverage", c));
        Box::new(types.chain(objects).chain(classes).chain([record("totals", &totals)]).chain(coverage))
    }

    fn page(&self, page: &mut Page<'_>) -> io::Result<()> {
        if self.unreachable.count > 0 {
            page.grid(&self.grid(), None)?;
            if self.shown.is_some() {
                page.line("… and more (--top 0 lists all)")?;
            }
            page.gap()?;
        }
        let classes: Vec<(&str, String)> = self.classes.iter().map(|c| (c.class.name(), objects(c.count, c.bytes))).collect();
        page.facts(&classes)?;
        page.facts(&[("together       ", sum(&self.unreachable)), ("reached        ", sum(&self.reached))])?;
        page.gap()?;
        root_coverage(page, &self.coverage)
    }
}

impl CollectReport {
    fn generations_grid(&self) -> Grid<'_> {
        let names = ["objects", "bytes", "survivors", "survivor_bytes", "resurrected", "resurrected_bytes", "freed", "freed_bytes"]
            .map(Column::number);
        let row = |g: &CollectGeneration| {
            let sums = [g.objects, g.survivors, g.resurrected, g.freed];
            let cells = sums.into_iter().flat_map(|s| [Cell::Count(s.count), Cell::Bytes(s.bytes)]);
            [Cell::Text(g.generation.name().into())].into_iter().chain(cells).collect()
        };
        let columns = [Column::text("generation", 10)].into_iter().chain(names).collect();
        Grid::new(columns, move || self.generations.iter().map(row))
    }
}

impl Report for CollectReport {
    completeness!();

    fn grid(&self) -> Grid<'_> {
        types(&self.freed)
    }

    fn records(&self) -> Box<dyn Iterator<Item = Value> + '_> {
        let freed = self.freed.types.iter().map(|t| record("freed", t));
        let generations = self.generations.iter().map(|g| record("generation", g));
        let totals = json!({
            "freed": { "count": self.freed.count, "bytes": self.freed.bytes }, "survivors": self.survivors,
            "promoted": self.promoted, "resurrected": self.resurrected, "untouched": self.untouched,
        });
        let coverage = self.coverage.iter().map(|c| record("coverage", c));
        Box::new(freed.chain(generations).chain([record("totals", &totals)]).chain(coverage))
    }

    fn page(&self, page: &mut Page<'_>) -> io::Result<()> {
        if self.freed.count > 0 {
            page.grid(&types(&self.freed), None)?;
            cut(page, &self.freed)?;
            page.gap()?;
        }
        if !self.generations.is_empty() {
            page.grid(&self.generations_grid(), None)?;
            page.gap()?;
        }
        let facts = [
            ("freed", objects(self.freed.count, self.freed.bytes)),
            ("finalizers keep", sum(&self.resurrected)),
            ("survivors", sum(&self.survivors)),
            ("promoted", sum(&self.promoted)),
            ("not looked at", sum(&self.untouched)),
        ];
        page.facts(&facts)?;
        page.gap()?;
        root_coverage(page, &self.coverage)
    }
}
