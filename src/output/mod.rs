//! Renders answers. Reads no dump memory.
//!
//! [`report`] defines how an answer describes itself, `reports` holds the descriptions, [`formats`] renders them, and
//! [`stream`] prints lists as they are produced.

pub(crate) mod advice;
mod bar;
mod cell;
pub mod checks;
pub mod columns;
mod distinct;
mod fit;
pub mod formats;
mod human;
mod json_rows;
mod layout;
mod map;
mod page;
pub mod report;
mod reports;
mod sanitize;
mod screen;
mod seen;
mod select;
mod shorten;
mod stream;
pub mod table;
#[cfg(test)]
mod tests;
mod value;
mod width;

use std::io::{self, Write};

pub use cell::Cell;
pub use formats::Format;
pub use human::{bytes, bytes_exactly, count, plural};
pub use page::{ColumnOrder, Paging};
pub use report::{Report, View};
pub use reports::objects as objects_list;
pub(crate) use sanitize::is_hostile;
pub use sanitize::sanitize;
pub use screen::Screen;
pub use seen::{Link, Seen};
pub use stream::{Batches, List, stream};
pub(crate) use width::fold;

use crate::base::{Answer, Notes};
use crate::model::{Data, Envelope, Head};
use checks::Check;
use formats::{Out, Whole};
use report::{Graph, Section, Sections};

/// Identifier and version of the JSON format.
pub const SCHEMA: &str = "gcdump/2";

/// Where an answer is printed.
pub struct Target<'w> {
    /// Destination.
    pub out: &'w mut dyn Write,
    /// The screen that shows the answer.
    pub screen: Screen,
    /// Receives the addresses of the rows of tables.
    pub seen: Option<&'w Seen>,
    /// Names of the columns that lists are shown with; all columns if the list is empty.
    pub select: &'w [String],
    /// Maximum number of rows to print of each table; `None` for all rows. The answer itself keeps all rows, so that its totals are exact.
    pub most: Option<usize>,
    /// How to show the answer.
    pub view: View,
}

impl std::fmt::Debug for Target<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Target").field("screen", &self.screen).field("seen", &self.seen).finish_non_exhaustive()
    }
}

/// Removes repeated reasons from the lines of an answer: a reason follows `: ` at the end of a line.
#[derive(Debug, Default)]
pub(crate) struct Reasons(Vec<String>);

impl Reasons {
    /// Returns `line`. If it ends with the reason of an earlier line, `as above` replaces the reason.
    pub(crate) fn once(&mut self, line: String) -> String {
        /// Minimum length in bytes of a reason that is removed.
        const SHORTEST: usize = 40;
        let reasons = line.match_indices(": ").filter_map(|(at, colon)| Some((at, line.get(at.saturating_add(colon.len())..)?)));
        let known = |reason: &str| reason.len() >= SHORTEST && self.0.iter().any(|earlier| earlier.ends_with(reason));
        let short =
            reasons.into_iter().find(|(_, reason)| known(reason)).and_then(|(at, _)| Some(format!("{}, as above", line.get(..at)?)));
        self.0.push(line.clone());
        short.unwrap_or(line)
    }
}

/// Prints an answer in `format`.
///
/// # Errors
/// Write errors; [`io::ErrorKind::Unsupported`] if the answer is not available in this format.
pub fn emit<'w, R: Report>(head: &'w Head, answer: &Answer<R>, format: Format, target: Target<'w>) -> io::Result<()> {
    let mut out = Out::new(target, head);
    format.writer().begin(&mut out)?;
    finish(&mut out, answer, format)
}

/// Prints the whole answer, or the rest after a streamed list.
fn finish<R: Report>(out: &mut Out<'_>, answer: &Answer<R>, format: Format) -> io::Result<()> {
    if format.writer().has_sections() {
        let mut sections = Sections::new(answer.complete());
        sections.paged = !out.head.pages.is_empty();
        sections.view = std::mem::take(&mut out.view);
        answer.data.describe(&mut sections);
        out.head.pages.iter().for_each(|page| sections.line(page::words(page)));
        let sections: Box<dyn Iterator<Item = Section<'_>>> = match out.select {
            [] => Box::new(sections.into_iter()),
            names if out.streamed => Box::new(sections.into_iter().map(|section| only(section, names))),
            names => {
                let all: Vec<Section<'_>> = sections.into_iter().collect();
                let tables = all.iter().filter_map(|section| match section {
                    Section::Table(table) => Some(&table.heading),
                    _ => None,
                });
                select::check(names, format, tables)?;
                Box::new(all.into_iter().map(|section| only(section, names)))
            }
        };
        let most = out.most;
        for section in sections {
            let (section, left) = match most {
                Some(most) => cut(section, most)?,
                None => (section, 0),
            };
            format.writer().section(out, section)?;
            if left > 0 {
                format.writer().section(out, Section::Line(format!("… {} more (--top 0 lists all)", count(left)).into()))?;
            }
        }
    } else if !out.streamed {
        select::check(out.select, format, std::iter::empty())?;
    }
    format.writer().end(out, &Printed { head: out.head, answer })
}

/// Restricts a table to its first `most` rows, and returns how many rows are left out.
fn cut(section: Section<'_>, most: usize) -> io::Result<(Section<'_>, u64)> {
    let Section::Table(table) = section else { return Ok((section, 0)) };
    if !table.heading.shown {
        return Ok((Section::Table(table), 0));
    }
    let most = u64::try_from(most).unwrap_or(u64::MAX);
    let mut all = 0u64;
    table.rows.each(&mut |_| {
        all = all.saturating_add(1);
        Ok(())
    })?;
    Ok((Section::Table(table.cut(most)), all.saturating_sub(most)))
}

/// Restricts a table to these columns. Other sections, and tables without any of these columns, are unchanged.
fn only<'r>(section: Section<'r>, names: &[String]) -> Section<'r> {
    match section {
        Section::Table(mut table) => {
            select::only(&mut table.heading, names);
            Section::Table(table)
        }
        other => other,
    }
}

/// The complete answer, as passed to [`formats::Writer::end`].
struct Printed<'a, R> {
    head: &'a Head,
    answer: &'a Answer<R>,
}

impl<R: Report> Whole for Printed<'_, R> {
    fn notes(&self) -> &Notes {
        &self.answer.notes
    }

    fn document(&self, out: &mut dyn Write, pretty: bool) -> io::Result<()> {
        let data = Data { complete: self.answer.complete(), answer: &self.answer.data };
        let document = Envelope { head: self.head.clone(), data, warnings: self.answer.notes.iter().cloned().collect() };
        let written = if pretty { serde_json::to_writer_pretty(out, &document) } else { serde_json::to_writer(out, &document) };
        Ok(written?)
    }

    fn data(&self) -> io::Result<String> {
        Ok(serde_json::to_string(&Data { complete: self.answer.complete(), answer: &self.answer.data })?)
    }

    fn graph(&self) -> Option<Graph<'_>> {
        self.answer.data.graph()
    }

    fn folded(&self) -> Option<Vec<(Vec<String>, u64)>> {
        self.answer.data.folded()
    }

    fn checks(&self) -> Option<Vec<Check>> {
        self.answer.data.checks(&self.answer.notes)
    }
}
