use crate::model::{ExportReport, Sum};
use crate::output::report::{Report, Sections};
use crate::output::table::{Columns, Table, columns};
use crate::output::{bytes, count};

fn file_columns<'r>() -> Columns<'r, ExportReport> {
    columns::<ExportReport>()
        .text("format", 12, |r| r.format.name())
        .bytes("file_bytes", |r| r.file_bytes)
        .count("objects", |r| r.objects.count)
        .bytes("bytes", |r| r.objects.bytes)
        .count("references", |r| r.references)
        .count("nodes", |r| r.nodes)
        .count("edges", |r| r.edges)
        .text("output", 40, |r| &r.output)
}

impl Report for ExportReport {
    fn describe<'r>(&'r self, to: &mut Sections<'r>) {
        to.table(Table::records("export", [self], file_columns()).csv(true).shown(false));
        let sum = |sum: Sum| format!("{} objects, {}", count(sum.count), bytes(sum.bytes));
        let mut facts = vec![
            ("written", self.output.clone()),
            ("size", bytes(self.file_bytes)),
            ("objects", format!("{}, {} references", sum(self.objects), count(self.references))),
            ("nodes", format!("{}, {} edges", count(self.nodes), count(self.edges))),
        ];
        facts.extend(self.left_out.map(|s| ("left out", format!("{} (summed up in nodes)", sum(s)))));
        facts.extend(self.unreachable.filter(|s| s.count > 0).map(|s| ("unreachable", format!("{} (--unreachable adds them)", sum(s)))));
        facts.extend(self.survivors.map(|n| ("survivors", format!("{} objects have the ids of the dump before", count(n)))));
        to.facts(facts);
    }
}
