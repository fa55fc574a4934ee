use std::io;

use serde_json::Value;

use super::completeness;
use super::stat::covered;
use crate::model::{FragmentationReport, FreeSpaceModel, NeighbourModel};
use crate::output::{Cell, Column, Grid, Page, Report, bytes, count, record};

fn free_row(r: &FreeSpaceModel) -> Vec<Cell> {
    vec![
        Cell::Text(r.generation.name().into()),
        Cell::some(r.heap, Cell::Count),
        Cell::some(r.segment, Cell::Addr),
        Cell::Bytes(r.allocated_bytes),
        Cell::Count(r.free_count),
        Cell::Bytes(r.free_bytes),
        Cell::Share(r.share),
        Cell::Bytes(r.unused_committed_bytes),
        Cell::Bytes(r.context_bytes),
    ]
}

fn free_grid(rows: &[FreeSpaceModel]) -> Grid<'_> {
    let mut columns = vec![Column::text("generation", 10), Column::number("heap"), Column::address("segment")];
    columns.extend(["allocated", "free_count", "free_bytes", "share", "unused_committed", "contexts"].map(Column::number));
    Grid::new(columns, move || rows.iter().map(free_row))
}

/// The address is in the JSON; beside a block it follows from the block's own.
fn neighbour(n: Option<&NeighbourModel>) -> Cell {
    Cell::some(n, |n| Cell::Text(format!("{} {}", n.address, n.type_name)))
}

impl FragmentationReport {
    fn sizes_grid(&self) -> Grid<'_> {
        let columns = Vec::from(["size_from", "count", "bytes"].map(Column::number));
        Grid::new(columns, move || self.sizes.iter().map(|s| vec![Cell::Bytes(s.size_from), Cell::Count(s.count), Cell::Bytes(s.bytes)]))
    }

    fn largest_grid(&self) -> Grid<'_> {
        let columns = vec![
            Column::address("address"),
            Column::number("size"),
            Column::text("generation", 10),
            Column::address("segment"),
            Column::address("pinned_by"),
            Column::text("before", 40),
            Column::text("after", 40),
        ];
        Grid::new(columns, move || {
            self.largest.iter().map(|b| {
                vec![
                    Cell::Addr(b.address),
                    Cell::Bytes(b.size),
                    Cell::Text(b.generation.name().into()),
                    Cell::Addr(b.segment),
                    Cell::some(b.pinned_by, Cell::Addr),
                    neighbour(b.before.as_ref()),
                    neighbour(b.after.as_ref()),
                ]
            })
        })
    }

    fn pinned_grid(&self) -> Grid<'_> {
        let mut columns = Vec::from(["count", "bytes", "free_bytes_before"].map(Column::number));
        columns.extend([Column::address("method_table"), Column::text("type", 60)]);
        Grid::new(columns, move || {
            self.pinned.iter().map(|p| {
                vec![
                    Cell::Count(p.count),
                    Cell::Bytes(p.bytes),
                    Cell::Bytes(p.free_bytes_before),
                    Cell::Addr(p.method_table),
                    Cell::Text(p.type_name.clone()),
                ]
            })
        })
    }
}

impl Report for FragmentationReport {
    completeness!();

    fn grid(&self) -> Grid<'_> {
        free_grid(self.segments.as_deref().unwrap_or(&self.generations))
    }

    fn records(&self) -> Box<dyn Iterator<Item = Value> + '_> {
        let generations = self.generations.iter().map(|r| record("generation", r));
        let segments = self.segments.iter().flatten().map(|r| record("segment", r));
        let sizes = self.sizes.iter().map(|r| record("size", r));
        let largest = self.largest.iter().map(|r| record("free-block", r));
        let pinned = self.pinned.iter().map(|r| record("pinned-type", r));
        let last = [record("totals", &self.totals), record("coverage", &self.coverage)];
        Box::new(generations.chain(segments).chain(sizes).chain(largest).chain(pinned).chain(last))
    }

    fn page(&self, page: &mut Page<'_>) -> io::Result<()> {
        page.grid(&free_grid(&self.generations), None)?;
        let segments = self.segments.as_deref().map(free_grid);
        let parts = [
            ("Segments", segments),
            ("Free blocks by size", (!self.sizes.is_empty()).then(|| self.sizes_grid())),
            ("Largest free blocks", (!self.largest.is_empty()).then(|| self.largest_grid())),
            ("Pinned objects", (!self.pinned.is_empty()).then(|| self.pinned_grid())),
        ];
        for (title, grid) in parts {
            let Some(grid) = grid else { continue };
            page.gap()?;
            page.line(title)?;
            page.grid(&grid, None)?;
        }
        page.gap()?;
        let t = &self.totals;
        let percent = (t.share * 1000.0).round() / 10.0;
        page.facts(&[
            (
                "free space",
                format!("{} blocks, {} ({} bytes), {percent:.1} %", count(t.free_count), bytes(t.free_bytes), count(t.free_bytes)),
            ),
            ("contexts", format!("{} handed to threads and not yet filled, not counted as free", bytes(t.context_bytes))),
            ("committed", format!("{} behind the end of the objects", bytes(t.unused_committed_bytes))),
            ("pinned", format!("{} objects by {} handles", count(t.pinned_objects), count(t.pinned_handles))),
            ("walked", covered(&self.coverage)),
        ])
    }
}
