//! Lines of text on a screen: sentences, findings, legends and facts, with addresses in color and names such as `$1`.

use std::borrow::Cow;
use std::io::{self, Write};

use super::Out;
use crate::analysis::MapCell;
use crate::base::Addr;
use crate::output::layout::GAP;
use crate::output::map::pieces;
use crate::output::report::Finding;
use crate::output::screen::{Ink, Screen};
use crate::output::width::{width, wrap};
use crate::output::{Link, Seen, sanitize};

/// Replaces control characters if the screen interprets them.
pub(super) fn clean(text: Cow<'_, str>, screen: Screen) -> Cow<'_, str> {
    if screen.interprets()
        && let Cow::Owned(clean) = sanitize(&text)
    {
        return Cow::Owned(clean);
    }
    text
}

/// Encloses text, without its trailing spaces, in characters that mark its color. Neither `comfy-table` nor `width` counts these characters.
pub(super) fn marked(text: &str, ink: Ink, screen: Screen) -> String {
    let visible = text.trim_end_matches(' ');
    match screen.color && ink != Ink::Plain && !visible.is_empty() {
        true => format!("{}{visible}{}{}", ink.mark(), Ink::Plain.mark(), text.get(visible.len()..).unwrap_or_default()),
        false => text.into(),
    }
}

/// Writes a line of marked text in color.
pub(super) fn put(to: &mut dyn Write, line: &str, screen: Screen) -> io::Result<()> {
    if !screen.color {
        return writeln!(to, "{line}");
    }
    let (is_mark, mut ink) = (|c| Ink::of_mark(c).is_some(), Ink::Plain);
    for piece in line.split_inclusive(is_mark) {
        write!(to, "{}", screen.paint(ink, piece.trim_end_matches(is_mark)))?;
        ink = piece.chars().next_back().and_then(Ink::of_mark).unwrap_or_default();
    }
    writeln!(to)
}

/// Returns the receiver of the rows' addresses, if rows are shown with names such as `$1`.
pub(super) fn named<'w>(out: &Out<'w>) -> Option<&'w Seen> {
    out.seen.filter(|_| out.screen.terminal)
}

/// Marks the addresses in `text` with their color.
fn inked(text: &str, screen: Screen, ink: Ink) -> String {
    let (mut out, mut rest) = (String::new(), text);
    while let Some((at, length)) = address(rest).filter(|_| screen.color) {
        let (before, found) = rest.split_at_checked(at).unwrap_or((rest, ""));
        let (found, after) = found.split_at_checked(length).unwrap_or((found, ""));
        out += &marked(before, ink, screen);
        out += &marked(found, Ink::Address, screen);
        rest = after;
    }
    out + &marked(rest, ink, screen)
}

/// Returns position and length of the first address in `text`.
fn address(text: &str) -> Option<(usize, usize)> {
    /// Minimum number of digits: shorter numbers are offsets and flags.
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

/// Returns the first address in `text`.
fn address_in(text: &str) -> Option<Addr> {
    let (at, length) = address(text)?;
    let digits = text.get(at.saturating_add(2)..at.saturating_add(length))?;
    u64::from_str_radix(digits, 16).ok().map(Addr)
}

/// Prints a line of text, followed by its name (such as `$1`). Continuation lines are indented a little more than the first.
pub(super) fn text(out: &mut Out<'_>, text: &str, ink: Ink, name: &str) -> io::Result<()> {
    let text = clean(text.into(), out.screen);
    let indent = text.len().saturating_sub(text.trim_start_matches(' ').len()).saturating_add(2);
    let beside = if name.is_empty() { String::new() } else { format!("{:GAP$}{}", "", marked(name, Ink::Faint, out.screen)) };
    let taken = if name.is_empty() { 0 } else { name.len().saturating_add(GAP) };
    let lines = wrap(&text, out.screen.width.map_or(usize::MAX, |room| room.saturating_sub(taken)), indent, usize::MAX);
    for (left, line) in (0..lines.len()).rev().zip(&lines) {
        put(out.to, &(inked(line, out.screen, ink) + if left == 0 { &beside } else { "" }), out.screen)?;
    }
    Ok(())
}

/// Prints a finding: its severity in color, its text, and the command that shows more.
pub(super) fn finding(out: &mut Out<'_>, finding: &Finding<'_>) -> io::Result<()> {
    let ink = match finding.severity {
        "critical" => Ink::Alarm,
        "warning" => Ink::Caution,
        _ => Ink::Heading,
    };
    let severity = marked(&format!("{}:", finding.severity), ink, out.screen);
    let whole = format!("{severity} {}", clean(finding.text.into(), out.screen));
    for line in wrap(&whole, out.screen.width.unwrap_or(usize::MAX), 2, usize::MAX) {
        put(out.to, &inked(&line, out.screen, Ink::Plain), out.screen)?;
    }
    text(out, &format!("    {}", finding.command), Ink::Plain, "")
}

/// Prints lines. Lines with an address get names such as `$1`.
pub(super) fn lines(out: &mut Out<'_>, lines: &mut dyn Iterator<Item = String>) -> io::Result<()> {
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
        text(out, &line, Ink::Plain, &name.unwrap_or_default())?;
    }
    Ok(())
}

/// Prints the meaning of a map's cells, each with its letter or block.
pub(super) fn legend(out: &mut Out<'_>, cells: &[MapCell]) -> io::Result<()> {
    let (screen, mut taken, mut line) = (out.screen, 0usize, String::new());
    for cell in cells {
        let columns = width(cell.name()).saturating_add(2).saturating_add(GAP);
        if screen.width.is_some_and(|room| taken.saturating_add(columns) > room) {
            put(out.to, &std::mem::take(&mut line), screen)?;
            taken = 0;
        }
        let blocks = pieces(&cell.letter().to_string(), screen).into_iter().map(|(text, ink)| marked(&text, ink, screen));
        line.extend([" ".repeat(GAP), blocks.collect(), format!(" {}", cell.name())]);
        taken = taken.saturating_add(columns);
    }
    put(out.to, &line, screen)
}

/// Prints names with their values. The values are aligned, and their continuation lines are indented.
pub(super) fn facts(out: &mut Out<'_>, facts: Vec<(&'static str, String)>) -> io::Result<()> {
    let names = facts.iter().map(|(name, _)| width(name)).max().unwrap_or(0).saturating_add(GAP);
    let room = out.screen.width.map_or(usize::MAX, |room| room.saturating_sub(names));
    for (name, value) in facts {
        let value = clean(value.into(), out.screen);
        for (i, line) in wrap(&value, room, 0, usize::MAX).iter().enumerate() {
            let name = if i == 0 { name } else { "" };
            let padding = names.saturating_sub(width(name));
            let (name, line) = (marked(name, Ink::Heading, out.screen), inked(line, out.screen, Ink::Plain));
            put(out.to, &format!("{name}{:padding$}{line}", ""), out.screen)?;
        }
    }
    Ok(())
}

/// Prints the names of columns that did not fit.
pub(super) fn hidden(out: &mut Out<'_>, columns: &[String]) -> io::Result<()> {
    let names = columns.join(", ").to_lowercase();
    match columns.len() {
        0 => Ok(()),
        1 => text(out, &format!("column {names} hidden: --wide"), Ink::Faint, ""),
        _ => text(out, &format!("columns {names} hidden: --wide"), Ink::Faint, ""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_in_text_are_found() {
        assert_eq!(address("held by 0x7f0012345678, 0x10"), Some((8, 14)));
        assert_eq!(address("+0x12, x0x7f0012345678 0xffff000000000000"), Some((23, 18)));
        assert_eq!((address("0x"), address(""), address("0x12345")), (None, None, None));
        assert_eq!(address_in("at 0x7f0012345678"), Some(Addr(0x7f00_1234_5678)));
        let bright = Screen::terminal(None, None).colored(true);
        let mut line = Vec::new();
        put(&mut line, &inked("at 0x7f0012345678.", bright, Ink::Plain), bright).unwrap();
        assert_eq!(String::from_utf8(line).unwrap(), "at \u{1b}[36m0x7f0012345678\u{1b}[0m.\n");
    }
}
