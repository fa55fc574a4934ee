//! The answer of `whatif`: objects that would survive or be freed by type, components, and weak handles.

use serde::Serialize;

use super::by_type::{Sums, cut, objects, sum, type_columns};
use super::retained::root_coverage;
use crate::analysis::{TypeBytes, WhatifComponent, WhatifReport, WhatifWeak};
use crate::model::Sum;
use crate::output::Paging;
use crate::output::columns::{Columns, Readers, columns};
use crate::output::count;
use crate::output::report::{Report, Sections};
use crate::output::table::Table;

fn weak_columns<'r>() -> Columns<'r, WhatifWeak> {
    columns![
        WhatifWeak,
        address(address),
        word(kind, 21),
        address(object),
        word("now", 9, |w| if w.reached_now { "reached" } else { "lost" }),
        word("then", 9, |w| if w.survives { "survives" } else { "cleared" }),
        names(type_name, 50)
    ]
}

fn component_columns<'r>() -> Columns<'r, WhatifComponent> {
    columns![
        WhatifComponent,
        address("component" = address),
        word("then", 9, |c| if c.survives { "survives" } else { "freed" }),
        count(count),
        bytes(bytes),
        count(bridged),
        names(type_name, 50)
    ]
}

#[derive(Clone, Serialize)]
struct WhatifTotals<'r> {
    survivors: Sums,
    freed: Sums,
    resurrected: &'r Sum,
    weak_total: u64,
    weak_cleared: u64,
}

impl Report for WhatifReport {
    fn page(&mut self, to: &mut Paging) {
        to.list("survivors", &mut self.survivors.types, 0, &type_columns());
        to.list("freed", &mut self.freed.types, 0, &type_columns());
    }

    fn describe<'r>(&'r self, to: &mut Sections<'r>) {
        let lists = [("Would survive:", "survivor", "survives", &self.survivors), ("Would be freed:", "freed", "freed", &self.freed)];
        for (title, record, change, by) in lists {
            let some = by.count > 0;
            if some {
                to.title(title);
            }
            let columns = columns![TypeBytes, word("change", 9, |_| change).only(Readers::Machines)].and(type_columns());
            to.table(Table::records(record, &by.types, columns).csv(true).shown(some));
            if some {
                cut(to, by);
                to.gap();
            }
        }
        let (components, weak) = (!self.components.is_empty(), !self.weak_handles.is_empty());
        to.table(Table::records("component", &self.components, component_columns()).shown(components));
        to.gap_if(components);
        to.table(Table::records("weak-handle", &self.weak_handles, weak_columns()).shown(weak));
        to.gap_if(weak);
        to.facts([
            ("would survive", objects(self.survivors.count, self.survivors.bytes)),
            ("would be freed", objects(self.freed.count, self.freed.bytes)),
            ("resurrected", format!("{} of those, kept for one more collection by their finalizers", sum(&self.resurrected))),
            ("weak handles", format!("{} of {} would be cleared", count(self.weak_cleared), count(self.weak_total))),
        ]);
        to.record(
            "totals",
            WhatifTotals {
                survivors: Sums::from(&self.survivors),
                freed: Sums::from(&self.freed),
                resurrected: &self.resurrected,
                weak_total: self.weak_total,
                weak_cleared: self.weak_cleared,
            },
        );
        to.gap();
        root_coverage(to, &self.coverage);
        to.records("coverage", &self.coverage);
    }
}
