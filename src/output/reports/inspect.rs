//! The answer of `inspect`: one table for each inspection.

use serde::Serialize;

use crate::analysis::{InspectReport, InspectionId, InspectionModel, InspectionRow};
use crate::base::Notes;
use crate::output::Paging;
use crate::output::checks::{Check, Outcome};
use crate::output::columns::{Columns, columns};
use crate::output::report::{Report, Sections};
use crate::output::table::Table;
use crate::output::{bytes, count};

/// A row with its inspection.
#[derive(Serialize)]
struct Row<'r> {
    id: InspectionId,
    #[serde(flatten)]
    row: &'r InspectionRow,
}

fn rows(inspections: &[InspectionModel]) -> impl Iterator<Item = Row<'_>> + Clone {
    inspections.iter().flat_map(|i| i.rows.iter().map(|row| Row { id: i.id, row }))
}

fn all_columns<'r>() -> Columns<'r, Row<'r>> {
    columns![
        Row<'r>,
        word(id, 22),
        address(row.object),
        count(row.count),
        bytes(row.bytes),
        names(row.type_name, 50),
        text(row.detail, 80).lines(3)
    ]
}

fn own_columns<'r>() -> Columns<'r, InspectionRow> {
    columns![InspectionRow, count(count), bytes(bytes), address(object), names(type_name, 50), text(detail, 80).lines(3)]
}

impl Report for InspectReport {
    fn page(&mut self, to: &mut Paging) {
        for i in &mut self.inspections {
            to.list(i.id.name(), &mut i.rows, i.total, &own_columns());
        }
    }

    fn describe<'r>(&'r self, to: &mut Sections<'r>) {
        to.table(Table::records("finding", rows(&self.inspections), all_columns()).csv(true).shown(false));
        to.records("inspection", &self.inspections);
        let (found, none): (Vec<_>, Vec<_>) = self.inspections.iter().partition(|i| i.found > 0);
        for i in found {
            let wasted = i.wasted_bytes.map_or_else(String::new, |n| format!(", {}", bytes(n)));
            to.title(format!("{}: {}{wasted}", i.id, count(i.found)));
            to.line(format!("  {}", i.rule));
            to.table(Table::new(&i.rows, own_columns()));
            to.more(u64::try_from(i.rows.len()).ok(), i.total, "row");
            to.gap();
        }
        if !none.is_empty() {
            to.line(format!("Nothing found: {}", none.iter().map(|i| i.id.name()).collect::<Vec<_>>().join(", ")));
        }
    }

    fn checks(&self, notes: &Notes) -> Option<Vec<Check>> {
        let check = |i: &InspectionModel| {
            let wasted = i.wasted_bytes.map_or_else(String::new, |n| format!(", {}", bytes(n)));
            match i.found {
                0 => Check::without_finding(i.id.name(), notes),
                n => Check::new(i.id.name(), Outcome::Warning, format!("{}{wasted}: {}", count(n), i.rule)),
            }
        };
        Some(self.inspections.iter().map(check).collect())
    }
}
