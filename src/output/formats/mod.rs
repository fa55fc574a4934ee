//! The output formats: a file each, and a line below.

use std::io::{self, Write};

use super::report::{Graph, Section};
use super::table::{Heading, Row, Table};
use crate::base::Notes;
use crate::model::Head;

/// Declares the formats: each a variant of [`Format`], and the writer in the file of its name.
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

            /// Name, as it is typed.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Format::$variant => stringify!($file),)+
                }
            }

            /// The format with this name.
            pub fn named(name: &str) -> Option<Format> {
                Format::ALL.iter().copied().find(|f| f.name() == name)
            }

            /// What it is, in a sentence.
            pub fn help(self) -> &'static str {
                match self {
                    $(Format::$variant => concat!($($doc),+).trim_start().trim_end_matches('.'),)+
                }
            }

            /// What writes it.
            pub fn writer(self) -> &'static dyn Writer {
                match self {
                    $(Format::$variant => &$file::$variant,)+
                }
            }
        }
    };
}

formats! {
    /// For people.
    Table = table,
    /// One JSON document (docs/json.md).
    Json = json,
    /// One JSON record a line: header, rows, footer.
    Ndjson = ndjson,
    /// The rows as comma-separated values.
    Csv = csv,
    /// The answer as a graph for Graphviz, where it is one.
    Dot = dot,
}

/// Where an answer goes, and what of it is printed.
pub struct Out<'w> {
    /// Where it goes.
    pub to: &'w mut dyn Write,
    /// Whether a person is looking.
    pub terminal: bool,
    /// What the answer begins with.
    pub head: &'w Head,
    /// Rows printed so far.
    pub rows: u64,
    /// Tables printed so far.
    pub tables: u64,
    /// Whether a list was printed while it was made.
    pub streamed: bool,
}

impl std::fmt::Debug for Out<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Out")
            .field("terminal", &self.terminal)
            .field("rows", &self.rows)
            .field("tables", &self.tables)
            .finish_non_exhaustive()
    }
}

impl<'w> Out<'w> {
    /// Nothing printed yet.
    pub fn new(to: &'w mut dyn Write, terminal: bool, head: &'w Head) -> Out<'w> {
        Out { to, terminal, head, rows: 0, tables: 0, streamed: false }
    }

    /// Prints the rows of `table` with `writer`.
    pub(super) fn rows(&mut self, writer: &dyn Writer, table: &Table<'_>) -> io::Result<()> {
        const FULL: usize = 1 << 16;
        let mut buffer = Vec::new();
        let mut number = 0u64;
        table.rows.each(&mut |row| {
            writer.row(&table.heading, row, number, self.terminal, &mut buffer)?;
            number = number.saturating_add(1);
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

/// A format. An answer is printed as `begin`, a `section` for each of its parts, `end`. Where it has a list that is made
/// while it is printed, `list` and a `row` for each of its rows come behind `begin`.
pub trait Writer: Sync {
    /// Begins the answer.
    ///
    /// # Errors
    /// Those of `out`; the same holds for the other methods.
    fn begin(&self, _out: &mut Out<'_>) -> io::Result<()> {
        Ok(())
    }

    /// Prints a part of the answer.
    ///
    /// # Errors
    /// See [`Writer::begin`].
    fn section(&self, _out: &mut Out<'_>, _section: Section<'_>) -> io::Result<()> {
        Ok(())
    }

    /// Begins a list that is made while it is printed.
    ///
    /// # Errors
    /// See [`Writer::begin`].
    fn list(&self, _out: &mut Out<'_>, _heading: &Heading) -> io::Result<()> {
        Ok(())
    }

    /// Appends a row to `to`, the one with this number in its table. Several threads do so at once, each with rows of its own.
    ///
    /// # Errors
    /// See [`Writer::begin`].
    fn row(&self, _heading: &Heading, _row: &dyn Row, _number: u64, _terminal: bool, _to: &mut Vec<u8>) -> io::Result<()> {
        Ok(())
    }

    /// Ends the answer.
    ///
    /// # Errors
    /// See [`Writer::begin`].
    fn end(&self, _out: &mut Out<'_>, _answer: &dyn Whole) -> io::Result<()> {
        Ok(())
    }

    /// Whether the notes are part of what is printed. Otherwise they go to standard error.
    fn carries_notes(&self) -> bool {
        false
    }
}

/// An answer at its end.
pub trait Whole {
    /// What there is to tell beside the data.
    fn notes(&self) -> &Notes;

    /// Writes all of it as one JSON document.
    ///
    /// # Errors
    /// Those of the writer.
    fn document(&self, out: &mut dyn Write, pretty: bool) -> io::Result<()>;

    /// Its data as JSON, without the list that was streamed.
    ///
    /// # Errors
    /// Where it cannot be serialised.
    fn data(&self) -> io::Result<String>;

    /// The graph that it is.
    fn graph(&self) -> Option<Graph<'_>>;
}
