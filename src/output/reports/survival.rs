use serde::Serialize;

use super::retained::root_coverage;
use crate::model::{
    CollectGeneration, CollectReport, GarbageObject, GarbageType, ObjectsByType, Sum, TypeBytes, UnreachableReport, WhatifComponent,
    WhatifReport, WhatifWeak,
};
use crate::output::report::{Report, Sections};
use crate::output::table::{Columns, Readers, Table, columns};
use crate::output::{bytes, count, plural};

fn objects(n: u64, b: u64) -> String {
    let (human, exact) = (bytes(b), plural(b, "byte"));
    if human == exact { format!("{}, {exact}", plural(n, "object")) } else { format!("{}, {human} ({exact})", plural(n, "object")) }
}

fn sum(s: &Sum) -> String {
    objects(s.count, s.bytes)
}

/// Totals of a list by type.
#[derive(Clone, Copy, Serialize)]
struct Sums {
    count: u64,
    bytes: u64,
}

impl From<&ObjectsByType> for Sums {
    fn from(by: &ObjectsByType) -> Sums {
        Sums { count: by.count, bytes: by.bytes }
    }
}

/// Notes a list cut by `--top`.
fn cut(to: &mut Sections<'_>, by: &ObjectsByType) {
    let listed = by.types.iter().fold(0u64, |n, t| n.saturating_add(t.count));
    if listed < by.count {
        to.line("… more types (--top 0 lists all)");
    }
}

fn type_columns<'r>() -> Columns<'r, TypeBytes> {
    add_type_columns(columns::<TypeBytes>())
}

fn add_type_columns<'r>(before: Columns<'r, TypeBytes>) -> Columns<'r, TypeBytes> {
    before.count("count", |t| t.count).bytes("bytes", |t| t.bytes).address("method_table", |t| t.method_table).extra().names(
        "type",
        60,
        |t| Some(&t.type_name),
    )
}

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
            ("resurrected", format!("{} of those, by finalizers, for one collection", sum(&self.resurrected))),
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

fn garbage_type_columns<'r>() -> Columns<'r, GarbageType> {
    columns::<GarbageType>()
        .count("count", |t| t.count)
        .bytes("bytes", |t| t.bytes)
        .address("method_table", |t| t.method_table)
        .extra()
        .names("type", 60, |t| Some(&t.type_name))
        .text("class", 14, |t| t.class.name())
        .whole()
}

fn garbage_columns<'r>() -> Columns<'r, GarbageObject> {
    columns::<GarbageObject>()
        .address("address", |o| o.address)
        .keep(8)
        .address("method_table", |o| o.method_table)
        .extra()
        .bytes("bytes", |o| o.bytes)
        .keep(8)
        .text("generation", 10, |o| o.generation.name())
        .whole()
        .text("class", 14, |o| o.class.name())
        .whole()
        .names("type", 50, |o| Some(&o.type_name))
}

#[derive(Clone, Serialize)]
struct UnreachableTotals<'r> {
    reached: &'r Sum,
    unreachable: &'r Sum,
}

impl Report for UnreachableReport {
    fn describe<'r>(&'r self, to: &mut Sections<'r>) {
        let (some, listed) = (self.unreachable.count > 0, self.objects.is_some());
        to.table(Table::records("type", self.types.iter().flatten(), garbage_type_columns()).csv(!listed).shown(some && !listed));
        to.table(Table::records("object", self.objects.iter().flatten(), garbage_columns()).csv(listed).shown(some && listed));
        if some {
            if self.shown.is_some() {
                to.line("… more rows (--top 0 lists all)");
            }
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

fn generation_columns<'r>() -> Columns<'r, CollectGeneration> {
    columns::<CollectGeneration>()
        .text("generation", 10, |g| g.generation.name())
        .whole()
        .count("objects", |g| g.objects.count)
        .bytes("bytes", |g| g.objects.bytes)
        .count("survivors", |g| g.survivors.count)
        .bytes("survivor_bytes", |g| g.survivors.bytes)
        .count("resurrected", |g| g.resurrected.count)
        .bytes("resurrected_bytes", |g| g.resurrected.bytes)
        .count("freed", |g| g.freed.count)
        .bytes("freed_bytes", |g| g.freed.bytes)
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
