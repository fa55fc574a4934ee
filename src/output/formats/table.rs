//! Human-readable tables, facts and lines.

use std::borrow::Cow;
use std::io::{self, Write};

use comfy_table::{CellAlignment, presets};

use super::{Out, Writer};
use crate::output::printed;
use crate::output::report::Section;
use crate::output::table::{Align, Heading, Readers, Row, Table as Rows};
use crate::output::{Cell, sanitize};

pub(super) struct Table;

/// Maximum rows of a table whose column widths are measured; beyond that, measuring would take gigabytes.
const MEASURED_ROWS: usize = 5_000;

fn clean(text: Cow<'_, str>, terminal: bool) -> Cow<'_, str> {
    if !terminal {
        return text;
    }
    match sanitize(&text) {
        Cow::Owned(clean) => Cow::Owned(clean),
        Cow::Borrowed(_) => text,
    }
}

fn title(name: &str) -> String {
    name.replace('_', " ").to_uppercase()
}

/// Appends one line with fixed column widths, for tables that are not measured.
fn line<'c>(heading: &Heading, cells: impl Iterator<Item = Cow<'c, str>>, terminal: bool, to: &mut Vec<u8>) -> io::Result<()> {
    let start = to.len();
    for ((_, column), cell) in heading.columns(Readers::People).zip(cells) {
        let (text, width) = (clean(cell, terminal), usize::from(column.width));
        match column.align {
            Align::Left => write!(to, "{text:<width$}  ")?,
            Align::Right => write!(to, "{text:>width$}  ")?,
        }
    }
    let end = to.get(start..).unwrap_or_default().trim_ascii_end().len();
    to.truncate(start.saturating_add(end));
    to.push(b'\n');
    Ok(())
}

fn human<'r>(heading: &'r Heading, row: &'r dyn Row) -> impl Iterator<Item = Cow<'r, str>> {
    heading.columns(Readers::People).map(|(i, _)| Cow::Owned(row.cell(i).human().into_owned()))
}

impl Writer for Table {
    fn section(&self, out: &mut Out<'_>, section: Section<'_>) -> io::Result<()> {
        let terminal = out.terminal;
        if printed::continues() && !matches!(section, Section::Table(_)) {
            return Ok(());
        }
        match section {
            Section::Line(text) => writeln!(out.to, "{}", clean(text, terminal)),
            Section::Lines(mut lines) => lines.try_for_each(|text| writeln!(out.to, "{}", clean(text.into(), terminal))),
            Section::Gap => writeln!(out.to),
            Section::Facts(facts) => {
                let width = facts.iter().map(|f| f.0.chars().count()).max().unwrap_or(0);
                facts.iter().try_for_each(|(name, value)| writeln!(out.to, "{name:<width$}  {}", clean(value.into(), terminal)))
            }
            Section::Table(table) if table.heading.shown => self.table(out, &table),
            Section::Table(_) => Ok(()),
        }
    }

    fn list(&self, out: &mut Out<'_>, heading: &Heading) -> io::Result<()> {
        let mut text = Vec::new();
        line(heading, heading.columns(Readers::People).map(|(_, c)| title(&c.name).into()), out.terminal, &mut text)?;
        out.to.write_all(&text)
    }

    fn row(&self, heading: &Heading, row: &dyn Row, number: u64, terminal: bool, to: &mut Vec<u8>) -> io::Result<()> {
        if number < printed::skipped() {
            return Ok(());
        }
        line(heading, human(heading, row), terminal, to)
    }
}

impl Table {
    fn table(&self, out: &mut Out<'_>, table: &Rows<'_>) -> io::Result<()> {
        let mut rows: Vec<Vec<String>> = Vec::new();
        let heading = &table.heading;
        let mut shown = printed::Rows::begin();
        let measured = table.rows.each(&mut |row| {
            if !shown.next(heading, row) {
                return Ok(());
            }
            if rows.len() >= MEASURED_ROWS {
                return Err(io::ErrorKind::OutOfMemory.into());
            }
            rows.push(human(heading, row).map(|cell| clean(cell, out.terminal).into_owned()).collect());
            Ok(())
        });
        let totals = table.totals.as_ref().filter(|_| !printed::continues()).map(|cells| cells.iter().map(Cell::human));
        if measured.is_ok() && rows.is_empty() && printed::continues() {
            return Ok(());
        }
        if measured.is_ok() {
            rows.extend(totals.map(|cells| cells.map(Cow::into_owned).collect()));
            return grid(out, heading, rows);
        }
        self.list(out, heading)?;
        out.rows(self, table)?;
        let mut last = Vec::new();
        totals.map_or(Ok(()), |cells| line(heading, cells, out.terminal, &mut last))?;
        out.to.write_all(&last)
    }
}

/// Prints a measured table.
fn grid(out: &mut Out<'_>, heading: &Heading, rows: Vec<Vec<String>>) -> io::Result<()> {
    let mut table = comfy_table::Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(heading.columns(Readers::People).map(|(_, c)| title(&c.name)));
    for row in rows {
        table.add_row(row);
    }
    for (i, (_, column)) in heading.columns(Readers::People).enumerate() {
        if let Some(c) = table.column_mut(i) {
            c.set_padding(if i == 0 { (0, 1) } else { (1, 1) });
            c.set_cell_alignment(match column.align {
                Align::Left => CellAlignment::Left,
                Align::Right => CellAlignment::Right,
            });
        }
    }
    for line in table.lines() {
        writeln!(out.to, "{}", line.trim_end())?;
    }
    Ok(())
}
