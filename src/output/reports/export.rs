//! The answer of `export`: the written file, or the files of the tables.

use crate::model::{ExportReport, Sum, TableFile};
use crate::output::columns::{Columns, columns};
use crate::output::report::{Report, Sections};
use crate::output::table::Table;
use crate::output::{bytes, count, plural};

fn file_columns<'r>() -> Columns<'r, ExportReport> {
    columns![
        ExportReport,
        word(format, 12),
        bytes(file_bytes),
        count("objects" = objects.count),
        bytes(objects.bytes),
        count(references),
        count(nodes),
        count(edges),
        text(output, 40)
    ]
}

fn table_columns<'r>() -> Columns<'r, TableFile> {
    columns![TableFile, word(table, 10), count(rows), bytes(bytes), text(file, 40).path()]
}

impl Report for ExportReport {
    fn describe<'r>(&'r self, to: &mut Sections<'r>) {
        to.table(Table::records("export", [self], file_columns()).csv(true).shown(false));
        let sum = |sum: Sum| format!("{}, {}", plural(sum.count, "object"), bytes(sum.bytes));
        let mut facts = vec![("written", self.output.clone()), ("size", bytes(self.file_bytes))];
        let references = self.references.map_or_else(String::new, |n| format!(", {}", plural(n, "reference")));
        facts.push(("objects", format!("{}{references}", sum(self.objects))));
        facts.extend(self.nodes.zip(self.edges).map(|(nodes, edges)| ("nodes", format!("{}, {}", count(nodes), plural(edges, "edge")))));
        facts.extend(self.dump_id.as_ref().map(|id| ("partition", format!("dump={id}"))));
        facts.extend(self.left_out.map(|s| ("left out", format!("{} (summed up in placeholder nodes)", sum(s)))));
        facts.extend(self.unreachable.filter(|s| s.count > 0).map(|s| ("unreachable", format!("{} (--unreachable adds them)", sum(s)))));
        facts.extend(self.survivors.map(|n| ("survivors", format!("{} objects have the ids that they had in the earlier dump", count(n)))));
        to.facts(facts);
        if let Some(tables) = &self.tables {
            to.gap();
            to.table(Table::records("table", tables, table_columns()));
        }
    }
}
