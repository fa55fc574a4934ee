use std::io;

use serde_json::Value;

use super::completeness;
use crate::model::{OomModel, OomReport};
use crate::output::{Cell, Column, Grid, Page, Report, record};

fn row(o: &OomModel) -> Vec<Cell> {
    vec![
        Cell::Count(o.heap),
        Cell::Text(o.reason.to_string()),
        Cell::Bytes(o.alloc_size),
        Cell::Addr(o.reserved),
        Cell::Addr(o.allocated),
        Cell::Count(o.gc_index),
        Cell::Text(o.fgm.to_string()),
        Cell::Bytes(o.size),
        Cell::Count(o.available_pagefile_mb),
        Cell::Text(o.loh.to_string()),
    ]
}

impl Report for OomReport {
    completeness!();

    fn grid(&self) -> Grid<'_> {
        let columns = vec![
            Column::number("heap"),
            Column::text("reason", 20),
            Column::number("alloc_size"),
            Column::address("reserved"),
            Column::address("allocated"),
            Column::number("gc_index"),
            Column::text("fgm", 24),
            Column::number("size"),
            Column::number("available_pagefile_mb"),
            Column::text("loh", 4),
        ];
        Grid::new(columns, || self.heaps.iter().map(row))
    }

    fn records(&self) -> Box<dyn Iterator<Item = Value> + '_> {
        Box::new(self.heaps.iter().map(|h| record("oom", h)))
    }

    fn page(&self, page: &mut Page<'_>) -> io::Result<()> {
        for heap in &self.heaps {
            page.line(&format!("Heap {}: {}", heap.heap, heap.text))?;
        }
        match self.any {
            None => page.line("The out-of-memory history could not be read."),
            Some(false) => page.line("No managed out-of-memory was recorded."),
            Some(true) => Ok(()),
        }
    }
}
