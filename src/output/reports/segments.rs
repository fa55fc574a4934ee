use std::io;

use serde_json::Value;

use super::completeness;
use crate::model::{RegionModel, SegmentModel, SegmentsReport};
use crate::output::{Cell, Column, Grid, Page, Report, bytes, record};

fn row(s: &SegmentModel) -> Vec<Cell> {
    vec![
        Cell::Count(s.heap),
        Cell::Text(s.generation.name().into()),
        Cell::Addr(s.address),
        Cell::Addr(s.start),
        Cell::Addr(s.allocated),
        Cell::Addr(s.committed),
        Cell::Addr(s.reserved),
        Cell::Bytes(s.allocated_bytes),
        Cell::Bytes(s.committed_bytes),
        Cell::Text(s.flags.join(" ")),
    ]
}

fn region_row(r: &RegionModel) -> Vec<Cell> {
    vec![
        Cell::Text(r.list.name().into()),
        Cell::some(r.heap, Cell::Count),
        Cell::some(r.size_class, |c| Cell::Text(c.name().into())),
        Cell::Addr(r.range.start),
        Cell::Addr(r.range.end),
        Cell::Bytes(r.bytes),
    ]
}

/// The columns of a walk.
fn walk_row(s: &SegmentModel) -> Option<Vec<Cell>> {
    let w = s.walk.as_ref()?;
    Some(vec![
        Cell::Count(s.heap),
        Cell::Text(s.generation.name().into()),
        Cell::Addr(s.address),
        Cell::Count(w.objects),
        Cell::Bytes(w.bytes),
        Cell::Count(w.free_objects),
        Cell::Bytes(w.free_bytes),
        Cell::Bytes(w.context_bytes),
        Cell::Bytes(w.in_allocation_bytes),
        Cell::Bytes(w.skipped_bytes.saturating_add(w.absent_bytes)),
        Cell::Text(if w.complete { "exact" } else { "PARTIAL" }.into()),
    ])
}

impl SegmentsReport {
    fn walk_grid(&self) -> Grid<'_> {
        let columns = vec![
            Column::number("heap"),
            Column::text("generation", 10),
            Column::address("address"),
            Column::number("objects"),
            Column::number("bytes"),
            Column::number("free_objects"),
            Column::number("free_bytes"),
            Column::number("context_bytes"),
            Column::number("in_allocation"),
            Column::number("not_walked"),
            Column::text("end", 8),
        ];
        Grid::new(columns, || self.segments.iter().filter_map(walk_row))
    }

    fn walked(&self) -> bool {
        self.segments.iter().any(|s| s.walk.is_some())
    }

    fn regions_grid(&self) -> Grid<'_> {
        let columns = vec![
            Column::text("list", 14),
            Column::number("heap"),
            Column::text("size_class", 10),
            Column::address("start"),
            Column::address("end"),
            Column::number("bytes"),
        ];
        Grid::new(columns, || self.regions.iter().flatten().map(region_row))
    }
}

impl Report for SegmentsReport {
    completeness!();

    fn grid(&self) -> Grid<'_> {
        if self.regions.is_some() {
            return self.regions_grid();
        }
        if self.walked() {
            return self.walk_grid();
        }
        let columns = vec![
            Column::number("heap"),
            Column::text("generation", 10),
            Column::address("address"),
            Column::address("start"),
            Column::address("allocated"),
            Column::address("committed"),
            Column::address("reserved"),
            Column::number("allocated_bytes"),
            Column::number("committed_bytes"),
            Column::text("flags", 20),
        ];
        Grid::new(columns, || self.segments.iter().map(row))
    }

    fn records(&self) -> Box<dyn Iterator<Item = Value> + '_> {
        let segments = self.segments.iter().map(|s| record("segment", s));
        Box::new(segments.chain(self.regions.iter().flatten().map(|r| record("region", r))))
    }

    fn page(&self, page: &mut Page<'_>) -> io::Result<()> {
        if self.segments.is_empty() {
            page.line("No segment could be read.")?;
        } else {
            let mut shown = SegmentsReport { complete: self.complete, segments: self.segments.clone(), regions: None };
            shown.segments.iter_mut().for_each(|s| s.walk = None);
            page.grid(&shown.grid(), None)?;
            for s in &self.segments {
                for p in &s.parts {
                    page.line(&format!("  {} inside {}: {} to {}", p.generation, s.address, p.start, p.end))?;
                }
            }
            let allocated = self.segments.iter().fold(0u64, |n, s| n.saturating_add(s.allocated_bytes));
            let committed = self.segments.iter().fold(0u64, |n, s| n.saturating_add(s.committed_bytes));
            page.gap()?;
            let word = if self.segments.len() == 1 { "segment" } else { "segments" };
            page.line(&format!("{} {word}, {} allocated, {} committed", self.segments.len(), bytes(allocated), bytes(committed)))?;
        }
        if self.walked() {
            page.gap()?;
            page.grid(&self.walk_grid(), None)?;
        }
        if let Some(regions) = &self.regions {
            page.gap()?;
            page.line("Held by the GC outside of these segments:")?;
            if regions.is_empty() {
                page.line("nothing that could be read")?;
            } else {
                page.grid(&self.regions_grid(), None)?;
            }
        }
        Ok(())
    }
}
