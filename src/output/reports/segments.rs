use crate::model::{RegionModel, SegmentModel, SegmentsReport, WalkModel};
use crate::output::Paging;
use crate::output::bytes;
use crate::output::report::{Report, Sections};
use crate::output::table::{Columns, Fill, Table, columns};

fn segment_columns<'r>() -> Columns<'r, SegmentModel> {
    columns::<SegmentModel>()
        .count("heap", |s| s.heap)
        .keep(8)
        .text("generation", 10, |s| s.generation.name())
        .whole()
        .keep(9)
        .address("address", |s| s.address)
        .keep(4)
        .address("start", |s| s.start)
        .keep(7)
        .address("allocated", |s| s.allocated)
        .keep(6)
        .address("stored_allocated", |s| s.stored_allocated)
        .keep(1)
        .address("committed", |s| s.committed)
        .keep(3)
        .address("reserved", |s| s.reserved)
        .keep(2)
        .address("next", |s| s.next)
        .keep(1)
        .bytes("allocated_bytes", |s| s.allocated_bytes)
        .keep(8)
        .bytes("committed_bytes", |s| s.committed_bytes)
        .bar(|s| Fill::of(s.allocated_bytes, s.committed_bytes, s.reserved_bytes))
        .made("flags", 20, |s| s.flags.join(" "))
        .address("used", |s| s.used)
        .extra()
        .address("background_allocated", |s| s.background_allocated)
        .extra()
        .made("flags_value", 6, |s| format!("{:#x}", s.flags_value))
        .extra()
}

/// Columns of the table for `--detail`, for which the list of segments is too narrow.
fn detail_columns<'r>() -> Columns<'r, SegmentModel> {
    columns::<SegmentModel>()
        .address("start", |s| s.start)
        .keep(9)
        .address("used", |s| s.used)
        .keep(8)
        .address("background_allocated", |s| s.background_allocated)
        .keep(8)
        .address("reserved", |s| s.reserved)
        .keep(6)
        .bytes("captured_bytes", |s| s.captured_bytes)
        .keep(5)
        .made("flags", 6, |s| format!("{:#x}", s.flags_value))
        .right()
        .keep(8)
}

type Walked<'r> = (&'r SegmentModel, &'r WalkModel);

fn walk_columns<'r>() -> Columns<'r, Walked<'r>> {
    columns::<Walked<'r>>()
        .count("heap", |(s, _)| s.heap)
        .text("generation", 10, |(s, _)| s.generation.name())
        .whole()
        .address("address", |(s, _)| s.address)
        .count("objects", |(_, w)| w.objects)
        .bytes("bytes", |(_, w)| w.bytes)
        .count("free_objects", |(_, w)| w.free_objects)
        .bytes("free_bytes", |(_, w)| w.free_bytes)
        .bytes("context_bytes", |(_, w)| w.context_bytes)
        .extra()
        .bytes("in_allocation", |(_, w)| w.in_allocation_bytes)
        .bytes("not_walked", |(_, w)| w.skipped_bytes.saturating_add(w.absent_bytes))
        .keep(8)
        .text("end", 8, |(_, w)| if w.complete { "exact" } else { "PARTIAL" })
        .whole()
        .keep(9)
}

fn region_columns<'r>() -> Columns<'r, RegionModel> {
    columns::<RegionModel>()
        .text("list", 14, |r| r.list.name())
        .whole()
        .keep(9)
        .count("heap", |r| r.heap)
        .keep(8)
        .text_or_none("size_class", 10, |r| r.size_class.map(|c| c.name()))
        .whole()
        .keep(3)
        .address("address", |r| r.address)
        .keep(4)
        .address("start", |r| r.range.start)
        .keep(7)
        .address("end", |r| r.range.end)
        .keep(6)
        .bytes("bytes", |r| r.bytes)
        .keep(8)
        .address("allocated", |r| r.segment.as_ref().map(|s| s.allocated))
        .keep(2)
        .address("reserved", |r| r.segment.as_ref().map(|s| s.reserved))
        .keep(1)
        .address("used", |r| r.segment.as_ref().and_then(|s| s.used))
        .keep(2)
        .address("next", |r| r.segment.as_ref().map(|s| s.next))
        .keep(1)
        .made("flags", 20, |r| r.segment.as_ref().map(|s| s.flags.join(" ")))
        .keep(3)
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
            to.not_listed(self.not_listed, "segments");
            to.gap();
            let listed = if self.not_listed.is_some() { " listed" } else { "" };
            let word = if self.segments.len() == 1 { "segment" } else { "segments" };
            if self.detail {
                to.table(Table::new(&self.segments, detail_columns()));
                to.gap();
            }
            to.line(format!("{} {word}{listed}, {} allocated, {} committed", self.segments.len(), bytes(allocated), bytes(committed)));
        }
        to.gap_if(walked);
        let walks = self.segments.iter().filter_map(|s| Some((s, s.walk.as_ref()?)));
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
