//! Human-readable tables. This module decides the contents and columns; `comfy-table` draws them.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::Arc;

use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, ColumnConstraint, Width};

use super::lines::{clean, facts, finding, hidden, legend, lines, marked, named, put, text};
use super::{Out, Whole, Writer};
use crate::base::hash::Map;
use crate::output::distinct::{Names, Shortened};
use crate::output::fit::Fit;
use crate::output::layout::{GAP, Layout, Numbers, Placed};
use crate::output::map::pieces;
use crate::output::report::Section;
use crate::output::screen::{Ink, Screen};
use crate::output::columns::{Align, Fill, Readers, Row};
use crate::output::table::{Heading, Table as Rows};
use crate::output::width::{width, wrap};
use crate::output::{Cell, Seen};

pub(super) struct Table;

/// Maximum number of rows whose cells are measured. Longer tables use the declared widths of their columns.
const MEASURED_ROWS: usize = 5_000;
/// Minimum number of rows between repeated titles.
const MIN_ROWS: u64 = 5;

/// A cell as printed.
struct Shown<'c> {
    text: Cow<'c, str>,
    ink: Ink,
    /// Contents of the bar next to the cell.
    fill: Fill,
    /// Whether the cell is a map.
    map: bool,
}

impl<'c> Shown<'c> {
    /// Converts a cell. `names` contains the replacements of names in this column.
    fn of(cell: Cell<'c>, fill: Option<Fill>, screen: Screen, names: &'c Map<String, String>) -> Shown<'c> {
        let ink = match &cell {
            Cell::Addr(_) => Ink::Address,
            Cell::Bytes(_) => Ink::Size,
            Cell::None => Ink::Faint,
            _ => Ink::Plain,
        };
        let fill = match (fill, &cell) {
            (None, Cell::Share(share)) => Fill { used: *share, ..Fill::default() },
            (fill, _) => fill.unwrap_or_default(),
        };
        let map = matches!(&cell, Cell::Map(_));
        let text = match cell {
            Cell::Map(text) => text,
            Cell::Text(text) => clean(text, screen),
            Cell::Name(name) => clean(names.get(name.as_str()).map_or(name.shown(), String::as_str).into(), screen),
            other => other.human().into_owned().into(),
        };
        Shown { text, ink, fill, map }
    }

    /// Converts the cell of a row in the column `place`.
    fn cell(row: &'c dyn Row, place: &'c Placed, screen: Screen) -> Shown<'c> {
        Shown::of(row.cell(place.index), row.fill(place.index), screen, &place.names.shared)
    }

    /// Returns the width of the widest line.
    fn width(&self) -> usize {
        self.text.split('\n').map(width).max().unwrap_or(0)
    }

    /// Returns the lines of the cell as drawn in `place`.
    fn drawn(&self, place: &Placed, screen: Screen) -> String {
        let lines = match place.names.short.get(&*self.text) {
            _ if screen.width.is_none() || self.width() <= place.width => self.text.split('\n').map(Cow::Borrowed).collect(),
            Some(short) => short.split('\n').map(Cow::Borrowed).collect(),
            None => place.column.fit.lines(&self.text, place.width),
        };
        let inked = |line: Cow<'_, str>| match self.map {
            false => marked(&line, self.ink, screen),
            true => pieces(&line, screen).iter().map(|(text, ink)| marked(text, *ink, screen)).collect(),
        };
        lines.into_iter().map(inked).collect::<Vec<_>>().join("\n")
    }
}

/// Returns a bar of at most `columns` columns: the number of empty columns before the bar, the used part in eighths of a column, and the part that is
/// held beyond the used part. A bar that does not start at 0 has at least one eighth, so that it is visible.
fn bar(fill: Fill, columns: usize) -> (usize, String, String) {
    const EIGHTHS: [char; 8] = [' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];
    let columns = u32::try_from(columns).unwrap_or(u32::MAX);
    // Counts steps, because a cast from a float would need a lint exception.
    let steps = |share: f64, most: u32| (0..most).take_while(|n| share * f64::from(most) >= f64::from(n.saturating_add(1))).count();
    let last = usize::try_from(columns.saturating_sub(1)).unwrap_or(usize::MAX);
    let before = steps(fill.from, columns).min(last);
    let end = steps(fill.from + fill.used, columns.saturating_mul(8));
    let eighths = end.saturating_sub(before.saturating_mul(8)).max(usize::from(fill.from > 0.0));
    let part = EIGHTHS.get(eighths % 8).filter(|c| **c != ' ');
    let used: String = std::iter::repeat_n('█', eighths / 8).chain(part.copied()).collect();
    let held = "░".repeat(steps(fill.held, columns).saturating_sub(used.chars().count()));
    (before, used, held)
}

/// Returns alignment, width and preceding spaces of the columns of `layout`.
fn columns(layout: &Layout) -> Vec<(Align, usize, usize)> {
    let numbers = layout.numbers.map(|n| (Align::Right, n.width, 0));
    let beside = |p: &Placed| p.bar.checked_sub(1).map(|room| (Align::Left, room, 1));
    let placed = layout.placed.iter().flat_map(|p| [Some((p.column.align, p.width, GAP)), beside(p)]);
    let mut all: Vec<(Align, usize, usize)> = numbers.into_iter().chain(placed.flatten()).collect();
    if let Some(first) = all.first_mut() {
        first.2 = 0;
    }
    all
}

/// Appends a row of finished cells without trailing spaces. A cell that is wider than its column widens the column.
fn draw(layout: &Layout, cells: Vec<String>, to: &mut Vec<u8>) -> io::Result<()> {
    let mut table = comfy_table::Table::new();
    table.load_style(NOTHING).add_row(cells);
    for (column, (align, width, gap)) in table.column_iter_mut().zip(columns(layout)) {
        let columns = |n: usize| u16::try_from(n).unwrap_or(u16::MAX);
        let least = ColumnConstraint::LowerBoundary(Width::Fixed(columns(width.saturating_add(gap))));
        column.set_padding((columns(gap), 0)).set_constraint(least);
        column.set_cell_alignment(if align == Align::Left { CellAlignment::Left } else { CellAlignment::Right });
    }
    table.lines().try_for_each(|line| put(to, line.trim_end_matches(' '), layout.screen))
}

/// Returns the cells of a row. If rows are numbered, the first cell is `name` (such as `$1`).
fn cells<'c>(layout: &'c Layout, name: Option<String>, shown: impl Fn(&'c Placed) -> Shown<'c>) -> Vec<String> {
    let screen = layout.screen;
    let name = layout.numbers.map(|_| marked(&name.unwrap_or_default(), Ink::Faint, screen));
    let placed = layout.placed.iter().flat_map(|place| {
        let cell = shown(place);
        let bar = place.bar.checked_sub(1).map(|room| {
            let (before, used, held) = bar(cell.fill, room);
            format!("{:before$}{}{}", "", marked(&used, Ink::Bar, screen), marked(&held, Ink::Faint, screen))
        });
        [Some(cell.drawn(place, screen)), bar]
    });
    name.into_iter().chain(placed.flatten()).collect()
}

/// Appends a row of one-line cells like `draw`, but much faster, because a pipe may receive a hundred million rows.
fn plain(layout: &Layout, row: &dyn Row, to: &mut Vec<u8>) -> io::Result<()> {
    let mut spaces = 0usize;
    for (n, place) in layout.placed.iter().enumerate() {
        let cell = Shown::cell(row, place, layout.screen);
        let visible = cell.text.trim_end_matches(' ');
        let padding = place.width.saturating_sub(width(&cell.text));
        let (before, after) = if place.column.align == Align::Left { (0, padding) } else { (padding, 0) };
        spaces = spaces.saturating_add(if n > 0 { GAP } else { 0 }).saturating_add(before);
        if !visible.is_empty() {
            to.resize(to.len().saturating_add(std::mem::take(&mut spaces)), b' ');
            match (layout.screen.color, cell.map) {
                (false, _) => to.extend_from_slice(visible.as_bytes()),
                (true, false) => write!(to, "{}", layout.screen.paint(cell.ink, visible))?,
                (true, true) => pieces(visible, layout.screen).iter().try_for_each(|(t, ink)| write!(to, "{}", layout.screen.paint(*ink, t)))?,
            }
        }
        spaces = spaces.saturating_add(cell.text.len().saturating_sub(visible.len())).saturating_add(after);
    }
    to.push(b'\n');
    Ok(())
}

/// Appends the titles. They wrap at the widths of their columns, and their last lines are aligned.
fn titles(layout: &Layout, to: &mut Vec<u8>) -> io::Result<()> {
    let wrapped = |p: &Placed| wrap(&p.title, p.width, 0, usize::MAX).join("\n");
    let breaks = |text: &str| text.matches('\n').count();
    let most = layout.placed.iter().map(|p| breaks(&wrapped(p))).max().unwrap_or(0);
    let title = |p: &Placed| {
        let text = wrapped(p);
        let above = "\n".repeat(most.saturating_sub(breaks(&text)));
        Shown { text: Cow::Owned(above + &text), ink: Ink::Heading, fill: Fill::default(), map: false }
    };
    draw(layout, cells(layout, None, title), to)
}

/// Returns the numbering of `rows` rows, if numbers are shown.
fn numbers(out: &Out<'_>, rows: usize) -> Option<Numbers> {
    let before = named(out)?.rows_before();
    let width = before.saturating_add(rows).to_string().len().saturating_add(1);
    Some(Numbers { before, width })
}

/// Returns the number of rows after which the titles are repeated.
fn screenful(screen: Screen) -> Option<u64> {
    /// Lines for the titles and the prompt.
    const AROUND: u64 = 2;
    let lines = u64::try_from(screen.height.filter(|_| screen.terminal && !screen.pager)?).ok()?;
    Some(lines.saturating_sub(AROUND).max(MIN_ROWS))
}

impl Writer for Table {
    fn section(&self, out: &mut Out<'_>, section: Section<'_>) -> io::Result<()> {
        let of_list = std::mem::take(&mut out.hidden);
        hidden(out, &of_list)?;
        if out.skipped() > 0 && !matches!(section, Section::Table(_)) {
            return Ok(());
        }
        match section {
            Section::Line(line) => text(out, &line, Ink::Plain, ""),
            Section::Fitting(long, short) => {
                let fits = out.screen.width.is_none_or(|room| width(&clean(long.as_str().into(), out.screen)) <= room);
                text(out, if fits { &long } else { &short }, Ink::Plain, "")
            }
            Section::Title(line) => text(out, &line, Ink::Heading, ""),
            Section::Alarm(line) => text(out, &line, Ink::Alarm, ""),
            Section::Finding(f) => finding(out, &f),
            Section::Chapter(chapter) => text(out, chapter.title, Ink::Heading, ""),
            Section::Lines(mut list) => lines(out, &mut list),
            Section::Legend(cells) => legend(out, &cells),
            Section::Gap => writeln!(out.to),
            Section::Facts(list) => facts(out, list),
            Section::Table(table) if table.heading.shown => self.table(out, &table),
            Section::Contents(..) | Section::Tiles(_) | Section::Picture(_) | Section::Table(_) => Ok(()),
        }
    }

    fn list(&self, out: &mut Out<'_>, heading: &Heading) -> io::Result<()> {
        let layout = self.layout(heading, out);
        self.begin_table(out, &layout)?;
        out.hidden = layout.hidden;
        Ok(())
    }

    fn layout(&self, heading: &Heading, out: &Out<'_>) -> Layout {
        /// Number of rows for which the column of numbers is wide enough. A longer number widens its own row.
        const USUAL_ROWS: usize = 99;
        Layout::declared(heading, out.screen, numbers(out, USUAL_ROWS))
    }

    fn row(&self, heading: &Heading, row: &dyn Row, number: u64, layout: &Layout, to: &mut Vec<u8>) -> io::Result<()> {
        if screenful(layout.screen).is_some_and(|rows| number > 0 && number.is_multiple_of(rows)) {
            titles(layout, to)?;
        }
        if layout.endless && !layout.screen.terminal && layout.screen.width.is_none() {
            let start = to.len();
            plain(layout, row, to)?;
            // `comfy-table` draws rows with line feeds in cells. A row that is too wide for its `u16` columns stays as it is.
            let line = to.get(start..).unwrap_or_default();
            if line.len() > usize::from(u16::MAX / 2) || line.iter().filter(|b| **b == b'\n').count() == 1 {
                return Ok(());
            }
            to.truncate(start);
        }
        let before = layout.numbers.filter(|_| heading.link_of(row).is_some()).map(|n| n.before);
        let name = before.zip(usize::try_from(number).ok()).and_then(|(before, number)| Seen::name(before.saturating_add(number)));
        draw(layout, cells(layout, name, |place| Shown::cell(row, place, layout.screen)), to)
    }

    fn end(&self, out: &mut Out<'_>, _answer: &dyn Whole) -> io::Result<()> {
        let of_list = std::mem::take(&mut out.hidden);
        hidden(out, &of_list)
    }
}

/// Returns the names in the columns of a table, by index among all columns.
fn names(heading: &Heading, table: &Rows<'_>, screen: Screen) -> io::Result<BTreeMap<usize, Names>> {
    let named = heading.columns(Readers::People).filter(|(_, c)| matches!(c.fit, Fit::Name | Fit::NameLines(_)));
    let mut all: BTreeMap<usize, Names> = named.map(|(i, _)| (i, Names::default())).collect();
    let none = Map::default();
    table.rows.each(&mut |row| {
        for (column, names) in &mut all {
            let cell = row.cell(*column);
            let name = if let Cell::Name(name) = &cell { Some(*name) } else { None };
            // If nothing is shortened, only names with a separate display form can look equal, so no other names are collected.
            if screen.width.is_some() || name.is_some_and(|name| name.shown() != name.as_str()) {
                names.add(&Shown::of(cell.clone(), None, screen, &none).text, name);
            }
        }
        Ok(())
    })?;
    Ok(all)
}

impl Table {
    /// Prints the titles of a table and starts recording its addresses.
    fn begin_table(&self, out: &mut Out<'_>, layout: &Layout) -> io::Result<()> {
        let mut text = Vec::new();
        titles(layout, &mut text)?;
        if let Some(seen) = out.seen {
            seen.begin();
        }
        out.to.write_all(&text)
    }

    fn table(&self, out: &mut Out<'_>, table: &Rows<'_>) -> io::Result<()> {
        let (heading, screen) = (&table.heading, out.screen);
        let columns: Vec<usize> = heading.columns(Readers::People).map(|(i, _)| i).collect();
        let names: BTreeMap<usize, (Map<String, String>, Names)> =
            names(heading, table, screen)?.into_iter().map(|(i, names)| (i, names.resolved())).collect();
        let none = Map::default();
        let shared = |column: usize| names.get(&column).map_or(&none, |(shared, _)| shared);
        let (mut widths, mut empty) = (vec![0usize; columns.len()], vec![true; columns.len()]);
        let mut measure = |cells: &mut dyn Iterator<Item = Shown<'_>>| {
            for ((widest, empty), cell) in widths.iter_mut().zip(&mut empty).zip(cells) {
                *empty &= cell.ink == Ink::Faint || cell.text.is_empty();
                *widest = cell.width().max(*widest);
            }
        };
        let (mut count, mut left_out, mut links) = (0usize, out.skipped(), false);
        table.rows.each(&mut |row| {
            if left_out > 0 {
                left_out = left_out.saturating_sub(1);
                return Ok(());
            }
            count = count.saturating_add(1);
            if count <= MEASURED_ROWS {
                links = links || heading.link_of(row).is_some();
                measure(&mut columns.iter().map(|i| Shown::of(row.cell(*i), None, screen, shared(*i))));
            }
            Ok(())
        })?;
        if out.skipped() > 0 && count == 0 {
            return Ok(());
        }
        let totals = table.totals.as_ref().filter(|_| out.skipped() == 0);
        let total = |i: usize| Shown::of(totals.and_then(|t| t.get(i)).cloned().unwrap_or(Cell::None), None, screen, &none);
        if totals.is_some() {
            measure(&mut (0..columns.len()).map(total));
        }
        let mut layout = match count <= MEASURED_ROWS {
            true => Layout::measured(heading, screen, numbers(out, count).filter(|_| links), &widths, &empty),
            false => self.layout(heading, out),
        };
        for place in &mut layout.placed {
            if let Some((shared, names)) = names.get(&place.index) {
                let short = screen.width.map(|_| names.shortened(place.column.fit, place.width)).unwrap_or_default();
                place.names = Arc::new(Shortened { shared: shared.clone(), short });
            }
        }
        self.begin_table(out, &layout)?;
        out.rows_in(self, table, &layout)?;
        if totals.is_some() {
            let mut text = Vec::new();
            let cell = |p: &Placed| columns.iter().position(|i| *i == p.index).map_or_else(|| total(usize::MAX), total);
            draw(&layout, cells(&layout, None, cell), &mut text)?;
            out.to.write_all(&text)?;
        }
        hidden(out, &layout.hidden)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Prints the rows of `texts` to a pipe, each text between columns with its length in characters.
    fn rows(texts: &[&str], endless: bool) -> String {
        let columns = crate::output::columns::columns![&str, count("length", |text| crate::base::len64(text.chars().count())), text("text", 10, |text| text), count("again", |text| text.len())];
        let heading = Heading { columns: columns.list(), ..Heading::default() };
        let widest = texts.iter().map(|text| width(text)).max().unwrap_or(0);
        let layout = Layout::measured(&heading, Screen::NONE, None, &[6, widest, 5], &[]);
        let layout = Layout { endless: endless || layout.endless, ..layout };
        let mut out = Vec::new();
        texts.iter().for_each(|text| Table.row(&heading, &columns.row(text), 0, &layout, &mut out).unwrap());
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn streamed_rows_equal_rows_drawn_by_comfy_table() {
        let texts = ["a", "", "数据 ", "e\u{301}", " both ", "two\nlines", "\u{1b}[2J"];
        assert_eq!(rows(&texts, true), rows(&texts, false));
        assert!(rows(&texts, true).starts_with("     1  a              1\n     0                 0\n     3  数据           7\n"), "{}", rows(&texts, true));
    }

    #[test]
    fn cells_of_any_width_stay_whole() {
        for length in [30_000, 65_533, 65_535, 200_000] {
            let (long, lines) = ("x".repeat(length), "x".repeat(length) + "\ny");
            assert_eq!(rows(&[&long], false), format!("{:>6}  {long}  {:>5}\n", crate::output::count(length as u64), crate::output::count(length as u64)));
            assert!(rows(&["a", &lines], false).contains(&long), "{length}");
        }
    }

    #[test]
    fn bars_are_rounded_down() {
        let of = |used, held| {
            let (_, used, held) = bar(Fill { from: 0.0, used, held }, 10);
            format!("{used}|{held}")
        };
        assert_eq!([of(0.0, 0.0), of(0.05, 0.0), of(0.75, 0.0), of(1.0, 1.0)], ["|", "▌|", "███████▌|", "██████████|"]);
        assert_eq!([of(0.25, 0.5), of(0.0, 1.0), of(2.0, 3.0), of(f64::NAN, f64::NAN)], ["██▌|░░", "|░░░░░░░░░░", "██████████|", "|"]);
    }

    #[test]
    fn blocks_start_at_their_offset() {
        let of = |from, used| {
            let (before, used, _) = bar(Fill { from, used, held: 0.0 }, 10);
            format!("{}{used}", " ".repeat(before))
        };
        assert_eq!([of(0.25, 0.5), of(0.5, 0.0), of(0.99, 0.01), of(0.5, 0.25)], ["  █████▌", "     ▏", "         █", "     ██▌"]);
        assert_eq!([of(1.0, 1.0), of(3.0, 1.0), of(f64::NAN, f64::NAN)], ["         █", "         █", ""]);
    }
}
