//! Tables: columns with their accessors, and rows.

use std::borrow::{Borrow, Cow};
use std::io::{self, Write};
use std::marker::PhantomData;

use serde::Serialize;

use super::Cell;
pub use super::bar::{Bar, Fill};
pub use super::fit::Fit;
use super::json_rows;
use super::seen::Link;
pub use super::value::{Named, Number, Text};
use crate::base::{Addr, Name, Word};
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
    /// Tables, HTML, Markdown and CSV.
    All,
    /// Tables, HTML and Markdown.
    People,
    /// CSV only.
    Machines,
    /// No format shows the column, but `$1` and so on may refer to the address in it.
    Links,
}

/// Properties of a column.
#[derive(Clone, Debug)]
pub struct Column {
    /// Name in CSV.
    pub name: Cow<'static, str>,
    /// Title in tables; `None` for the name as words.
    pub title: Option<String>,
    /// Alignment.
    pub align: Align,
    /// Width in tables too long to measure.
    pub width: u16,
    /// The formats that include the column.
    pub readers: Readers,
    /// How its cells are shortened if the screen is too narrow.
    pub fit: Fit,
    /// Minimum width; if there is less room, another column is dropped. Unused for cells that are never shortened.
    pub least: u16,
    /// Priority: columns with the smallest value are dropped first if the screen is too narrow.
    pub keep: u8,
    /// The bar that terminals show next to the column.
    pub bar: Bar,
}

impl Column {
    /// Whether a format shows the column. Link columns only determine what `$1` refers to.
    pub(super) fn is_shown(&self) -> bool {
        self.readers != Readers::Links
    }

    /// Whether `name` is the column's name as options spell it: `Object-Type` for `object_type`.
    pub(super) fn is_named(&self, name: &str) -> bool {
        let plain = |c: char| if c == '-' { '_' } else { c.to_ascii_lowercase() };
        self.name.chars().map(plain).eq(name.chars().map(plain))
    }
}

/// Adds the names of `columns` that are not in `names` yet, for the error about an unknown column.
pub(super) fn add_names<'c>(columns: impl IntoIterator<Item = &'c Column>, names: &mut Vec<String>) {
    for column in columns.into_iter().filter(|c| c.is_shown()) {
        if !names.iter().any(|known| *known == column.name) {
            names.push(column.name.to_string());
        }
    }
}

/// Values of `keep`: for most columns, for columns that identify a row, and for columns that add detail.
const USUAL: u8 = 5;
const IDENTIFYING: u8 = 7;
const EXTRA: u8 = 2;

/// Values of `least`: for names, for text in several lines, and the minimum for text.
pub(super) const LEAST_NAME: u16 = 26;
const LEAST_LINES: u16 = 32;
const LEAST_TEXT: u16 = 12;

/// Reads a cell from a row.
type Accessor<'r, T> = Box<dyn for<'a> Fn(&'a T) -> Cell<'a> + Send + Sync + 'r>;

/// Reads the contents of a bar from a row.
type Filler<'r, T> = Box<dyn Fn(&T) -> Fill + Send + Sync + 'r>;

/// A column, and how to read its cells from a row of type `T`.
struct Source<'r, T> {
    column: Column,
    cell: Accessor<'r, T>,
    /// Contents of the bar next to the cell; `None` if the bar shows the share in the cell.
    fill: Option<Filler<'r, T>>,
}

/// The columns of a table with rows of type `T`.
pub struct Columns<'r, T>(Vec<Source<'r, T>>);

impl<T> std::fmt::Debug for Columns<'_, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.list()).finish()
    }
}

/// Lists the columns of a table with rows of a type. Each has a kind, a method of [`Columns`]; a value; and properties, other methods:
///
/// ```text
/// columns![
///     Request,
///     address(object).keep(8),                     // the field `object`
///     word(state, 10),                             // typically up to 10 characters wide
///     names(handler.type_name, 60),                // a field of a field; a column of `type_name` is called `type`, as in JSON
///     count("connections" = open_connections),     // a field whose column has a different name
///     text("flags", 20, |r| r.flags.join(" ")),    // a computed value
/// ]
/// ```
macro_rules! columns {
    ($row:ty $(, $kind:ident($($value:tt)+) $(.$property:ident($($argument:tt)*))*)* $(,)?) => {{
        let columns = $crate::output::table::Columns::<$row>::default();
        $(
            let column = $crate::output::table::Columns::<$row>::default();
            let columns = columns.and($crate::output::table::column!(column, $kind, $($value)+)$(.$property($($argument)*))*);
        )*
        columns
    }};
}

/// Adds a column of [`columns!`] to an empty list.
macro_rules! column {
    // The name of a column that shows a field.
    (@name type_name) => { "type" };
    (@name $field:ident) => { stringify!($field) };
    (@name $row:ident.$($field:ident).+) => { $crate::output::table::column!(@name $($field).+) };
    // What a column shows of a field: text is borrowed, all else is copied.
    (@field text $field:expr) => { $crate::output::table::Text::text(&$field) };
    (@field names $field:expr) => { $crate::output::table::Named::named(&$field) };
    (@field $kind:ident $field:expr) => { $field };
    // What it shows of a computed value.
    (@value text $value:expr) => { $crate::output::table::Text::text($value) };
    (@value names $value:expr) => { $crate::output::table::Named::named($value) };
    (@value $kind:ident $value:expr) => { $value };
    ($to:ident, $kind:ident, $name:literal = $($field:ident).+ $(, $width:literal)?) => {
        $to.$kind($name, $($width,)? |row| $crate::output::table::column!(@field $kind row.$($field).+))
    };
    ($to:ident, $kind:ident, $($field:ident).+ $(, $width:literal)?) => {
        $to.$kind(
            $crate::output::table::column!(@name $($field).+),
            $($width,)?
            |row| $crate::output::table::column!(@field $kind row.$($field).+),
        )
    };
    ($to:ident, $kind:ident, $name:expr, $($width:literal,)? $(move)? |$of:pat_param| $value:expr) => {
        $to.$kind($name, $($width,)? move |$of| $crate::output::table::column!(@value $kind $value))
    };
    ($to:ident, $kind:ident, $name:expr, $($width:literal,)? $function:path) => {
        $to.$kind($name, $($width,)? move |row| $crate::output::table::column!(@value $kind $function(row)))
    };
}
pub(crate) use {column, columns};

impl<T> Default for Columns<'_, T> {
    fn default() -> Self {
        Columns(Vec::new())
    }
}

const ADDRESS_WIDTH: u16 = 18;
const NUMBER_WIDTH: u16 = 14;
const SHARE_WIDTH: u16 = 7;

/// Declares the kinds of number columns: the method that adds one, its width, and its cells.
macro_rules! numbers {
    ($($(#[doc = $doc:literal])+ $name:ident($value:ty), $width:ident => $cell:ident;)+) => {
        impl<'r, T> Columns<'r, T> {
            $($(#[doc = $doc])+
            pub fn $name<V: Number<$value>>(self, name: &'static str, value: impl Fn(&T) -> V + Send + Sync + 'r) -> Columns<'r, T> {
                self.add(name, Align::Right, $width, Box::new(move |row| value(row).number().map_or(Cell::None, Cell::$cell)))
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
    /// Adds the columns of another list.
    #[must_use]
    pub fn and(mut self, other: Columns<'r, T>) -> Columns<'r, T> {
        self.0.extend(other.0);
        self
    }

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

    /// Adds a column of fractions, 0 to 1, next to which terminals show bars.
    pub fn share<V: Number<f64>>(self, name: &'static str, value: impl Fn(&T) -> V + Send + Sync + 'r) -> Columns<'r, T> {
        let share = self.add(name, Align::Right, SHARE_WIDTH, Box::new(move |row| value(row).number().map_or(Cell::None, Cell::Share)));
        share.last(|c| c.bar = Bar::USUAL)
    }

    /// Adds a column of words of a fixed set or of formatted numbers, typically at most `width` characters. They are never shortened.
    pub fn word<V: Word>(self, name: &'static str, width: u16, value: impl Fn(&T) -> V + Send + Sync + 'r) -> Columns<'r, T> {
        self.add(name, Align::Left, width, Box::new(move |row| value(row).word().map_or(Cell::None, Cell::Text))).whole()
    }

    /// Adds a column of text, typically at most `width` characters.
    pub fn text(
        self,
        name: &'static str,
        width: u16,
        value: impl for<'a> Fn(&'a T) -> Option<Cow<'a, str>> + Send + Sync + 'r,
    ) -> Columns<'r, T> {
        self.add(name, Align::Left, width, Box::new(move |row| value(row).map_or(Cell::None, Cell::Text)))
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

    /// Adds a column of maps, letters of [`MapCell`](crate::analysis::MapCell).
    pub fn map(self, name: &'static str, value: impl Fn(&T) -> String + Send + Sync + 'r) -> Columns<'r, T> {
        let map = self.add(name, Align::Left, NUMBER_WIDTH, Box::new(move |row| Cell::Map(Cow::Owned(value(row)))));
        map.last(|c| (c.fit, c.least) = (Fit::Cells, LEAST_LINES))
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

    /// Appends a number to the name of the last column, for numbered columns.
    #[must_use]
    pub fn numbered(self, number: usize) -> Columns<'r, T> {
        self.last(|c| c.name = format!("{}_{number}", c.name).into())
    }

    /// Names the last column after a field. Tables show the name as in the source.
    #[must_use]
    pub fn of_field(self, path: String) -> Columns<'r, T> {
        self.last(|c| (c.title, c.name) = (Some(field(&path)), path.into()))
    }

    /// Shows a bar next to the last column on terminals.
    #[must_use]
    pub fn bar(mut self, fill: impl Fn(&T) -> Fill + Send + Sync + 'r) -> Columns<'r, T> {
        if let Some(last) = self.0.last_mut() {
            last.fill = Some(Box::new(fill));
        }
        self.last(|c| c.bar = Bar::USUAL)
    }

    /// Shows blocks next to the last column on terminals: the block of a child row is below the block of its parent.
    #[must_use]
    pub fn blocks(self, block: impl Fn(&T) -> Fill + Send + Sync + 'r) -> Columns<'r, T> {
        self.bar(block).last(|c| c.bar = Bar::BLOCK)
    }

    /// Right-aligns the last column, which contains formatted numbers that are never shortened.
    #[must_use]
    pub fn right(self) -> Columns<'r, T> {
        self.whole().last(|c| c.align = Align::Right)
    }

    /// Marks the last column as names of types or methods.
    #[must_use]
    pub fn name(self) -> Columns<'r, T> {
        self.last(|c| (c.fit, c.least, c.keep) = (Fit::Name, LEAST_NAME, c.keep.max(IDENTIFYING)))
    }

    /// Marks the last column as paths.
    #[must_use]
    pub fn path(self) -> Columns<'r, T> {
        self.last(|c| (c.fit, c.least) = (Fit::Path, LEAST_NAME))
    }

    /// Never shortens the last column.
    #[must_use]
    pub fn whole(self) -> Columns<'r, T> {
        self.last(|c| (c.fit, c.least) = (Fit::Whole, u16::MAX))
    }

    /// Lets the cells of the last column take up to `most` lines.
    #[must_use]
    pub fn lines(self, most: u8) -> Columns<'r, T> {
        self.last(|c| (c.fit, c.least, c.keep) = (Fit::Lines(most), LEAST_LINES, c.keep.max(IDENTIFYING)))
    }

    /// Marks the last column as text that contains names of types or methods, in up to `most` lines.
    #[must_use]
    pub fn name_lines(self, most: u8) -> Columns<'r, T> {
        self.lines(most).last(|c| c.fit = Fit::NameLines(most))
    }

    /// Sets the minimum width of the last column: if there is less room, another column is dropped.
    #[must_use]
    pub fn least(self, width: u16) -> Columns<'r, T> {
        self.last(|c| c.least = width)
    }

    /// Drops the last column before others if the screen is too narrow.
    #[must_use]
    pub fn extra(self) -> Columns<'r, T> {
        self.last(|c| c.keep = EXTRA)
    }

    /// Sets the priority of the last column: the smallest values are dropped first.
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

    /// Returns the properties of the columns.
    pub fn list(&self) -> Vec<Column> {
        self.0.iter().map(|source| source.column.clone()).collect()
    }

    /// Binds a row to these columns.
    pub fn row<'a>(&'a self, row: &'a T) -> impl Row + 'a
    where
        T: Serialize,
    {
        TableRow { row, columns: self, json: Some(json_rows::write::<T>) }
    }
}

/// A row of any type.
pub trait Row {
    /// Returns the cell in the column at this index.
    fn cell(&self, column: usize) -> Cell<'_>;

    /// Returns the contents of the bar next to the column at this index; `None` if the bar shows the share in the cell.
    fn fill(&self, column: usize) -> Option<Fill>;

    /// Writes the row as a JSON object.
    ///
    /// # Errors
    /// Write errors.
    fn json(&self, out: &mut Vec<u8>) -> io::Result<()>;
}

type Json<T> = fn(&T, &mut Vec<u8>) -> io::Result<()>;

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
        let heading = Heading { shown: !columns.0.is_empty(), columns: columns.list(), ..Heading::default() };
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
