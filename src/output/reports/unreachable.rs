//! The answer of `unreachable`: garbage by type and class, or object by object.

use serde::Serialize;

use super::by_type::{objects, sum};
use super::retained::root_coverage;
use crate::analysis::{GarbageObject, GarbageType, UnreachableReport, UnreachableRows};
use crate::model::Sum;
use crate::output::Paging;
use crate::output::columns::{Columns, columns};
use crate::output::report::{Report, Sections};
use crate::output::table::Table;

fn garbage_type_columns<'r>() -> Columns<'r, GarbageType> {
    columns![GarbageType, count(count), bytes(bytes), address(method_table).extra(), names(type_name, 60), word(class, 14)]
}

fn garbage_columns<'r>() -> Columns<'r, GarbageObject> {
    columns![
        GarbageObject,
        address(address).keep(8),
        address(method_table).extra(),
        bytes(bytes).keep(8),
        word(generation, 10),
        word(class, 14),
        names(type_name, 50)
    ]
}

#[derive(Clone, Serialize)]
struct UnreachableTotals<'r> {
    reached: &'r Sum,
    unreachable: &'r Sum,
}

impl Report for UnreachableReport {
    fn page(&mut self, to: &mut Paging) {
        self.shown = match &mut self.rows {
            UnreachableRows::Types { types } => to.list("types", types, 0, &garbage_type_columns()).or(self.shown),
            UnreachableRows::Objects { objects } => to.list("objects", objects, self.unreachable.count, &garbage_columns()),
        };
    }

    fn describe<'r>(&'r self, to: &mut Sections<'r>) {
        let (types, garbage, listed): (&[_], &[_], _) = match &self.rows {
            UnreachableRows::Types { types } => (types, &[], false),
            UnreachableRows::Objects { objects } => (&[], objects, true),
        };
        let some = self.unreachable.count > 0;
        to.table(Table::records("type", types, garbage_type_columns()).csv(!listed).shown(some && !listed));
        to.table(Table::records("object", garbage, garbage_columns()).csv(listed).shown(some && listed));
        if some {
            to.more_rows(self.shown, "rows");
            to.gap();
        }
        to.records("class", &self.classes);
        // One list, so that classes and totals align.
        let classes = self.classes.iter().map(|c| (c.class.name(), objects(c.count, c.bytes)));
        let totals = [("total", sum(&self.unreachable)), ("reachable", sum(&self.reached))];
        to.facts(classes.chain(totals).collect::<Vec<_>>());
        to.record("totals", UnreachableTotals { reached: &self.reached, unreachable: &self.unreachable });
        to.gap();
        root_coverage(to, &self.coverage);
        to.records("coverage", &self.coverage);
    }
}
