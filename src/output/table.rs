//! Tables: columns that say how a cell is read, and the rows.

use std::borrow::{Borrow, Cow};
use std::io::{self, Write};
use std::marker::PhantomData;

use serde::Serialize;

use super::Cell;
use crate::base::Addr;

/// Which side a column's cells stick to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// Text.
    Left,
    /// Numbers.
    Right,
}

/// Who reads a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readers {
    /// Everybody.
    All,
    /// People: tables.
    People,
    /// Programs: CSV.
    Machines,
}

/// What a format knows of a column.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// Name, as in CSV; capitals in tables.
    pub name: &'static str,
    /// Which side its cells stick to.
    pub align: Align,
    /// Width in tables too long to be measured first.
    pub width: u16,
    /// Who reads it.
    pub readers: Readers,
}

/// How a cell of a row is read.
type Accessor<'r, T> = Box<dyn for<'a> Fn(&'a T) -> Cell<'a> + Send + Sync + 'r>;

/// The columns of a table whose rows are `T`.
pub struct Columns<'r, T> {
    columns: Vec<Column>,
    cells: Vec<Accessor<'r, T>>,
}

impl<T> std::fmt::Debug for Columns<'_, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Columns").field("columns", &self.columns).finish_non_exhaustive()
    }
}

/// No columns yet.
pub fn columns<'r, T>() -> Columns<'r, T> {
    Columns { columns: Vec::new(), cells: Vec::new() }
}

const ADDRESS_WIDTH: u16 = 18;
const NUMBER_WIDTH: u16 = 14;

impl<'r, T> Columns<'r, T> {
    fn add(mut self, name: &'static str, align: Align, width: u16, cell: Accessor<'r, T>) -> Columns<'r, T> {
        self.columns.push(Column { name, align, width, readers: Readers::All });
        self.cells.push(cell);
        self
    }

    fn number<V>(
        self,
        name: &'static str,
        kind: impl Fn(V) -> Cell<'static> + Send + Sync + 'r,
        value: impl Fn(&T) -> Option<V> + Send + Sync + 'r,
    ) -> Columns<'r, T> {
        self.add(name, Align::Right, NUMBER_WIDTH, Box::new(move |row| value(row).map_or(Cell::None, &kind)))
    }

    /// A column of addresses.
    pub fn address<V: Into<Option<Addr>>>(self, name: &'static str, value: impl Fn(&T) -> V + Send + Sync + 'r) -> Columns<'r, T> {
        self.add(name, Align::Right, ADDRESS_WIDTH, Box::new(move |row| value(row).into().map_or(Cell::None, Cell::Addr)))
    }

    /// A column of numbers.
    pub fn count<V: Into<Option<u64>>>(self, name: &'static str, value: impl Fn(&T) -> V + Send + Sync + 'r) -> Columns<'r, T> {
        self.number(name, Cell::Count, move |row| value(row).into())
    }

    /// A column of numbers of bytes.
    pub fn bytes<V: Into<Option<u64>>>(self, name: &'static str, value: impl Fn(&T) -> V + Send + Sync + 'r) -> Columns<'r, T> {
        self.number(name, Cell::Bytes, move |row| value(row).into())
    }

    /// A column of numbers that name something.
    pub fn id<V: Into<Option<u64>>>(self, name: &'static str, value: impl Fn(&T) -> V + Send + Sync + 'r) -> Columns<'r, T> {
        self.number(name, Cell::Id, move |row| value(row).into())
    }

    /// A column of parts of a whole, 0 to 1.
    pub fn share(self, name: &'static str, value: impl Fn(&T) -> f64 + Send + Sync + 'r) -> Columns<'r, T> {
        self.number(name, Cell::Share, move |row| Some(value(row)))
    }

    /// A column of text that the rows hold, usually at most `width` characters.
    pub fn text(self, name: &'static str, width: u16, value: impl for<'a> Fn(&'a T) -> &'a str + Send + Sync + 'r) -> Columns<'r, T> {
        self.add(name, Align::Left, width, Box::new(move |row| Cell::Text(Cow::Borrowed(value(row)))))
    }

    /// A column of text that not all rows hold.
    pub fn text_or_none(
        self,
        name: &'static str,
        width: u16,
        value: impl for<'a> Fn(&'a T) -> Option<&'a str> + Send + Sync + 'r,
    ) -> Columns<'r, T> {
        self.add(name, Align::Left, width, Box::new(move |row| value(row).map_or(Cell::None, |text| Cell::Text(Cow::Borrowed(text)))))
    }

    /// A column of text that is made from the row.
    pub fn made<V: Into<Option<String>>>(
        self,
        name: &'static str,
        width: u16,
        value: impl Fn(&T) -> V + Send + Sync + 'r,
    ) -> Columns<'r, T> {
        self.add(name, Align::Left, width, Box::new(move |row| value(row).into().map_or(Cell::None, |text| Cell::Text(Cow::Owned(text)))))
    }

    fn last(mut self, change: impl FnOnce(&mut Column)) -> Columns<'r, T> {
        if let Some(column) = self.columns.last_mut() {
            change(column);
        }
        self
    }

    /// The last column has this width in tables too long to be measured.
    #[must_use]
    pub fn width(self, width: u16) -> Columns<'r, T> {
        self.last(|c| c.width = width)
    }

    /// The last column sticks to the right.
    #[must_use]
    pub fn right(self) -> Columns<'r, T> {
        self.last(|c| c.align = Align::Right)
    }

    /// Only `readers` see the last column.
    #[must_use]
    pub fn only(self, readers: Readers) -> Columns<'r, T> {
        self.last(|c| c.readers = readers)
    }

    /// The last column is dropped unless `there`.
    #[must_use]
    pub fn when(mut self, there: bool) -> Columns<'r, T> {
        if !there {
            self.columns.pop();
            self.cells.pop();
        }
        self
    }

    /// What a format knows of them.
    pub fn list(&self) -> &[Column] {
        &self.columns
    }

    /// A row with these columns.
    pub fn row<'a>(&'a self, row: &'a T) -> impl Row + 'a
    where
        T: Serialize,
    {
        TableRow { row, columns: self, json: Some(json::<T>) }
    }
}

/// A row, whatever it is made of.
pub trait Row {
    /// The cell in the column with this index.
    fn cell(&self, column: usize) -> Cell<'_>;

    /// Writes the fields as a JSON object.
    ///
    /// # Errors
    /// Those of the writer.
    fn json(&self, out: &mut Vec<u8>) -> io::Result<()>;
}

type Json<T> = fn(&T, &mut Vec<u8>) -> io::Result<()>;

fn json<T: Serialize>(row: &T, out: &mut Vec<u8>) -> io::Result<()> {
    Ok(serde_json::to_writer(out, row)?)
}

struct TableRow<'a, 'r, T> {
    row: &'a T,
    columns: &'a Columns<'r, T>,
    json: Option<Json<T>>,
}

impl<T> Row for TableRow<'_, '_, T> {
    fn cell(&self, column: usize) -> Cell<'_> {
        self.columns.cells.get(column).map_or(Cell::None, |cell| cell(self.row))
    }

    fn json(&self, out: &mut Vec<u8>) -> io::Result<()> {
        match self.json {
            Some(json) => json(self.row, out),
            None => out.write_all(b"{}"),
        }
    }
}

/// Rows that can be gone through more than once.
pub trait Rows {
    /// Hands out the rows until `visit` fails.
    ///
    /// # Errors
    /// What `visit` returns.
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
        self.rows.clone().into_iter().try_for_each(|row| visit(&TableRow { row: row.borrow(), columns: &self.columns, json: self.json }))
    }
}

/// What stands above the rows of a table.
#[derive(Clone, Debug, Default)]
pub struct Heading {
    /// What NDJSON calls a row; where it has none, the rows are not among its records.
    pub record: Option<&'static str>,
    /// What the list is called in JSON, where it is printed while it is made.
    pub list: &'static str,
    /// Whether CSV has these rows.
    pub csv: bool,
    /// Whether people see them.
    pub shown: bool,
    /// Said in every NDJSON record, where a row is the answer itself.
    pub complete: Option<bool>,
    /// The columns.
    pub columns: Vec<Column>,
}

impl Heading {
    /// The columns for `readers`, with their indices.
    pub fn columns(&self, readers: Readers) -> impl Iterator<Item = (usize, &Column)> + Clone {
        self.columns.iter().enumerate().filter(move |(_, c)| c.readers == Readers::All || c.readers == readers)
    }
}

/// A table of a report.
pub struct Table<'r> {
    /// What stands above the rows.
    pub heading: Heading,
    /// The rows.
    pub rows: Box<dyn Rows + 'r>,
    /// A last row for people.
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
        let shown = !columns.columns.is_empty();
        let heading = Heading { shown, columns: columns.columns.clone(), ..Heading::default() };
        Table { heading, rows: Box::new(Bound { rows, columns, json, of: PhantomData }), totals: None }
    }

    /// A table for people, and, with [`Table::csv`], the rows of CSV.
    pub fn new<T: 'r, I>(rows: I, columns: Columns<'r, T>) -> Table<'r>
    where
        I: IntoIterator + Clone + 'r,
        I::Item: Borrow<T>,
    {
        Table::bound(rows, columns, None)
    }

    /// A table whose rows are NDJSON's records of the kind `record` as well.
    pub fn records<T: Serialize + 'r, I>(record: &'static str, rows: I, columns: Columns<'r, T>) -> Table<'r>
    where
        I: IntoIterator + Clone + 'r,
        I::Item: Borrow<T>,
    {
        let mut table = Table::bound(rows, columns, Some(json::<T>));
        table.heading.record = Some(record);
        table
    }

    /// Whether its rows are those of CSV.
    #[must_use]
    pub fn csv(mut self, csv: bool) -> Table<'r> {
        self.heading.csv = csv;
        self
    }

    /// Whether people see it.
    #[must_use]
    pub fn shown(mut self, shown: bool) -> Table<'r> {
        self.heading.shown = shown;
        self
    }

    /// A last row for people, one cell for each column.
    #[must_use]
    pub fn totals(mut self, totals: Vec<Cell<'static>>) -> Table<'r> {
        self.totals = Some(totals);
        self
    }
}
