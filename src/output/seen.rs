//! The addresses that an answer showed: what a shell offers for the rows of the last table.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::base::Addr;

/// Most rows that are kept: nobody counts further.
const MOST: usize = 10_000;

/// The first address of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// The address.
    pub address: Addr,
    /// Whether it is the method table of a type.
    pub is_type: bool,
}

/// Receives, for each table that is printed, the first address of each row in the order of the rows; likewise for lists of lines.
/// Only the table format reports to it.
#[derive(Debug, Default)]
pub struct Seen {
    /// Rows at the beginning of each table to leave out, with all that is no table.
    skipped: u64,
    /// Rows of former answers that this one continues.
    before: usize,
    lists: Mutex<Vec<Vec<Option<Link>>>>,
}

impl Seen {
    /// For tables without their first `skipped` rows.
    pub fn after(skipped: u64) -> Seen {
        Seen { skipped, ..Seen::default() }
    }

    /// The same for an answer that continues others, which had `before` rows.
    #[must_use]
    pub fn numbered_from(self, before: usize) -> Seen {
        Seen { before, ..self }
    }

    fn lists(&self) -> MutexGuard<'_, Vec<Vec<Option<Link>>>> {
        self.lists.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Rows at the beginning of each table to leave out.
    pub(super) fn skipped(&self) -> u64 {
        self.skipped
    }

    fn count(&self, lists: &[Vec<Option<Link>>]) -> usize {
        lists.iter().fold(self.before, |n, list| n.saturating_add(list.len()))
    }

    /// The number of rows so far: the next row is called by the number behind it, unless that is too high.
    pub(super) fn rows_before(&self) -> usize {
        self.count(&self.lists())
    }

    /// What a row is called that `before` rows precede; `None` if it is not kept.
    pub(super) fn name(before: usize) -> Option<String> {
        (before < MOST).then(|| format!("${}", before.saturating_add(1)))
    }

    /// A table begins.
    pub(super) fn begin(&self) {
        self.lists().push(Vec::new());
    }

    /// Its next rows.
    pub(super) fn rows(&self, rows: impl IntoIterator<Item = Option<Link>>) {
        let mut lists = self.lists();
        let room = MOST.saturating_sub(self.count(&lists));
        if let Some(list) = lists.last_mut() {
            list.extend(rows.into_iter().take(room));
        }
    }

    /// Takes what was shown since the last call: a list for each table, an entry for each row, `None` for rows without an address.
    pub fn take(&self) -> Vec<Vec<Option<Link>>> {
        std::mem::take(&mut self.lists())
    }
}
