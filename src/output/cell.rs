//! Typed table cells; each format decides how to render them.

use std::borrow::Cow;

use super::count;
use crate::base::Addr;

/// A cell.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell<'a> {
    /// An address.
    Addr(Addr),
    /// A byte count.
    Bytes(u64),
    /// Any other count.
    Count(u64),
    /// An identifier such as a thread id: no thousands separators.
    Id(u64),
    /// A fraction, 0 to 1.
    Share(f64),
    /// What a number gained or lost.
    Change(i64),
    /// What a number gained or lost, as a fraction of it.
    Growth(f64),
    /// Text, possibly from the dump.
    Text(Cow<'a, str>),
    /// Unknown or not applicable.
    None,
}

impl Cell<'_> {
    /// Human-readable form, as used in tables.
    pub fn human(&self) -> Cow<'_, str> {
        match self {
            Cell::Addr(a) => a.to_string().into(),
            Cell::Bytes(n) | Cell::Count(n) => count(*n).into(),
            Cell::Id(n) => n.to_string().into(),
            Cell::Share(s) => format!("{:.1} %", s * 100.0).into(),
            Cell::Change(0) => "0".into(),
            Cell::Change(n) => format!("{}{}", if *n < 0 { '-' } else { '+' }, count(n.unsigned_abs())).into(),
            Cell::Growth(g) => format!("{:+.1} %", g * 100.0).into(),
            Cell::Text(t) => Cow::Borrowed(t),
            Cell::None => "-".into(),
        }
    }
}
