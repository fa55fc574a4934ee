use std::fmt::Write;

use crate::model::{ObjectBrief, ObjectsReport, ObjectsTail};
use crate::output::report::{Report, Sections};
use crate::output::table::{Columns, Table, columns};
use crate::output::{List, count};

/// References in one cell: `_next=0x7f0012ab`, a blank between them.
fn references(o: &ObjectBrief) -> Option<String> {
    let refs = o.refs.as_ref()?;
    let mut text = String::with_capacity(refs.len().saturating_mul(32));
    for r in refs {
        if !text.is_empty() {
            text.push(' ');
        }
        match &r.field {
            Some(field) => text.push_str(field),
            None => {
                // Nothing goes wrong with a string.
                let _ = write!(text, "+{:#x}", r.offset);
            }
        }
        text.push('=');
        text.push_str(r.to.hex().as_str());
    }
    Some(text)
}

fn object_columns<'r>(refs: bool) -> Columns<'r, ObjectBrief> {
    columns::<ObjectBrief>()
        .address("address", |o| o.address)
        .address("method_table", |o| o.method_table)
        .bytes("size", |o| o.size)
        .width(11)
        .text("generation", 10, |o| o.generation.name())
        .text("type", if refs { 50 } else { 1 }, |o| &o.type_name)
        .made("refs", 1, references)
        .when(refs)
}

/// The list of `objects`, printed while the heap is walked.
pub fn objects(refs: bool) -> List<ObjectBrief> {
    List::new("objects", "object", object_columns(refs))
}

impl Report for ObjectsReport {
    fn describe<'r>(&'r self, to: &mut Sections<'r>) {
        let refs = self.objects.iter().any(|o| o.refs.is_some());
        to.table(Table::records("object", &self.objects, object_columns(refs)).csv(true));
        self.tail.describe(to);
    }
}

impl Report for ObjectsTail {
    fn describe<'r>(&'r self, to: &mut Sections<'r>) {
        to.itself("totals", self);
        match self.next_start {
            Some(next) => to.line(format!("… and more: --start {next} lists the next ones, --count 0 all")),
            None => {
                to.gap();
                to.line(format!("{} objects, {} bytes", count(self.listed), count(self.bytes)));
            }
        }
    }
}
