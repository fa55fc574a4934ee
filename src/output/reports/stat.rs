//! The answer of `stat`: types, or groups by another key.

use crate::analysis::{GroupStat, StatBy, StatReport, StatRows, TypeStat};
use crate::base::len64;
use crate::model::CoverageModel;
use crate::output::Paging;
use crate::output::columns::{Columns, columns};
use crate::output::report::{Report, Sections};
use crate::output::table::Table;
use crate::output::{bytes, bytes_exactly, count, plural};

/// Minimum width of type names; the method table is dropped if there is less room.
const TYPE: u16 = 40;

fn type_columns<'r>() -> Columns<'r, TypeStat> {
    columns![TypeStat, address(method_table).extra(), count(count), bytes(bytes), share(share), names(type_name, 60).least(TYPE)]
}

fn group_columns<'r>(by: StatBy) -> Columns<'r, GroupStat> {
    let name = match by {
        StatBy::Type => "type",
        StatBy::Generation => "generation",
        StatBy::Heap => "heap",
        StatBy::Segment => "segment",
        StatBy::Assembly => "assembly",
        StatBy::Namespace => "namespace",
        StatBy::Size => "size_from",
    };
    // Groups by assembly or namespace have no columns for free blocks, because free blocks belong to no assembly or namespace.
    let of_types = matches!(by, StatBy::Assembly | StatBy::Namespace);
    let key = columns![GroupStat, text(name, 40, |g| &g.key).name().keep(9)];
    let key = if by == StatBy::Size { key.right() } else { key };
    key.and(columns![
        GroupStat,
        count(heap).when(by == StatBy::Segment),
        word(generation, 10).when(by == StatBy::Segment),
        count(count),
        bytes(bytes),
        share(share),
        count(free_count).when(!of_types),
        bytes(free_bytes).when(!of_types)
    ])
}

impl Report for StatReport {
    fn page(&mut self, to: &mut Paging) {
        self.shown = match &mut self.rows {
            StatRows::Types { types } => to.list("types", types, self.totals.types, &type_columns()),
            StatRows::Groups { groups } => {
                self.not_listed = to.whole_list("groups", groups, &group_columns(self.by));
                self.not_listed.map(|_| len64(groups.len())).or(self.shown)
            }
        };
    }

    fn describe<'r>(&'r self, to: &mut Sections<'r>) {
        let t = &self.totals;
        let (types, groups, by_type): (&[_], &[_], _) = match &self.rows {
            StatRows::Types { types } => (types, &[], true),
            StatRows::Groups { groups } => (&[], groups, false),
        };
        let some = t.count > 0;
        to.table(Table::records("type", types, type_columns()).csv(by_type).shown(some && by_type));
        to.table(Table::records("group", groups, group_columns(self.by)).csv(!by_type).shown(!by_type && (some || t.free_count > 0)));
        to.record("totals", t);
        to.record("coverage", &self.coverage);
        if !some && t.free_count == 0 {
            to.none("No matching objects");
            return to.line(covered(&self.coverage));
        }
        to.more(self.shown.filter(|_| by_type), t.types, "type");
        to.not_listed(self.not_listed, "group");
        to.gap();
        let free = match t.free_count {
            0 if self.coverage.absent_bytes > 0 => "none in the captured memory".into(),
            n => format!("{}, {}", plural(n, "free block"), bytes_exactly(t.free_bytes)),
        };
        to.facts([
            ("objects", format!("{} of {}, {}", count(t.count), plural(t.types, "type"), bytes_exactly(t.bytes))),
            ("free space", free),
            ("walked", covered(&self.coverage)),
        ]);
    }
}

/// Describes how much of the heap was walked.
pub(super) fn covered(c: &CoverageModel) -> String {
    if c.segments == 0 {
        return "no segment walked; coverage unknown".into();
    }
    let mut text = format!("{} of {} allocated", bytes(c.walked_bytes), bytes(c.allocated_bytes));
    let rest = [
        (c.context_bytes, "allocation contexts"),
        (c.in_allocation_bytes, "objects being allocated"),
        (c.skipped_bytes, "skipped as corrupt"),
        (c.absent_bytes, "not in the dump"),
    ];
    for (n, what) in rest.iter().filter(|(n, _)| *n > 0) {
        text.push_str(&format!(", {} {what}", bytes(*n)));
    }
    // Rounded down, so that 100 % means everything.
    let tenths = (c.share * 1000.0).floor() / 10.0;
    text.push_str(&format!("; coverage {tenths:.1} %"));
    text
}
