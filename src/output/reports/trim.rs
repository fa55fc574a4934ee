use std::io;

use serde_json::Value;

use super::completeness;
use crate::model::{TrimPart, TrimReport};
use crate::output::{Cell, Column, Grid, Page, Report, bytes, count, record};

fn row(part: &TrimPart) -> Vec<Cell> {
    vec![Cell::Text(part.kind.name().into()), Cell::Bytes(part.bytes), Cell::Bytes(part.kept_bytes)]
}

impl Report for TrimReport {
    completeness!();

    fn grid(&self) -> Grid<'_> {
        let columns = vec![Column::text("kind", 10), Column::number("bytes"), Column::number("kept_bytes")];
        Grid::new(columns, || self.parts.iter().map(row))
    }

    fn records(&self) -> Box<dyn Iterator<Item = Value> + '_> {
        let parts = self.parts.iter().map(|p| record("part", p));
        Box::new(parts.chain(self.redacted.iter().map(|r| record("redacted", r))))
    }

    fn page(&self, page: &mut Page<'_>) -> io::Result<()> {
        page.grid(&self.grid(), Some(vec![Cell::Text("total".into()), Cell::Bytes(self.bytes), Cell::Bytes(self.kept_bytes)]))?;
        page.gap()?;
        let stored = if self.file_bytes == self.kept_bytes { String::new() } else { format!(", {} compressed", bytes(self.file_bytes)) };
        let mut facts = vec![
            ("written", self.output.clone()),
            ("size", format!("{} of {}{stored}, {} stretches of memory", bytes(self.kept_bytes), bytes(self.bytes), count(self.ranges))),
        ];
        if let Some(r) = &self.redacted {
            let strings = format!("{} strings ({})", count(r.strings), bytes(r.string_bytes));
            let arrays = format!("{} arrays ({})", count(r.arrays), bytes(r.array_bytes));
            facts.push(("overwritten", format!("{strings}, {arrays}, {} between objects", bytes(r.free_bytes))));
            facts.push(("still there", "names of types, fields and modules; numbers in fields; addresses; paths of modules".into()));
        }
        page.facts(&facts)
    }
}
