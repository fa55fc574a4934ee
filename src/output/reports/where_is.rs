//! The answer of `where`: facts about an address.

use crate::analysis::WhereReport;
use crate::output::columns::{Columns, columns};
use crate::output::report::{Report, Sections};
use crate::output::table::Table;

fn place_columns<'r>() -> Columns<'r, WhereReport> {
    columns![
        WhereReport,
        address(address),
        word(kind, 18),
        address("object", |p| p.object.as_ref().map(|o| o.address)),
        count(offset),
        address("segment", |p| p.segment.as_ref().map(|s| s.address)),
        count("heap", |p| p.segment.as_ref().map(|s| s.heap)),
        word("generation", 10, |p| p.segment.as_ref().map(|s| s.generation)),
        text(text, 60).lines(2),
        text(name, 60),
        address(target),
        names(target_type, 60)
    ]
}

impl Report for WhereReport {
    fn describe<'r>(&'r self, to: &mut Sections<'r>) {
        to.itself("place", self);
        to.table(Table::new([self], place_columns()).csv(true).shown(false));
        to.line(format!("{}  {}", self.address, self.text));
        if let Some(range) = self.range {
            to.line(format!("range {} to {}", range.start, range.end));
        }
        let code = self.code.as_ref();
        // An exception handler has another code range than its method, so the start of the method's code is shown too.
        let start = code.filter(|c| self.range.is_none_or(|range| range.start != c.start)).map(|c| c.start);
        let method = code.map(|c| c.method_desc);
        let more = [("module", self.module), ("EEClass", self.class), ("MethodDesc", method), ("code starts at", start)];
        to.lines(more.into_iter().filter_map(|(what, at)| Some(format!("{what} {}", at?))));
        if !self.captured {
            to.line("The byte at this address is not in the dump.");
        }
    }
}
