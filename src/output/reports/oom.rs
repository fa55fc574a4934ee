//! The answer of `oom`: the last failure of each heap.

use crate::model::{OomModel, OomReport};
use crate::output::columns::{Columns, columns};
use crate::output::report::{Report, Sections};
use crate::output::table::Table;

fn oom_columns<'r>() -> Columns<'r, OomModel> {
    columns![
        OomModel,
        count(heap),
        word(reason, 20),
        bytes(alloc_size),
        address(reserved).extra(),
        address(allocated),
        count(gc_index),
        word(fgm, 24),
        bytes(size),
        count(available_pagefile_mb),
        word(loh, 4)
    ]
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
