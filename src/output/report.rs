//! How an answer describes itself to all formats.

use std::borrow::Cow;

use serde::Serialize;

use super::checks::Check;
use super::columns::Columns;
use super::page::Paging;
use super::plural;
use super::table::Table;
use crate::analysis::{DiffReport, Icicle, MapCell};
use crate::base::Notes;

/// An answer that can be printed. JSON is its serialization; all other formats render its description.
pub trait Report: Serialize {
    /// Describes the answer in reading order.
    fn describe<'r>(&'r self, to: &mut Sections<'r>);

    /// Sorts the lists of the answer as requested, and removes the rows of other pages.
    fn page(&mut self, _to: &mut Paging) {}

    /// Returns the answer as a graph, for DOT.
    fn graph(&self) -> Option<Graph<'_>> {
        None
    }

    /// Returns the distinct stacks of the answer, outermost frame first, each with its number of threads.
    fn folded(&self) -> Option<Vec<(Vec<String>, u64)>> {
        None
    }

    /// Returns the answer, which has these notes, as checks for the formats of continuous integration systems.
    fn checks(&self, _notes: &Notes) -> Option<Vec<Check>> {
        None
    }
}

/// How screens and pages show an answer. CSV, JSON and NDJSON have everything.
#[derive(Clone, Debug, Default)]
pub struct View {
    /// Whether the methods and objects of the framework are shown, instead of one line for each run of them.
    pub framework: bool,
    /// Whether the technical part of the answer is shown.
    pub detail: bool,
    /// The path of the dump, if the answer is one line of a list of dumps.
    pub path: Option<String>,
}

/// A section of an answer.
pub enum Section<'r> {
    /// A line of text (tables, HTML and Markdown).
    Line(Cow<'r, str>),
    /// A line with a long and a short form: tables print the long form if it fits the width of the screen (tables, HTML and Markdown).
    Fitting(String, String),
    /// The title of the following sections (tables, HTML and Markdown).
    Title(Cow<'r, str>),
    /// A line that must not be overlooked (tables, HTML and Markdown).
    Alarm(Cow<'r, str>),
    /// A finding, and the command line that shows more about it (tables, HTML and Markdown).
    Finding(Finding<'r>),
    /// The topic of a page, in a sentence, and the chapters of the page. Tables and lists after this section are kept short.
    Contents(String, Vec<Chapter>),
    /// The overview of a page: figures, each with the chapter that has details (HTML only).
    Tiles(Vec<Tile>),
    /// The start of a chapter.
    Chapter(Chapter),
    /// A chart (HTML only).
    Picture(Picture<'r>),
    /// Several lines.
    Lines(Box<dyn Iterator<Item = String> + 'r>),
    /// An empty line.
    Gap,
    /// Meaning of the cells of a map (tables and HTML).
    Legend(Vec<MapCell>),
    /// Names and values (tables, HTML and Markdown).
    Facts(Vec<(&'static str, String)>),
    /// A table.
    Table(Table<'r>),
}

/// A finding.
#[derive(Clone, Copy, Debug)]
pub struct Finding<'r> {
    /// Severity.
    pub severity: &'static str,
    /// A line of text.
    pub text: &'r str,
    /// The command line that shows more.
    pub command: &'r str,
}

/// A chapter of a page.
#[derive(Clone, Copy, Debug)]
pub struct Chapter {
    /// Identifier in links.
    pub id: &'static str,
    /// Title.
    pub title: &'static str,
}

/// A figure or fact of a page's overview.
#[derive(Clone, Debug)]
pub struct Tile {
    /// Name.
    pub name: &'static str,
    /// The figure.
    pub value: String,
    /// A remark; may be empty.
    pub about: String,
    /// The chapter with details, if the page contains it.
    pub chapter: Option<&'static str>,
}

/// A chart.
#[derive(Clone, Copy, Debug)]
pub enum Picture<'r> {
    /// The dominator tree by type; optionally with the change of each type between two dumps, in bytes.
    Icicle(&'r Icicle, Option<&'r DiffReport>),
}

impl std::fmt::Debug for Section<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Section::Line(_) => "Line",
            Section::Fitting(..) => "Fitting",
            Section::Title(_) => "Title",
            Section::Alarm(_) => "Alarm",
            Section::Finding(_) => "Finding",
            Section::Contents(..) => "Contents",
            Section::Tiles(_) => "Tiles",
            Section::Chapter(_) => "Chapter",
            Section::Picture(_) => "Picture",
            Section::Lines(_) => "Lines",
            Section::Gap => "Gap",
            Section::Legend(_) => "Legend",
            Section::Facts(_) => "Facts",
            Section::Table(_) => "Table",
        })
    }
}

/// Sections that are described only when they are printed.
type Part<'r> = Box<dyn FnOnce(&mut Sections<'r>) + 'r>;

/// One or more sections.
enum Item<'r> {
    One(Section<'r>),
    Part(Part<'r>),
}

/// The sections of an answer.
pub struct Sections<'r> {
    /// Whether the answer is complete.
    pub complete: bool,
    /// Whether a line at the end reports which rows are listed.
    pub paged: bool,
    /// How to show the answer.
    pub view: View,
    list: Vec<Item<'r>>,
}

impl std::fmt::Debug for Sections<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sections").field("complete", &self.complete).field("len", &self.list.len()).finish()
    }
}

impl<'r> Sections<'r> {
    /// Creates an empty list.
    pub fn new(complete: bool) -> Sections<'r> {
        Sections { complete, paged: false, view: View::default(), list: Vec::new() }
    }

    fn push(&mut self, section: Section<'r>) {
        self.list.push(Item::One(section));
    }

    /// Adds sections that `describe` creates when they are printed. Answers with several sections per row use this, because all sections together
    /// would take more memory than the answer.
    pub fn part(&mut self, describe: impl FnOnce(&mut Sections<'r>) + 'r) {
        self.list.push(Item::Part(Box::new(describe)));
    }

    /// Adds a line of text.
    pub fn line(&mut self, text: impl Into<Cow<'r, str>>) {
        self.push(Section::Line(text.into()));
    }

    /// Adds the line `what`, which states that nothing was found. If the answer is incomplete, the line limits the statement to the dump.
    pub fn none(&mut self, what: &str) {
        self.line(format!("{what}{}.", self.within()));
    }

    /// Returns a suffix for the statement that something does not exist. If the answer is incomplete, the suffix limits the statement to the contents
    /// of the dump.
    pub fn within(&self) -> &'static str {
        if self.complete { "" } else { " in the captured memory" }
    }

    /// Adds a line that has the `long` form where it fits the width of the screen, and else the `short` form.
    pub fn fitting(&mut self, long: String, short: String) {
        self.push(Section::Fitting(long, short));
    }

    /// Adds the title of the following sections.
    pub fn title(&mut self, text: impl Into<Cow<'r, str>>) {
        self.push(Section::Title(text.into()));
    }

    /// Adds a line that must not be overlooked.
    pub fn alarm(&mut self, text: impl Into<Cow<'r, str>>) {
        self.push(Section::Alarm(text.into()));
    }

    /// Adds a finding.
    pub fn finding(&mut self, severity: &'static str, text: &'r str, command: &'r str) {
        self.push(Section::Finding(Finding { severity, text, command }));
    }

    /// Adds the topic of a page, in a sentence, and the list of its chapters.
    pub fn contents(&mut self, lead: String, chapters: impl IntoIterator<Item = Chapter>) {
        self.push(Section::Contents(lead, chapters.into_iter().collect()));
    }

    /// Adds the overview of a page.
    pub fn tiles(&mut self, tiles: Vec<Tile>) {
        self.push(Section::Tiles(tiles));
    }

    /// Begins a chapter.
    pub fn chapter(&mut self, chapter: Chapter) {
        self.push(Section::Chapter(chapter));
    }

    /// Adds all sections of another list. CSV includes the tables of these sections only if `csv`.
    pub fn append(&mut self, other: Sections<'r>, csv: bool) {
        self.list.extend(other.into_iter().map(|section| match section {
            Section::Table(table) if !csv => Item::One(Section::Table(table.csv(false))),
            section => Item::One(section),
        }));
    }

    /// Adds a chart.
    pub fn picture(&mut self, picture: Picture<'r>) {
        self.push(Section::Picture(picture));
    }

    /// Adds lines of text, produced lazily.
    pub fn lines(&mut self, lines: impl Iterator<Item = String> + 'r) {
        self.push(Section::Lines(Box::new(lines)));
    }

    /// Adds the meaning of the cells of a map.
    pub fn legend(&mut self, cells: Vec<MapCell>) {
        self.push(Section::Legend(cells));
    }

    /// Adds an empty line.
    pub fn gap(&mut self) {
        self.push(Section::Gap);
    }

    /// Adds a line about the rows after the first `shown` rows, if there are any.
    pub fn more(&mut self, shown: Option<u64>, total: u64, what: &str) {
        if let Some(more) = shown.and_then(|shown| total.checked_sub(shown)).filter(|n| *n > 0 && !self.paged) {
            self.line(format!("… {} (--top 0 lists all)", plural(more, &format!("more {what}"))));
        }
    }

    /// Adds a line about rows that are not listed, if there are any.
    pub fn more_rows(&mut self, shown: Option<u64>, what: &str) {
        if shown.is_some() && !self.paged {
            self.line(format!("… more {what} (--top 0 lists all)"));
        }
    }

    /// Adds a line with the number of rows that are not listed, if there are any.
    pub fn not_listed(&mut self, more: Option<u64>, what: &str) {
        self.more(more.map(|_| 0), more.unwrap_or(0), what);
    }

    /// Adds an empty line if `there`.
    pub fn gap_if(&mut self, there: bool) {
        if there {
            self.gap();
        }
    }

    /// Adds a table, shown with a title if `there`.
    pub fn titled(&mut self, title: &'static str, there: bool, table: Table<'r>) {
        if there {
            self.gap();
            self.title(title);
        }
        self.table(table.shown(there));
    }

    /// Adds names and values.
    pub fn facts(&mut self, facts: impl Into<Vec<(&'static str, String)>>) {
        self.push(Section::Facts(facts.into()));
    }

    /// Adds a table.
    pub fn table(&mut self, table: Table<'r>) {
        self.push(Section::Table(table));
    }

    /// Adds records for NDJSON only.
    pub fn records<T: Serialize + 'r, I>(&mut self, record: &'static str, rows: I)
    where
        I: IntoIterator<Item = &'r T> + Clone + 'r,
    {
        self.table(Table::records(record, rows, Columns::<T>::default()));
    }

    /// Adds one record for NDJSON only.
    pub fn record<T: Serialize + Clone + 'r>(&mut self, record: &'static str, row: T) {
        self.table(Table::records(record, [row], Columns::<T>::default()));
    }

    /// Adds the answer itself as one NDJSON record, with `complete`.
    pub fn itself<T: Serialize + Clone + 'r>(&mut self, record: &'static str, row: T) {
        let mut table = Table::records(record, [row], Columns::<T>::default());
        table.heading.complete = Some(self.complete);
        self.table(table);
    }
}

impl<'r> IntoIterator for Sections<'r> {
    type Item = Section<'r>;
    type IntoIter = InOrder<'r>;

    fn into_iter(self) -> InOrder<'r> {
        InOrder { complete: self.complete, open: vec![self.list.into_iter()] }
    }
}

/// Iterates over the sections of an answer in order.
pub struct InOrder<'r> {
    complete: bool,
    /// The remaining items of each nested part, innermost last.
    open: Vec<std::vec::IntoIter<Item<'r>>>,
}

impl std::fmt::Debug for InOrder<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("InOrder").field("open", &self.open.len()).finish_non_exhaustive()
    }
}

impl<'r> Iterator for InOrder<'r> {
    type Item = Section<'r>;

    fn next(&mut self) -> Option<Section<'r>> {
        loop {
            match self.open.last_mut()?.next() {
                Some(Item::One(section)) => return Some(section),
                Some(Item::Part(describe)) => {
                    let mut part = Sections::new(self.complete);
                    describe(&mut part);
                    self.open.push(part.list.into_iter());
                }
                None => {
                    self.open.pop();
                }
            }
        }
    }
}

/// A graph of clusters; edges connect clusters.
pub struct Graph<'r> {
    /// Name.
    pub name: &'static str,
    /// The clusters.
    pub clusters: Box<dyn Iterator<Item = Cluster<'r>> + 'r>,
    /// Edges from cluster to cluster.
    pub edges: Box<dyn Iterator<Item = (u32, u32)> + 'r>,
}

impl std::fmt::Debug for Graph<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Graph").field("name", &self.name).finish_non_exhaustive()
    }
}

/// A cluster of nodes, or a single node.
pub struct Cluster<'r> {
    /// Id.
    pub id: u32,
    /// Label.
    pub label: String,
    /// Ids and labels of the nodes; `None` for a single node.
    pub nodes: Option<Box<dyn Iterator<Item = (String, String)> + 'r>>,
}

impl std::fmt::Debug for Cluster<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cluster").field("id", &self.id).field("label", &self.label).finish_non_exhaustive()
    }
}
