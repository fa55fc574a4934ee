//! Which columns of a table a screen shows, and how wide: columns shrink, wrap or leave until a row fits.

use std::borrow::Cow;
use std::sync::Arc;

use super::distinct::Shortened;
use super::screen::Screen;
use super::shorten::{longest, shorten, shorter};
use super::table::{Column, Heading, Readers};
use super::width::{cut, cut_middle, width, wrap};

/// Spaces between columns.
pub(super) const GAP: usize = 2;

/// How text gives way where the screen is too narrow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fit {
    /// Never: numbers, addresses, words of a fixed set.
    Whole,
    /// The names of types and methods: see `shorten`.
    Name,
    /// The middle goes: paths.
    Path,
    /// The end goes.
    Text,
    /// Up to so many lines, then the end goes.
    Lines(u8),
    /// Text with such a name in it: up to so many lines, then see `shorten`.
    NameLines(u8),
    /// As many lines as it takes, broken anywhere: maps.
    Cells,
}

/// Columns that text gets above its least before there are bars.
const BEFORE_BARS: usize = 20;

/// Least columns of text that can give way: below it, another column leaves.
const LEAST_NAME: usize = 26;
const LEAST_LINES: usize = 32;
const LEAST_TEXT: usize = 12;
const LEAST_CELLS: usize = 32;

impl Fit {
    /// Least width of a column that takes `whole` and was declared to take `declared`.
    fn least(self, whole: usize, declared: usize) -> usize {
        match self {
            Fit::Whole => whole,
            Fit::Name | Fit::Path => whole.min(LEAST_NAME),
            Fit::Lines(_) | Fit::NameLines(_) => whole.min(LEAST_LINES),
            Fit::Cells => whole.min(LEAST_CELLS),
            Fit::Text => whole.min(declared.clamp(LEAST_TEXT, LEAST_NAME)),
        }
    }

    /// `text` in lines of at most `columns`.
    pub(super) fn lines(self, text: &str, columns: usize) -> Vec<Cow<'_, str>> {
        match self {
            Fit::Whole => vec![text.into()],
            Fit::Name => vec![shorten(text, columns)],
            Fit::Path => vec![cut_middle(text, columns)],
            Fit::Text => vec![cut(text, columns)],
            // What an object is: its address and type.
            Fit::Lines(most) if text.starts_with("0x") => {
                let short = shorter(text, columns);
                wrap(&short, columns, 0, usize::from(most)).into_iter().map(|line| Cow::Owned(line.into_owned())).collect()
            }
            Fit::Lines(most) => wrap(text, columns, 0, usize::from(most)),
            Fit::NameLines(most) => {
                let fits = |form: &str| wrap(form, columns, 0, usize::MAX).len() <= usize::from(most);
                let short = longest(text, fits);
                wrap(&short, columns, 0, usize::from(most)).into_iter().map(|line| Cow::Owned(line.into_owned())).collect()
            }
            Fit::Cells => rows(text, columns),
        }
    }
}

/// `text` of letters that take a column each, in rows of `columns`.
fn rows(text: &str, columns: usize) -> Vec<Cow<'_, str>> {
    let mut rows = Vec::new();
    let mut rest = text;
    while let Some((row, more)) = rest.split_at_checked(columns.max(1)).filter(|(_, more)| !more.is_empty()) {
        rows.push(row.into());
        rest = more;
    }
    rows.push(rest.into());
    rows
}

/// A column that is shown.
#[derive(Clone, Debug)]
pub(super) struct Placed {
    /// Its index among all columns.
    pub(super) index: usize,
    /// Its width.
    pub(super) width: usize,
    /// Columns for a bar behind a share; 0 if there is no room.
    pub(super) bar: usize,
    /// How names are shown that would be equal to others.
    pub(super) names: Arc<Shortened>,
}

/// What the rows of a table are called, shown beside them: `$1`, `$2` …
#[derive(Clone, Copy, Debug)]
pub(super) struct Numbers {
    /// Rows that were shown before those of the table.
    pub(super) before: usize,
    /// Width of the widest.
    pub(super) width: usize,
}

impl Numbers {
    /// The screen that is left for the columns.
    pub(super) fn beside(self, screen: Screen) -> Screen {
        Screen { width: screen.width.map(|room| room.saturating_sub(self.width.saturating_add(GAP))), ..screen }
    }
}

/// The columns of a table on a screen.
#[derive(Clone, Debug, Default)]
pub struct Layout {
    /// Stand before the first column.
    pub(super) numbers: Option<Numbers>,
    pub(super) placed: Vec<Placed>,
    /// Titles of the columns that left.
    pub(super) hidden: Vec<String>,
    pub(super) screen: Screen,
}

/// A column's title in tables: words are in capitals, names of fields are not.
pub(super) fn title(column: &Column) -> String {
    column.title.clone().unwrap_or_else(|| column.name.replace('_', " ").to_uppercase())
}

/// Width of the longest word of a title: titles wrap before a column leaves.
fn longest_word(title: &str) -> usize {
    title.split(' ').map(width).max().unwrap_or(0)
}

/// A column that may be shown.
struct Candidate<'h> {
    index: usize,
    column: &'h Column,
    /// Width of its widest cell.
    cells: usize,
    title: String,
    empty: bool,
}

impl Candidate<'_> {
    fn whole(&self) -> usize {
        self.cells.max(width(&self.title))
    }

    /// Its width if its title wraps.
    fn narrow(&self) -> usize {
        self.cells.max(longest_word(&self.title))
    }

    fn least(&self) -> usize {
        let least = match self.column.least {
            Some(least) if self.column.fit != Fit::Whole => self.cells.min(usize::from(least)),
            _ => return self.usual_least(),
        };
        least.max(longest_word(&self.title))
    }

    /// Its least width if the table has set none.
    fn usual_least(&self) -> usize {
        self.column.fit.least(self.cells, usize::from(self.column.width)).max(longest_word(&self.title))
    }
}

impl Layout {
    /// The columns of a table whose widest cells take `cells`, by index among the columns that people see, and where all cells of
    /// those in `empty` are.
    pub(super) fn measured(heading: &Heading, screen: Screen, cells: &[usize], empty: &[bool]) -> Layout {
        let of = |i: usize| cells.get(i).copied().unwrap_or(0);
        Layout::of(heading, screen, of, |i| empty.get(i) == Some(&true))
    }

    /// The columns of a table that is too long to measure, by their declared widths.
    pub(super) fn declared(heading: &Heading, screen: Screen) -> Layout {
        let widths: Vec<usize> = heading.columns(Readers::People).map(|(_, c)| usize::from(c.width)).collect();
        let mut layout = Layout::of(heading, screen, |i| widths.get(i).copied().unwrap_or(0), |_| false);
        // Cells may be wider than declared, so that text gets the room that is left.
        if let Some(room) = screen.width {
            let left = room.saturating_sub(layout.width());
            let text = |p: &&mut Placed| heading.columns.get(p.index).is_some_and(|c| c.fit != Fit::Whole);
            if let Some(last) = layout.placed.iter_mut().rev().find(text) {
                last.width = last.width.saturating_add(left);
            }
        } else {
            // As declared: what is wider juts out.
            layout.placed.iter_mut().zip(widths).for_each(|(p, declared)| p.width = declared);
        }
        layout
    }

    /// The same with `numbers` before the first column, for which the screen has left room.
    pub(super) fn numbered(self, numbers: Option<Numbers>) -> Layout {
        Layout { numbers, ..self }
    }

    /// Columns that a row takes.
    fn width(&self) -> usize {
        let gaps = self.placed.len().saturating_sub(1).saturating_mul(GAP);
        self.placed.iter().fold(gaps, |n, p| n.saturating_add(p.width).saturating_add(p.bar))
    }

    fn of(heading: &Heading, screen: Screen, cells: impl Fn(usize) -> usize, empty: impl Fn(usize) -> bool) -> Layout {
        let columns = heading.columns(Readers::People).enumerate();
        let mut all: Vec<Candidate<'_>> = columns
            .map(|(i, (index, column))| Candidate { index, column, cells: cells(i), title: title(column), empty: empty(i) })
            .collect();
        let Some(room) = screen.width else {
            let place = |c: &Candidate<'_>| Placed { index: c.index, width: c.whole(), bar: bar(c, screen), names: Arc::default() };
            return Layout { numbers: None, placed: all.iter().map(place).collect(), hidden: Vec::new(), screen };
        };
        let mut hidden = Vec::new();
        while sum(&all, |c| c.least().saturating_add(least_bar(c, screen))) > room && all.len() > 1 {
            // Of equals the last.
            let leaves = all.iter().enumerate().min_by_key(|(i, c)| (!c.empty, c.column.keep, usize::MAX.saturating_sub(*i)));
            let Some((leaves, _)) = leaves else { break };
            hidden.push((all.get(leaves).map_or(0, |c| c.index), all.remove(leaves).title));
        }
        hidden.sort_by_key(|h| h.0);
        // Titles wrap only where that makes room.
        let wraps = sum(&all, |c| c.whole()) > room;
        let wanted: Vec<usize> = all.iter().map(|c| if wraps { c.narrow() } else { c.whole() }).collect();
        let mut widths: Vec<usize> = all.iter().map(Candidate::least).collect();
        let gaps = all.len().saturating_sub(1).saturating_mul(GAP);
        let mut left = room.saturating_sub(widths.iter().fold(gaps, |n, w| n.saturating_add(*w)));
        let lacking = widths.iter().zip(&wanted).fold(0usize, |n, (has, wants)| n.saturating_add(wants.saturating_sub(*has)));
        // Part of what text gets before bars is in the least widths already.
        let raised = all.iter().fold(0usize, |n, c| n.saturating_add(c.least().saturating_sub(c.usual_least())));
        let before_bars = BEFORE_BARS.saturating_sub(raised);
        let mut bars = Vec::with_capacity(all.len());
        for c in &all {
            let (least, wanted) = (least_bar(c, screen), bar(c, screen));
            let room = left.saturating_sub(lacking.min(before_bars));
            let given = if room >= wanted || least > 0 { wanted.min(room.max(least)) } else { 0 };
            bars.push(given);
            left = left.saturating_sub(given);
        }
        let taken = bars.iter().fold(gaps, |n, bar| n.saturating_add(*bar));
        share_out(&mut widths, &wanted, room.saturating_sub(taken));
        let places = all.iter().zip(widths).zip(bars);
        let placed = places.map(|((c, width), bar)| Placed { index: c.index, width, bar, names: Arc::default() }).collect();
        Layout { numbers: None, placed, hidden: hidden.into_iter().map(|h| h.1).collect(), screen }
    }
}

/// Columns that a row takes.
fn sum<'h>(all: &[Candidate<'h>], of: impl Fn(&Candidate<'h>) -> usize) -> usize {
    let gaps = all.len().saturating_sub(1).saturating_mul(GAP);
    all.iter().fold(gaps, |n, c| n.saturating_add(of(c)))
}

/// Columns of a bar with the space before it.
fn bar(c: &Candidate<'_>, screen: Screen) -> usize {
    if screen.terminal { with_space(c.column.bar.most) } else { 0 }
}

/// Those that it takes at least.
fn least_bar(c: &Candidate<'_>, screen: Screen) -> usize {
    if screen.terminal { with_space(c.column.bar.least) } else { 0 }
}

fn with_space(columns: u16) -> usize {
    if columns > 0 { usize::from(columns).saturating_add(1) } else { 0 }
}

/// Raises `widths` towards `wanted` until they take `room`: the narrowest first, so that one long column takes no room from others.
fn share_out(widths: &mut [usize], wanted: &[usize], room: usize) {
    let mut left = room.saturating_sub(widths.iter().fold(0usize, |n, w| n.saturating_add(*w)));
    while left > 0 {
        let short = widths.iter().zip(wanted).enumerate().filter(|(_, (has, wants))| has < wants).map(|(i, (has, _))| (*has, i)).min();
        let Some((has, at)) = short else { return };
        // Up to the next one that lacks, at once.
        let next = widths.iter().zip(wanted).filter(|(h, w)| h < w && **h > has).map(|(h, _)| *h).min().unwrap_or(usize::MAX);
        let until = wanted.get(at).copied().unwrap_or(0).min(next.max(has.saturating_add(1)));
        let lacking = widths.iter().zip(wanted).filter(|(h, w)| h < w && **h == has).count().max(1);
        let step = until.saturating_sub(has).min((left / lacking).max(1));
        if let Some(width) = widths.get_mut(at) {
            *width = width.saturating_add(step);
        }
        left = left.saturating_sub(step);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::table::columns;

    fn shares(widths: &[usize], wanted: &[usize], room: usize) -> Vec<usize> {
        let mut widths = widths.to_vec();
        share_out(&mut widths, wanted, room);
        widths
    }

    #[test]
    fn room_is_shared_out() {
        assert_eq!(shares(&[10, 10, 10], &[10, 100, 100], 70), [10, 30, 30]);
        assert_eq!(shares(&[10, 20], &[15, 100], 60), [15, 45]);
        assert_eq!(shares(&[5, 5], &[7, 8], 100), [7, 8]);
        assert_eq!(shares(&[50, 50], &[60, 60], 20), [50, 50], "the least is not taken from");
    }

    fn layout(room: usize, cells: &[usize], empty: &[bool]) -> Layout {
        let all = columns::<()>()
            .address("address", |()| None)
            .address("method_table", |()| None)
            .extra()
            .bytes("free_bytes_before", |()| None)
            .text("type", 60, |()| "")
            .name();
        let heading = Heading { columns: all.list().to_vec(), ..Heading::default() };
        Layout::measured(&heading, Screen::terminal(Some(room), None), cells, empty)
    }

    #[test]
    fn columns_shrink_and_titles_wrap_before_columns_leave() {
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
}
