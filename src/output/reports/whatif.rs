use serde::Serialize;

use super::by_type::{Sums, add_type_columns, cut, objects, sum};
use super::retained::root_coverage;
use crate::model::{Sum, TypeBytes, WhatifComponent, WhatifReport, WhatifWeak};
use crate::output::Paging;
use crate::output::count;
use crate::output::report::{Report, Sections};
use crate::output::table::{Columns, Readers, Table, columns};

fn weak_columns<'r>() -> Columns<'r, WhatifWeak> {
    columns::<WhatifWeak>()
        .address("address", |w| w.address)
        .text("kind", 21, |w| w.kind.name())
        .whole()
        .address("object", |w| w.object)
        .text("now", 9, |w| if w.reached_now { "reached" } else { "lost" })
        .whole()
        .text("then", 9, |w| if w.survives { "survives" } else { "cleared" })
        .whole()
        .names("type", 50, |w| w.type_name.as_ref())
}

fn component_columns<'r>() -> Columns<'r, WhatifComponent> {
    columns::<WhatifComponent>()
        .address("component", |c| c.address)
        .text("then", 9, |c| if c.survives { "survives" } else { "freed" })
        .whole()
        .count("count", |c| c.count)
        .bytes("bytes", |c| c.bytes)
        .count("bridged", |c| c.bridged)
        .names("type", 50, |c| Some(&c.type_name))
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
        to.list("survivors", &mut self.survivors.types, 0, &add_type_columns(columns::<TypeBytes>()));
        to.list("freed", &mut self.freed.types, 0, &add_type_columns(columns::<TypeBytes>()));
    }

    fn describe<'r>(&'r self, to: &mut Sections<'r>) {
        let lists = [("Would survive:", "survivor", "survives", &self.survivors), ("Would be freed:", "freed", "freed", &self.freed)];
        for (title, record, change, by) in lists {
            let some = by.count > 0;
            if some {
                to.title(title);
            }
            let columns = add_type_columns(columns::<TypeBytes>().text("change", 9, move |_| change).only(Readers::Machines));
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
