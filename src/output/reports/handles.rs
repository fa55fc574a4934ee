//! The answer of `handles`: handles, their numbers by type, groups, and the memory of the tables.

use crate::analysis::{HandleBy, HandleGroup, HandleStat, HandlesReport, HandlesRows};
use crate::base::in_units;
use crate::model::{HandleBlocks, HandleMemory, HandleModel};
use crate::output::Paging;
use crate::output::columns::{Columns, Readers, columns};
use crate::output::plural;
use crate::output::report::{Report, Sections};
use crate::output::table::Table;

/// Columns of handles. Tables omit the columns that would be empty.
fn handle_columns<'r>(with_secondary_type: bool, with_use: bool, with_ref_count: bool) -> Columns<'r, HandleModel> {
    columns![
        HandleModel,
        address(address).keep(6),
        word("type" = kind, 21).keep(9),
        address(object).keep(8),
        address(method_table).extra(),
        bytes(object_size),
        address(secondary).extra(),
        names(object_type, 40),
        names(secondary_type, 40).only(if with_secondary_type { Readers::All } else { Readers::Machines }),
        word(strong, 6).only(Readers::Machines),
        count(ref_count).only(if with_ref_count { Readers::All } else { Readers::Machines }),
        word(used_for, 15).only(if with_use { Readers::All } else { Readers::Machines })
    ]
}

fn count_columns<'r>() -> Columns<'r, HandleStat> {
    columns![HandleStat, word("type" = kind, 22), count(count)]
}

fn group_columns<'r>(by: HandleBy) -> Columns<'r, HandleGroup> {
    let name = match by {
        HandleBy::ObjectType => "object_type",
        HandleBy::Generation => "generation",
        HandleBy::Type => "type",
    };
    columns![HandleGroup, text(name, 60, |g| g.key.as_deref()).name(), count(count), bytes(bytes)]
}

fn block_columns<'r>() -> Columns<'r, HandleBlocks> {
    columns![
        HandleBlocks,
        word("type" = kind, 22),
        count(blocks),
        count(secondary_blocks).keep(4),
        count(blocks_without_objects).keep(5),
        bytes(bytes),
        count(slots).keep(6),
        count(handles),
        count(empty_slots)
    ]
}

fn memory<'r>(memory: &'r HandleMemory, to: &mut Sections<'r>) {
    to.table(Table::records("block", &memory.types, block_columns()).csv(true).shown(!memory.types.is_empty()));
    to.gap_if(!memory.types.is_empty());
    to.line(format!(
        "{} of {} in {}: {}",
        plural(memory.segments, "segment"),
        in_units(memory.segment_bytes),
        plural(memory.tables, "handle table"),
        in_units(memory.bytes),
    ));
    if let (Some(held), Some(free)) = (memory.segments_with_objects, memory.free_blocks) {
        to.line(format!(
            "{} with handles to objects, each kept until all its handles are freed; {} free",
            plural(held, "segment"),
            plural(free, "block")
        ));
    }
}

impl Report for HandlesReport {
    fn page(&mut self, to: &mut Paging) {
        self.shown = match &mut self.rows {
            HandlesRows::Handles { handles, .. } => to.list("handles", handles, self.total, &handle_columns(true, true, true)),
            HandlesRows::By { by, group_count, groups } => to.list("groups", groups, *group_count, &group_columns(*by)),
            HandlesRows::Counts | HandlesRows::Memory { .. } => {
                to.tells_cuts = true;
                to.list("counts", &mut self.counts, 0, &count_columns())
            }
        };
    }

    fn describe<'r>(&'r self, to: &mut Sections<'r>) {
        match &self.rows {
            HandlesRows::Memory { memory: tables } => return memory(tables, to),
            HandlesRows::Handles { handles, .. } => {
                let with = |there: fn(&HandleModel) -> bool| handles.iter().any(there);
                let columns =
                    handle_columns(with(|h| h.secondary_type.is_some()), with(|h| h.used_for.is_some()), with(|h| h.ref_count.is_some()));
                to.table(Table::records("handle", handles, columns).csv(true).shown(!handles.is_empty()));
                to.more(self.shown, self.total, "handle");
                to.gap_if(!handles.is_empty());
            }
            HandlesRows::By { by, group_count, groups } => {
                to.table(Table::records("group", groups, group_columns(*by)).csv(true).shown(!groups.is_empty()));
                to.more(self.shown, *group_count, "group");
                to.gap_if(!groups.is_empty());
            }
            HandlesRows::Counts => {}
        }
        let grouped = matches!(&self.rows, HandlesRows::By { groups, .. } if !groups.is_empty());
        let (shown, only) = (!grouped && !self.counts.is_empty(), matches!(self.rows, HandlesRows::Counts));
        let counts = if only { Table::records("count", &self.counts, count_columns()) } else { Table::new(&self.counts, count_columns()) };
        to.table(counts.csv(only).shown(shown));
        to.gap_if(shown);
        to.line(format!("{} in {}", plural(self.total, "handle"), plural(self.tables, "handle table")));
        if to.view.detail {
            let names: Vec<&str> = self.supported.iter().map(|kind| kind.name()).collect();
            to.line(format!("supported types: {} (by {})", names.join(", "), self.supported_by));
        }
        for of in &self.uses {
            to.line(format!("{} made by the runtime for its own use: {}", plural(of.count, "strong handle"), of.used_for.words()));
        }
        if let HandlesRows::Handles { ref_counts_unknown: n @ 1.., .. } = self.rows {
            to.line(format!(
                "{} without a readable reference count: whether they keep their objects alive is unknown",
                plural(n, "ref-counted handle")
            ));
        }
    }
}
