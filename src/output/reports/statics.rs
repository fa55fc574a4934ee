//! The answer of `statics`: static fields with their values.

use crate::model::{StaticModel, StaticsReport};
use crate::output::Paging;
use crate::output::columns::{Columns, Readers, columns};
use crate::output::report::{Report, Sections};
use crate::output::table::Table;
use crate::output::{count, plural};

/// Columns of static fields.
pub(super) fn static_columns<'r>(retained: bool) -> Columns<'r, StaticModel> {
    columns![
        StaticModel,
        bytes(retained).when(retained).keep(9),
        names(field.declaring_type, 40).keep(9),
        text(field.name, 24).keep(9),
        text(field.type_name, 24).name(),
        word(storage, 14).keep(4),
        id("thread", |s| s.thread.and_then(|t| t.managed_id).map(u64::from)).keep(3),
        address(field.address),
        text("kind", 12, |s| super::object::kind(s.field.kind)).whole().keep(3),
        text("text", 40, |s| s.field.unquoted()).only(Readers::Machines),
        text(field.text, 40).only(Readers::People).lines(2).keep(9)
    ]
}

impl Report for StaticsReport {
    fn page(&mut self, to: &mut Paging) {
        self.shown = to.list("statics", &mut self.statics, self.initialized, &static_columns(true));
    }

    fn describe<'r>(&'r self, to: &mut Sections<'r>) {
        let has_retained = self.statics.iter().any(|s| s.retained.is_some());
        to.table(Table::records("static", &self.statics, static_columns(has_retained)).csv(true).shown(!self.statics.is_empty()));
        to.more(self.shown, self.initialized, "static field");
        to.gap_if(!self.statics.is_empty());
        to.line(format!(
            "{} in {}, {} uninitialized{}",
            plural(self.initialized, "initialized static field"),
            plural(self.types, "type"),
            count(self.not_initialized),
            if self.unknown > 0 { format!(", {} not in the dump", count(self.unknown)) } else { String::new() }
        ));
    }
}
