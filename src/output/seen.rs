//! The addresses that an answer showed: what a shell offers for the rows of the last table.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::base::Addr;

/// Most rows that are kept: nobody counts further.
const MOST: usize = 1 << 20;

/// Receives, for each table that is printed, the first address of each row in the order of the rows; likewise for lists of lines.
/// Only the table format reports to it.
#[derive(Debug, Default)]
pub struct Seen(Mutex<Vec<Vec<Option<Addr>>>>);

impl Seen {
    fn lists(&self) -> MutexGuard<'_, Vec<Vec<Option<Addr>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A table begins.
    pub(super) fn begin(&self) {
        self.lists().push(Vec::new());
    }

    /// Its next rows.
    pub(super) fn rows(&self, rows: impl IntoIterator<Item = Option<Addr>>) {
        let mut lists = self.lists();
        let room = lists.iter().fold(MOST, |left, list| left.saturating_sub(list.len()));
        if let Some(list) = lists.last_mut() {
            list.extend(rows.into_iter().take(room));
        }
    }

    /// Takes what was shown since the last call: a list for each table, an entry for each row, `None` for rows without an address.
    pub fn take(&self) -> Vec<Vec<Option<Addr>>> {
        std::mem::take(&mut self.lists())
    }
}
