//! A flat table: typed cells, so that each format decides how a number or an address looks.

use crate::base::Addr;

/// Which side a column's cells stick to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// Text.
    Left,
    /// Numbers.
    Right,
}

/// A column.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// Name, as in CSV; capitals in tables.
    pub name: &'static str,
    /// Which side its cells stick to.
    pub align: Align,
    /// Width for tables too long to be measured first.
    pub width: u16,
}

impl Column {
    /// A column of text.
    pub const fn text(name: &'static str, width: u16) -> Column {
        Column { name, align: Align::Left, width }
    }

    /// A column of addresses.
    pub const fn address(name: &'static str) -> Column {
        Column { name, align: Align::Right, width: 18 }
    }

    /// A column of numbers.
    pub const fn number(name: &'static str) -> Column {
        Column { name, align: Align::Right, width: 14 }
    }
}

/// A cell.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// An address.
    Addr(Addr),
    /// A number of bytes.
    Bytes(u64),
    /// Any other number.
    Count(u64),
    /// A part of a whole, 0 to 1.
    Share(f64),
    /// Text; may come from the dump.
    Text(String),
    /// Not known, or not applicable.
    None,
}

impl Cell {
    /// A cell that may be unknown.
    pub fn some<T>(value: Option<T>, cell: impl Fn(T) -> Cell) -> Cell {
        value.map_or(Cell::None, cell)
    }

    /// For machines: plain digits.
    pub fn raw(&self) -> String {
        match self {
            Cell::Addr(a) => a.to_string(),
            Cell::Bytes(n) | Cell::Count(n) => n.to_string(),
            Cell::Share(s) => s.to_string(),
            Cell::Text(t) => t.clone(),
            Cell::None => String::new(),
        }
    }

    /// For people.
    pub fn human(&self) -> String {
        match self {
            Cell::Bytes(n) | Cell::Count(n) => super::count(*n),
            Cell::Share(s) => format!("{:.1} %", s * 100.0),
            Cell::None => "-".into(),
            other => other.raw(),
        }
    }
}

/// Rows, made while they are printed: a heap may have millions of handles.
pub struct Grid<'a> {
    /// The columns.
    pub columns: Vec<Column>,
    make: Box<dyn Fn() -> Box<dyn Iterator<Item = Vec<Cell>> + 'a> + 'a>,
}

impl<'a> Grid<'a> {
    /// A grid whose rows `make` yields, each time anew.
    pub fn new<I>(columns: Vec<Column>, make: impl Fn() -> I + 'a) -> Grid<'a>
    where
        I: Iterator<Item = Vec<Cell>> + 'a,
    {
        Grid { columns, make: Box::new(move || Box::new(make())) }
    }

    /// The rows.
    pub fn rows(&self) -> Box<dyn Iterator<Item = Vec<Cell>> + 'a> {
        (self.make)()
    }
}
