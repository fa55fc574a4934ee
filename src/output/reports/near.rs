//! The answer of `near`: the objects around an address.

use crate::analysis::{NearReport, NearRow};
use crate::output::columns::{Columns, columns};
use crate::output::report::{Report, Sections};
use crate::output::table::Table;

fn near_columns<'r>() -> Columns<'r, NearRow> {
    columns![
        NearRow,
        word("here", 4, |r| if r.here { ">" } else { "" }),
        address(address),
        bytes(size),
        address(method_table).extra(),
        text("type", 60, |r| r.type_name.as_ref().map_or_else(|| format!("({})", r.kind), ToString::to_string)).name()
    ]
}

impl Report for NearReport {
    fn describe<'r>(&'r self, to: &mut Sections<'r>) {
        let s = &self.segment;
        to.line(format!("{} of heap {}, segment {}, objects from {} to {}", s.generation, s.heap, s.address, s.start, s.allocated));
        to.gap();
        to.table(Table::records("near", &self.rows, near_columns()).csv(true));
        to.record("segment", s);
    }
}
