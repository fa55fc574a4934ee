//! The answer of `memory`: memory by kind, the heaps of the C library, and the ranges.

use serde::Serialize;

use crate::analysis::{MallocHeapModel, MemoryKindModel, MemoryListing, MemoryRangeModel, MemoryReport};
use crate::model::MallocBlockSize;
use crate::output::Paging;
use crate::output::columns::{Columns, Readers, columns};
use crate::output::report::{Report, Sections};
use crate::output::table::Table;
use crate::output::{Cell, bytes};

/// The source of the data.
#[derive(Clone, Serialize)]
struct Source<'r> {
    listing: MemoryListing,
    runtime_error: Option<&'r str>,
}

fn kind_columns<'r>() -> Columns<'r, MemoryKindModel> {
    columns![
        MemoryKindModel,
        word(kind, 14).keep(9),
        // In tables, generation and loader heap share a column, because no row has both.
        text("generation", 10, |k| k.generation.map(|g| g.name()).or(k.loader_heap.map(|h| h.name())))
            .whole()
            .keep(8)
            .only(Readers::People),
        word(generation, 10).only(Readers::Machines),
        word(loader_heap, 17).only(Readers::Machines),
        count(ranges).keep(4),
        bytes(bytes).keep(6),
        bytes("accessible" = accessible_bytes).keep(8),
        share(share).keep(7),
        bytes("captured" = captured_bytes),
        bytes("zero" = zero_bytes).keep(5),
        bytes("unlisted" = unlisted_bytes).extra()
    ]
}

fn malloc_columns<'r>() -> Columns<'r, MallocHeapModel> {
    columns![
        MallocHeapModel,
        word(kind, 6).keep(9),
        address(start).keep(6),
        count(ranges).keep(5),
        bytes(bytes).keep(8),
        bytes("used", |h| h.parts.map(|p| p.used.bytes)).keep(8),
        count("blocks", |h| h.parts.map(|p| p.used.count)).keep(7),
        bytes("free", |h| h.parts.map(|p| p.free.bytes)).keep(8),
        bytes("left", |h| h.parts.map(|p| p.left_bytes)).keep(7)
    ]
}

fn size_columns<'r>() -> Columns<'r, MallocBlockSize> {
    columns![MallocBlockSize, bytes(size), count(count), bytes(bytes)]
}

/// Columns of ranges. `whole` is true for ranges whose use is known.
fn range_columns<'r>(whole: bool) -> Columns<'r, MemoryRangeModel> {
    columns![
        MemoryRangeModel,
        address(start).keep(9),
        address(end).keep(6),
        bytes(bytes).keep(8),
        text(permissions, 11).whole().keep(7),
        word(kind, 14).keep(9),
        text("generation", 10, |r| r.generation.map(|g| g.name()).or(r.loader_heap.map(|h| h.name())))
            .whole()
            .keep(4)
            .only(Readers::People)
            .when(whole),
        word(generation, 10).only(Readers::Machines).when(whole),
        word(loader_heap, 17).only(Readers::Machines).when(whole),
        count(heap).keep(3).when(whole),
        bytes("captured" = captured_bytes),
        id(os_id).keep(4).when(whole),
        text(name, 40).path().keep(6).when(whole)
    ]
}

/// Describes how much of the address space the dump lists.
fn listing(listing: MemoryListing) -> &'static str {
    match listing {
        MemoryListing::All => "every mapping of the process",
        MemoryListing::Accessible => "all memory that the process could access; reserved address space is not listed",
        MemoryListing::Captured => "only captured memory, images and mapped files: the process may have had more",
    }
}

impl Report for MemoryReport {
    fn page(&mut self, to: &mut Paging) {
        to.tells_cuts = true;
        to.list("unexplained", &mut self.unexplained, 0, &range_columns(false));
        if let Some(ranges) = &mut self.ranges {
            to.all_of("ranges", ranges, &range_columns(true));
        }
    }

    fn describe<'r>(&'r self, to: &mut Sections<'r>) {
        let t = &self.totals;
        let blank = || Cell::Text("".into());
        let totals = vec![
            Cell::Text("total".into()),
            blank(),
            Cell::Count(t.ranges),
            Cell::Bytes(t.bytes),
            Cell::Bytes(t.accessible_bytes),
            blank(),
            Cell::Bytes(t.captured_bytes),
            blank(),
            Cell::Bytes(t.unlisted_bytes),
        ];
        let listed = self.ranges.is_some();
        to.table(Table::records("kind", &self.kinds, kind_columns()).csv(!listed).totals(totals));
        to.titled(
            "Largest ranges that nothing explains",
            !self.unexplained.is_empty(),
            Table::records("unexplained", &self.unexplained, range_columns(false)),
        );
        let (heaps, sizes) = self.malloc.as_ref().map(|m| (m.heaps.as_slice(), m.sizes.as_slice())).unwrap_or_default();
        to.titled("Heaps of malloc", !heaps.is_empty(), Table::records("malloc", heaps, malloc_columns()));
        let any = !sizes.is_empty();
        to.titled("Their blocks in use, by size", any, Table::records("malloc-size", sizes, size_columns()));
        to.titled("Ranges", listed, Table::records("range", self.ranges.iter().flatten(), range_columns(true)).csv(listed));
        to.gap();
        let percent = (t.explained_share * 1000.0).round() / 10.0;
        to.facts([
            ("listed", listing(self.listing).to_owned()),
            ("accessible", format!("{} of {} of address space", bytes(t.accessible_bytes), bytes(t.bytes))),
            ("explained", format!("{}, {percent:.1} % of accessible memory", bytes(t.explained_bytes))),
            ("captured", bytes(t.captured_bytes)),
        ]);
        to.record("totals", self.totals);
        to.record("listing", Source { listing: self.listing, runtime_error: self.runtime_error.as_deref() });
    }
}
