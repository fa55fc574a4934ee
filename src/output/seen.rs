//! The addresses in the rows of an answer. In a shell, `$1`, `$2` … refer to them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::base::Addr;

/// Maximum number of rows to keep.
const MOST: usize = 10_000;

/// The first address of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// The address.
    pub address: Addr,
    /// Whether the address is the method table of a type.
    pub is_type: bool,
}

/// Receives the first address of each row of each printed table, and of each line of each printed list, in order. Only the table format reports
/// addresses.
#[derive(Debug, Default)]
pub struct Seen {
    /// Number of rows to skip at the beginning of each table. Everything other than tables is skipped too.
    skipped: u64,
    /// Number of rows of the earlier answers that this answer continues.
    before: usize,
    lists: Mutex<Vec<Vec<Option<Link>>>>,
    /// Whether the list of an answer has ended, and whether that of another one goes on.
    ended: AtomicBool,
    goes_on: AtomicBool,
}

impl Seen {
    /// Creates a receiver for tables whose first `skipped` rows are not printed.
    pub fn after(skipped: u64) -> Seen {
        Seen { skipped, ..Seen::default() }
    }

    /// Continues the numbering of earlier answers, which had `before` rows.
    #[must_use]
    pub fn numbered_from(self, before: usize) -> Seen {
        Seen { before, ..self }
    }

    fn lists(&self) -> MutexGuard<'_, Vec<Vec<Option<Link>>>> {
        self.lists.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records whether the rows of an answer are the last ones of its list.
    pub(crate) fn ends(&self, is_last: bool) {
        if is_last { &self.ended } else { &self.goes_on }.store(true, Ordering::Relaxed);
    }

    /// Whether the rows are known to be the last ones.
    pub(crate) fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Relaxed) && !self.goes_on.load(Ordering::Relaxed)
    }

    /// Number of rows to skip at the beginning of each table.
    pub(super) fn skipped(&self) -> u64 {
        self.skipped
    }

    fn count(&self, lists: &[Vec<Option<Link>>]) -> usize {
        lists.iter().fold(self.before, |n, list| n.saturating_add(list.len()))
    }

    /// Returns the number of rows so far, including those of earlier answers.
    pub(super) fn rows_before(&self) -> usize {
        self.count(&self.lists())
    }

    /// Returns the name of a row after `before` other rows; `None` if the row is beyond the rows that are kept.
    pub(super) fn name(before: usize) -> Option<String> {
        (before < MOST).then(|| format!("${}", before.saturating_add(1)))
    }

    /// Starts a table.
    pub(super) fn begin(&self) {
        self.lists().push(Vec::new());
    }

    /// Adds rows to the current table.
    pub(super) fn rows(&self, rows: impl IntoIterator<Item = Option<Link>>) {
        let mut lists = self.lists();
        let room = MOST.saturating_sub(self.count(&lists));
        if let Some(list) = lists.last_mut() {
            list.extend(rows.into_iter().take(room));
        }
    }

    /// Takes the addresses since the last call: a list for each table, an entry for each row, `None` for rows without an address.
    pub fn take(&self) -> Vec<Vec<Option<Link>>> {
        std::mem::take(&mut self.lists())
    }
}
