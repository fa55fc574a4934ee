//! The answer of `finalizers`: the queues of each heap, objects by type, and objects.

use crate::analysis::{FinalizerHeap, FinalizerObject, FinalizerType, FinalizersReport};
use crate::base::total;
use crate::model::Generation;
use crate::output::Paging;
use crate::output::columns::{Columns, columns};
use crate::output::report::{Report, Sections};
use crate::output::table::Table;
use crate::output::{count, plural};

fn heap_columns<'r>() -> Columns<'r, FinalizerHeap> {
    let of = |h: &FinalizerHeap, g: Generation| h.generations.iter().find(|n| n.generation == g).map_or(0, |n| n.count);
    columns![
        FinalizerHeap,
        count(heap),
        count(registered),
        count("gen0", move |h| of(h, Generation::Gen0)),
        count("gen1", move |h| of(h, Generation::Gen1)),
        count("gen2", move |h| of(h, Generation::Gen2)),
        count("loh", move |h| of(h, Generation::Loh)),
        count("poh", move |h| of(h, Generation::Poh)),
        count(ready),
        count(critical)
    ]
}

fn type_columns<'r>() -> Columns<'r, FinalizerType> {
    columns![FinalizerType, address(method_table).extra(), count(registered), count(ready), count(critical), names(type_name, 60)]
}

fn object_columns<'r>() -> Columns<'r, FinalizerObject> {
    columns![FinalizerObject, address(object), word(state, 10), word(generation, 10), count(heap), names(type_name, 60)]
}

impl Report for FinalizersReport {
    fn page(&mut self, to: &mut Paging) {
        self.shown = to.list("types", &mut self.types, 0, &type_columns()).or(self.shown);
        if let Some(objects) = &mut self.objects {
            self.objects_shown = to.list("objects", objects, total([self.registered, self.ready, self.critical]), &object_columns());
        }
    }

    fn describe<'r>(&'r self, to: &mut Sections<'r>) {
        let listed = self.objects.is_some();
        let some = self.objects.as_ref().is_some_and(|o| !o.is_empty());
        to.table(Table::records("object", self.objects.iter().flatten(), object_columns()).csv(listed).shown(some));
        if let (Some(shown), true) = (self.objects_shown, some && !to.paged) {
            let all = total([self.registered, self.ready, self.critical]);
            to.line(format!("{} of {} (--top 0 lists all)", count(shown), plural(all, "object")));
        }
        to.gap_if(some);
        to.table(Table::records("type", &self.types, type_columns()).csv(!listed).shown(!self.types.is_empty()));
        if !self.types.is_empty() {
            to.more_rows(self.shown, "types");
            to.gap();
        }
        to.table(Table::records("heap", &self.heaps, heap_columns()));
        to.gap();
        let ready = self.ready.saturating_add(self.critical);
        let id = |n: Option<u64>| n.map_or_else(|| "?".to_string(), |n| n.to_string());
        let thread = self
            .thread
            .as_ref()
            .map_or_else(|| "unknown".to_string(), |t| format!("managed id {}, os id {}", id(t.managed_id.map(u64::from)), id(t.os_id)));
        to.facts([
            ("registered", count(self.registered)),
            ("ready for finalization", format!("{}, {} critical", count(ready), count(self.critical))),
            ("finalizer thread", thread),
        ]);
    }
}
