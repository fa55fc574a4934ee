//! The answer of `index`: the file and its size.

use crate::model::IndexReport;
use crate::output::columns::{Columns, columns};
use crate::output::report::{Report, Sections};
use crate::output::table::Table;
use crate::output::{bytes, plural};

fn file_columns<'r>() -> Columns<'r, IndexReport> {
    columns![
        IndexReport,
        bytes(file_bytes),
        bytes(dump_bytes),
        count(objects),
        count(references),
        text("problem", 20, |r| r.problem.as_deref().unwrap_or_default()),
        text(path, 40)
    ]
}

impl Report for IndexReport {
    fn describe<'r>(&'r self, to: &mut Sections<'r>) {
        to.table(Table::records("index", [self], file_columns()).csv(true).shown(false));
        let size = format!("{} for a dump of {}", bytes(self.file_bytes), bytes(self.dump_bytes));
        let mut facts = vec![(if self.written { "written" } else { "index" }, self.path.clone()), ("size", size)];
        match &self.problem {
            Some(problem) => facts.push(("not used", problem.clone())),
            None => facts.push(("holds", format!("{}, {}", plural(self.objects, "object"), plural(self.references, "reference")))),
        }
        to.facts(facts);
    }
}
