use crate::model::{OomModel, OomReport};
use crate::output::report::{Report, Sections};
use crate::output::table::{Columns, Table, columns};

fn oom_columns<'r>() -> Columns<'r, OomModel> {
    columns::<OomModel>()
        .count("heap", |o| o.heap)
        .made("reason", 20, |o| o.reason.map(|r| r.to_string()))
        .bytes("alloc_size", |o| o.alloc_size)
        .address("reserved", |o| o.reserved)
        .extra()
        .address("allocated", |o| o.allocated)
        .count("gc_index", |o| o.gc_index)
        .made("fgm", 24, |o| o.fgm.map(|f| f.to_string()))
        .bytes("size", |o| o.size)
        .count("available_pagefile_mb", |o| o.available_pagefile_mb)
        .text_or_none("loh", 4, |o| o.loh.map(|loh| if loh { "true" } else { "false" }))
}

impl Report for OomReport {
    fn describe<'r>(&'r self, to: &mut Sections<'r>) {
        to.table(Table::records("oom", &self.heaps, oom_columns()).csv(true).shown(false));
        to.lines(self.heaps.iter().map(|h| format!("Heap {}: {}", h.heap, h.text)));
        to.records("limit", &self.limit);
        match self.any {
            None if self.heaps.is_empty() => to.line("The out-of-memory history cannot be read."),
            None => {}
            Some(false) => to.line("The GC recorded no failed allocation."),
            Some(true) => {}
        }
    }
}
