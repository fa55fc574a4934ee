//! The answer of `fleet`: the dumps, and how many were written.

use crate::model::{FleetDump, FleetReport};
use crate::output::columns::{Columns, columns};
use crate::output::report::{Report, Sections};
use crate::output::table::Table;
use crate::output::{count, plural};

fn dump_columns<'r>() -> Columns<'r, FleetDump> {
    columns![
        FleetDump,
        text(id, 16),
        word(state, 8),
        text(runtime, 10),
        count(objects),
        bytes(bytes),
        text(path, 30).path(),
        text(error, 20)
    ]
}

impl Report for FleetReport {
    fn describe<'r>(&'r self, to: &mut Sections<'r>) {
        to.table(Table::records("dump", &self.dumps, dump_columns()).csv(true));
        to.gap();
        let t = &self.totals;
        let parts = [("written", t.written), ("known already", t.known), ("failed", t.failed)];
        let parts: Vec<String> = parts.iter().filter(|(_, n)| *n > 0).map(|(what, n)| format!("{} {what}", count(*n))).collect();
        to.line(format!("{} in {}: {}", plural(t.dumps, "dump"), self.lake, parts.join(", ")));
    }
}
