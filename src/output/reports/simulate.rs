//! The answer of `simulate`: sizes of the generations before and after the collection.

use serde::Serialize;

use super::by_type::{Sums, cut, objects, sum, type_columns};
use super::retained::root_coverage;
use crate::analysis::{CollectGeneration, CollectReport};
use crate::model::Sum;
use crate::output::Paging;
use crate::output::columns::{Columns, columns};
use crate::output::report::{Report, Sections};
use crate::output::table::Table;

fn generation_columns<'r>() -> Columns<'r, CollectGeneration> {
    columns![
        CollectGeneration,
        word(generation, 10),
        count("objects" = objects.count),
        bytes(objects.bytes),
        count("survivors" = survivors.count),
        bytes("survivor_bytes" = survivors.bytes),
        count("resurrected" = resurrected.count),
        bytes("resurrected_bytes" = resurrected.bytes),
        count("freed" = freed.count),
        bytes("freed_bytes" = freed.bytes)
    ]
}

#[derive(Clone, Serialize)]
struct CollectTotals<'r> {
    freed: Sums,
    survivors: &'r Sum,
    promoted: &'r Sum,
    resurrected: &'r Sum,
    untouched: &'r Sum,
}

impl Report for CollectReport {
    fn page(&mut self, to: &mut Paging) {
        to.list("freed", &mut self.freed.types, 0, &type_columns());
    }

    fn describe<'r>(&'r self, to: &mut Sections<'r>) {
        let some = self.freed.count > 0;
        to.table(Table::records("freed", &self.freed.types, type_columns()).csv(true).shown(some));
        if some {
            cut(to, &self.freed);
            to.gap();
        }
        to.table(Table::records("generation", &self.generations, generation_columns()).shown(!self.generations.is_empty()));
        to.gap_if(!self.generations.is_empty());
        to.facts([
            ("freed", objects(self.freed.count, self.freed.bytes)),
            ("resurrected", sum(&self.resurrected)),
            ("survivors", sum(&self.survivors)),
            ("promoted", sum(&self.promoted)),
            ("not collected", sum(&self.untouched)),
        ]);
        to.record(
            "totals",
            CollectTotals {
                freed: Sums::from(&self.freed),
                survivors: &self.survivors,
                promoted: &self.promoted,
                resurrected: &self.resurrected,
                untouched: &self.untouched,
            },
        );
        to.gap();
        root_coverage(to, &self.coverage);
        to.records("coverage", &self.coverage);
    }
}
