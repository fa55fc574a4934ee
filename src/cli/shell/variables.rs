//! Variables `$1`, `$2` … and `$_`: addresses that were printed or asked about.

use std::collections::VecDeque;

use super::words::{Part, Word};
use crate::base::{Addr, len64, plural};
use crate::cli::values::address;
use crate::output::Link;

/// Maximum number of addresses kept for completion.
const SEEN: usize = 2000;

/// Addresses that words may refer to.
#[derive(Debug, Default)]
pub(super) struct Variables {
    /// Addresses by row of the last tables.
    rows: Vec<Option<Link>>,
    /// The last object that a command was asked about (`$_`).
    looked: Option<Addr>,
    /// Addresses that were printed or asked about, latest last.
    seen: VecDeque<Addr>,
}

impl Variables {
    /// Records the rows of the tables of an answer, which `$1` and so on refer to from now on. Answers without a table keep the previous rows.
    pub(super) fn printed(&mut self, rows: Vec<Option<Link>>) {
        rows.iter().flatten().take(SEEN).for_each(|link| self.note(link.address));
        if !rows.is_empty() {
            self.rows = rows;
        }
    }

    /// Records the rows of the tables of an answer that continues the last answer.
    pub(super) fn continued(&mut self, mut rows: Vec<Option<Link>>) {
        rows.iter().flatten().take(SEEN).for_each(|link| self.note(link.address));
        self.rows.append(&mut rows);
    }

    /// Returns the number of rows that `$1`, `$2` … can refer to.
    pub(super) fn numbered(&self) -> usize {
        self.rows.len()
    }

    /// Records an object that a command was asked about: `$_`.
    pub(super) fn looked_at(&mut self, object: Addr) {
        self.looked = Some(object);
        self.note(object);
    }

    fn note(&mut self, address: Addr) {
        self.seen.retain(|a| *a != address);
        self.seen.push_back(address);
        if self.seen.len() > SEEN {
            self.seen.pop_front();
        }
    }

    /// Returns addresses that were printed or asked about, latest first.
    pub(super) fn seen(&self) -> impl Iterator<Item = Addr> {
        self.seen.iter().rev().copied()
    }

    /// Returns the command for a line that begins with an address: `object`, or `objects` for a type.
    ///
    /// # Errors
    /// A message, if a variable has no value.
    pub(super) fn about(&self, word: &Word) -> Result<Option<&'static str>, String> {
        /// Minimum number of digits of an address without `0x`, as debuggers print it. Shorter words may be names.
        const BARE: usize = 8;
        Ok(match word.parts.as_slice() {
            [Part::Row(number)] => Some(if self.row(*number)?.is_type { "objects" } else { "object" }),
            [Part::Looked] => Some("object"),
            [Part::Text(text)] if (text.starts_with("0x") || text.len() >= BARE) && address(text).is_ok() => Some("object"),
            _ => None,
        })
    }

    /// Returns the text of a word with its variables replaced. A row of a type becomes `--type=0x…` if the variable is the whole word and `by_type`
    /// is set, that is, if the command accepts the option.
    ///
    /// # Errors
    /// A message, if a variable has no value.
    pub(super) fn text(&self, word: &Word, by_type: bool) -> Result<String, String> {
        if let ([Part::Row(number)], true) = (word.parts.as_slice(), by_type) {
            let link = self.row(*number)?;
            let option = if link.is_type { "--type=" } else { "" };
            return Ok(format!("{option}{}", link.address));
        }
        let part = |part: &Part| match part {
            Part::Text(text) => Ok(text.clone()),
            Part::Row(number) => self.row(*number).map(|link| link.address.to_string()),
            Part::Looked => self.looked.map(|a| a.to_string()).ok_or_else(|| "$_: no object was looked at".into()),
        };
        word.parts.iter().map(part).collect()
    }

    fn row(&self, number: usize) -> Result<Link, String> {
        let row = number.checked_sub(1).and_then(|i| self.rows.get(i));
        match (row, self.rows.len()) {
            (Some(Some(link)), _) => Ok(*link),
            (Some(None), _) => Err(format!("${number}: that row has no address")),
            (None, 0) => Err(format!("${number}: no table was printed")),
            (None, have) => Err(format!("${number}: the last tables have {}", plural(len64(have), "row"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_refer_to_rows_types_and_the_last_object() {
        let mut v = Variables::default();
        let word = |part| Word { parts: vec![part], quoted: false };
        assert!(v.text(&word(Part::Row(1)), false).unwrap_err().contains("no table"));
        assert!(v.text(&word(Part::Looked), false).is_err());
        let link = |address, is_type| Some(Link { address: Addr(address), is_type });
        v.printed(vec![link(0x10, false), None, link(0x30, true)]);
        v.printed(Vec::new());
        v.looked_at(Addr(0x50));
        assert_eq!(v.numbered(), 3);
        let text = |part, by_type| v.text(&word(part), by_type);
        assert_eq!(text(Part::Row(1), true).as_deref(), Ok("0x10"));
        assert_eq!(text(Part::Row(3), true).as_deref(), Ok("--type=0x30"));
        assert_eq!(text(Part::Row(3), false).as_deref(), Ok("0x30"));
        assert_eq!(text(Part::Looked, true).as_deref(), Ok("0x50"));
        let mixed = Word { parts: vec![Part::Text("a=".into()), Part::Row(3)], quoted: false };
        assert_eq!(v.text(&mixed, true).as_deref(), Ok("a=0x30"));
        assert!(text(Part::Row(0), true).is_err() && text(Part::Row(4), true).unwrap_err().contains("3 rows"));
        assert!(text(Part::Row(2), true).unwrap_err().contains("no address"));
        assert_eq!(v.seen().map(|a| a.0).collect::<Vec<_>>(), [0x50, 0x30, 0x10]);
        v.continued(vec![link(0x40, false)]);
        assert_eq!((v.row(1).unwrap().address, v.row(4).unwrap().address, v.numbered()), (Addr(0x10), Addr(0x40), 4));
    }
}
