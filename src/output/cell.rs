//! A value of a table: typed, so that each format decides how a number or an address looks.

use std::borrow::Cow;

use super::count;
use crate::base::Addr;

/// A cell.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell<'a> {
    /// An address.
    Addr(Addr),
    /// A number of bytes.
    Bytes(u64),
    /// Any other number.
    Count(u64),
    /// A number that names something, such as a thread: digits only, also for people.
    Id(u64),
    /// A part of a whole, 0 to 1.
    Share(f64),
    /// Text; may come from the dump.
    Text(Cow<'a, str>),
    /// Not known, or not applicable.
    None,
}

impl Cell<'_> {
    /// For people.
    pub fn human(&self) -> Cow<'_, str> {
        match self {
            Cell::Addr(a) => a.to_string().into(),
            Cell::Bytes(n) | Cell::Count(n) => count(*n).into(),
            Cell::Id(n) => n.to_string().into(),
            Cell::Share(s) => format!("{:.1} %", s * 100.0).into(),
            Cell::Text(t) => Cow::Borrowed(t),
            Cell::None => "-".into(),
        }
    }
}
