//! Chooses the columns of a table that a screen shows, and their widths: columns shrink, wrap or are dropped until a row fits.

use std::sync::Arc;

use super::columns::{Column, LEAST_NAME, Readers};
use super::distinct::Shortened;
use super::fit::Fit;
use super::screen::Screen;
use super::table::Heading;
use super::width::width;

/// Spaces between columns.
pub(super) const GAP: usize = 2;

/// A visible column.
#[derive(Clone, Debug)]
pub(super) struct Placed {
    pub(super) column: Column,
    /// Index among all columns.
    pub(super) index: usize,
    pub(super) title: String,
    /// Width in characters.
    pub(super) width: usize,
    /// Width of the bar next to the column, including the space before the bar; 0 without a bar.
    pub(super) bar: usize,
    /// Replacements for names that would look equal.
    pub(super) names: Arc<Shortened>,
    /// Width of the widest cell.
    cells: usize,
    /// Whether all cells are empty.
    empty: bool,
}

/// Returns a column's title in tables: words are in capitals, field names are unchanged.
pub(super) fn title(column: &Column) -> String {
    column.title.clone().unwrap_or_else(|| column.name.replace('_', " ").to_uppercase())
}

impl Placed {
    /// Returns the width at which nothing wraps.
    fn whole(&self) -> usize {
        self.cells.max(width(&self.title))
    }

    /// Returns the width if the title wraps and the cells take at most `cells`.
    fn narrow(&self, cells: usize) -> usize {
        self.title.split(' ').map(width).max().unwrap_or(0).max(self.cells.min(cells))
    }

    /// Returns the minimum width. If there is less room, another column is dropped.
    fn least(&self) -> usize {
        self.narrow(usize::from(self.column.least))
    }

    /// Returns the width of a bar that takes `columns`, including the space before the bar.
    fn bar(columns: u16, screen: Screen) -> usize {
        if screen.terminal && columns > 0 { usize::from(columns).saturating_add(1) } else { 0 }
    }
}

/// The names of a table's rows, shown next to them: `$1`, `$2` …
#[derive(Clone, Copy, Debug)]
pub(super) struct Numbers {
    /// Number of rows shown before the table.
    pub(super) before: usize,
    /// Width of the widest name.
    pub(super) width: usize,
}

/// The columns of a table on a screen.
#[derive(Clone, Debug, Default)]
pub struct Layout {
    /// The row names, shown before the first column.
    pub(super) numbers: Option<Numbers>,
    pub(super) placed: Vec<Placed>,
    /// Titles of the dropped columns.
    pub(super) hidden: Vec<String>,
    pub(super) screen: Screen,
    /// Whether there may be any number of rows, with cells of any width.
    pub(super) endless: bool,
}

impl Layout {
    /// Returns the layout of a table that is not measured, from the declared widths.
    pub(super) fn declared(heading: &Heading, screen: Screen, numbers: Option<Numbers>) -> Layout {
        let widths: Vec<usize> = heading.columns(Readers::People).map(|(_, c)| usize::from(c.width)).collect();
        let mut layout = Layout { endless: true, ..Layout::measured(heading, screen, numbers, &widths, &[]) };
        let left = layout.room().saturating_sub(sum(&layout.placed, |p| p.width.saturating_add(p.bar)));
        match screen.width {
            None => layout.placed.iter_mut().for_each(|p| p.width = p.cells),
            // Cells may be wider than declared, so text gets the remaining room.
            Some(_) => {
                let text = layout.placed.iter_mut().rev().find(|p| p.column.fit != Fit::Whole);
                text.into_iter().for_each(|p| p.width = p.width.saturating_add(left));
            }
        }
        layout
    }

    /// Returns the layout of a table whose widest cells have the widths `cells`, by index among the visible columns. `empty` marks columns
    /// whose cells are all empty.
    pub(super) fn measured(heading: &Heading, screen: Screen, numbers: Option<Numbers>, cells: &[usize], empty: &[bool]) -> Layout {
        let place = |(i, (index, column)): (usize, (usize, &Column))| Placed {
            column: column.clone(),
            index,
            title: title(column),
            width: 0,
            bar: Placed::bar(column.bar.most, screen),
            names: Arc::default(),
            cells: cells.get(i).copied().unwrap_or(0),
            empty: empty.get(i) == Some(&true),
        };
        let placed = heading.columns(Readers::People).enumerate().map(place).collect();
        let endless = cells.iter().any(|width| *width > usize::from(u16::MAX / 2));
        let mut layout = Layout { numbers, placed, hidden: Vec::new(), screen, endless };
        match screen.width {
            None => layout.placed.iter_mut().for_each(|p| p.width = p.whole()),
            Some(_) => layout.fit(),
        }
        layout
    }

    /// Returns the width of the screen that is available to the table.
    fn room(&self) -> usize {
        let numbers = self.numbers.map_or(0, |n| n.width.saturating_add(GAP));
        self.screen.width.unwrap_or(usize::MAX).saturating_sub(numbers)
    }

    /// Fits the columns to the screen.
    fn fit(&mut self) {
        /// Number of screen columns that text gets beyond its minimum width before bars get any.
        const BEFORE_BARS: usize = 20;
        let (screen, room, all) = (self.screen, self.room(), &mut self.placed);
        let least_bar = |p: &Placed| Placed::bar(p.column.bar.least, screen);
        let mut hidden = Vec::new();
        while sum(all, |p| p.least().saturating_add(least_bar(p))) > room && all.len() > 1 {
            // If several columns have the same priority, the last of these columns is dropped.
            let leaves = all.iter().enumerate().min_by_key(|(i, p)| (!p.empty, p.column.keep, usize::MAX.saturating_sub(*i)));
            let Some((leaves, _)) = leaves else { break };
            hidden.push(all.remove(leaves));
        }
        hidden.sort_by_key(|p| p.index);
        self.hidden = hidden.into_iter().map(|p| p.title).collect();
        // Titles wrap only if wrapping makes room.
        let wraps = sum(all, Placed::whole) > room;
        let wanted: Vec<usize> = all.iter().map(|p| if wraps { p.narrow(usize::MAX) } else { p.whole() }).collect();
        all.iter_mut().for_each(|p| p.width = p.least());
        let mut left = room.saturating_sub(sum(all, |p| p.width));
        let missing = all.iter().zip(&wanted).fold(0usize, |n, (p, wants)| n.saturating_add(wants.saturating_sub(p.width)));
        let names = all.iter().filter(|p| p.column.fit == Fit::Name);
        let has = names.fold(0usize, |n, p| n.saturating_add(p.width.saturating_sub(p.narrow(usize::from(LEAST_NAME)))));
        let before_bars = missing.min(BEFORE_BARS.saturating_sub(has));
        for p in all.iter_mut() {
            let least = least_bar(p);
            let room = left.saturating_sub(before_bars).max(least);
            p.bar = if room >= p.bar || least > 0 { p.bar.min(room) } else { 0 };
            left = left.saturating_sub(p.bar);
        }
        // Widens the narrowest column first, so that one long column does not take the room of others.
        for _ in 0..left {
            let short = all.iter_mut().zip(&wanted).filter(|(p, wants)| p.width < **wants).min_by_key(|(p, _)| p.width);
            let Some((p, _)) = short else { return };
            p.width = p.width.saturating_add(1);
        }
    }
}

/// Returns the width of a row, including the gaps between columns.
fn sum(all: &[Placed], of: impl Fn(&Placed) -> usize) -> usize {
    let gaps = all.len().saturating_sub(1).saturating_mul(GAP);
    all.iter().fold(gaps, |n, p| n.saturating_add(of(p)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Addr;
    use crate::output::columns::columns;

    fn layout(room: usize, cells: &[usize], empty: &[bool]) -> Layout {
        let all = columns![
            (),
            address("address", |()| None::<Addr>),
            address("method_table", |()| None::<Addr>).extra(),
            bytes("free_bytes_before", |()| None::<u64>),
            text("type", 60, |()| "").name()
        ];
        let heading = Heading { columns: all.list(), ..Heading::default() };
        Layout::measured(&heading, Screen::terminal(Some(room), None), None, cells, empty)
    }

    #[test]
    fn columns_shrink_and_titles_wrap_before_columns_are_dropped() {
        let widths = |l: &Layout| l.placed.iter().map(|p| p.width).collect::<Vec<_>>();
        let wide = layout(120, &[14, 14, 9, 50], &[]);
        assert_eq!((widths(&wide), wide.hidden.len()), (vec![14, 14, 17, 50], 0));
        let wrapped = layout(100, &[14, 14, 9, 50], &[]);
        assert_eq!((widths(&wrapped), wrapped.hidden.len()), (vec![14, 14, 9, 50], 0));
        let shrunk = layout(80, &[14, 14, 9, 50], &[]);
        assert_eq!((widths(&shrunk), shrunk.hidden.len()), (vec![14, 14, 9, 37], 0));
        let left = layout(60, &[14, 14, 9, 50], &[]);
        assert_eq!((widths(&left), left.hidden), (vec![14, 9, 33], vec!["METHOD TABLE".to_string()]));
        let empty = layout(60, &[14, 14, 9, 50], &[true, false, false, false]);
        assert_eq!(empty.hidden, ["ADDRESS"], "what is empty leaves first");
    }

    #[test]
    fn the_narrowest_column_is_widened_first() {
        let all = columns![(), text("a", 10, |()| ""), text("b", 10, |()| ""), text("c", 20, |()| "")];
        let heading = Heading { columns: all.list(), ..Heading::default() };
        let widths = |cells: &[usize], room| {
            let layout = Layout::measured(&heading, Screen::terminal(Some(room), None), None, cells, &[]);
            layout.placed.iter().map(|p| p.width).collect::<Vec<_>>()
        };
        assert_eq!(widths(&[10, 100, 100], 74), [10, 30, 30]);
        assert_eq!(widths(&[15, 16, 100], 70), [15, 16, 35]);
        assert_eq!(widths(&[7, 8, 9], 100), [7, 8, 9]);
        assert_eq!(widths(&[50, 50, 50], 48), [12, 12, 20], "the least is kept");
    }
}
