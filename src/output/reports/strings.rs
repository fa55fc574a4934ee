//! The answer of `strings`: duplicate or selected strings.

use super::stat::covered;
use crate::analysis::{StringModel, StringsReport};
use crate::output::Paging;
use crate::output::columns::{Columns, Readers, columns};
use crate::output::report::{Report, Sections};
use crate::output::table::Table;
use crate::output::{bytes_exactly, count, plural};

fn string_columns<'r>() -> Columns<'r, StringModel> {
    columns![
        StringModel,
        count(count).keep(8),
        count(length).keep(4),
        bytes(bytes),
        bytes(waste).keep(7),
        address(address).keep(6),
        word(truncated, 5).only(Readers::Machines),
        text(value, 60).only(Readers::Machines),
        // An ellipsis marks a truncated value.
        text("value", 60, |s| if s.truncated { format!("{}…", s.value) } else { s.value.clone() }).lines(2).keep(9).only(Readers::People)
    ]
}

impl Report for StringsReport {
    fn page(&mut self, to: &mut Paging) {
        self.shown = to.list("strings", &mut self.strings, self.rows, &string_columns());
    }

    fn describe<'r>(&'r self, to: &mut Sections<'r>) {
        let t = &self.totals;
        let (some, listed) = (t.strings > 0, !self.strings.is_empty());
        to.table(Table::records("string", &self.strings, string_columns()).csv(true).shown(some && listed));
        to.record("totals", t);
        to.record("coverage", &self.coverage);
        if !some {
            to.none("No matching strings");
            return to.line(covered(&self.coverage));
        }
        if !listed {
            let (all, least) = (plural(t.distinct, "value"), count(self.min_count));
            to.none(&format!("No value occurs {least} times or more; --min-count 1 lists {all}"));
        }
        if let Some(shown) = self.shown.filter(|_| !to.paged) {
            to.line(format!("… {} more rows (--top 0 lists all)", count(self.rows.saturating_sub(shown))));
        }
        to.gap();
        let mut facts = vec![
            ("strings", format!("{}, {}", count(t.strings), bytes_exactly(t.bytes))),
            ("distinct values", format!("{}, {} duplicated", count(t.distinct), count(t.duplicate_groups))),
            ("duplicates", format!("{} wasted", bytes_exactly(t.wasted_bytes))),
        ];
        if t.unreadable > 0 {
            facts.push(("unreadable", format!("{} only partly in the dump", plural(t.unreadable, "string"))));
        }
        facts.push(("walked", covered(&self.coverage)));
        to.facts(facts);
    }
}
