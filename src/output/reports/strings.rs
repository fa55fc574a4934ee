use super::stat::covered;
use crate::model::{StringModel, StringsReport};
use crate::output::report::{Report, Sections};
use crate::output::table::{Columns, Readers, Table, columns};
use crate::output::{bytes, count};

fn string_columns<'r>() -> Columns<'r, StringModel> {
    columns::<StringModel>()
        .count("count", |s| s.count)
        .count("length", |s| s.length)
        .bytes("bytes", |s| s.bytes)
        .bytes("waste", |s| s.waste)
        .address("address", |s| s.address)
        .text("truncated", 5, |s| if s.truncated { "true" } else { "false" })
        .only(Readers::Machines)
        .text("value", 60, |s| &s.value)
        .only(Readers::Machines)
        // Three dots say that a value goes on.
        .made("value", 60, |s| if s.truncated { format!("{}…", s.value) } else { s.value.clone() })
        .only(Readers::People)
}

impl Report for StringsReport {
    fn describe<'r>(&'r self, to: &mut Sections<'r>) {
        let t = &self.totals;
        let (some, listed) = (t.strings > 0, !self.strings.is_empty());
        to.table(Table::records("string", &self.strings, string_columns()).csv(true).shown(some && listed));
        to.record("totals", t);
        to.record("coverage", &self.coverage);
        if !some {
            to.line("No string matches.");
            return to.line(covered(&self.coverage));
        }
        if !listed {
            to.line("No content has as many strings.");
        }
        if let Some(shown) = self.shown {
            to.line(format!("… and {} more rows (--top 0 lists all)", count(self.rows.saturating_sub(shown))));
        }
        to.gap();
        let mut facts = vec![
            ("strings", format!("{}, {} ({} bytes)", count(t.strings), bytes(t.bytes), count(t.bytes))),
            ("different", format!("{} contents, {} of them more than once", count(t.distinct), count(t.duplicate_groups))),
            ("duplicates", format!("{} ({} bytes) could be saved", bytes(t.wasted_bytes), count(t.wasted_bytes))),
        ];
        if t.unreadable > 0 {
            facts.push(("unreadable", format!("{} strings are not wholly in the dump", count(t.unreadable))));
        }
        facts.push(("walked", covered(&self.coverage)));
        to.facts(facts);
    }
}
