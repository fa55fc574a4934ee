use std::io;

use serde_json::Value;

use super::completeness;
use super::stat::covered;
use crate::model::{StringModel, StringsReport};
use crate::output::{Cell, Column, Grid, Page, Report, bytes, count, record};

fn row(s: &StringModel) -> Vec<Cell> {
    vec![Cell::Count(s.count), Cell::Count(s.length), Cell::Bytes(s.bytes), Cell::Bytes(s.waste), Cell::Addr(s.address)]
}

fn columns() -> Vec<Column> {
    let mut columns = Vec::from(["count", "length", "bytes", "waste"].map(Column::number));
    columns.push(Column::address("address"));
    columns
}

impl StringsReport {
    /// For people: three dots say that a value goes on.
    fn page_grid(&self) -> Grid<'_> {
        let mut columns = columns();
        columns.push(Column::text("value", 60));
        Grid::new(columns, move || {
            self.strings.iter().map(|s| {
                let mut row = row(s);
                row.push(Cell::Text(if s.truncated { format!("{}…", s.value) } else { s.value.clone() }));
                row
            })
        })
    }
}

impl Report for StringsReport {
    completeness!();

    fn grid(&self) -> Grid<'_> {
        let mut columns = columns();
        columns.extend([Column::text("truncated", 5), Column::text("value", 60)]);
        Grid::new(columns, move || {
            self.strings.iter().map(|s| {
                let mut row = row(s);
                row.extend([Cell::Text(s.truncated.to_string()), Cell::Text(s.value.clone())]);
                row
            })
        })
    }

    fn records(&self) -> Box<dyn Iterator<Item = Value> + '_> {
        let strings = self.strings.iter().map(|s| record("string", s));
        Box::new(strings.chain([record("totals", &self.totals), record("coverage", &self.coverage)]))
    }

    fn page(&self, page: &mut Page<'_>) -> io::Result<()> {
        let t = &self.totals;
        if t.strings == 0 {
            page.line("No string matches.")?;
            return page.line(&covered(&self.coverage));
        }
        if self.strings.is_empty() {
            page.line("No content has as many strings.")?;
        } else {
            page.grid(&self.page_grid(), None)?;
        }
        if let Some(shown) = self.shown {
            page.line(&format!("… and {} more rows (--top 0 lists all)", count(self.rows.saturating_sub(shown))))?;
        }
        page.gap()?;
        let mut facts = vec![
            ("strings", format!("{}, {} ({} bytes)", count(t.strings), bytes(t.bytes), count(t.bytes))),
            ("different", format!("{} contents, {} of them more than once", count(t.distinct), count(t.duplicate_groups))),
            ("duplicates", format!("{} ({} bytes) could be saved", bytes(t.wasted_bytes), count(t.wasted_bytes))),
        ];
        if t.unreadable > 0 {
            facts.push(("unreadable", format!("{} strings are not wholly in the dump", count(t.unreadable))));
        }
        facts.push(("walked", covered(&self.coverage)));
        page.facts(&facts)
    }
}
