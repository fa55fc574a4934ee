//! A self-contained HTML page: it needs no network, is readable without script, and escapes every text.
//!
//! Any answer can be a page. A page with chapters is kept small enough to attach to a ticket: its tables and lists are cut, and state that they are.
//! The answers themselves are included as JSON if there is room.

mod icicle;
mod text;

use std::io::{self, Write};

use super::{Out, Whole, Writer};
use crate::base::NoteKind;
use crate::analysis::MapCell;
use crate::output::count;
use crate::output::layout::{Layout, title};
use crate::output::report::{Chapter, Picture, Section};
use crate::output::columns::{Align, Column, Fit, Readers, Row};
use crate::output::table::{Heading, Table};
use crate::output::{Cell, plural};
use text::{Escaped, percent, short};

pub(super) struct Html;

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");
/// Content security policy: the page can neither load nor send anything.
const POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'";

/// Maximum size of a page with chapters in bytes, without the answers as JSON, which take at most [`JSON`].
const ROOM: usize = 800_000;
const JSON: usize = 600_000;
/// Maximum rows of a table, and maximum lines of a list, in a page with chapters.
const ROWS: u64 = 250;
const LINES: usize = 400;

/// The currently open elements of a page.
#[derive(Debug, Default)]
pub struct Page {
    /// End tag of the streamed list.
    list: &'static str,
    /// End tag of the chapter.
    chapter: &'static str,
    /// End tag of the lines of text.
    lines: &'static str,
    /// Number of bytes left after the sections written so far, if the page is kept small.
    room: Option<usize>,
}

impl Page {
    /// Closes the elements that may not contain the next section.
    fn close(&mut self, to: &mut Vec<u8>) {
        to.extend_from_slice(std::mem::take(&mut self.list).as_bytes());
        to.extend_from_slice(std::mem::take(&mut self.lines).as_bytes());
    }

    /// Opens an element for lines of text.
    fn lines(&mut self, to: &mut Vec<u8>) {
        to.extend_from_slice(std::mem::take(&mut self.list).as_bytes());
        if self.lines.is_empty() {
            to.extend_from_slice(b"<pre>");
            self.lines = "</pre>\n";
        }
    }

    /// Whether there is room left after the `written` bytes of the current section.
    fn has_room(&self, written: usize) -> bool {
        self.room.is_none_or(|room| written < room)
    }
}

/// Appends a line of text.
fn line(page: &mut Page, to: &mut Vec<u8>, text: &str) -> io::Result<()> {
    page.lines(to);
    writeln!(to, "{}", Escaped(&short(text)))
}

fn table_head(heading: &Heading, to: &mut Vec<u8>) -> io::Result<()> {
    to.extend_from_slice(b"<div class=\"table\"><table><thead><tr>");
    for (_, column) in heading.columns(Readers::People) {
        let class = if column.align == Align::Right { " class=\"n\"" } else { "" };
        write!(to, "<th scope=\"col\"{class}>{}</th>", Escaped(&column.title.clone().unwrap_or_else(|| title(column).to_lowercase())))?;
    }
    to.extend_from_slice(b"</tr></thead><tbody>\n");
    Ok(())
}

const TABLE_END: &str = "</tbody></table></div>\n";

/// Writes a cell of a map, colored by what most of it contains.
fn block(of: MapCell, to: &mut Vec<u8>) -> io::Result<()> {
    write!(to, "<i class=\"m {}\"></i>", of.name())
}

fn cell(cell: &Cell<'_>, fill: Option<f64>, column: &Column, to: &mut Vec<u8>) -> io::Result<()> {
    if let Cell::Map(letters) = cell {
        to.extend_from_slice(b"<td class=\"map\" role=\"img\" aria-label=\"map\">");
        letters.chars().filter_map(MapCell::of).try_for_each(|of| block(of, to))?;
        to.extend_from_slice(b"</td>");
        return Ok(());
    }
    let share = fill.or(if let Cell::Share(share) = cell { Some(*share) } else { None });
    match (share, column.align, column.fit) {
        (Some(share), ..) => write!(to, "<td class=\"n bar\" style=\"--w:{}\">", percent(share))?,
        (None, Align::Right, _) => to.extend_from_slice(b"<td class=\"n\">"),
        (None, Align::Left, Fit::Whole) => to.extend_from_slice(b"<td class=\"w\">"),
        (None, Align::Left, _) => to.extend_from_slice(b"<td>"),
    }
    write!(to, "{}</td>", Escaped(&short(&cell.human())))
}

fn row(heading: &Heading, row: &dyn Row, to: &mut Vec<u8>) -> io::Result<()> {
    to.extend_from_slice(b"<tr>");
    for (i, column) in heading.columns(Readers::People) {
        cell(&row.cell(i), row.fill(i).map(|f| f.used), column, to)?;
    }
    to.extend_from_slice(b"</tr>\n");
    Ok(())
}

fn table(page: &mut Page, table: &Table<'_>, to: &mut Vec<u8>) -> io::Result<()> {
    let kept_small = page.room.is_some();
    let (mut rows, mut shown) = (0u64, 0u64);
    table_head(&table.heading, to)?;
    table.rows.each(&mut |cells| {
        rows = rows.saturating_add(1);
        if kept_small && (rows > ROWS || !page.has_room(to.len())) {
            return Ok(());
        }
        shown = shown.saturating_add(1);
        row(&table.heading, cells, to)
    })?;
    if let Some(totals) = &table.totals {
        to.extend_from_slice(b"</tbody><tfoot><tr>");
        for ((_, column), total) in table.heading.columns(Readers::People).zip(totals) {
            cell(total, None, column, to)?;
        }
        to.extend_from_slice(b"</tr></tfoot></table></div>\n");
    } else {
        to.extend_from_slice(TABLE_END.as_bytes());
    }
    if shown < rows {
        write!(to, "<p class=\"more\">… {} left out here</p>", plural(rows.saturating_sub(shown), "more row"))?;
    }
    Ok(())
}

fn chapter(page: &mut Page, chapter: Chapter, to: &mut Vec<u8>) -> io::Result<()> {
    to.extend_from_slice(page.chapter.as_bytes());
    page.chapter = "</section>\n";
    let Chapter { id, title } = chapter;
    writeln!(to, "<section id=\"{id}\" aria-labelledby=\"{id}-title\"><h2 id=\"{id}-title\">{}</h2>", Escaped(title))
}

fn section(page: &mut Page, section: Section<'_>, to: &mut Vec<u8>) -> io::Result<()> {
    match section {
        Section::Line(text) => return line(page, to, &text),
        Section::Fitting(long, _) => return line(page, to, &long),
        Section::Lines(lines) => {
            let (mut shown, mut left_out) = (0usize, 0u64);
            for text in lines {
                if page.room.is_some() && (shown >= LINES || !page.has_room(to.len())) {
                    left_out = left_out.saturating_add(1);
                    continue;
                }
                shown = shown.saturating_add(1);
                line(page, to, &text)?;
            }
            if left_out > 0 {
                line(page, to, &format!("… {} left out here", plural(left_out, "more line")))?;
            }
            return Ok(());
        }
        _ => page.close(to),
    }
    match section {
        Section::Title(text) => writeln!(to, "<h3>{}</h3>", Escaped(&short(&text))),
        Section::Alarm(text) => writeln!(to, "<h3 class=\"alarm\">{}</h3>", Escaped(&short(&text))),
        Section::Finding(f) => {
            let (severity, text, command) = (f.severity, short(f.text), short(f.command));
            write!(to, "<div class=\"finding {severity}\"><b>{severity}</b> {}", Escaped(&text))?;
            writeln!(to, "<code>{}</code></div>", Escaped(&command))
        }
        Section::Facts(facts) => {
            to.extend_from_slice(b"<dl>");
            for (name, value) in facts {
                write!(to, "<dt>{}</dt><dd>{}</dd>", Escaped(name), Escaped(&short(&value)))?;
            }
            to.extend_from_slice(b"</dl>\n");
            Ok(())
        }
        Section::Table(rows) if rows.heading.shown => table(page, &rows, to),
        Section::Legend(cells) => {
            to.extend_from_slice(b"<p class=\"more\">");
            for of in cells {
                block(of, to)?;
                write!(to, " {} ", of.name())?;
            }
            to.extend_from_slice(b"</p>\n");
            Ok(())
        }
        Section::Contents(lead, chapters) => {
            page.room = Some(ROOM);
            writeln!(to, "<p>{}</p>", Escaped(&short(&lead)))?;
            to.extend_from_slice(b"<nav aria-label=\"Contents\">");
            for Chapter { id, title } in chapters {
                write!(to, "<a href=\"#{id}\">{}</a> ", Escaped(title))?;
            }
            to.extend_from_slice(b"</nav>\n");
            Ok(())
        }
        Section::Tiles(tiles) => {
            to.extend_from_slice(b"<div class=\"tiles\">\n");
            for tile in tiles {
                let (begin, end) = match tile.chapter {
                    Some(id) => (format!("<a class=\"tile\" href=\"#{id}\">"), "</a>"),
                    None => ("<span class=\"tile\">".into(), "</span>"),
                };
                write!(to, "{begin}<small>{}</small><strong>{}</strong>", Escaped(tile.name), Escaped(&short(&tile.value)))?;
                writeln!(to, "<em>{}</em>{end}", Escaped(&short(&tile.about)))?;
            }
            to.extend_from_slice(b"</div>\n");
            Ok(())
        }
        Section::Chapter(begins) => chapter(page, begins, to),
        Section::Picture(Picture::Icicle(icicle, diff)) => icicle::draw(icicle, diff, to),
        Section::Table(_) | Section::Gap | Section::Line(_) | Section::Fitting(..) | Section::Lines(_) => Ok(()),
    }
}

/// Writes a section and subtracts its size from the room of the page.
fn put(out: &mut Out<'_>, text: &[u8]) -> io::Result<()> {
    out.page.room = out.page.room.map(|room| room.saturating_sub(text.len()));
    out.to.write_all(text)
}

impl Writer for Html {
    fn begin(&self, out: &mut Out<'_>) -> io::Result<()> {
        let dump = &out.head.dump.path;
        let name = crate::base::file_name(dump);
        let about = format!("{} – {name}", out.head.command);
        write!(
            out.to,
            "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n<meta http-equiv=\"Content-Security-Policy\" \
             content=\"{POLICY}\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<meta name=\"color-scheme\" \
             content=\"light dark\">\n<title>{}</title>\n<style>\n{STYLE}</style></head>\n<body><header><h1>{}</h1></header>\n<main>\n",
            Escaped(&short(&about)),
            Escaped(&short(&about)),
        )
    }

    fn section(&self, out: &mut Out<'_>, what: Section<'_>) -> io::Result<()> {
        let mut text = Vec::new();
        section(&mut out.page, what, &mut text)?;
        put(out, &text)
    }

    fn list(&self, out: &mut Out<'_>, heading: &Heading) -> io::Result<()> {
        let mut text = Vec::new();
        table_head(heading, &mut text)?;
        out.page.list = TABLE_END;
        put(out, &text)
    }

    fn row(&self, heading: &Heading, cells: &dyn Row, _number: u64, _layout: &Layout, to: &mut Vec<u8>) -> io::Result<()> {
        row(heading, cells, to)
    }

    fn end(&self, out: &mut Out<'_>, answer: &dyn Whole) -> io::Result<()> {
        let mut text = Vec::new();
        out.page.close(&mut text);
        text.extend_from_slice(std::mem::take(&mut out.page.chapter).as_bytes());
        notes(answer, out.page.room.is_some(), &mut text)?;
        writeln!(text, "</main><footer>gcdump {} {}</footer>", Escaped(&out.head.gcdump), Escaped(&out.head.command))?;
        // For a streamed list, the JSON is left out, because the document would not contain the list.
        let mut json = Bounded::default();
        if !out.streamed {
            answer.document(&mut json, false)?;
        }
        if (1..=JSON).contains(&json.bytes) {
            text.extend_from_slice(b"<script type=\"application/json\" id=\"data\">");
            // Escapes '<', so that nothing in the JSON can end the script element.
            for byte in json.kept {
                if byte == b'<' { text.extend_from_slice(b"\\u003c") } else { text.push(byte) }
            }
            text.extend_from_slice(b"</script>\n");
        } else if json.bytes > 0 {
            let size = crate::base::len64(json.bytes);
            writeln!(text, "<p class=\"more\">The answers as JSON ({} bytes) are left out here: --json prints them.</p>", count(size))?;
        }
        write!(text, "<script>\n{SCRIPT}</script></body></html>\n")?;
        out.to.write_all(&text)
    }

    fn carries_notes(&self) -> bool {
        true
    }
}

/// Keeps the first [`JSON`] bytes written, and counts all bytes written.
#[derive(Debug, Default)]
struct Bounded {
    kept: Vec<u8>,
    bytes: usize,
}

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = JSON.saturating_sub(self.kept.len());
        self.kept.extend(bytes.iter().take(room));
        self.bytes = self.bytes.saturating_add(bytes.len());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Writes the notes: all notes, or at most [`LINES`] if the page is kept small.
fn notes(answer: &dyn Whole, kept_small: bool, to: &mut Vec<u8>) -> io::Result<()> {
    let notes = answer.notes();
    if notes.is_empty() {
        return Ok(());
    }
    let most = if kept_small { LINES } else { usize::MAX };
    writeln!(to, "<section id=\"warnings\" aria-labelledby=\"warnings-title\"><h2 id=\"warnings-title\">Warnings</h2><ul>")?;
    for note in notes.iter().take(most) {
        let word = match note.kind {
            NoteKind::GcInProgress | NoteKind::GcMoving => "WARNING: ",
            kind if kind.makes_partial() => "missing: ",
            _ => "",
        };
        writeln!(to, "<li>{word}{}</li>", Escaped(&short(&note.message)))?;
    }
    let more = notes.iter().len().saturating_sub(most);
    if more > 0 {
        writeln!(to, "<li>… {} left out here</li>", plural(crate::base::len64(more), "more warning"))?;
    }
    to.extend_from_slice(b"</ul></section>\n");
    Ok(())
}
