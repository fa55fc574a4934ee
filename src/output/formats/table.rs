//! Human-readable tables, facts and lines.
//!
//! Laid out here rather than by a crate: those for tables neither leave columns out nor shorten names, and measure every row.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::Arc;

use super::{Out, Whole, Writer};
use crate::base::Addr;
use crate::base::hash::Map;
use crate::model::MapCell;
use crate::output::distinct::{Names, Shortened};
use crate::output::layout::{Fit, GAP, Layout, Numbers, Placed, title};
use crate::output::map::pieces;
use crate::output::report::Section;
use crate::output::screen::{Ink, Screen};
use crate::output::table::{Align, Fill, Heading, Readers, Row, Table as Rows};
use crate::output::width::{width, wrap};
use crate::output::{Cell, Link, Seen, sanitize};

pub(super) struct Table;

/// Maximum rows of a table whose column widths are measured; beyond that, measuring would take gigabytes.
const MEASURED_ROWS: usize = 5_000;
/// Lines of a screen that a repeated heading leaves to rows, at least.
const MIN_ROWS: u64 = 5;

fn clean(text: Cow<'_, str>, screen: Screen) -> Cow<'_, str> {
    if !screen.interprets() {
        return text;
    }
    match sanitize(&text) {
        Cow::Owned(clean) => Cow::Owned(clean),
        Cow::Borrowed(_) => text,
    }
}

/// A cell as it is printed.
struct Shown<'c> {
    text: Cow<'c, str>,
    ink: Ink,
    /// What the bar beside it shows.
    fill: Fill,
    /// Whether it is a map.
    map: bool,
}

impl<'c> Shown<'c> {
    fn of(cell: Cell<'c>, screen: Screen) -> Shown<'c> {
        let ink = match &cell {
            Cell::Addr(_) => Ink::Address,
            Cell::Bytes(_) => Ink::Size,
            Cell::None => Ink::Faint,
            _ => Ink::Plain,
        };
        let fill = match &cell {
            Cell::Share(share) => Fill { used: *share, ..Fill::default() },
            _ => Fill::default(),
        };
        let map = matches!(&cell, Cell::Map(_));
        let text = match cell {
            Cell::Map(text) => text,
            Cell::Text(text) => clean(text, screen),
            Cell::Name(name) => clean(name.shown().into(), screen),
            other => other.human().into_owned().into(),
        };
        Shown { text, ink, fill, map }
    }

    /// The cell of a row in a column, in which `names` are shown in another form.
    fn cell(row: &'c dyn Row, column: usize, screen: Screen, names: &'c Map<String, String>) -> Shown<'c> {
        let cell = row.cell(column);
        let other = match &cell {
            Cell::Name(name) => names.get(name.as_str()),
            _ => None,
        };
        let shown = Shown::of(cell, screen);
        let text = other.map_or(shown.text, |other| clean(other.as_str().into(), screen));
        Shown { text, fill: row.fill(column).unwrap_or(shown.fill), ..shown }
    }
}

/// A bar of at most `columns`: the columns before it, what is used in eighths of a column, and what is held beyond it. What begins
/// somewhere is seen however small it is.
fn bar(fill: Fill, columns: usize) -> (usize, String, String) {
    const EIGHTHS: [char; 8] = [' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];
    let columns = u32::try_from(columns).unwrap_or(u32::MAX);
    // At most so many steps: casts of fractions would need an exception.
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

/// Appends lines of padded pieces, without spaces at their ends.
struct Line<'t> {
    to: &'t mut Vec<u8>,
    screen: Screen,
    /// Spaces to be written before the next visible text.
    spaces: usize,
}

impl Line<'_> {
    fn space(&mut self, columns: usize) {
        self.spaces = self.spaces.saturating_add(columns);
    }

    fn text(&mut self, text: &str, ink: Ink) -> io::Result<()> {
        let visible = text.trim_end_matches(' ');
        if !visible.is_empty() {
            let spaces = std::mem::take(&mut self.spaces);
            self.to.resize(self.to.len().saturating_add(spaces), b' ');
            // Lists have millions of cells, most of which go into pipes: no formatter for those.
            match self.screen.colour {
                true => write!(self.to, "{}", self.screen.paint(ink, visible))?,
                false => self.to.extend_from_slice(visible.as_bytes()),
            }
        }
        self.space(text.len().saturating_sub(visible.len()));
        Ok(())
    }

    fn cell(&mut self, text: &str, ink: Ink, align: Align, columns: usize) -> io::Result<()> {
        let padding = columns.saturating_sub(width(text));
        match align {
            Align::Left => {
                self.text(text, ink)?;
                self.space(padding);
            }
            Align::Right => {
                self.space(padding);
                self.text(text, ink)?;
            }
        }
        Ok(())
    }

    /// A line of a cell: text, or letters of a map.
    fn part(&mut self, part: &str, (ink, map): (Ink, bool)) -> io::Result<()> {
        match map {
            false => self.text(part, ink),
            true => pieces(part, self.screen).iter().try_for_each(|(text, ink)| self.text(text, *ink)),
        }
    }

    /// What the row is called, if rows are; returns the columns that it takes.
    fn name(&mut self, name: &str, numbers: Option<Numbers>) -> io::Result<usize> {
        let Some(numbers) = numbers else { return Ok(0) };
        self.cell(name, Ink::Faint, Align::Right, numbers.width)?;
        self.space(GAP);
        Ok(numbers.width.saturating_add(GAP))
    }

    fn end(&mut self) {
        self.spaces = 0;
        self.to.push(b'\n');
    }
}

/// Appends a row of cells, one for each placed column, behind what it is called.
fn row<'c>(
    heading: &Heading,
    layout: &Layout,
    name: &str,
    cells: impl Iterator<Item = (&'c Placed, Shown<'c>)>,
    to: &mut Vec<u8>,
) -> io::Result<()> {
    let mut line = Line { to, screen: layout.screen, spaces: 0 };
    // What is left of cells that take several lines, with its place in the line.
    let mut later: Vec<(usize, (Ink, bool), Vec<String>)> = Vec::new();
    let mut at = line.name(name, layout.numbers)?;
    for (n, (place, cell)) in cells.enumerate() {
        let Some(column) = heading.columns.get(place.index) else { continue };
        let gap = if n > 0 { GAP } else { 0 };
        line.space(gap);
        at = at.saturating_add(gap);
        let narrow = layout.screen.width.is_some() && width(&cell.text) > place.width;
        let mut lines = match (narrow, cell.text.contains('\n')) {
            (true, _) => match place.names.short.get(&*cell.text) {
                Some(short) => short.split('\n').map(Cow::Borrowed).collect(),
                None => column.fit.lines(&cell.text, place.width),
            },
            (false, true) => cell.text.split('\n').map(Cow::Borrowed).collect(),
            (false, false) => Vec::new(),
        }
        .into_iter();
        let first = lines.next().unwrap_or(Cow::Borrowed(&cell.text));
        match cell.map {
            false => line.cell(&first, cell.ink, column.align, place.width)?,
            true => {
                line.part(&first, (cell.ink, true))?;
                line.space(place.width.saturating_sub(width(&first)));
            }
        }
        if lines.len() > 0 {
            later.push((at, (cell.ink, cell.map), lines.map(Cow::into_owned).collect()));
        }
        if let Some(room) = place.bar.checked_sub(1) {
            let (before, used, held) = bar(cell.fill, room);
            line.space(before.saturating_add(1));
            line.text(&used, Ink::Bar)?;
            line.cell(&held, Ink::Faint, Align::Left, room.saturating_sub(used.chars().count()).saturating_sub(before))?;
        }
        at = at.saturating_add(place.width).saturating_add(place.bar);
    }
    line.end();
    for i in 0..later.iter().map(|(_, _, lines)| lines.len()).max().unwrap_or(0) {
        let mut done = 0usize;
        for (at, ink, lines) in &later {
            if let Some(text) = lines.get(i) {
                line.space(at.saturating_sub(done));
                line.part(text, *ink)?;
                done = at.saturating_add(width(text));
            }
        }
        line.end();
    }
    Ok(())
}

/// Appends the titles, whose words stand on several lines where that takes less room, aligned at the last one.
fn titles(heading: &Heading, layout: &Layout, to: &mut Vec<u8>) -> io::Result<()> {
    let of = |p: &Placed| {
        let column = heading.columns.get(p.index);
        let text = column.map(title).unwrap_or_default();
        let lines = match layout.screen.width {
            None => vec![text],
            Some(_) => wrap(&text, p.width, 0, usize::MAX).into_iter().map(Cow::into_owned).collect(),
        };
        (column.map_or(Align::Left, |c| c.align), p.width, p.bar, lines)
    };
    let all: Vec<(Align, usize, usize, Vec<String>)> = layout.placed.iter().map(of).collect();
    let most = all.iter().map(|t| t.3.len()).max().unwrap_or(0);
    let mut line = Line { to, screen: layout.screen, spaces: 0 };
    for i in 0..most {
        line.name("", layout.numbers)?;
        for (n, (align, columns, bar, lines)) in all.iter().enumerate() {
            line.space(if n > 0 { GAP } else { 0 });
            let text = i.checked_sub(most.saturating_sub(lines.len())).and_then(|i| lines.get(i));
            line.cell(text.map_or("", String::as_str), Ink::Heading, *align, *columns)?;
            line.space(*bar);
        }
        line.end();
    }
    Ok(())
}

/// Who receives the addresses of rows, if rows are shown with what they are called.
fn named<'w>(out: &Out<'w>) -> Option<&'w Seen> {
    out.seen.filter(|_| out.screen.terminal)
}

/// The numbers of `rows` rows, if they are shown.
fn numbers(out: &Out<'_>, rows: usize) -> Option<Numbers> {
    let before = named(out)?.rows_before();
    let width = before.saturating_add(rows).to_string().len().saturating_add(1);
    Some(Numbers { before, width })
}

/// Rows after which the titles are repeated.
fn screenful(screen: Screen) -> Option<u64> {
    /// The titles and the prompt.
    const AROUND: u64 = 2;
    let lines = u64::try_from(screen.height.filter(|_| screen.terminal && !screen.pager)?).ok()?;
    Some(lines.saturating_sub(AROUND).max(MIN_ROWS))
}

/// `text` with its addresses in their colour.
fn inked(text: &str, screen: Screen, ink: Ink) -> String {
    if !screen.colour {
        return text.into();
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let plain = |out: &mut String, text: &str| {
        if !text.is_empty() {
            out.push_str(&screen.paint(ink, text).to_string());
        }
    };
    while let Some((at, length)) = address(rest) {
        let (before, found) = rest.split_at_checked(at).unwrap_or((rest, ""));
        let (found, after) = found.split_at_checked(length).unwrap_or((found, ""));
        plain(&mut out, before);
        out.push_str(&screen.paint(Ink::Address, found).to_string());
        rest = after;
    }
    plain(&mut out, rest);
    out
}

/// Where the first address in `text` is, and its length.
fn address(text: &str) -> Option<(usize, usize)> {
    /// Shorter ones are offsets and flags.
    const DIGITS: usize = 6;
    let mut from = 0usize;
    loop {
        let at = text.get(from..)?.find("0x")?.saturating_add(from);
        let digits = text.get(at.saturating_add(2)..)?.bytes().take_while(u8::is_ascii_hexdigit).count();
        let within = text.get(..at)?.ends_with(|c: char| c.is_alphanumeric());
        if digits >= DIGITS && !within {
            return Some((at, digits.saturating_add(2)));
        }
        from = at.saturating_add(2);
    }
}

/// The first address in `text`.
fn address_in(text: &str) -> Option<Addr> {
    let (at, length) = address(text)?;
    let digits = text.get(at.saturating_add(2)..at.saturating_add(length))?;
    u64::from_str_radix(digits, 16).ok().map(Addr)
}

/// Prints a line of text, which continues under its own start, a little further in.
fn text(out: &mut Out<'_>, text: &str, ink: Ink) -> io::Result<()> {
    let text = clean(text.into(), out.screen);
    let Some(room) = out.screen.width else { return writeln!(out.to, "{}", inked(&text, out.screen, ink)) };
    let indent = text.len().saturating_sub(text.trim_start_matches(' ').len()).saturating_add(2);
    wrap(&text, room, indent, usize::MAX).iter().try_for_each(|line| writeln!(out.to, "{}", inked(line, out.screen, ink)))
}

/// The same for a line of a list, with what it is called behind it.
fn named_text(out: &mut Out<'_>, text: &str, name: &str) -> io::Result<()> {
    let text = clean(text.into(), out.screen);
    let indent = text.len().saturating_sub(text.trim_start_matches(' ').len()).saturating_add(2);
    let room = out.screen.width.map_or(usize::MAX, |room| room.saturating_sub(name.len().saturating_add(GAP)));
    let lines = wrap(&text, room, indent, usize::MAX);
    for (left, line) in (0..lines.len()).rev().zip(&lines) {
        write!(out.to, "{}", inked(line, out.screen, Ink::Plain))?;
        match left {
            0 => writeln!(out.to, "{:GAP$}{}", "", out.screen.paint(Ink::Faint, name))?,
            _ => writeln!(out.to)?,
        }
    }
    Ok(())
}

/// Prints what the cells of a map mean, each with its letter or block.
fn legend(out: &mut Out<'_>, cells: &[MapCell]) -> io::Result<()> {
    let screen = out.screen;
    let (mut taken, mut line) = (0usize, String::new());
    for cell in cells {
        let columns = width(cell.name()).saturating_add(2).saturating_add(GAP);
        if screen.width.is_some_and(|room| taken.saturating_add(columns) > room) {
            writeln!(out.to, "{line}")?;
            line.clear();
            taken = 0;
        }
        line.push_str(&" ".repeat(GAP));
        for (block, ink) in pieces(&cell.letter().to_string(), screen) {
            line.push_str(&screen.paint(ink, block).to_string());
        }
        line.push(' ');
        line.push_str(cell.name());
        taken = taken.saturating_add(columns);
    }
    writeln!(out.to, "{line}")
}

fn facts(out: &mut Out<'_>, facts: Vec<(&'static str, String)>) -> io::Result<()> {
    let names = facts.iter().map(|f| f.0.chars().count()).max().unwrap_or(0);
    for (name, value) in facts {
        let value = clean(value.into(), out.screen);
        let lines = match out.screen.width {
            None => vec![value],
            Some(room) => wrap(&value, room.saturating_sub(names.saturating_add(2)), 0, usize::MAX),
        };
        let mut first = name;
        for line in lines {
            let padding = names.saturating_sub(first.chars().count()).saturating_add(2);
            let first = out.screen.paint(Ink::Heading, std::mem::take(&mut first));
            writeln!(out.to, "{first}{:padding$}{}", "", inked(&line, out.screen, Ink::Plain))?;
        }
    }
    Ok(())
}

/// Tells which columns there was no room for.
fn hidden(out: &mut Out<'_>, columns: &[String]) -> io::Result<()> {
    let names: Vec<String> = columns.iter().map(|c| c.to_lowercase()).collect();
    match names.len() {
        0 => Ok(()),
        1 => text(out, &format!("column {} hidden: --wide", names.concat()), Ink::Faint),
        _ => text(out, &format!("columns {} hidden: --wide", names.join(", ")), Ink::Faint),
    }
}

impl Writer for Table {
    fn section(&self, out: &mut Out<'_>, section: Section<'_>) -> io::Result<()> {
        let of_list = std::mem::take(&mut out.hidden);
        hidden(out, &of_list)?;
        if out.skipped() > 0 && !matches!(section, Section::Table(_)) {
            return Ok(());
        }
        match section {
            Section::Line(line) => text(out, &line, Ink::Plain),
            Section::Title(line) => text(out, &line, Ink::Heading),
            Section::Alarm(line) => text(out, &line, Ink::Alarm),
            Section::Finding(f) => {
                text(out, &format!("{}: {}", f.severity, f.text), Ink::Plain)?;
                text(out, &format!("    {}", f.command), Ink::Plain)
            }
            Section::Chapter(chapter) => text(out, chapter.title, Ink::Heading),
            Section::Contents(..) | Section::Picture(_) => Ok(()),
            Section::Lines(lines) => {
                let (mut begun, seen) = (false, out.seen);
                for line in lines {
                    let mut name = None;
                    if let Some((seen, address)) = seen.zip(address_in(&line)) {
                        if !std::mem::replace(&mut begun, true) {
                            seen.begin();
                        }
                        name = named(out).and_then(|seen| Seen::name(seen.rows_before()));
                        seen.rows([Some(Link { address, is_type: false })]);
                    }
                    match name {
                        Some(name) => named_text(out, &line, &name)?,
                        None => text(out, &line, Ink::Plain)?,
                    }
                }
                Ok(())
            }
            Section::Legend(cells) => legend(out, &cells),
            Section::Gap => writeln!(out.to),
            Section::Facts(list) => facts(out, list),
            Section::Table(table) if table.heading.shown => self.table(out, &table),
            Section::Table(_) => Ok(()),
        }
    }

    fn list(&self, out: &mut Out<'_>, heading: &Heading) -> io::Result<()> {
        let layout = self.layout(heading, out);
        let mut text = Vec::new();
        titles(heading, &layout, &mut text)?;
        if let Some(seen) = out.seen {
            seen.begin();
        }
        out.hidden = layout.hidden;
        out.to.write_all(&text)
    }

    fn layout(&self, heading: &Heading, out: &Out<'_>) -> Layout {
        /// Numbers of more digits jut out.
        const USUAL_ROWS: usize = 99;
        let numbers = numbers(out, USUAL_ROWS);
        Layout::declared(heading, numbers.map_or(out.screen, |n| n.beside(out.screen))).numbered(numbers)
    }

    fn row(&self, heading: &Heading, cells: &dyn Row, number: u64, layout: &Layout, to: &mut Vec<u8>) -> io::Result<()> {
        if screenful(layout.screen).is_some_and(|rows| number > 0 && number.is_multiple_of(rows)) {
            titles(heading, layout, to)?;
        }
        let before = layout.numbers.filter(|_| heading.link_of(cells).is_some()).map(|n| n.before);
        let name = before.zip(usize::try_from(number).ok()).and_then(|(before, number)| Seen::name(before.saturating_add(number)));
        let shown = layout.placed.iter().map(|p| (p, Shown::cell(cells, p.index, layout.screen, &p.names.shared)));
        row(heading, layout, &name.unwrap_or_default(), shown, to)
    }

    fn end(&self, out: &mut Out<'_>, _answer: &dyn Whole) -> io::Result<()> {
        let of_list = std::mem::take(&mut out.hidden);
        hidden(out, &of_list)
    }
}

/// The names in the columns of a table, by index among all columns.
fn names(heading: &Heading, table: &Rows<'_>, screen: Screen) -> io::Result<BTreeMap<usize, Names>> {
    let named = heading.columns(Readers::People).filter(|(_, c)| matches!(c.fit, Fit::Name | Fit::NameLines(_)));
    let mut all: BTreeMap<usize, Names> = named.map(|(i, _)| (i, Names::default())).collect();
    table.rows.each(&mut |row| {
        for (column, names) in &mut all {
            let cell = row.cell(*column);
            let name = match &cell {
                Cell::Name(name) => Some(*name),
                _ => None,
            };
            // Where nothing is shortened, only names in their form for people may be equal to others.
            if screen.width.is_some() || name.is_some_and(|name| name.shown() != name.as_str()) {
                names.add(&Shown::of(cell.clone(), screen).text, name);
            }
        }
        Ok(())
    })?;
    Ok(all)
}

impl Table {
    fn table(&self, out: &mut Out<'_>, table: &Rows<'_>) -> io::Result<()> {
        let heading = &table.heading;
        let screen = out.screen;
        let columns: Vec<usize> = heading.columns(Readers::People).map(|(i, _)| i).collect();
        let names: BTreeMap<usize, (Map<String, String>, Names)> =
            names(heading, table, screen)?.into_iter().map(|(i, names)| (i, names.resolved())).collect();
        let none = Map::default();
        let shared = |column: usize| names.get(&column).map_or(&none, |(shared, _)| shared);
        let mut widths = vec![0usize; columns.len()];
        let mut empty = vec![true; columns.len()];
        let (mut count, mut left_out, mut links) = (0usize, out.skipped(), false);
        let mut measure = |cells: &mut dyn Iterator<Item = Shown<'_>>| {
            for ((widest, empty), cell) in widths.iter_mut().zip(&mut empty).zip(cells) {
                *empty &= cell.ink == Ink::Faint || cell.text.is_empty();
                *widest = cell.text.split('\n').map(width).max().unwrap_or(0).max(*widest);
            }
        };
        let measured = table.rows.each(&mut |row| {
            if left_out > 0 {
                left_out = left_out.saturating_sub(1);
                return Ok(());
            }
            count = count.saturating_add(1);
            if count > MEASURED_ROWS {
                return Err(io::ErrorKind::OutOfMemory.into());
            }
            links = links || heading.link_of(row).is_some();
            measure(&mut columns.iter().map(|i| Shown::cell(row, *i, screen, shared(*i))));
            Ok(())
        });
        if out.skipped() > 0 && measured.is_ok() && count == 0 {
            return Ok(());
        }
        let totals = table.totals.as_ref().filter(|_| out.skipped() == 0);
        if let Some(cells) = totals {
            measure(&mut cells.iter().map(|cell| Shown::of(cell.clone(), screen)));
        }
        let mut layout = match measured {
            Ok(()) => {
                let numbers = numbers(out, count).filter(|_| links);
                Layout::measured(heading, numbers.map_or(screen, |n| n.beside(screen)), &widths, &empty).numbered(numbers)
            }
            Err(_) => self.layout(heading, out),
        };
        for place in &mut layout.placed {
            if let Some(((shared, names), column)) = names.get(&place.index).zip(heading.columns.get(place.index)) {
                let short = screen.width.map(|_| names.shortened(column.fit, place.width)).unwrap_or_default();
                place.names = Arc::new(Shortened { shared: shared.clone(), short });
            }
        }
        if let Some(seen) = out.seen {
            seen.begin();
        }
        let mut text = Vec::new();
        titles(heading, &layout, &mut text)?;
        out.to.write_all(&text)?;
        out.rows_in(self, table, &layout)?;
        text.clear();
        if let Some(cells) = totals {
            let cell = |p: &Placed| columns.iter().position(|i| *i == p.index).and_then(|i| cells.get(i)).cloned().unwrap_or(Cell::None);
            row(heading, &layout, "", layout.placed.iter().map(|p| (p, Shown::of(cell(p), screen))), &mut text)?;
        }
        out.to.write_all(&text)?;
        hidden(out, &layout.hidden)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn blocks_begin_where_they_are() {
        let of = |from, used| {
            let (before, used, _) = bar(Fill { from, used, held: 0.0 }, 10);
            format!("{}{used}", " ".repeat(before))
        };
        assert_eq!([of(0.25, 0.5), of(0.5, 0.0), of(0.99, 0.01), of(0.5, 0.25)], ["  █████▌", "     ▏", "         █", "     ██▌"]);
        assert_eq!([of(1.0, 1.0), of(3.0, 1.0), of(f64::NAN, f64::NAN)], ["         █", "         █", ""]);
    }

    #[test]
    fn addresses_in_text_are_found() {
        assert_eq!(address("held by 0x7f0012345678, 0x10"), Some((8, 14)));
        assert_eq!(address("+0x12, x0x7f0012345678 0xffff000000000000"), Some((23, 18)));
        assert_eq!((address("0x"), address(""), address("0x12345")), (None, None, None));
        assert_eq!(address_in("at 0x7f0012345678"), Some(Addr(0x7f00_1234_5678)));
        let bright = Screen::terminal(None, None).coloured(true);
        assert_eq!(inked("at 0x7f0012345678.", bright, Ink::Plain), "at \u{1b}[36m0x7f0012345678\u{1b}[0m.");
    }
}
