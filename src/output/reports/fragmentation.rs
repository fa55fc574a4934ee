//! The answer of `fragmentation`: free space by generation and size, the largest blocks, and pinned objects.

use super::stat::covered;
use crate::analysis::{FragmentationReport, FreeBlockModel, FreeSizeModel, FreeSpaceModel, NeighborModel, PinnedTypeModel};
use crate::output::Paging;
use crate::output::columns::{Columns, columns};
use crate::output::report::{Report, Sections};
use crate::output::table::Table;
use crate::output::{bytes, bytes_exactly, plural};

fn free_columns<'r>() -> Columns<'r, FreeSpaceModel> {
    columns![
        FreeSpaceModel,
        word(generation, 10),
        count(heap),
        address(segment),
        bytes("allocated" = allocated_bytes),
        count(free_count),
        bytes(free_bytes),
        share(share),
        bytes("unused_committed" = unused_committed_bytes).extra(),
        bytes("contexts" = context_bytes).extra()
    ]
}

fn size_columns<'r>() -> Columns<'r, FreeSizeModel> {
    columns![FreeSizeModel, bytes(size_from), count(count), bytes(bytes)]
}

/// Formats address and type of a neighboring object.
fn neighbor(n: Option<&NeighborModel>) -> Option<String> {
    n.map(|n| format!("{} {}", n.address, n.type_name))
}

fn block_columns<'r>() -> Columns<'r, FreeBlockModel> {
    columns![
        FreeBlockModel,
        address(address).keep(8),
        bytes(size).keep(9),
        word(generation, 10).keep(7),
        address(segment).keep(3),
        address(pinned_by).keep(6),
        text("before", 40, |b| neighbor(b.before.as_ref())).name(),
        text("after", 40, |b| neighbor(b.after.as_ref())).name()
    ]
}

fn pinned_columns<'r>() -> Columns<'r, PinnedTypeModel> {
    columns![PinnedTypeModel, count(count), bytes(bytes), bytes(free_bytes_before), address(method_table).extra(), names(type_name, 60)]
}

impl Report for FragmentationReport {
    fn page(&mut self, to: &mut Paging) {
        to.list("largest", &mut self.largest, 0, &block_columns());
    }

    fn describe<'r>(&'r self, to: &mut Sections<'r>) {
        let by_segment = self.segments.is_some();
        let some = !self.generations.is_empty();
        to.table(Table::records("generation", &self.generations, free_columns()).csv(!by_segment).shown(some));
        to.titled("Segments", by_segment, Table::records("segment", self.segments.iter().flatten(), free_columns()).csv(by_segment));
        to.titled("Free blocks by size", !self.sizes.is_empty(), Table::records("size", &self.sizes, size_columns()));
        to.titled("Largest free blocks", !self.largest.is_empty(), Table::records("free-block", &self.largest, block_columns()));
        to.titled("Pinned objects", !self.pinned.is_empty(), Table::records("pinned-type", &self.pinned, pinned_columns()));
        to.gap_if(some || by_segment);
        let t = &self.totals;
        let or_unknown = |text: Option<String>| text.unwrap_or_else(|| "unknown".into());
        let free = t.free_count.zip(t.free_bytes).zip(t.share).map(|((blocks, free), share)| {
            format!("{}, {}, {:.1} %", plural(blocks, "block"), bytes_exactly(free), (share * 1000.0).round() / 10.0)
        });
        let pinned = [(t.pinned_objects, "object"), (t.pinned_handles, "handle")];
        let pinned = pinned.map(|(n, what)| n.map_or_else(|| format!("{what}s unknown"), |n| plural(n, what)));
        to.facts([
            ("free space", or_unknown(free)),
            ("allocation contexts", or_unknown(t.context_bytes.map(|n| format!("{} reserved by threads, not counted as free", bytes(n))))),
            ("committed but unused", or_unknown(t.unused_committed_bytes.map(bytes))),
            ("pinned", pinned.join(", ")),
            ("walked", covered(&self.coverage)),
        ]);
        to.record("totals", &self.totals);
        to.record("coverage", &self.coverage);
    }
}
