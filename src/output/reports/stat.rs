use std::io;

use serde_json::Value;

use super::completeness;
use crate::model::{CoverageModel, GroupStat, StatBy, StatReport, TypeStat};
use crate::output::{Align, Cell, Column, Grid, Page, Report, bytes, count, record};

fn type_row(t: &TypeStat) -> Vec<Cell> {
    vec![Cell::Addr(t.method_table), Cell::Count(t.count), Cell::Bytes(t.bytes), Cell::Share(t.share), Cell::Text(t.type_name.clone())]
}

fn group_row(g: &GroupStat, by: StatBy) -> Vec<Cell> {
    let mut row = vec![Cell::Text(g.key.clone())];
    if by == StatBy::Segment {
        row.push(Cell::some(g.heap, Cell::Count));
        row.push(Cell::some(g.generation, |x| Cell::Text(x.name().into())));
    }
    row.extend([Cell::Count(g.count), Cell::Bytes(g.bytes), Cell::Share(g.share), Cell::Count(g.free_count), Cell::Bytes(g.free_bytes)]);
    row
}

impl StatReport {
    fn types_grid(&self, with_free: bool) -> Grid<'_> {
        let columns = vec![
            Column::address("method_table"),
            Column::number("count"),
            Column::number("bytes"),
            Column { name: "share", align: Align::Right, width: 7 },
            Column::text("type", 60),
        ];
        Grid::new(columns, move || self.types.iter().flatten().filter(move |t| with_free || !t.free).map(type_row))
    }

    fn groups_grid(&self) -> Grid<'_> {
        let name = match self.by {
            StatBy::Type => "type",
            StatBy::Generation => "generation",
            StatBy::Heap => "heap",
            StatBy::Segment => "segment",
            StatBy::Assembly => "assembly",
            StatBy::Namespace => "namespace",
            StatBy::Size => "size_from",
        };
        let mut columns =
            vec![Column { align: if self.by == StatBy::Size { Align::Right } else { Align::Left }, ..Column::text(name, 40) }];
        if self.by == StatBy::Segment {
            columns.extend([Column::number("heap"), Column::text("generation", 10)]);
        }
        columns.extend(["count", "bytes", "share", "free_count", "free_bytes"].map(Column::number));
        Grid::new(columns, move || self.groups.iter().flatten().map(|g| group_row(g, self.by)))
    }
}

impl Report for StatReport {
    completeness!();

    fn grid(&self) -> Grid<'_> {
        if self.types.is_some() { self.types_grid(true) } else { self.groups_grid() }
    }

    fn records(&self) -> Box<dyn Iterator<Item = Value> + '_> {
        let types = self.types.iter().flatten().map(|t| record("type", t));
        let groups = self.groups.iter().flatten().map(|g| record("group", g));
        Box::new(types.chain(groups).chain([record("totals", &self.totals), record("coverage", &self.coverage)]))
    }

    fn page(&self, page: &mut Page<'_>) -> io::Result<()> {
        let t = &self.totals;
        if t.count == 0 {
            page.line("No object matches.")?;
            return page.line(&covered(&self.coverage));
        }
        if self.types.is_some() {
            page.grid(&self.types_grid(false), None)?;
            if let Some(shown) = self.shown {
                page.line(&format!("… and {} more types (--top 0 lists all)", count(t.types.saturating_sub(shown))))?;
            }
        } else {
            page.grid(&self.groups_grid(), None)?;
        }
        page.gap()?;
        let (objects, used) = (t.count.saturating_sub(t.free_count), t.bytes.saturating_sub(t.free_bytes));
        let facts = [
            ("objects", format!("{} of {} types, {} ({} bytes)", count(objects), count(t.types), bytes(used), count(used))),
            ("free space", format!("{} stretches, {} ({} bytes)", count(t.free_count), bytes(t.free_bytes), count(t.free_bytes))),
            ("walked", covered(&self.coverage)),
        ];
        page.facts(&facts)
    }
}

/// How much of the heap a walk reached, in a sentence.
pub(super) fn covered(c: &CoverageModel) -> String {
    let mut text = format!("{} of {} allocated", bytes(c.walked_bytes), bytes(c.allocated_bytes));
    let rest = [
        (c.context_bytes, "allocation contexts"),
        (c.in_allocation_bytes, "objects in allocation"),
        (c.skipped_bytes, "skipped as damaged"),
        (c.absent_bytes, "not in the dump"),
    ];
    for (n, what) in rest.iter().filter(|(n, _)| *n > 0) {
        text.push_str(&format!(", {} {what}", bytes(*n)));
    }
    // Rounded down: 100 % is said of nothing less.
    let tenths = (c.share * 1000.0).floor() / 10.0;
    text.push_str(&format!("; coverage {tenths:.1} %"));
    text
}
