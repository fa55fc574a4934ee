//! Typed table cells; each format decides how to render them.

use std::borrow::Cow;

use super::count;
use crate::base::{Addr, Name};

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
    /// A signed change of a number.
    Change(i64),
    /// A signed change as a fraction of the earlier number.
    Growth(f64),
    /// A map: letters of [`MapCell`](crate::analysis::MapCell), which terminals show as blocks.
    Map(Cow<'a, str>),
    /// A name: people see it as written in the source, machines as the runtime stores it.
    Name(&'a Name),
    /// Text, possibly from the dump.
    Text(Cow<'a, str>),
    /// Unknown or not applicable.
    None,
}

/// Adds thousands separators to a signed percentage: `+100,100.0 %`.
fn grouped(percent: &str) -> String {
    let (sign, digits) = percent.split_at_checked(1).unwrap_or(("", percent));
    let (whole, part) = digits.split_once('.').unwrap_or((digits, "0"));
    match whole.parse() {
        Ok(whole) => format!("{sign}{}.{part} %", count(whole)),
        Err(_) => format!("{percent} %"),
    }
}

impl Cell<'_> {
    /// Returns the human-readable form that tables use.
    pub fn human(&self) -> Cow<'_, str> {
        match self {
            Cell::Addr(a) => a.hex().as_str().to_owned().into(),
            Cell::Bytes(n) | Cell::Count(n) => count(*n).into(),
            Cell::Id(n) => n.to_string().into(),
            Cell::Share(s) => format!("{:.1} %", s * 100.0).into(),
            Cell::Change(0) => "0".into(),
            Cell::Change(n) => format!("{}{}", if *n < 0 { '-' } else { '+' }, count(n.unsigned_abs())).into(),
            Cell::Growth(g) => grouped(&format!("{:+.1}", g * 100.0)).into(),
            Cell::Name(name) => Cow::Borrowed(name.shown()),
            Cell::Text(t) | Cell::Map(t) => Cow::Borrowed(t),
            Cell::None => "-".into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_has_its_sign_and_separators() {
        let growth = |g| Cell::Growth(g).human().into_owned();
        assert_eq!([growth(0.0), growth(-0.25), growth(1001.0), growth(f64::INFINITY)], ["+0.0 %", "-25.0 %", "+100,100.0 %", "+inf %"]);
    }
}
