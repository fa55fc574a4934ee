use std::io;

use serde_json::Value;

use super::completeness;
use crate::model::{NearReport, NearRow, WhereReport};
use crate::output::{Cell, Column, Grid, Page, Report, record};

impl Report for WhereReport {
    completeness!();

    fn grid(&self) -> Grid<'_> {
        let columns = vec![
            Column::address("address"),
            Column::text("kind", 18),
            Column::address("object"),
            Column::number("offset"),
            Column::address("segment"),
            Column::number("heap"),
            Column::text("generation", 10),
            Column::text("text", 60),
        ];
        Grid::new(columns, || {
            let segment = self.segment.as_ref();
            [vec![
                Cell::Addr(self.address),
                Cell::Text(self.kind.name().into()),
                Cell::some(self.object.as_ref(), |o| Cell::Addr(o.address)),
                Cell::some(self.offset, Cell::Count),
                Cell::some(segment, |s| Cell::Addr(s.address)),
                Cell::some(segment, |s| Cell::Count(s.heap)),
                Cell::some(segment, |s| Cell::Text(s.generation.name().into())),
                Cell::Text(self.text.clone()),
            ]]
            .into_iter()
        })
    }

    fn records(&self) -> Box<dyn Iterator<Item = Value> + '_> {
        Box::new(std::iter::once(record("place", self)))
    }

    fn page(&self, page: &mut Page<'_>) -> io::Result<()> {
        page.line(&format!("{}  {}", self.address, self.text))?;
        if let Some(range) = self.range {
            page.line(&format!("range {} to {}", range.start, range.end))?;
        }
        if !self.captured {
            page.line("The byte at this address is not in the dump.")?;
        }
        Ok(())
    }
}

fn row(r: &NearRow) -> Vec<Cell> {
    let text = r.type_name.clone().unwrap_or_else(|| format!("({})", r.kind));
    vec![
        Cell::Text(if r.here { ">".into() } else { String::new() }),
        Cell::Addr(r.address),
        Cell::Bytes(r.size),
        Cell::some(r.method_table, Cell::Addr),
        Cell::Text(text),
    ]
}

impl Report for NearReport {
    completeness!();

    fn grid(&self) -> Grid<'_> {
        let columns = vec![
            Column::text("here", 4),
            Column::address("address"),
            Column::number("size"),
            Column::address("method_table"),
            Column::text("type", 60),
        ];
        Grid::new(columns, || self.rows.iter().map(row))
    }

    fn records(&self) -> Box<dyn Iterator<Item = Value> + '_> {
        let rows = self.rows.iter().map(|r| record("near", r));
        Box::new(rows.chain([record("segment", &self.segment)]))
    }

    fn page(&self, page: &mut Page<'_>) -> io::Result<()> {
        let s = &self.segment;
        page.line(&format!("{} of heap {}, segment {}, objects from {} to {}", s.generation, s.heap, s.address, s.start, s.allocated))?;
        page.gap()?;
        page.grid(&self.grid(), None)
    }
}
