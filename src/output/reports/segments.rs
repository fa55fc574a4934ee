//! The answer of `segments`: segments with their parts, walks, and other GC memory.

use crate::analysis::SegmentsReport;
use crate::model::{RegionModel, SegmentModel, WalkModel};
use crate::output::Paging;
use crate::output::bytes;
use crate::output::columns::{Columns, Fill, columns};
use crate::output::report::{Report, Sections};
use crate::output::table::Table;

fn segment_columns<'r>() -> Columns<'r, SegmentModel> {
    columns![
        SegmentModel,
        count(heap).keep(8),
        word(generation, 10).keep(9),
        address(address).keep(4),
        address(start).keep(7),
        address(allocated).keep(6),
        address(stored_allocated).keep(1),
        address(committed).keep(3),
        address(reserved).keep(2),
        address(next).keep(1),
        bytes(allocated_bytes).keep(8),
        bytes(committed_bytes).bar(|s| Fill::of(s.allocated_bytes, s.committed_bytes, s.reserved_bytes)),
        text("flags", 20, |s| s.flags.join(" ")),
        address(used).extra(),
        address(background_allocated).extra(),
        text("flags_value", 6, |s| format!("{:#x}", s.flags_value)).extra()
    ]
}

/// Columns of the table for `--detail`, for which the list of segments is too narrow.
fn detail_columns<'r>() -> Columns<'r, SegmentModel> {
    columns![
        SegmentModel,
        address(start).keep(9),
        address(used).keep(8),
        address(background_allocated).keep(8),
        address(reserved).keep(6),
        bytes(captured_bytes).keep(5),
        text("flags", 6, |s| format!("{:#x}", s.flags_value)).right().keep(8)
    ]
}

/// A segment and what the walk found in it.
struct Walked<'r> {
    segment: &'r SegmentModel,
    walk: &'r WalkModel,
}

fn walk_columns<'r>() -> Columns<'r, Walked<'r>> {
    columns![
        Walked<'r>,
        count(segment.heap),
        word(segment.generation, 10),
        address(segment.address),
        count(walk.objects),
        bytes(walk.bytes),
        count(walk.free_objects),
        bytes(walk.free_bytes),
        bytes(walk.context_bytes).extra(),
        bytes("in_allocation" = walk.in_allocation_bytes),
        bytes("not_walked", |w| w.walk.skipped_bytes.saturating_add(w.walk.absent_bytes)).keep(8),
        word("end", 8, |w| if w.walk.complete { "exact" } else { "PARTIAL" }).keep(9)
    ]
}

fn region_columns<'r>() -> Columns<'r, RegionModel> {
    columns![
        RegionModel,
        word(list, 14).keep(9),
        count(heap).keep(8),
        word(size_class, 10).keep(3),
        address(address).keep(4),
        address(range.start).keep(7),
        address(range.end).keep(6),
        bytes(bytes).keep(8),
        address("allocated", |r| r.segment.as_ref().map(|s| s.allocated)).keep(2),
        address("reserved", |r| r.segment.as_ref().map(|s| s.reserved)).keep(1),
        address("used", |r| r.segment.as_ref().and_then(|s| s.used)).keep(2),
        address("next", |r| r.segment.as_ref().map(|s| s.next)).keep(1),
        text("flags", 20, |r| r.segment.as_ref().map(|s| s.flags.join(" "))).keep(3)
    ]
}

impl Report for SegmentsReport {
    fn page(&mut self, to: &mut Paging) {
        self.not_listed = to.whole_list("segments", &mut self.segments, &segment_columns());
    }

    fn describe<'r>(&'r self, to: &mut Sections<'r>) {
        let some = !self.segments.is_empty();
        let walked = self.segments.iter().any(|s| s.walk.is_some());
        // With `--at`, the answer may be a region, so the list of segments may be empty.
        if !some && self.regions.as_ref().is_none_or(Vec::is_empty) {
            to.line("No segment could be read.");
        }
        to.table(Table::records("segment", &self.segments, segment_columns()).csv(!walked && self.regions.is_none()).shown(some));
        to.lines(self.segments.iter().flat_map(|s| {
            s.parts.iter().map(move |p| format!("  {} inside segment {}: {} to {}", p.generation, s.address, p.start, p.end))
        }));
        if some {
            let allocated = self.segments.iter().fold(0u64, |n, s| n.saturating_add(s.allocated_bytes));
            let committed = self.segments.iter().fold(0u64, |n, s| n.saturating_add(s.committed_bytes));
            to.not_listed(self.not_listed, "segment");
            to.gap();
            let listed = if self.not_listed.is_some() { " listed" } else { "" };
            let word = if self.segments.len() == 1 { "segment" } else { "segments" };
            if to.view.detail {
                to.table(Table::new(&self.segments, detail_columns()));
                to.gap();
            }
            to.line(format!("{} {word}{listed}, {} allocated, {} committed", self.segments.len(), bytes(allocated), bytes(committed)));
        }
        to.gap_if(walked);
        let walks = self.segments.iter().filter_map(|segment| Some(Walked { segment, walk: segment.walk.as_ref()? }));
        to.table(Table::new(walks, walk_columns()).csv(walked && self.regions.is_none()).shown(walked));
        if let Some(regions) = &self.regions {
            to.gap();
            to.title("GC memory outside these segments:");
            if regions.is_empty() {
                to.line("none could be read");
            }
            to.table(Table::records("region", regions, region_columns()).csv(true).shown(!regions.is_empty()));
        }
    }
}
