//! The answer of `trim`: kept bytes by kind of memory, and redacted data.

use crate::analysis::{TrimPart, TrimReport};
use crate::output::columns::{Columns, columns};
use crate::output::report::{Report, Sections};
use crate::output::table::Table;
use crate::output::{Cell, bytes, plural};

fn part_columns<'r>() -> Columns<'r, TrimPart> {
    columns![TrimPart, word(kind, 10), bytes(bytes), bytes(kept_bytes)]
}

impl Report for TrimReport {
    fn describe<'r>(&'r self, to: &mut Sections<'r>) {
        let totals = vec![Cell::Text("total".into()), Cell::Bytes(self.bytes), Cell::Bytes(self.kept_bytes)];
        to.table(Table::records("part", &self.parts, part_columns()).csv(true).totals(totals));
        to.records("redacted", &self.redacted);
        to.gap();
        let stored = if self.file_bytes == self.kept_bytes { String::new() } else { format!(", {} compressed", bytes(self.file_bytes)) };
        let mut facts = vec![
            ("written", self.output.clone()),
            ("size", format!("{} of {}{stored}, {}", bytes(self.kept_bytes), bytes(self.bytes), plural(self.ranges, "memory range"))),
        ];
        if let Some(added) = self.module_bytes {
            facts.push(("from module files", bytes(added).to_string()));
        }
        if let Some(r) = &self.redacted {
            let strings = format!("{} ({})", plural(r.strings, "string"), bytes(r.string_bytes));
            let arrays = format!("{} ({})", plural(r.arrays, "array"), bytes(r.array_bytes));
            facts.push(("overwritten", format!("{strings}, {arrays}, {} between objects", bytes(r.free_bytes))));
            facts.push(("not redacted", "type, field and module names; numeric field values; addresses; module paths".into()));
        }
        to.facts(facts);
    }
}
