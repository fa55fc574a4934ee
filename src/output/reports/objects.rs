//! The answer of `objects`: columns of the list and its last lines.

use std::fmt::Write;

use crate::analysis::{ObjectBrief, ObjectsReport, ObjectsTail};
use crate::model::FieldValue;
use crate::output::columns::{Columns, Readers, columns};
use crate::output::report::{Report, Sections};
use crate::output::table::Table;
use crate::output::{List, count, plural};

/// Formats the references of an object, separated by spaces: `_next=0x7f0012ab`.
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
                // Writing to a string cannot fail.
                let _ = write!(text, "+{:#x}", r.offset);
            }
        }
        text.push('=');
        text.push_str(r.to.hex().as_str());
    }
    Some(text)
}

/// Returns the value of a requested field.
fn value_of<'o>(o: &'o ObjectBrief, path: &str) -> Option<&'o FieldValue> {
    o.fields.as_ref()?.get(path)?.as_ref()
}

/// Columns of objects, with one column for each of `fields`.
fn object_columns<'r>(refs: bool, fields: &[String]) -> Columns<'r, ObjectBrief> {
    let columns = columns![
        ObjectBrief,
        address(address),
        address(method_table).extra(),
        bytes(size).width(11),
        word(generation, 10),
        names(type_name, 50),
        text("refs", 48, references).lines(3).when(refs)
    ];
    fields.iter().fold(columns, |columns, path| {
        let (shown, exact) = (path.clone(), path.clone());
        columns.and(columns![
            ObjectBrief,
            text("field", 24, |o| value_of(o, &shown).map(|value| &value.text)).of_field(path.clone()).lines(2).only(Readers::People),
            text("field", 24, |o| value_of(o, &exact).map(FieldValue::unquoted)).of_field(path.clone()).only(Readers::Machines)
        ])
    })
}

/// Creates the list of `objects`, which is streamed during the heap walk.
pub fn objects(refs: bool, fields: &[String]) -> List<ObjectBrief> {
    List::new("objects", "object", object_columns(refs, fields))
}

impl Report for ObjectsReport {
    fn describe<'r>(&'r self, to: &mut Sections<'r>) {
        let refs = self.objects.iter().any(|o| o.refs.is_some());
        let fields: Vec<String> = self.objects.iter().find_map(|o| o.fields.as_ref()).into_iter().flat_map(|f| f.keys().cloned()).collect();
        to.table(Table::records("object", &self.objects, object_columns(refs, &fields)).csv(true));
        self.tail.describe(to);
    }
}

impl Report for ObjectsTail {
    fn describe<'r>(&'r self, to: &mut Sections<'r>) {
        to.itself("totals", self);
        let free = match self.free_count {
            0 => String::new(),
            n => format!(", and {}, {}", plural(n, "free block"), plural(self.free_bytes, "byte")),
        };
        let all = format!("{}, {}{free}", plural(self.total, "object"), plural(self.total_bytes, "byte"));
        to.gap_if(self.next_start.is_none());
        let rows = self.total.saturating_add(self.free_count);
        let end = self.next_start.unwrap_or(rows);
        let first = end.saturating_sub(self.listed).saturating_add(1);
        to.line(match self.next_start {
            Some(next) => format!("rows {} to {} of {all} (next: --skip {next}; all: --top 0)", count(first), count(end)),
            None if self.listed > 0 && self.listed < rows => format!("rows {} to {} of {all}", count(first), count(end)),
            None => all,
        });
    }
}
