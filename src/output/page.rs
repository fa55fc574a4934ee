//! Pages of lists: sorts them by the column in `--sort`, and selects rows by `--skip` and `--top`.

use std::cmp::{Ordering, Reverse};

use super::Cell;
use super::columns::{Columns, Row, add_names};
use super::count;
use crate::analysis::{Condition, RowValue};
use crate::base::len64;
use crate::model::{PageModel, SortDirection};

/// An order by a table column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnOrder {
    /// Name of the column.
    pub column: String,
    /// The direction; `None` for the default of the column: amounts descending, everything else ascending.
    pub direction: Option<SortDirection>,
}

/// The requested rows of lists.
#[derive(Clone, Debug, Default)]
pub struct Paging {
    /// The order, unless the lists are already sorted.
    pub sort: Option<ColumnOrder>,
    /// Only rows that satisfy this condition.
    pub filter: Option<Condition>,
    /// Number of rows to skip.
    pub skip: usize,
    /// Maximum number of rows, 0 for all.
    pub top: usize,
    /// Whether a page must be added if `top` omits rows, because otherwise the answer would not report the number of rows.
    pub tells_cuts: bool,
    /// The text that replaces hidden texts in lists, if texts are hidden. Conditions do not compare it.
    pub hidden: Option<&'static str>,
    /// Whether the condition names a column with a hidden text.
    met_hidden: bool,
    /// The pages so far.
    pages: Vec<PageModel>,
    /// Names of the lists' columns.
    columns: Vec<String>,
    sorted: bool,
    filtered: bool,
}

/// The sort key of a row. Rows without a key come last.
#[derive(Clone, Debug, PartialEq)]
enum Key {
    /// Larger numbers first.
    Most(Reverse<i128>),
    /// Larger fractions first.
    Part(f64),
    /// Smaller numbers first.
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
            // This does not occur, because all cells of a column are of the same kind.
            _ => Ordering::Equal,
        }
    }
}

/// Returns the index of a column; the words of `name` may be separated by `-` or `_`.
fn place<T>(columns: &Columns<'_, T>, name: &str) -> Option<usize> {
    columns.list().iter().position(|c| c.is_shown() && c.is_named(name))
}

/// Returns the value of a cell for a condition.
fn value<'c>(cell: &'c Cell<'_>) -> RowValue<'c> {
    match cell {
        Cell::Addr(address) => RowValue::Int(address.0.into()),
        Cell::Bytes(n) | Cell::Count(n) | Cell::Id(n) => RowValue::Int((*n).into()),
        Cell::Change(n) => RowValue::Int((*n).into()),
        Cell::Share(part) | Cell::Growth(part) => RowValue::Float(*part),
        Cell::Name(name) => RowValue::Name(name),
        Cell::Text(text) | Cell::Map(text) if text.is_empty() => RowValue::None,
        Cell::Text(text) | Cell::Map(text) => RowValue::Text(text),
        Cell::None => RowValue::None,
    }
}

/// Sorts `rows`; equal rows keep their order.
fn sort<T>(rows: &mut Vec<T>, direction: Option<SortDirection>, key: impl Fn(&T) -> Option<Key>) {
    let mut keyed: Vec<(Option<Key>, T)> = rows.drain(..).map(|row| (key(&row), row)).collect();
    keyed.sort_by(|(a, _), (b, _)| match (a, b) {
        (Some(a), Some(b)) if direction.is_none_or(|asked| asked == a.usual()) => a.compare(b),
        (Some(a), Some(b)) => b.compare(a),
        (a, b) => a.is_none().cmp(&b.is_none()),
    });
    rows.extend(keyed.into_iter().map(|(_, row)| row));
}

impl Paging {
    /// Selects at most `top` rows (0 for all) in the order `sort`, after the first `skip` rows.
    pub fn new(sort: Option<ColumnOrder>, skip: usize, top: usize) -> Paging {
        Paging { sort, skip, top, ..Paging::default() }
    }

    /// Filters and sorts a list, and keeps the rows of the page. `rows` contains at least the rows up to the end of the page; `total` is the number
    /// of all rows. Returns the number of listed rows, or `None` if all rows are listed.
    pub fn list<T: serde::Serialize>(&mut self, list: &str, rows: &mut Vec<T>, total: u64, columns: &Columns<'_, T>) -> Option<u64> {
        let all = total.max(len64(rows.len()));
        self.note_columns(columns);
        let filtered = self.filter(rows, columns);
        self.sort_by(rows, columns);
        let total = if filtered { len64(rows.len()) } else { all };
        rows.drain(..self.skip.min(rows.len()));
        if self.top > 0 {
            rows.truncate(self.top);
        }
        let listed = len64(rows.len());
        if all > 0 && (filtered || self.skip > 0 || (self.tells_cuts && listed < total)) {
            let skipped = u64::try_from(self.skip).unwrap_or(u64::MAX).min(total);
            self.pages.push(PageModel { list: list.into(), skipped, listed, total });
        }
        (listed < all).then_some(listed)
    }

    /// Like [`Paging::list`], but returns how many rows are not listed, if any.
    pub fn whole_list<T: serde::Serialize>(&mut self, list: &str, rows: &mut Vec<T>, columns: &Columns<'_, T>) -> Option<u64> {
        let all = len64(rows.len());
        let listed = self.list(list, rows, all, columns)?;
        Some(all.saturating_sub(listed))
    }

    /// Like [`Paging::whole_list`], but lists all rows regardless of `top`.
    pub fn all_of<T: serde::Serialize>(&mut self, list: &str, rows: &mut Vec<T>, columns: &Columns<'_, T>) {
        let top = std::mem::take(&mut self.top);
        self.whole_list(list, rows, columns);
        self.top = top;
    }

    fn sort_by<T: serde::Serialize>(&mut self, rows: &mut Vec<T>, columns: &Columns<'_, T>) {
        let Some(ColumnOrder { column, direction }) = &self.sort else { return };
        if let Some(i) = place(columns, column) {
            sort(rows, *direction, |row| Key::of(columns.row(row).cell(i)));
            self.sorted = true;
        }
    }

    fn note_columns<T>(&mut self, columns: &Columns<'_, T>) {
        if self.sort.is_none() && self.filter.is_none() {
            return;
        }
        add_names(&columns.list(), &mut self.columns);
    }

    /// Keeps the rows that satisfy the condition. Without a condition, or if the list does not have a column that the condition names, leaves the
    /// list unchanged and returns false.
    fn filter<T: serde::Serialize>(&mut self, rows: &mut Vec<T>, columns: &Columns<'_, T>) -> bool {
        let Some(condition) = &self.filter else { return false };
        let named: Option<Vec<(String, usize)>> =
            condition.columns().into_iter().map(|name| place(columns, &name).map(|i| (name, i))).collect();
        let Some(named) = named else { return false };
        let hidden = self.hidden;
        let is_hidden =
            |cell: &Cell<'_>| matches!(cell, Cell::Text(text) | Cell::Map(text) if hidden.is_some_and(|hidden| text.contains(hidden)));
        let mut met_hidden = false;
        rows.retain(|row| {
            let row = columns.row(row);
            let cells: Vec<(&str, Cell<'_>)> = named.iter().map(|(name, i)| (name.as_str(), row.cell(*i))).collect();
            met_hidden |= cells.iter().any(|(_, cell)| is_hidden(cell));
            condition.holds_for_row(|name| cells.iter().find(|(known, _)| *known == name).map(|(_, cell)| value(cell)))
        });
        self.met_hidden |= met_hidden;
        self.filtered = true;
        true
    }

    /// Returns the pages of lists whose rows were filtered or skipped, or were cut while `tells_cuts` was set.
    ///
    /// # Errors
    /// A message about a column that no list has.
    pub fn done(self) -> Result<Vec<PageModel>, String> {
        if let Some(condition) = self.filter.as_ref().filter(|_| self.met_hidden) {
            return Err(format!("texts are hidden here: a condition cannot compare {}", condition.columns().join(", ")));
        }
        let has = self.columns.join(", ");
        if let Some(order) = self.sort.filter(|_| !self.sorted) {
            let column = order.column;
            return Err(match has.is_empty() {
                true => format!("cannot sort by {column}: nothing is listed"),
                false => format!("cannot sort by {column}: this can be sorted by {has}"),
            });
        }
        if let Some(condition) = self.filter.filter(|_| !self.filtered) {
            let asked = condition.columns().join(", ");
            return Err(match has.is_empty() {
                true => format!("--where: nothing is listed with a column {asked}"),
                false => format!("--where: no list has a column {asked}; the columns are {has}"),
            });
        }
        Ok(self.pages)
    }
}

/// Names of rows for lists whose own name does not describe them.
const LISTS: &[(&str, &str)] = &[
    ("freed", "freed types"),
    ("incoming", "incoming references"),
    ("largest", "free blocks"),
    ("moved", "moved ranges"),
    ("outgoing", "outgoing references"),
    ("statics", "static fields"),
    ("survivors", "types of surviving objects"),
    ("surviving", "ranges that stayed"),
    ("tree", "trees"),
    ("unexplained", "unexplained ranges"),
];

/// Describes a page: `rows 21 to 40 of 133 locks`.
pub(super) fn words(page: &PageModel) -> String {
    let PageModel { list, skipped, listed, total } = page;
    let last = skipped.saturating_add(*listed);
    let named = LISTS.iter().find(|(name, _)| name == list).map_or(list.as_str(), |(_, words)| words);
    let named = if *total == 1 { named.strip_suffix('s').unwrap_or(named) } else { named };
    let of = format!("of {} {named}", count(*total));
    match listed {
        0 if *total == 0 => format!("no {named}"),
        0 => format!("no rows after {} {of}", count(*skipped)),
        1 => format!("row {} {of}", count(last)),
        _ => format!("rows {} to {} {of}", count(skipped.saturating_add(1)), count(last)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::columns::columns;
    use super::*;

    #[derive(Clone, Debug, PartialEq, serde::Serialize)]
    struct Cat(&'static str, u64);

    fn cats() -> (Vec<Cat>, Columns<'static, Cat>) {
        let columns = columns![Cat, text("first_name", 9, |c| c.0), count("age", |c| c.1), id("born", |c| (c.1 > 1).then_some(c.1))];
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
    fn rows_are_sorted_by_cells_and_pages_add_up_to_the_list() {
        assert_eq!(ages("age", 0, 0).0, [9, 2, 2, 1]);
        assert_eq!(ages("age:asc", 0, 0).0, [1, 2, 2, 9]);
        assert_eq!(ages("born", 0, 0).0, [2, 2, 9, 1], "what is unknown is last");
        assert_eq!(ages("born:desc", 0, 0).0, [9, 2, 2, 1]);
        assert_eq!(ages("First-Name", 0, 0).0, [9, 1, 2, 2]);
        let whole: Vec<u64> = (0..4).flat_map(|skip| ages("age", skip, 1).0).collect();
        assert_eq!(whole, [9, 2, 2, 1]);
        assert_eq!(ages("name", 0, 0).1.unwrap_err(), "cannot sort by name: this can be sorted by first_name, age, born");
    }

    #[test]
    fn conditions_select_rows_by_columns() {
        let of = |text: &str| {
            let (mut rows, columns) = cats();
            let mut paging = Paging { filter: Some(text.parse().unwrap()), ..Paging::new(None, 0, 1) };
            let left = paging.whole_list("cats", &mut rows, &columns);
            (rows.iter().map(|c| c.0).collect::<Vec<_>>(), left, paging.done().map(|pages| pages.iter().map(words).collect::<String>()))
        };
        assert_eq!(of("age = 2"), (vec!["Tom"], Some(3), Ok("row 1 of 2 cats".into())));
        assert_eq!(of("first_name ~ \"*e*\" and born != null").0, ["Abe"]);
        assert_eq!(of("born = null").0, ["Eve"]);
        assert_eq!(of("nothing = 1").2.unwrap_err(), "--where: no list has a column nothing; the columns are first_name, age, born");
    }

    #[test]
    fn pages_describe_their_rows() {
        let said = |skip, top| ages("age", skip, top).1.unwrap().iter().map(words).collect::<String>();
        assert_eq!(said(1, 2), "rows 2 to 3 of 4 cats");
        assert_eq!(said(3, 2), "row 4 of 4 cats");
        assert_eq!(said(9, 2), "no rows after 4 of 4 cats");
        assert_eq!(said(0, 2), "", "nothing is skipped");
    }
}
