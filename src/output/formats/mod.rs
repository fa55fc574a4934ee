//! The output formats: each has a file, and a line in this file.

mod lines;

use std::collections::BTreeMap;
use std::io::{self, Write};

use super::checks::Check;
use super::columns::Row;
use super::layout::Layout;
use super::report::{Graph, Section};
use super::seen::Seen;
use super::table::{Heading, Table};
use super::{Screen, Target, View};
use crate::base::Notes;
use crate::model::Head;

/// Declares the formats: a variant of [`Format`] and the module of its writer.
macro_rules! formats {
    ($($(#[doc = $doc:literal])+ $variant:ident = $file:ident,)+) => {
        $(mod $file;)+

        /// An output format.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Format {
            $($(#[doc = $doc])+ $variant,)+
        }

        impl Format {
            /// Every format.
            pub const ALL: &[Format] = &[$(Format::$variant),+];

            /// Name on the command line.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Format::$variant => stringify!($file),)+
                }
            }

            /// Returns the format with this name.
            pub fn named(name: &str) -> Option<Format> {
                Format::ALL.iter().copied().find(|f| f.name() == name)
            }

            /// One-line description: help of `--format` and of `gcdump help formats`.
            pub fn help(self) -> &'static str {
                match self {
                    $(Format::$variant => concat!($($doc),+).trim_start().trim_end_matches('.'),)+
                }
            }

            /// Returns the writer of this format.
            pub fn writer(self) -> &'static dyn Writer {
                match self {
                    $(Format::$variant => &$file::$variant,)+
                }
            }
        }
    };
}

formats! {
    /// Tables for people; terminals show what fits (see --top).
    Table = table,
    /// One JSON document, with a schema per command (docs/schema).
    Json = json,
    /// One JSON record per line: header, rows, footer.
    Ndjson = ndjson,
    /// Rows as comma-separated values, after one line of names.
    Csv = csv,
    /// Graphviz graph, of commands that have one.
    Dot = dot,
    /// Folded stacks for flame graphs, of commands that list stacks.
    Folded = folded,
    /// One web page, which needs no network.
    Html = html,
    /// Markdown, for summaries of jobs, comments and issues.
    Markdown = markdown,
    /// Annotations of GitHub Actions: analyze, inspect, verify, and diff with --fail-on.
    Github = github,
    /// GitLab's Code Quality report, of the same commands.
    Gitlab = gitlab,
    /// JUnit's XML: one test case for each check.
    Junit = junit,
    /// SARIF 2.1.0, of the same commands, for code scanning.
    Sarif = sarif,
}

/// Destination and state of an answer being printed.
pub struct Out<'w> {
    /// Destination.
    pub to: &'w mut dyn Write,
    /// The screen that shows the output.
    pub screen: Screen,
    /// Receives the addresses of the rows.
    pub seen: Option<&'w Seen>,
    /// Names of the columns that lists are shown with; all columns if the list is empty.
    pub select: &'w [String],
    /// Maximum number of rows to print of each table; `None` for all rows.
    pub most: Option<usize>,
    /// How to show the answer.
    pub view: View,
    /// Header of the answer.
    pub head: &'w Head,
    /// Rows printed so far.
    pub rows: u64,
    /// Tables printed so far.
    pub tables: u64,
    /// Whether a list was streamed.
    pub streamed: bool,
    /// Titles of columns that a streamed list omitted, to be reported after the list.
    pub hidden: Vec<String>,
    /// The open elements of an HTML page.
    pub(super) page: html::Page,
}

impl std::fmt::Debug for Out<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Out").field("screen", &self.screen).field("rows", &self.rows).field("tables", &self.tables).finish_non_exhaustive()
    }
}

impl<'w> Out<'w> {
    /// Creates the state for a new answer.
    pub fn new(target: Target<'w>, head: &'w Head) -> Out<'w> {
        let Target { out: to, screen, seen, select, most, view } = target;
        Out {
            to,
            screen,
            seen,
            select,
            most,
            view,
            head,
            rows: 0,
            tables: 0,
            streamed: false,
            hidden: Vec::new(),
            page: html::Page::default(),
        }
    }

    /// Returns how many rows to skip at the beginning of each table. If rows are skipped, everything other than tables is skipped too.
    pub(super) fn skipped(&self) -> u64 {
        self.seen.map_or(0, Seen::skipped)
    }

    /// Prints the rows of `table` with `writer`.
    pub(super) fn rows(&mut self, writer: &dyn Writer, table: &Table<'_>) -> io::Result<()> {
        self.rows_in(writer, table, &Layout::default())
    }

    /// Prints the rows of `table` in the columns of `layout`.
    fn rows_in(&mut self, writer: &dyn Writer, table: &Table<'_>, layout: &Layout) -> io::Result<()> {
        const FULL: usize = 1 << 16;
        let mut buffer = Vec::new();
        let (mut number, mut left_out) = (0u64, self.skipped());
        table.rows.each(&mut |row| {
            if left_out > 0 {
                left_out = left_out.saturating_sub(1);
                return Ok(());
            }
            writer.row(&table.heading, row, number, layout, &mut buffer)?;
            number = number.saturating_add(1);
            if let Some(seen) = self.seen {
                seen.rows([table.heading.link_of(row)]);
            }
            if buffer.len() >= FULL {
                self.to.write_all(&buffer)?;
                buffer.clear();
            }
            Ok(())
        })?;
        self.rows = self.rows.saturating_add(number);
        self.to.write_all(&buffer)
    }
}

/// A format. To print an answer, `begin` is called, then `section` for each of its sections, then `end`. For a streamed list, `list` and a `row` for
/// each row follow `begin`.
pub trait Writer: Sync {
    /// Begins the answer.
    ///
    /// # Errors
    /// Write errors; likewise for the other methods.
    fn begin(&self, _out: &mut Out<'_>) -> io::Result<()> {
        Ok(())
    }

    /// Whether the writer prints sections. Other writers print the whole answer in `end`.
    fn has_sections(&self) -> bool {
        true
    }

    /// Prints a section of the answer.
    ///
    /// # Errors
    /// See [`Writer::begin`].
    fn section(&self, _out: &mut Out<'_>, _section: Section<'_>) -> io::Result<()> {
        Ok(())
    }

    /// Begins a streamed list.
    ///
    /// # Errors
    /// See [`Writer::begin`].
    fn list(&self, _out: &mut Out<'_>, _heading: &Heading) -> io::Result<()> {
        Ok(())
    }

    /// Returns the columns for rows that are not measured.
    fn layout(&self, _heading: &Heading, _out: &Out<'_>) -> Layout {
        Layout::default()
    }

    /// Appends the row with index `_number` of its table to `to`. Called from several threads at once, for different rows.
    ///
    /// # Errors
    /// See [`Writer::begin`].
    fn row(&self, _heading: &Heading, _row: &dyn Row, _number: u64, _layout: &Layout, _to: &mut Vec<u8>) -> io::Result<()> {
        Ok(())
    }

    /// Ends the answer.
    ///
    /// # Errors
    /// See [`Writer::begin`].
    fn end(&self, _out: &mut Out<'_>, _answer: &dyn Whole) -> io::Result<()> {
        Ok(())
    }

    /// Whether the output includes the notes; otherwise they go to standard error.
    fn carries_notes(&self) -> bool {
        false
    }
}

/// A complete answer.
pub trait Whole {
    /// Returns the notes of the answer.
    fn notes(&self) -> &Notes;

    /// Writes the answer as one JSON document.
    ///
    /// # Errors
    /// Write errors.
    fn document(&self, out: &mut dyn Write, pretty: bool) -> io::Result<()>;

    /// Returns the data as JSON, without the streamed list.
    ///
    /// # Errors
    /// Serialization errors.
    fn data(&self) -> io::Result<String>;

    /// Returns the answer as a graph, if it is one.
    fn graph(&self) -> Option<Graph<'_>>;

    /// Returns the stacks, if the answer lists any: see [`Report::folded`](crate::output::Report::folded).
    fn folded(&self) -> Option<Vec<(Vec<String>, u64)>>;

    /// Returns the checks, if the answer has any: see [`Report::checks`](crate::output::Report::checks).
    fn checks(&self) -> Option<Vec<Check>>;
}

/// A format of checks, which refuses other answers.
trait CheckWriter: Sync {
    /// Prints the checks of an answer with these notes.
    ///
    /// # Errors
    /// Write errors.
    fn print(&self, out: &mut Out<'_>, checks: &[Check], notes: &Notes) -> io::Result<()>;

    /// See [`Writer::carries_notes`].
    fn carries_notes(&self) -> bool {
        false
    }
}

impl<W: CheckWriter> Writer for W {
    fn has_sections(&self) -> bool {
        false
    }

    fn list(&self, out: &mut Out<'_>, _heading: &Heading) -> io::Result<()> {
        Err(no_checks(out))
    }

    fn end(&self, out: &mut Out<'_>, answer: &dyn Whole) -> io::Result<()> {
        let checks = answer.checks().ok_or_else(|| no_checks(out))?;
        self.print(out, &checks, answer.notes())
    }

    fn carries_notes(&self) -> bool {
        CheckWriter::carries_notes(self)
    }
}

/// Returns the error for an answer without checks.
fn no_checks(out: &Out<'_>) -> io::Error {
    let text =
        format!("{} makes no checks: this format is for analyze, inspect, verify, and diff with --fail-on or --budget", out.head.command);
    io::Error::new(io::ErrorKind::Unsupported, text)
}

/// Returns a hash for each check. The hash is the same for every dump, because it covers only the command, the identifier, and the position among the
/// checks with this identifier.
fn fingerprints(command: &str, checks: &[Check]) -> Vec<String> {
    let mut seen: BTreeMap<&str, u64> = BTreeMap::new();
    let mut all = Vec::with_capacity(checks.len());
    for check in checks {
        let n = seen.entry(check.id.as_str()).or_default();
        *n = n.saturating_add(1);
        all.push(blake3::hash(format!("{command}\n{}\n{n}", check.id).as_bytes()).to_hex().as_str().into());
    }
    all
}
