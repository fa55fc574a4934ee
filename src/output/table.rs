//! Tables of reports: headings, and rows that can be read several times.

use std::borrow::Borrow;
use std::io;
use std::marker::PhantomData;

use serde::Serialize;

use super::Cell;
use super::columns::{Column, Columns, Json, Readers, Row};
use super::json_rows;
use super::seen::Link;

/// Rows that can be iterated more than once.
pub trait Rows {
    /// Visits the rows until `visit` fails.
    ///
    /// # Errors
    /// The error returned by `visit`.
    fn each(&self, visit: &mut dyn FnMut(&dyn Row) -> io::Result<()>) -> io::Result<()>;
}

struct Bound<'r, T, I> {
    rows: I,
    columns: Columns<'r, T>,
    json: Option<Json<T>>,
    of: PhantomData<&'r T>,
}

impl<T, I> Rows for Bound<'_, T, I>
where
    I: IntoIterator + Clone,
    I::Item: Borrow<T>,
{
    fn each(&self, visit: &mut dyn FnMut(&dyn Row) -> io::Result<()>) -> io::Result<()> {
        self.rows.clone().into_iter().try_for_each(|row| visit(&self.columns.bound(row.borrow(), self.json)))
    }
}

/// Header of a table.
#[derive(Clone, Debug, Default)]
pub struct Heading {
    /// Record kind of the rows in NDJSON; `None` if NDJSON does not include the rows.
    pub record: Option<&'static str>,
    /// Name of the list in JSON, for streamed lists.
    pub list: &'static str,
    /// Whether CSV includes these rows.
    pub csv: bool,
    /// Whether tables, HTML and Markdown include these rows.
    pub shown: bool,
    /// Value of `complete` in NDJSON records, for rows that are the answer itself.
    pub complete: Option<bool>,
    /// The columns.
    pub columns: Vec<Column>,
}

impl Heading {
    /// Returns the columns for `readers`, with indices.
    pub fn columns(&self, readers: Readers) -> impl Iterator<Item = (usize, &Column)> + Clone {
        self.columns.iter().enumerate().filter(move |(_, c)| c.readers == Readers::All || c.readers == readers)
    }

    /// Returns the address that a row is about, in the visible columns and the link columns: the object if a column has one, else the first address.
    pub(super) fn link_of(&self, row: &dyn Row) -> Option<Link> {
        let mut links =
            self.columns.iter().enumerate().filter(|(_, c)| matches!(c.readers, Readers::All | Readers::People | Readers::Links));
        let link = |(i, column): (usize, &Column)| match row.cell(i) {
            Cell::Addr(address) if !address.is_null() => Some(Link { address, is_type: column.name == "method_table" }),
            _ => None,
        };
        let object = links.clone().find(|(_, column)| column.name == "object").and_then(link);
        object.or_else(|| links.find_map(link))
    }
}

/// The first rows of a table.
struct First<'r> {
    most: u64,
    rows: Box<dyn Rows + 'r>,
}

impl Rows for First<'_> {
    fn each(&self, print: &mut dyn FnMut(&dyn Row) -> io::Result<()>) -> io::Result<()> {
        let mut left = self.most;
        self.rows.each(&mut |row| {
            let is_listed = left > 0;
            left = left.saturating_sub(1);
            if is_listed { print(row) } else { Ok(()) }
        })
    }
}

/// A table of a report.
pub struct Table<'r> {
    /// Header.
    pub heading: Heading,
    /// The rows.
    pub rows: Box<dyn Rows + 'r>,
    /// Totals row (tables and HTML).
    pub totals: Option<Vec<Cell<'static>>>,
}

impl std::fmt::Debug for Table<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Table").field("heading", &self.heading).finish_non_exhaustive()
    }
}

impl<'r> Table<'r> {
    fn bound<T: 'r, I>(rows: I, columns: Columns<'r, T>, json: Option<Json<T>>) -> Table<'r>
    where
        I: IntoIterator + Clone + 'r,
        I::Item: Borrow<T>,
    {
        let list = columns.list();
        let heading = Heading { shown: !list.is_empty(), columns: list, ..Heading::default() };
        Table { heading, rows: Box::new(Bound { rows, columns, json, of: PhantomData }), totals: None }
    }

    /// Creates a table for the table format and, with [`Table::csv`], for CSV.
    pub fn new<T: 'r, I>(rows: I, columns: Columns<'r, T>) -> Table<'r>
    where
        I: IntoIterator + Clone + 'r,
        I::Item: Borrow<T>,
    {
        Table::bound(rows, columns, None)
    }

    /// Creates a table whose rows are also NDJSON records of kind `record`.
    pub fn records<T: Serialize + 'r, I>(record: &'static str, rows: I, columns: Columns<'r, T>) -> Table<'r>
    where
        I: IntoIterator + Clone + 'r,
        I::Item: Borrow<T>,
    {
        let mut table = Table::bound(rows, columns, Some(json_rows::write::<T>));
        table.heading.record = Some(record);
        table
    }

    /// Restricts the table to its first `most` rows.
    #[must_use]
    pub(super) fn cut(self, most: u64) -> Table<'r> {
        Table { rows: Box::new(First { most, rows: self.rows }), ..self }
    }

    /// Sets whether CSV includes the rows of the table.
    #[must_use]
    pub fn csv(mut self, csv: bool) -> Table<'r> {
        self.heading.csv = csv;
        self
    }

    /// Sets whether tables, HTML and Markdown include the table.
    #[must_use]
    pub fn shown(mut self, shown: bool) -> Table<'r> {
        self.heading.shown = shown;
        self
    }

    /// Adds a totals row, with one cell per visible column.
    #[must_use]
    pub fn totals(mut self, totals: Vec<Cell<'static>>) -> Table<'r> {
        self.totals = Some(totals);
        self
    }
}
