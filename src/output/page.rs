//! Pages of lists: the order that `--sort` names by a column of the table, and the rows that `--skip` and `--top` leave.

use std::borrow::Cow;
use std::cmp::{Ordering, Reverse};

use super::Cell;
use super::count;
use super::table::{Columns, Readers, Row};
use crate::base::len64;
use crate::model::{PageModel, SortDirection};

/// An order by a column of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnOrder {
    /// Name of the column.
    pub column: String,
    /// The direction; `None` for that of the column: amounts descend, all else ascends.
    pub direction: Option<SortDirection>,
}

/// The rows of lists that are asked for.
#[derive(Clone, Debug, Default)]
pub struct Paging {
    /// The order, unless the lists have theirs already.
    pub sort: Option<ColumnOrder>,
    /// Rows to leave out before those listed.
    pub skip: usize,
    /// Most rows to list, 0 for all.
    pub top: usize,
    /// Whether answers say how many rows `top` leaves out in no other way.
    pub tells_cuts: bool,
    /// The pages so far.
    pages: Vec<PageModel>,
    /// Names of the columns that lists have.
    columns: Vec<String>,
    sorted: bool,
}

/// The key of a row. Rows without a key come last.
#[derive(Clone, Debug, PartialEq)]
enum Key {
    /// More first.
    Most(Reverse<i128>),
    /// More first.
    Part(f64),
    /// Less first.
    Least(u64),
    Text(String),
}

impl Key {
    fn of(cell: Cell<'_>) -> Option<Key> {
        Some(match cell {
            Cell::Addr(address) => Key::Least(address.0),
            Cell::Id(n) => Key::Least(n),
            Cell::Bytes(n) | Cell::Count(n) => Key::Most(Reverse(n.into())),
            Cell::Change(n) => Key::Most(Reverse(n.into())),
            Cell::Share(part) | Cell::Growth(part) => Key::Part(part),
            Cell::Name(name) => Key::Text(name.shown().into()),
            Cell::Text(text) | Cell::Map(text) if text.is_empty() => return None,
            Cell::Text(text) | Cell::Map(text) => Key::Text(text.into_owned()),
            Cell::None => return None,
        })
    }

    fn usual(&self) -> SortDirection {
        match self {
            Key::Most(_) | Key::Part(_) => SortDirection::Descending,
            Key::Least(_) | Key::Text(_) => SortDirection::Ascending,
        }
    }

    fn compare(&self, other: &Key) -> Ordering {
        match (self, other) {
            (Key::Most(a), Key::Most(b)) => a.cmp(b),
            (Key::Part(a), Key::Part(b)) => b.total_cmp(a),
            (Key::Least(a), Key::Least(b)) => a.cmp(b),
            (Key::Text(a), Key::Text(b)) => a.cmp(b),
            // A column has cells of one kind.
            _ => Ordering::Equal,
        }
    }
}

/// Sorts `rows`; those that are equal stay as they are.
fn sort<T>(rows: &mut Vec<T>, direction: Option<SortDirection>, key: impl Fn(&T) -> Option<Key>) {
    let mut keyed: Vec<(Option<Key>, T)> = rows.drain(..).map(|row| (key(&row), row)).collect();
    keyed.sort_by(|(a, _), (b, _)| match (a, b) {
        (Some(a), Some(b)) if direction.is_none_or(|asked| asked == a.usual()) => a.compare(b),
        (Some(a), Some(b)) => b.compare(a),
        (a, b) => a.is_none().cmp(&b.is_none()),
    });
    rows.extend(keyed.into_iter().map(|(_, row)| row));
}

/// `object_type` for `Object-Type`.
fn plain(name: &str) -> Cow<'_, str> {
    if name.contains(|c: char| c == '-' || c.is_ascii_uppercase()) {
        name.replace('-', "_").to_ascii_lowercase().into()
    } else {
        name.into()
    }
}

impl Paging {
    /// Rows in this order, from the first after `skip` on, at most `top` (0 for all).
    pub fn new(sort: Option<ColumnOrder>, skip: usize, top: usize) -> Paging {
        Paging { sort, skip, top, ..Paging::default() }
    }

    /// Sorts a list, and keeps the rows of the page. `total` is the number of all rows, of which the list has those before the page as well.
    /// Returns how many are listed, if not all are.
    pub fn list<T: serde::Serialize>(&mut self, list: &str, rows: &mut Vec<T>, total: u64, columns: &Columns<'_, T>) -> Option<u64> {
        self.sort_by(rows, columns);
        let total = total.max(len64(rows.len()));
        rows.drain(..self.skip.min(rows.len()));
        if self.top > 0 {
            rows.truncate(self.top);
        }
        let listed = len64(rows.len());
        if total > 0 && (self.skip > 0 || (self.tells_cuts && listed < total)) {
            let skipped = u64::try_from(self.skip).unwrap_or(u64::MAX).min(total);
            self.pages.push(PageModel { list: list.into(), skipped, listed, total });
        }
        (listed < total).then_some(listed)
    }

    /// As [`Paging::list`]; returns how many are not listed, if any.
    pub fn whole_list<T: serde::Serialize>(&mut self, list: &str, rows: &mut Vec<T>, columns: &Columns<'_, T>) -> Option<u64> {
        let total = len64(rows.len());
        let listed = self.list(list, rows, total, columns)?;
        Some(total.saturating_sub(listed))
    }

    /// Sorts a list of which all rows are listed whatever `top` is.
    pub fn all_of<T: serde::Serialize>(&mut self, list: &str, rows: &mut Vec<T>, columns: &Columns<'_, T>) {
        let top = std::mem::take(&mut self.top);
        self.whole_list(list, rows, columns);
        self.top = top;
    }

    fn sort_by<T: serde::Serialize>(&mut self, rows: &mut Vec<T>, columns: &Columns<'_, T>) {
        let Some(ColumnOrder { column, direction }) = &self.sort else { return };
        let all = columns.list();
        let has = || all.iter().enumerate().filter(|(_, c)| c.readers != Readers::Links);
        for (_, column) in has() {
            if !self.columns.iter().any(|known| *known == column.name) {
                self.columns.push(column.name.to_string());
            }
        }
        if let Some((i, _)) = has().find(|(_, c)| plain(&c.name) == plain(column)) {
            sort(rows, *direction, |row| Key::of(columns.row(row).cell(i)));
            self.sorted = true;
        }
    }

    /// The pages, of which there are none if no rows are skipped.
    ///
    /// # Errors
    /// What to say of a column that no list has.
    pub fn done(self) -> Result<Vec<PageModel>, String> {
        match self.sort {
            Some(order) if !self.sorted => Err(match self.columns.as_slice() {
                [] => format!("no order by {}: nothing is listed", order.column),
                has => format!("no order by {}: this can be sorted by {}", order.column, has.join(", ")),
            }),
            _ => Ok(self.pages),
        }
    }
}

/// Lists whose names do not say what their rows are.
const LISTS: &[(&str, &str)] = &[
    ("freed", "freed types"),
    ("incoming", "incoming references"),
    ("largest", "free blocks"),
    ("moved", "moved ranges"),
    ("outgoing", "outgoing references"),
    ("statics", "static fields"),
    ("survivors", "types of survivors"),
    ("surviving", "ranges that stayed"),
    ("tree", "trees"),
    ("unexplained", "unexplained ranges"),
];

/// `rows 21 to 40 of 133 locks`.
pub(super) fn words(page: &PageModel) -> String {
    let PageModel { list, skipped, listed, total } = page;
    let last = skipped.saturating_add(*listed);
    let named = LISTS.iter().find(|(name, _)| name == list).map_or(list.as_str(), |(_, words)| words);
    let of = format!("of {} {named}", count(*total));
    match listed {
        0 => format!("no rows after {} {of}", count(*skipped)),
        1 => format!("row {} {of}", count(last)),
        _ => format!("rows {} to {} {of}", count(skipped.saturating_add(1)), count(last)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::table::columns;
    use super::*;

    #[derive(Clone, Debug, PartialEq, serde::Serialize)]
    struct Cat(&'static str, u64);

    fn cats() -> (Vec<Cat>, Columns<'static, Cat>) {
        let columns = columns::<Cat>().text("first_name", 9, |c| c.0).count("age", |c| c.1).id("born", |c| (c.1 > 1).then_some(c.1));
        (vec![Cat("Tom", 2), Cat("Abe", 9), Cat("Eve", 1), Cat("Kit", 2)], columns)
    }

    fn ages(sort: &str, skip: usize, top: usize) -> (Vec<u64>, Result<Vec<PageModel>, String>) {
        let (mut rows, columns) = cats();
        let (column, direction) = sort.split_once(':').map_or((sort, None), |(c, d)| (c, d.parse().ok()));
        let mut paging = Paging::new(Some(ColumnOrder { column: column.into(), direction }), skip, top);
        paging.list("cats", &mut rows, 4, &columns);
        (rows.iter().map(|c| c.1).collect(), paging.done())
    }

    #[test]
    fn columns_sort_as_their_cells_do_and_pages_are_the_whole() {
        assert_eq!(ages("age", 0, 0).0, [9, 2, 2, 1]);
        assert_eq!(ages("age:asc", 0, 0).0, [1, 2, 2, 9]);
        assert_eq!(ages("born", 0, 0).0, [2, 2, 9, 1], "what is unknown is last");
        assert_eq!(ages("born:desc", 0, 0).0, [9, 2, 2, 1]);
        assert_eq!(ages("First-Name", 0, 0).0, [9, 1, 2, 2]);
        let whole: Vec<u64> = (0..4).flat_map(|skip| ages("age", skip, 1).0).collect();
        assert_eq!(whole, [9, 2, 2, 1]);
        assert_eq!(ages("name", 0, 0).1.unwrap_err(), "no order by name: this can be sorted by first_name, age, born");
    }

    #[test]
    fn pages_say_which_rows_they_have() {
        let said = |skip, top| ages("age", skip, top).1.unwrap().iter().map(words).collect::<String>();
        assert_eq!(said(1, 2), "rows 2 to 3 of 4 cats");
        assert_eq!(said(3, 2), "row 4 of 4 cats");
        assert_eq!(said(9, 2), "no rows after 4 of 4 cats");
        assert_eq!(said(0, 2), "", "nothing is skipped");
    }
}
