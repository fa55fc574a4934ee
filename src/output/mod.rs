//! Floor 7: renders model structs as tables, JSON, NDJSON or CSV. Reads no memory.

mod grid;
mod human;
mod page;
mod reports;
mod sanitize;
mod stream;

use std::io::{self, Write};

use serde::Serialize;
use serde_json::{Value, json};

pub use grid::{Align, Cell, Column, Grid};
pub use human::{bytes, count, plural};
pub use page::Page;
pub use sanitize::sanitize;
pub use stream::{Head, Stream};

use crate::model::Envelope;

/// Version of the JSON format.
pub const SCHEMA: &str = "gcdump/1";

/// An output format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// For people.
    Table,
    /// One JSON document.
    Json,
    /// One JSON record a line: a header, the rows, a footer.
    Ndjson,
    /// The rows as comma-separated values.
    Csv,
}

/// An answer that every format can print.
pub trait Report: Serialize {
    /// Whether nothing that was asked for is missing.
    fn complete(&self) -> bool;

    /// Records that something is missing.
    fn set_complete(&mut self, complete: bool);

    /// The rows as a flat table: what CSV prints.
    fn grid(&self) -> Grid<'_>;

    /// The rows as JSON: what NDJSON prints.
    fn records(&self) -> Box<dyn Iterator<Item = Value> + '_>;

    /// The answer for people.
    ///
    /// # Errors
    /// Those of the writer.
    fn page(&self, page: &mut Page<'_>) -> io::Result<()>;
}

/// Prints `envelope` in `format`. `terminal` says whether a person is looking.
///
/// # Errors
/// Those of the writer.
pub fn emit<R: Report>(envelope: &Envelope<&R>, format: Format, out: &mut dyn Write, terminal: bool) -> io::Result<()> {
    match format {
        Format::Table => envelope.data.page(&mut Page::new(out, terminal)),
        Format::Json => {
            if terminal {
                serde_json::to_writer_pretty(&mut *out, envelope)?;
            } else {
                serde_json::to_writer(&mut *out, envelope)?;
            }
            writeln!(out)
        }
        Format::Ndjson => ndjson(envelope, out),
        Format::Csv => csv(&envelope.data.grid(), out),
    }
}

fn ndjson<R: Report>(envelope: &Envelope<&R>, out: &mut dyn Write) -> io::Result<()> {
    let mut line = |value: &Value| -> io::Result<()> {
        serde_json::to_writer(&mut *out, value)?;
        writeln!(out)
    };
    line(&json!({
        "record": "header",
        "schema": envelope.schema,
        "command": envelope.command,
        "gcdump": envelope.gcdump,
        "dump": envelope.dump,
        "runtime": envelope.runtime,
    }))?;
    let mut rows = 0u64;
    for record in envelope.data.records() {
        line(&record)?;
        rows = rows.saturating_add(1);
    }
    // A reader without this line has not got all rows.
    line(&json!({ "record": "footer", "rows": rows, "complete": envelope.data.complete(), "warnings": envelope.warnings }))
}

fn csv(grid: &Grid<'_>, out: &mut dyn Write) -> io::Result<()> {
    let mut writer = csv::Writer::from_writer(out);
    writer.write_record(grid.columns.iter().map(|c| c.name))?;
    for row in grid.rows() {
        writer.write_record(row.iter().map(Cell::raw))?;
    }
    writer.flush()
}

/// A record of an NDJSON stream: the row's fields behind its kind.
pub(crate) fn record<T: Serialize>(kind: &str, row: &T) -> Value {
    let mut out = serde_json::Map::new();
    out.insert("record".into(), kind.into());
    if let Ok(Value::Object(fields)) = serde_json::to_value(row) {
        out.extend(fields);
    }
    Value::Object(out)
}
