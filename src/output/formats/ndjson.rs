//! One JSON record per line: header, rows, footer. The kind of the record comes first.

use std::io::{self, Write};

use serde::Serialize;

use super::{Out, Whole, Writer};
use crate::base::Note;
use crate::model::Head;
use crate::output::report::Section;
use crate::output::layout::Layout;
use crate::output::columns::Row;
use crate::output::table::Heading;

pub(super) struct Ndjson;

#[derive(Serialize)]
struct Header<'h> {
    record: &'static str,
    #[serde(flatten)]
    head: &'h Head,
}

/// The last line. If it is missing, the output is truncated.
#[derive(Serialize)]
struct Footer<'n> {
    record: &'static str,
    rows: u64,
    complete: bool,
    warnings: Vec<&'n Note>,
}

impl Writer for Ndjson {
    fn begin(&self, out: &mut Out<'_>) -> io::Result<()> {
        serde_json::to_writer(&mut *out.to, &Header { record: "header", head: out.head })?;
        writeln!(out.to)
    }

    fn section(&self, out: &mut Out<'_>, section: Section<'_>) -> io::Result<()> {
        match section {
            Section::Table(table) if table.heading.record.is_some() => out.rows(self, &table),
            _ => Ok(()),
        }
    }

    fn row(&self, heading: &Heading, row: &dyn Row, _number: u64, _layout: &Layout, to: &mut Vec<u8>) -> io::Result<()> {
        // Record kinds are constants that need no escaping.
        to.extend_from_slice(b"{\"record\":\"");
        to.extend_from_slice(heading.record.unwrap_or_default().as_bytes());
        to.push(b'"');
        if let Some(complete) = heading.complete {
            write!(to, ",\"complete\":{complete}")?;
        }
        let start = to.len();
        row.json(to)?;
        // Replaces the opening brace of the row, because the object is already open.
        if let Some(brace) = to.get_mut(start) {
            *brace = b',';
        }
        if to.ends_with(b",}") {
            to.truncate(start);
            to.push(b'}');
        }
        to.push(b'\n');
        Ok(())
    }

    fn end(&self, out: &mut Out<'_>, answer: &dyn Whole) -> io::Result<()> {
        let notes = answer.notes();
        let footer = Footer { record: "footer", rows: out.rows, complete: notes.complete(), warnings: notes.iter().collect() };
        serde_json::to_writer(&mut *out.to, &footer)?;
        writeln!(out.to)
    }

    fn carries_notes(&self) -> bool {
        true
    }
}
