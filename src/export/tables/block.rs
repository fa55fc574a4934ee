//! Blocks of table rows, stored by column.

use std::borrow::Cow;

use rustc_hash::FxHashMap;

use crate::base::{Addr, Name};

/// Type of a column's values. Any value may be missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Signed 64-bit integers. Unsigned integers are not used, because Spark reads them as decimals, which takes three times as long.
    Int,
    /// Floating point numbers.
    Real,
    /// Booleans.
    Flag,
    /// Text.
    Text,
}

/// How Parquet packs a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packing {
    /// Differences between consecutive rows, for numbers that increase.
    Delta,
    /// Indices in a list of the distinct values, for columns with few of them.
    Dictionary,
    /// Values stored as they are.
    Plain,
}

/// A column.
#[derive(Clone, Debug)]
pub struct Column {
    /// Name of the column.
    pub name: Cow<'static, str>,
    /// Type of its values.
    pub kind: Kind,
    /// How Parquet packs it.
    pub packing: Packing,
}

/// A cell.
#[derive(Clone, Copy, Debug)]
pub enum Value<'v> {
    /// Unknown, or not applicable to the row.
    Null,
    /// A number.
    Int(i64),
    /// A floating point number.
    Real(f64),
    /// A boolean.
    Flag(bool),
    /// Text that other rows rarely have.
    Text(&'v str),
    /// Text that many rows share.
    Name(&'v Name),
}

impl From<u64> for Value<'_> {
    /// Converts a count or size. Values above `i64::MAX`, which only damaged dumps have, become `i64::MAX`.
    fn from(n: u64) -> Self {
        Value::Int(i64::try_from(n).unwrap_or(i64::MAX))
    }
}

impl From<u32> for Value<'_> {
    fn from(n: u32) -> Self {
        Value::Int(n.into())
    }
}

impl From<Addr> for Value<'_> {
    /// Converts an address to the signed number with the same bits. User-space addresses stay positive.
    fn from(at: Addr) -> Self {
        Value::Int(at.0.cast_signed())
    }
}

impl From<bool> for Value<'_> {
    fn from(is: bool) -> Self {
        Value::Flag(is)
    }
}

impl From<f64> for Value<'_> {
    fn from(n: f64) -> Self {
        Value::Real(n)
    }
}

impl<'v> From<&'v str> for Value<'v> {
    fn from(text: &'v str) -> Self {
        Value::Text(text)
    }
}

impl<'v> From<&'v String> for Value<'v> {
    fn from(text: &'v String) -> Self {
        Value::Text(text)
    }
}

impl<'v> From<&'v Name> for Value<'v> {
    fn from(name: &'v Name) -> Self {
        Value::Name(name)
    }
}

impl<'v, T: Into<Value<'v>>> From<Option<T>> for Value<'v> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Value::Null, Into::into)
    }
}

/// The texts of a column. Each shared name is stored once.
#[derive(Debug, Default)]
pub struct Texts {
    /// The stored texts: each shared name once, and each other text once per row.
    pub words: Vec<Name>,
    /// For each row with a value, the index of its text in `words`.
    pub rows: Vec<u32>,
    /// Indices of shared names by the address of their text. `words` keeps the names alive, so no other text can have such an address.
    known: FxHashMap<usize, u32>,
    /// Key and index of the latest shared name. Kept because consecutive rows often have the same name.
    last: Option<(usize, u32)>,
}

impl Texts {
    fn add(&mut self, name: Name) -> u32 {
        let place = u32::try_from(self.words.len()).unwrap_or(u32::MAX);
        self.words.push(name);
        place
    }

    #[inline]
    fn push(&mut self, name: &Name) {
        let key = name.as_ptr().addr();
        let place = match self.last {
            Some((last, place)) if last == key => place,
            _ => match self.known.get(&key) {
                Some(place) => *place,
                None => {
                    let place = self.add(name.clone());
                    self.known.insert(key, place);
                    place
                }
            },
        };
        self.last = Some((key, place));
        self.rows.push(place);
    }

    fn clear(&mut self) {
        *self = Texts { rows: std::mem::take(&mut self.rows), ..Texts::default() };
        self.rows.clear();
    }
}

/// The values of a column in row order, without missing values.
#[derive(Debug)]
pub enum Values {
    /// See [`Kind::Int`].
    Int(Vec<i64>),
    /// See [`Kind::Real`].
    Real(Vec<f64>),
    /// See [`Kind::Flag`].
    Flag(Vec<bool>),
    /// See [`Kind::Text`].
    Text(Texts),
}

/// The cells of a column in a block.
#[derive(Debug)]
pub struct Cells {
    /// The values.
    pub values: Values,
    /// Parquet definition level of each row: 1 if the row has a value, 0 if it is missing.
    pub levels: Vec<i16>,
}

impl Cells {
    fn new(kind: Kind) -> Cells {
        let values = match kind {
            Kind::Int => Values::Int(Vec::new()),
            Kind::Real => Values::Real(Vec::new()),
            Kind::Flag => Values::Flag(Vec::new()),
            Kind::Text => Values::Text(Texts::default()),
        };
        Cells { values, levels: Vec::new() }
    }

    #[inline]
    fn push(&mut self, value: Value<'_>) {
        let there = match (&mut self.values, value) {
            (Values::Int(to), Value::Int(n)) => {
                to.push(n);
                true
            }
            (Values::Text(to), Value::Name(name)) => {
                to.push(name);
                true
            }
            (Values::Text(to), Value::Text(text)) => {
                let place = to.add(text.into());
                to.rows.push(place);
                true
            }
            (Values::Real(to), Value::Real(n)) => {
                to.push(n);
                true
            }
            (Values::Flag(to), Value::Flag(is)) => {
                to.push(is);
                true
            }
            (_, other) => {
                debug_assert!(matches!(other, Value::Null), "a value of another kind than its column");
                false
            }
        };
        self.levels.push(there.into());
    }

    fn clear(&mut self) {
        self.levels.clear();
        match &mut self.values {
            Values::Int(v) => v.clear(),
            Values::Real(v) => v.clear(),
            Values::Flag(v) => v.clear(),
            Values::Text(v) => v.clear(),
        }
    }
}

/// A cell, as read from a block.
#[derive(Clone, Copy, Debug)]
pub enum Cell<'c> {
    /// No value.
    Null,
    /// A number.
    Int(i64),
    /// A floating point number.
    Real(f64),
    /// A boolean.
    Flag(bool),
    /// Text.
    Text(&'c str),
}

/// Consecutive rows of a table.
#[derive(Debug)]
pub struct Block {
    /// The cells, by column.
    pub cells: Vec<Cells>,
    /// Number of rows.
    pub rows: usize,
}

impl Block {
    /// Creates a block without rows for these columns.
    pub fn new(columns: &[Column]) -> Block {
        Block { cells: columns.iter().map(|c| Cells::new(c.kind)).collect(), rows: 0 }
    }

    /// Adds a row with one value for each column.
    #[inline]
    pub fn row<const N: usize>(&mut self, values: [Value<'_>; N]) {
        debug_assert_eq!(N, self.cells.len(), "a row has a value for each column");
        self.cells.iter_mut().zip(values).for_each(|(cells, value)| cells.push(value));
        self.rows = self.rows.saturating_add(1);
    }

    /// Adds a row from an iterator, which must yield one value for each column.
    pub fn values<'v>(&mut self, values: impl Iterator<Item = Value<'v>>) {
        self.cells.iter_mut().zip(values).for_each(|(cells, value)| cells.push(value));
        self.rows = self.rows.saturating_add(1);
    }

    /// Adds a row with `values` for the first columns and `more` for the rest.
    #[inline]
    pub fn wider<'v, const N: usize>(&mut self, values: [Value<'_>; N], more: impl Iterator<Item = Value<'v>>) {
        let (first, rest) = self.cells.split_at_mut_checked(N).unwrap_or_default();
        first.iter_mut().zip(values).for_each(|(cells, value)| cells.push(value));
        rest.iter_mut().zip(more).for_each(|(cells, value)| cells.push(value));
        self.rows = self.rows.saturating_add(1);
    }

    /// Removes all rows but keeps the memory.
    pub fn clear(&mut self) {
        self.cells.iter_mut().for_each(Cells::clear);
        self.rows = 0;
    }

    /// Calls `row` for each row, for formats that write row by row.
    pub fn each<E>(&self, mut row: impl FnMut(&[Cell<'_>]) -> Result<(), E>) -> Result<(), E> {
        let mut next: Vec<usize> = vec![0; self.cells.len()];
        let mut cells: Vec<Cell<'_>> = Vec::with_capacity(self.cells.len());
        for at in 0..self.rows {
            cells.clear();
            for (column, next) in self.cells.iter().zip(&mut next) {
                if column.levels.get(at) != Some(&1) {
                    cells.push(Cell::Null);
                    continue;
                }
                let cell = match &column.values {
                    Values::Int(v) => v.get(*next).copied().map(Cell::Int),
                    Values::Real(v) => v.get(*next).copied().map(Cell::Real),
                    Values::Flag(v) => v.get(*next).copied().map(Cell::Flag),
                    Values::Text(v) => v.rows.get(*next).and_then(|w| v.words.get(*w as usize)).map(|w| Cell::Text(w)),
                };
                cells.push(cell.unwrap_or(Cell::Null));
                *next = next.saturating_add(1);
            }
            row(&cells)?;
        }
        Ok(())
    }
}
