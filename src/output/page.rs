//! A page for people: headings, facts, tables.

use std::io::{self, Write};

use comfy_table::{CellAlignment, Table, presets};

use super::grid::{Align, Cell, Grid};
use super::sanitize;

/// Rows up to which a table is measured before it is printed. Beyond that a table crate needs gigabytes.
const MEASURED_ROWS: usize = 5_000;

/// Where an answer for people goes.
pub struct Page<'a> {
    out: &'a mut dyn Write,
    terminal: bool,
}

impl<'a> Page<'a> {
    /// A page that is written to `out`.
    pub fn new(out: &'a mut dyn Write, terminal: bool) -> Page<'a> {
        Page { out, terminal }
    }

    fn clean<'t>(&self, text: &'t str) -> std::borrow::Cow<'t, str> {
        if self.terminal { sanitize(text) } else { text.into() }
    }

    /// A line of text.
    ///
    /// # Errors
    /// Those of the writer; the same holds for the other methods.
    pub fn line(&mut self, text: &str) -> io::Result<()> {
        let text = self.clean(text).into_owned();
        writeln!(self.out, "{text}")
    }

    /// An empty line.
    ///
    /// # Errors
    /// See [`Page::line`].
    pub fn gap(&mut self) -> io::Result<()> {
        writeln!(self.out)
    }

    /// Names and values, aligned.
    ///
    /// # Errors
    /// See [`Page::line`].
    pub fn facts(&mut self, facts: &[(&str, String)]) -> io::Result<()> {
        let width = facts.iter().map(|f| f.0.chars().count()).max().unwrap_or(0);
        for (name, value) in facts {
            let value = self.clean(value).into_owned();
            writeln!(self.out, "{name:<width$}  {value}")?;
        }
        Ok(())
    }

    /// A table. `totals` is a last row set apart.
    ///
    /// # Errors
    /// See [`Page::line`].
    pub fn grid(&mut self, grid: &Grid<'_>, totals: Option<Vec<Cell>>) -> io::Result<()> {
        let head: Vec<Vec<Cell>> = grid.rows().take(MEASURED_ROWS + 1).collect();
        if head.len() > MEASURED_ROWS { self.long(grid, totals) } else { self.measured(grid, head, totals) }
    }

    fn measured(&mut self, grid: &Grid<'_>, rows: Vec<Vec<Cell>>, totals: Option<Vec<Cell>>) -> io::Result<()> {
        let mut table = Table::new();
        table.load_style(presets::NOTHING);
        table.set_header(grid.columns.iter().map(|c| title(c.name)));
        for row in rows.iter().chain(&totals) {
            table.add_row(row.iter().map(|c| self.clean(&c.human()).into_owned()));
        }
        for (i, column) in grid.columns.iter().enumerate() {
            if let Some(c) = table.column_mut(i) {
                c.set_padding(if i == 0 { (0, 1) } else { (1, 1) });
                c.set_cell_alignment(match column.align {
                    Align::Left => CellAlignment::Left,
                    Align::Right => CellAlignment::Right,
                });
            }
        }
        for line in table.lines() {
            writeln!(self.out, "{}", line.trim_end())?;
        }
        Ok(())
    }

    fn long(&mut self, grid: &Grid<'_>, totals: Option<Vec<Cell>>) -> io::Result<()> {
        let titles = grid.columns.iter().map(|c| Cell::Text(title(c.name))).collect();
        for row in std::iter::once(titles).chain(grid.rows()).chain(totals) {
            let mut line = String::new();
            for (column, cell) in grid.columns.iter().zip(&row) {
                let (text, width) = (cell.human(), usize::from(column.width));
                let text = self.clean(&text).into_owned();
                line.push_str(&match column.align {
                    Align::Left => format!("{text:<width$}  "),
                    Align::Right => format!("{text:>width$}  "),
                });
            }
            writeln!(self.out, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

pub(super) fn title(name: &str) -> String {
    name.replace('_', " ").to_uppercase()
}
