//! Measures text in terminal columns, and cuts, shortens and wraps it.
//!
//! Numbers and addresses within text are kept whole or omitted: a part of a number would look like a different number.

use std::borrow::Cow;

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Marks omitted text.
pub(super) const ELLIPSIS: char = '…';

/// Returns the number of columns that `text` takes.
pub(super) fn width(text: &str) -> usize {
    if text.is_ascii() { text.len() } else { UnicodeWidthStr::width(text) }
}

/// Returns the byte length of the longest prefix of `text` that takes at most `columns`.
fn fitting(text: &str, columns: usize) -> usize {
    let (mut used, mut end) = (0usize, 0usize);
    for (at, c) in text.char_indices() {
        used = used.saturating_add(c.width().unwrap_or(1));
        if used > columns {
            break;
        }
        end = at.saturating_add(c.len_utf8());
    }
    // A sequence of characters may be wider than the sum of its characters, so characters are removed until it fits.
    while width(text.get(..end).unwrap_or_default()) > columns {
        end = text.get(..end).and_then(|t| t.char_indices().next_back()).map_or(0, |(at, _)| at);
    }
    end
}

/// Returns the byte offset of the longest suffix of `text` that takes at most `columns`; the suffix begins with a character that has a width.
fn fitting_end(text: &str, columns: usize) -> usize {
    let (mut used, mut start) = (0usize, text.len());
    for (at, c) in text.char_indices().rev() {
        let own = c.width().unwrap_or(1);
        used = used.saturating_add(own);
        if used > columns {
            break;
        }
        if own > 0 {
            start = at;
        }
    }
    while width(text.get(start..).unwrap_or_default()) > columns {
        start = text.get(start..).and_then(|t| t.chars().next()).map_or(text.len(), |c| start.saturating_add(c.len_utf8()));
    }
    start
}

/// Whether a character may be part of a number: digits, and letters and separators between them.
fn numeric(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, ',' | '.' | '_')
}

/// Returns the byte range of the number or address that a cut at byte `at` would split.
pub(super) fn halved(text: &str, at: usize) -> Option<(usize, usize)> {
    let (before, after) = text.split_at_checked(at)?;
    let head = before.chars().rev().take_while(|c| numeric(*c)).count();
    let tail = after.chars().take_while(|c| numeric(*c)).count();
    // The characters counted are ASCII: one byte each.
    let (start, end) = (at.saturating_sub(head), at.saturating_add(tail));
    let number = text.get(start..end)?.starts_with(|c: char| c.is_ascii_digit());
    (head > 0 && tail > 0 && number).then_some((start, end))
}

/// Cuts `text` at its end so that it takes at most `columns`.
pub(super) fn cut(text: &str, columns: usize) -> Cow<'_, str> {
    if width(text) <= columns {
        return Cow::Borrowed(text);
    }
    let end = fitting(text, columns.saturating_sub(1));
    // Cuts before the number that would be split, unless nothing would remain because the text begins with this number.
    let end = halved(text, end).map_or(end, |(start, _)| if start == 0 { end } else { start });
    let mut out = text.get(..end).unwrap_or_default().trim_end().to_string();
    out.push(ELLIPSIS);
    Cow::Owned(out)
}

/// Cuts the middle of `text` so that it takes at most `columns`. The end gets two thirds of the room, because paths and names differ more at their
/// ends.
pub(super) fn cut_middle(text: &str, columns: usize) -> Cow<'_, str> {
    cut_after(text, columns.saturating_sub(1) / 3, columns)
}

/// Shortens `text` to at most `columns`: at most `head` columns of its start, and its end.
pub(super) fn cut_after(text: &str, head: usize, columns: usize) -> Cow<'_, str> {
    if width(text) <= columns {
        return Cow::Borrowed(text);
    }
    let head = fitting(text, head);
    let head = text.get(..halved(text, head).map_or(head, |(start, _)| start)).unwrap_or_default();
    let tail = fitting_end(text, columns.saturating_sub(1).saturating_sub(width(head)));
    let tail = halved(text, tail).map_or(tail, |(_, end)| if end == text.len() { tail } else { end });
    Cow::Owned(format!("{head}{ELLIPSIS}{}", text.get(tail..).unwrap_or_default()))
}

/// Whether the space at byte `at` is between a number and its unit: `15.0 %`, `1.5 MiB`.
fn before_unit(text: &str, at: usize) -> bool {
    let number = text.get(..at).is_some_and(|before| before.ends_with(|c: char| c.is_ascii_digit()));
    let word = text.get(at..).unwrap_or_default().trim_start().split(|c: char| !c.is_ascii_alphabetic() && c != '%').next();
    number && matches!(word, Some("%" | "B" | "KiB" | "MiB" | "GiB" | "TiB" | "ms" | "s" | "min" | "h"))
}

/// Wraps `text` into lines of at most `columns`, at spaces if possible; all lines after the first are indented by `indent` spaces. If there
/// are more than `most` lines, the last one is cut.
pub(super) fn wrap(text: &str, columns: usize, indent: usize, most: usize) -> Vec<Cow<'_, str>> {
    if width(text) <= columns {
        return vec![Cow::Borrowed(text)];
    }
    // The indent must leave room for text.
    let indent = indent.min(columns / 2);
    let mut lines = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let begin = if lines.is_empty() { 0 } else { indent };
        let room = columns.saturating_sub(begin).max(1);
        let line = |piece: &str| Cow::Owned(format!("{}{piece}", " ".repeat(begin)));
        if width(rest) <= room {
            lines.push(line(rest));
            break;
        }
        if lines.len().saturating_add(1) >= most {
            lines.push(line(&cut(rest, room)));
            break;
        }
        // Each line takes at least one character, to guarantee progress.
        let first = rest.chars().next().map_or(1, char::len_utf8);
        let mut end = fitting(rest, room).max(first);
        let blank = |text: &str| text.chars().all(|c| c == ' ');
        // The line may also break at a space directly after it.
        let upto = rest.get(end..).filter(|t| t.starts_with(' ')).map_or(end, |_| end.saturating_add(1));
        let mut spaces = rest.get(..upto).unwrap_or_default().rmatch_indices(' ').map(|(at, _)| at);
        let space = spaces.find(|at| !before_unit(rest, *at)).filter(|at| !blank(rest.get(..*at).unwrap_or_default()));
        match (space, halved(rest, end)) {
            (Some(at), _) => end = at,
            (None, Some((start, _))) if start > 0 => end = start,
            _ => {}
        }
        let (now, later) = rest.split_at_checked(end).unwrap_or((rest, ""));
        lines.push(line(now.trim_end_matches(' ')));
        rest = later.trim_start_matches(' ');
    }
    lines
}

/// Wraps each line of `text` to at most `columns`. Continuation lines are aligned with the last column of the line, which begins after at least two
/// spaces. If the last column begins too far to the right, it moves to the next line.
pub(crate) fn fold(text: &str, columns: usize) -> String {
    let mut out = String::with_capacity(text.len());
    for line in text.lines() {
        let lead = line.len().saturating_sub(line.trim_start_matches(' ').len());
        let last = line.trim_end().rmatch_indices("  ").map(|(at, gap)| at.saturating_add(gap.len())).find(|at| *at > lead);
        let below = last.filter(|at| width(line) > columns && *at > columns / 2).and_then(|at| line.split_at_checked(at));
        let (line, rest) = below.map_or((line, None), |(line, rest)| (line.trim_end(), Some(rest)));
        let indent = lead.saturating_add(4);
        let rest = rest.map(|rest| format!("{}{rest}", " ".repeat(indent)));
        let lines = wrap(line, columns, if rest.is_some() { indent } else { last.unwrap_or(lead) }, usize::MAX);
        for line in lines.into_iter().chain(rest.iter().flat_map(|rest| wrap(rest, columns, indent, usize::MAX))) {
            out.push_str(&line);
            out.push('\n');
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_keep_columns_numbers_and_characters() {
        assert_eq!(cut("abcdef", 6), "abcdef");
        assert_eq!(cut("abcdef", 5), "abcd…");
        assert_eq!(cut("数据结构", 7), "数据结…");
        assert_eq!(cut("数据结构", 6), "数据…");
        // A combining accent stays with its letter.
        assert_eq!(cut("e\u{301}e\u{301}e\u{301}e\u{301}", 3), "e\u{301}e\u{301}…");
        assert_eq!(cut("held by 0x7f0012345678 and", 16), "held by…");
        assert_eq!(cut("12,345,678 bytes", 6), "12,34…", "nothing but a number is cut as text");
        assert_eq!(cut_middle("/usr/share/dotnet/shared/libcoreclr.so", 24), "/usr/sh…ed/libcoreclr.so");
        assert_eq!(cut_middle("monitor 0x7f0012345678 (Lab.Account)", 24), "monitor… (Lab.Account)");
        for columns in 2..40 {
            for text in ["monitor 0x7f0012345678 (Lab.Account) 数据结构 e\u{301} and more", "☺\u{fe0f}☺\u{fe0f}☺\u{fe0f}☺\u{fe0f}☺\u{fe0f}"]
            {
                assert!(width(&cut(text, columns)) <= columns && width(&cut_middle(text, columns)) <= columns, "{text} {columns}");
                assert!(wrap(text, columns, 2, 99).iter().all(|l| width(l) <= columns.max(3)), "{text} {columns}");
            }
        }
    }

    #[test]
    fn lists_keep_their_columns() {
        assert_eq!(
            fold("Lists:\n  a    one two three\n       four five six\n", 14),
            "Lists:\n  a    one two\n       three\n       four\n       five\n       six\n"
        );
        assert_eq!(fold("one two three", 9), "one two\nthree\n");
        assert_eq!(fold("  a long command  what it does", 20), "  a long command\n      what it does\n");
    }

    #[test]
    fn lines_break_at_spaces() {
        assert_eq!(wrap("one two three four", 9, 2, 9), ["one two", "  three", "  four"]);
        assert_eq!(wrap("one two three four", 7, 0, 2), ["one two", "three…"]);
        assert_eq!(wrap("abcdefghij", 4, 0, 9), ["abcd", "efgh", "ij"]);
        assert_eq!(wrap("  abc def", 7, 4, 9), ["  abc", "   def"]);
        assert_eq!(wrap("has 15.0 %, 1.5 MiB.", 8, 0, 9), ["has", "15.0 %,", "1.5 MiB."]);
        assert_eq!(wrap("15.0 %", 4, 0, 9), ["15.0", "%"]);
    }
}
