//! Rows that are printed while they are made: a heap may have a hundred million objects.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::{Value, json};

use super::grid::{Align, Cell, Column};
use super::page::title;
use super::{Format, record, sanitize};
use crate::model::{DumpModel, Envelope, RuntimeModel};

/// What an answer begins with.
pub type Head = Envelope<()>;

/// An answer with one long list, in any format.
pub struct Stream<'w> {
    out: &'w mut dyn Write,
    format: Format,
    terminal: bool,
    kind: &'static str,
    columns: Vec<Column>,
    rows: u64,
}

impl<'w> Stream<'w> {
    /// Begins the answer. `list` names the list in JSON, `kind` its rows in NDJSON.
    ///
    /// # Errors
    /// Those of the writer; the same holds for the other methods.
    pub fn begin(
        out: &'w mut dyn Write,
        (format, terminal): (Format, bool),
        head: &Head,
        (list, kind): (&'static str, &'static str),
        columns: Vec<Column>,
    ) -> io::Result<Stream<'w>> {
        #[derive(Serialize)]
        struct Opening<'h> {
            schema: &'h str,
            command: &'h str,
            gcdump: &'h str,
            dump: &'h DumpModel,
            runtime: &'h Option<RuntimeModel>,
        }
        let opening =
            Opening { schema: &head.schema, command: &head.command, gcdump: &head.gcdump, dump: &head.dump, runtime: &head.runtime };
        match format {
            Format::Json => {
                let text = serde_json::to_string(&opening)?;
                // One row a line: a reader that takes the first lines only gets them at once.
                let open = text.strip_suffix('}').unwrap_or(&text);
                writeln!(out, "{open},\"data\":{{\"{list}\":[")?;
            }
            Format::Ndjson => {
                serde_json::to_writer(&mut *out, &record("header", &opening))?;
                writeln!(out)?;
            }
            Format::Csv => {
                let mut writer = csv::Writer::from_writer(&mut *out);
                writer.write_record(columns.iter().map(|c| c.name))?;
                writer.flush()?;
            }
            Format::Table => {
                let titles = columns.iter().map(|c| title(c.name)).collect::<Vec<_>>();
                line(out, &columns, titles.iter().map(String::as_str), terminal)?;
            }
        }
        Ok(Stream { out, format, terminal, kind, columns, rows: 0 })
    }

    /// Rows printed so far.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Prints one row.
    ///
    /// # Errors
    /// See [`Stream::begin`].
    pub fn row<T: Serialize>(&mut self, row: &T, cells: impl FnOnce(&T) -> Vec<Cell>) -> io::Result<()> {
        match self.format {
            Format::Json => {
                if self.rows > 0 {
                    writeln!(self.out, ",")?;
                }
                serde_json::to_writer(&mut *self.out, row)?;
            }
            Format::Ndjson => {
                serde_json::to_writer(&mut *self.out, &record(self.kind, row))?;
                writeln!(self.out)?;
            }
            Format::Csv => {
                let mut writer = csv::Writer::from_writer(Vec::new());
                writer.write_record(cells(row).iter().map(Cell::raw))?;
                let bytes = writer.into_inner().map_err(|e| io::Error::other(e.to_string()))?;
                self.out.write_all(&bytes)?;
            }
            Format::Table => {
                let cells: Vec<String> = cells(row).iter().map(Cell::human).collect();
                line(self.out, &self.columns, cells.iter().map(String::as_str), self.terminal)?;
            }
        }
        self.rows = self.rows.saturating_add(1);
        Ok(())
    }

    /// Ends the answer: `tail` are the fields of `data` beside the list, `complete` among them.
    ///
    /// # Errors
    /// See [`Stream::begin`].
    pub fn finish<T: Serialize>(self, tail: &T, complete: bool, warnings: &[crate::base::Note]) -> io::Result<()> {
        match self.format {
            Format::Json => {
                let rest = serde_json::to_string(tail)?;
                let fields = rest.strip_prefix('{').and_then(|r| r.strip_suffix('}')).unwrap_or("");
                let comma = if fields.is_empty() { "" } else { "," };
                let warnings = serde_json::to_string(warnings)?;
                writeln!(self.out, "\n]{comma}{fields}}},\"warnings\":{warnings}}}")
            }
            Format::Ndjson => {
                serde_json::to_writer(&mut *self.out, &record("totals", tail))?;
                let footer: Value =
                    json!({ "record": "footer", "rows": self.rows.saturating_add(1), "complete": complete, "warnings": warnings });
                writeln!(self.out)?;
                serde_json::to_writer(&mut *self.out, &footer)?;
                writeln!(self.out)
            }
            Format::Csv | Format::Table => Ok(()),
        }
    }
}

/// A line of a table whose columns have fixed widths, as not all of it is known.
fn line<'c>(out: &mut dyn Write, columns: &[Column], cells: impl Iterator<Item = &'c str>, terminal: bool) -> io::Result<()> {
    let mut text = String::new();
    for (column, cell) in columns.iter().zip(cells) {
        let cell = if terminal { sanitize(cell) } else { cell.into() };
        let width = usize::from(column.width);
        text.push_str(&match column.align {
            Align::Left => format!("{cell:<width$}  "),
            Align::Right => format!("{cell:>width$}  "),
        });
    }
    writeln!(out, "{}", text.trim_end())
}
