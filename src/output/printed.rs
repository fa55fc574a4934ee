//! The rows of the tables that an answer printed, for those who refer to them by number, and for those who continue them.

use std::cell::RefCell;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::Cell;
use super::table::{Heading, Readers, Row};
use crate::base::Addr;

/// Most rows of a table that are kept.
const MOST: usize = 10_000;

thread_local! {
    static CURRENT: RefCell<Option<Arc<PrintedRows>>> = const { RefCell::new(None) };
}

/// The first address of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// The address.
    pub address: Addr,
    /// Whether it is the method table of a type.
    pub is_type: bool,
}

/// Collects the first addresses of the rows of printed tables.
#[derive(Debug, Default)]
pub struct PrintedRows {
    /// Rows at the beginning of each table to leave out, with all that is no table.
    skipped: u64,
    tables: Mutex<Vec<Vec<Option<Link>>>>,
}

impl PrintedRows {
    /// A collector for tables without their first `skipped` rows.
    pub fn after(skipped: u64) -> PrintedRows {
        PrintedRows { skipped, tables: Mutex::default() }
    }

    /// Collects what `work` prints on this thread.
    pub fn collect<T>(self: &Arc<PrintedRows>, work: impl FnOnce() -> T) -> T {
        struct Before(Option<Arc<PrintedRows>>);
        impl Drop for Before {
            fn drop(&mut self) {
                CURRENT.set(self.0.take());
            }
        }
        let _before = Before(CURRENT.replace(Some(Arc::clone(self))));
        work()
    }

    /// The rows, in the order of the tables that were printed.
    pub fn tables(&self) -> Vec<Vec<Option<Link>>> {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Vec<Option<Link>>>> {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes the row at this place of the last table.
    pub(super) fn row(&self, number: u64, heading: &Heading, row: &dyn Row) {
        let Ok(number) = usize::try_from(number) else { return };
        if number >= MOST {
            return;
        }
        let link = heading.columns(Readers::People).find_map(|(i, column)| match row.cell(i) {
            Cell::Addr(address) if !address.is_null() => Some(Link { address, is_type: column.name == "method_table" }),
            _ => None,
        });
        if let Some(table) = self.lock().last_mut() {
            if table.len() <= number {
                table.resize(number.saturating_add(1), None);
            }
            if let Some(place) = table.get_mut(number) {
                *place = link;
            }
        }
    }
}

/// Begins a table: the collector of this thread, if there is one.
pub(super) fn begin() -> Option<Arc<PrintedRows>> {
    let printed = CURRENT.with_borrow(Clone::clone)?;
    printed.lock().push(Vec::new());
    Some(printed)
}

/// A table being printed.
pub(super) struct Rows {
    printed: Option<Arc<PrintedRows>>,
    number: u64,
}

impl Rows {
    /// Begins a table of this thread's answer.
    pub(super) fn begin() -> Rows {
        Rows { printed: begin(), number: 0 }
    }

    /// Whether the next row is printed.
    pub(super) fn next(&mut self, heading: &Heading, row: &dyn Row) -> bool {
        let Some(printed) = &self.printed else { return true };
        let number = self.number;
        self.number = number.saturating_add(1);
        let Some(number) = number.checked_sub(printed.skipped) else { return false };
        printed.row(number, heading, row);
        true
    }
}

/// Whether this thread prints only tables, and those from a later row on.
pub(super) fn continues() -> bool {
    skipped() > 0
}

/// Rows at the beginning of each table that this thread leaves out.
pub(super) fn skipped() -> u64 {
    CURRENT.with_borrow(|current| current.as_ref().map_or(0, |printed| printed.skipped))
}
