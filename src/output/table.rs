//! Tables: columns with their accessors, and rows.

use std::borrow::{Borrow, Cow};
use std::io::{self, Write};
use std::marker::PhantomData;

use serde::Serialize;

use super::Cell;
pub use super::fit::Fit;
use super::seen::Link;
use crate::base::{Addr, Name, share};
use crate::clr::generated::field;

/// Alignment of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// Text.
    Left,
    /// Numbers.
    Right,
}

/// Which formats include a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readers {
    /// Tables and CSV.
    All,
    /// Tables only.
    People,
    /// CSV only.
    Machines,
    /// None: what `$1` and so on stand for where the row does not show it as an address.
    Links,
}

/// Properties of a column.
#[derive(Clone, Debug)]
pub struct Column {
    /// Name as in CSV.
    pub name: Cow<'static, str>,
    /// Title in tables; `None` for the name in words.
    pub title: Option<String>,
    /// Alignment.
    pub align: Align,
    /// Width in tables too long to measure.
    pub width: u16,
    /// Which formats include it.
    pub readers: Readers,
    /// How its cells give way where the screen is too narrow.
    pub fit: Fit,
    /// Below this width, another column leaves; cells that never give way have none.
    pub least: u16,
    /// Columns that keep least leave first where the screen is too narrow.
    pub keep: u8,
    /// The bar that terminals show beside it.
    pub bar: Bar,
}

/// Columns that a bar takes; of none 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bar {
    /// At least: columns leave for it. 0 if it is left out where there is no room.
    pub least: u16,
    /// At most.
    pub most: u16,
}

impl Bar {
    /// Beside a share.
    pub const USUAL: Bar = Bar { least: 0, most: 10 };
    /// A block below that of the row above, within its bounds.
    pub const BLOCK: Bar = Bar { least: 10, most: 48 };
}

/// Values of `keep`: of most columns, of those that identify a row, and of those that add detail to others.
const USUAL: u8 = 5;
const IDENTIFYING: u8 = 7;
const EXTRA: u8 = 2;

/// Values of `least`: of names, of text in several lines, and the smallest one of text.
pub(super) const LEAST_NAME: u16 = 26;
const LEAST_LINES: u16 = 32;
const LEAST_TEXT: u16 = 12;

/// Reads a cell from a row.
type Accessor<'r, T> = Box<dyn for<'a> Fn(&'a T) -> Cell<'a> + Send + Sync + 'r>;

/// How much of something is taken, as fractions of it: what a bar shows.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Fill {
    /// Where it begins.
    pub from: f64,
    /// Used.
    pub used: f64,
    /// Used or held ready.
    pub held: f64,
}

impl Fill {
    /// `used` and `held` of `whole`.
    pub fn of(used: u64, held: u64, whole: u64) -> Fill {
        Fill { from: 0.0, used: part(used, whole), held: part(held, whole) }
    }

    /// `length` of `whole`, from `from` on.
    pub fn block(from: u64, length: u64, whole: u64) -> Fill {
        Fill { from: part(from, whole), used: part(length, whole), held: 0.0 }
    }
}

/// `n` of `whole`: bars are coarser than the rounding.
fn part(n: u64, whole: u64) -> f64 {
    share(n, whole).unwrap_or(0.0)
}

/// Reads what a bar shows from a row.
type Filler<'r, T> = Box<dyn Fn(&T) -> Fill + Send + Sync + 'r>;

/// A column, and what it reads from a row of type `T`.
struct Source<'r, T> {
    column: Column,
    cell: Accessor<'r, T>,
    /// Contents of the bar beside it, unless that is its own share.
    fill: Option<Filler<'r, T>>,
}

/// The columns of a table with rows of type `T`.
pub struct Columns<'r, T>(Vec<Source<'r, T>>);

impl<T> std::fmt::Debug for Columns<'_, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.list()).finish()
    }
}

/// Creates an empty list of columns.
pub fn columns<'r, T>() -> Columns<'r, T> {
    Columns(Vec::new())
}

const ADDRESS_WIDTH: u16 = 18;
const NUMBER_WIDTH: u16 = 14;
const SHARE_WIDTH: u16 = 7;

/// Declares the kinds of numbers: the method that adds a column of them, its width, and their cells.
macro_rules! numbers {
    ($($(#[doc = $doc:literal])+ $name:ident($value:ty), $width:ident => $cell:ident;)+) => {
        impl<'r, T> Columns<'r, T> {
            $($(#[doc = $doc])+
            pub fn $name<V: Into<Option<$value>>>(self, name: &'static str, value: impl Fn(&T) -> V + Send + Sync + 'r) -> Columns<'r, T> {
                self.add(name, Align::Right, $width, Box::new(move |row| value(row).into().map_or(Cell::None, Cell::$cell)))
            })+
        }
    };
}

numbers! {
    /// Adds a column of addresses.
    address(Addr), ADDRESS_WIDTH => Addr;
    /// Adds a column of counts.
    count(u64), NUMBER_WIDTH => Count;
    /// Adds a column of byte counts.
    bytes(u64), NUMBER_WIDTH => Bytes;
    /// Adds a column of identifiers.
    id(u64), NUMBER_WIDTH => Id;
    /// Adds a column of changes.
    change(i64), NUMBER_WIDTH => Change;
    /// Adds a column of changes as fractions.
    growth(f64), NUMBER_WIDTH => Growth;
}

impl<'r, T> Columns<'r, T> {
    fn add(mut self, name: &'static str, align: Align, width: u16, cell: Accessor<'r, T>) -> Columns<'r, T> {
        let (fit, least) = match align {
            Align::Left => (Fit::Text, width.clamp(LEAST_TEXT, LEAST_NAME)),
            Align::Right => (Fit::Whole, u16::MAX),
        };
        let readers = Readers::All;
        let column = Column { name: name.into(), title: None, align, width, readers, fit, least, keep: USUAL, bar: Bar::default() };
        self.0.push(Source { column, cell, fill: None });
        self
    }

    /// Adds a column of fractions, 0 to 1, beside which terminals show bars.
    pub fn share<V: Into<Option<f64>>>(self, name: &'static str, value: impl Fn(&T) -> V + Send + Sync + 'r) -> Columns<'r, T> {
        let share = self.add(name, Align::Right, SHARE_WIDTH, Box::new(move |row| value(row).into().map_or(Cell::None, Cell::Share)));
        share.last(|c| c.bar = Bar::USUAL)
    }

    /// Adds a column of text borrowed from the rows, typically at most `width` characters.
    pub fn text(self, name: &'static str, width: u16, value: impl for<'a> Fn(&'a T) -> &'a str + Send + Sync + 'r) -> Columns<'r, T> {
        self.add(name, Align::Left, width, Box::new(move |row| Cell::Text(Cow::Borrowed(value(row)))))
    }

    /// Adds a column of optional text borrowed from the rows.
    pub fn text_or_none(
        self,
        name: &'static str,
        width: u16,
        value: impl for<'a> Fn(&'a T) -> Option<&'a str> + Send + Sync + 'r,
    ) -> Columns<'r, T> {
        self.add(name, Align::Left, width, Box::new(move |row| value(row).map_or(Cell::None, |text| Cell::Text(Cow::Borrowed(text)))))
    }

    /// Adds a column of names of types or methods, typically at most `width` characters.
    pub fn names(
        self,
        name: &'static str,
        width: u16,
        value: impl for<'a> Fn(&'a T) -> Option<&'a Name> + Send + Sync + 'r,
    ) -> Columns<'r, T> {
        self.add(name, Align::Left, width, Box::new(move |row| value(row).map_or(Cell::None, Cell::Name))).name()
    }

    /// Adds a column of maps, letters of [`MapCell`](crate::model::MapCell).
    pub fn map(self, name: &'static str, value: impl Fn(&T) -> String + Send + Sync + 'r) -> Columns<'r, T> {
        let map = self.add(name, Align::Left, NUMBER_WIDTH, Box::new(move |row| Cell::Map(Cow::Owned(value(row)))));
        map.last(|c| (c.fit, c.least) = (Fit::Cells, LEAST_LINES))
    }

    /// Adds a column of text computed from the row.
    pub fn made<V: Into<Option<String>>>(
        self,
        name: &'static str,
        width: u16,
        value: impl Fn(&T) -> V + Send + Sync + 'r,
    ) -> Columns<'r, T> {
        self.add(name, Align::Left, width, Box::new(move |row| value(row).into().map_or(Cell::None, |text| Cell::Text(Cow::Owned(text)))))
    }

    fn last(mut self, change: impl FnOnce(&mut Column)) -> Columns<'r, T> {
        if let Some(last) = self.0.last_mut() {
            change(&mut last.column);
        }
        self
    }

    /// Sets the width of the last column in tables too long to measure.
    #[must_use]
    pub fn width(self, width: u16) -> Columns<'r, T> {
        self.last(|c| c.width = width)
    }

    /// Appends a number to the name of the last column, for columns that there are several of.
    #[must_use]
    pub fn numbered(self, number: usize) -> Columns<'r, T> {
        self.last(|c| c.name = format!("{}_{number}", c.name).into())
    }

    /// Names the last column after a field, which tables write as the source does.
    #[must_use]
    pub fn of_field(self, path: String) -> Columns<'r, T> {
        self.last(|c| (c.title, c.name) = (Some(field(&path)), path.into()))
    }

    /// Terminals show a bar beside the last column.
    #[must_use]
    pub fn bar(mut self, fill: impl Fn(&T) -> Fill + Send + Sync + 'r) -> Columns<'r, T> {
        if let Some(last) = self.0.last_mut() {
            last.fill = Some(Box::new(fill));
        }
        self.last(|c| c.bar = Bar::USUAL)
    }

    /// Terminals show blocks beside the last column: what is below a row is below its block.
    #[must_use]
    pub fn blocks(self, block: impl Fn(&T) -> Fill + Send + Sync + 'r) -> Columns<'r, T> {
        self.bar(block).last(|c| c.bar = Bar::BLOCK)
    }

    /// Right-aligns the last column: numbers in words, which never give way.
    #[must_use]
    pub fn right(self) -> Columns<'r, T> {
        self.whole().last(|c| c.align = Align::Right)
    }

    /// The last column has names of types or methods.
    #[must_use]
    pub fn name(self) -> Columns<'r, T> {
        self.last(|c| (c.fit, c.least, c.keep) = (Fit::Name, LEAST_NAME, c.keep.max(IDENTIFYING)))
    }

    /// The last column has paths.
    #[must_use]
    pub fn path(self) -> Columns<'r, T> {
        self.last(|c| (c.fit, c.least) = (Fit::Path, LEAST_NAME))
    }

    /// The last column has words of a fixed set, or numbers, which never give way.
    #[must_use]
    pub fn whole(self) -> Columns<'r, T> {
        self.last(|c| (c.fit, c.least) = (Fit::Whole, u16::MAX))
    }

    /// Cells of the last column may take up to `most` lines.
    #[must_use]
    pub fn lines(self, most: u8) -> Columns<'r, T> {
        self.last(|c| (c.fit, c.least, c.keep) = (Fit::Lines(most), LEAST_LINES, c.keep.max(IDENTIFYING)))
    }

    /// The last column has names of types or methods within text, which may take up to `most` lines.
    #[must_use]
    pub fn name_lines(self, most: u8) -> Columns<'r, T> {
        self.lines(most).last(|c| c.fit = Fit::NameLines(most))
    }

    /// Sets the least width of the last column: below it, another column leaves.
    #[must_use]
    pub fn least(self, width: u16) -> Columns<'r, T> {
        self.last(|c| c.least = width)
    }

    /// The last column leaves before others where the screen is too narrow.
    #[must_use]
    pub fn extra(self) -> Columns<'r, T> {
        self.last(|c| c.keep = EXTRA)
    }

    /// Sets when the last column leaves: those that keep least first.
    #[must_use]
    pub fn keep(self, keep: u8) -> Columns<'r, T> {
        self.last(|c| c.keep = keep)
    }

    /// Restricts the last column to `readers`.
    #[must_use]
    pub fn only(self, readers: Readers) -> Columns<'r, T> {
        self.last(|c| c.readers = readers)
    }

    /// Drops the last column unless `there`.
    #[must_use]
    pub fn when(mut self, there: bool) -> Columns<'r, T> {
        if !there {
            self.0.pop();
        }
        self
    }

    /// Properties of the columns.
    pub fn list(&self) -> Vec<Column> {
        self.0.iter().map(|source| source.column.clone()).collect()
    }

    /// Binds a row to these columns.
    pub fn row<'a>(&'a self, row: &'a T) -> impl Row + 'a
    where
        T: Serialize,
    {
        TableRow { row, columns: self, json: Some(json::<T>) }
    }
}

/// A row of any type.
pub trait Row {
    /// The cell in the column at this index.
    fn cell(&self, column: usize) -> Cell<'_>;

    /// What the bar beside the column at this index shows, if that is not its own share.
    fn fill(&self, column: usize) -> Option<Fill>;

    /// Writes the row as a JSON object.
    ///
    /// # Errors
    /// Write errors.
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
        self.columns.0.get(column).map_or(Cell::None, |source| (source.cell)(self.row))
    }

    fn fill(&self, column: usize) -> Option<Fill> {
        Some(self.columns.0.get(column)?.fill.as_ref()?(self.row))
    }

    fn json(&self, out: &mut Vec<u8>) -> io::Result<()> {
        match self.json {
            Some(json) => json(self.row, out),
            None => out.write_all(b"{}"),
        }
    }
}

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
        self.rows.clone().into_iter().try_for_each(|row| visit(&TableRow { row: row.borrow(), columns: &self.columns, json: self.json }))
    }
}

/// Header of a table.
#[derive(Clone, Debug, Default)]
pub struct Heading {
    /// Record kind of the rows in NDJSON; `None` if they are not part of it.
    pub record: Option<&'static str>,
    /// Name of the list in JSON, for streamed lists.
    pub list: &'static str,
    /// Whether CSV includes these rows.
    pub csv: bool,
    /// Whether the table format includes them.
    pub shown: bool,
    /// Value of `complete` in NDJSON records, for rows that are the answer itself.
    pub complete: Option<bool>,
    /// The columns.
    pub columns: Vec<Column>,
}

impl Heading {
    /// The columns for `readers`, with indices.
    pub fn columns(&self, readers: Readers) -> impl Iterator<Item = (usize, &Column)> + Clone {
        self.columns.iter().enumerate().filter(move |(_, c)| c.readers == Readers::All || c.readers == readers)
    }

    /// The first address in a row that people see, or that it stands for.
    pub(super) fn link_of(&self, row: &dyn Row) -> Option<Link> {
        let mut links =
            self.columns.iter().enumerate().filter(|(_, c)| matches!(c.readers, Readers::All | Readers::People | Readers::Links));
        links.find_map(|(i, column)| match row.cell(i) {
            Cell::Addr(address) if !address.is_null() => Some(Link { address, is_type: column.name == "method_table" }),
            _ => None,
        })
    }
}

/// A table of a report.
pub struct Table<'r> {
    /// Header.
    pub heading: Heading,
    /// The rows.
    pub rows: Box<dyn Rows + 'r>,
    /// Totals row (table format only).
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
        let heading = Heading { shown: !columns.0.is_empty(), columns: columns.list(), ..Heading::default() };
        Table { heading, rows: Box::new(Bound { rows, columns, json, of: PhantomData }), totals: None }
    }

    /// A table for the table format and, with [`Table::csv`], for CSV.
    pub fn new<T: 'r, I>(rows: I, columns: Columns<'r, T>) -> Table<'r>
    where
        I: IntoIterator + Clone + 'r,
        I::Item: Borrow<T>,
    {
        Table::bound(rows, columns, None)
    }

    /// A table whose rows are also NDJSON records of kind `record`.
    pub fn records<T: Serialize + 'r, I>(record: &'static str, rows: I, columns: Columns<'r, T>) -> Table<'r>
    where
        I: IntoIterator + Clone + 'r,
        I::Item: Borrow<T>,
    {
        let mut table = Table::bound(rows, columns, Some(json::<T>));
        table.heading.record = Some(record);
        table
    }

    /// Sets whether CSV includes its rows.
    #[must_use]
    pub fn csv(mut self, csv: bool) -> Table<'r> {
        self.heading.csv = csv;
        self
    }

    /// Sets whether the table format includes it.
    #[must_use]
    pub fn shown(mut self, shown: bool) -> Table<'r> {
        self.heading.shown = shown;
        self
    }

    /// Adds a totals row, one cell per column that people see.
    #[must_use]
    pub fn totals(mut self, totals: Vec<Cell<'static>>) -> Table<'r> {
        self.totals = Some(totals);
        self
    }
}
