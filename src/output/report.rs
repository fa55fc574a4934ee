//! How an answer describes itself: once, for all formats.

use std::borrow::Cow;

use serde::Serialize;

use super::table::{Table, columns};

/// An answer that every format can print. JSON is its own serialisation; everything else reads its description.
pub trait Report: Serialize {
    /// Describes the answer, in the order in which people read it.
    fn describe<'r>(&'r self, to: &mut Sections<'r>);

    /// The graph that it is, for DOT.
    fn graph(&self) -> Option<Graph<'_>> {
        None
    }
}

/// A part of an answer.
pub enum Section<'r> {
    /// A line for people.
    Line(Cow<'r, str>),
    /// Many of them.
    Lines(Box<dyn Iterator<Item = String> + 'r>),
    /// An empty line for people.
    Gap,
    /// Names and values for people.
    Facts(Vec<(&'static str, String)>),
    /// A table.
    Table(Table<'r>),
}

impl std::fmt::Debug for Section<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Section::Line(_) => "Line",
            Section::Lines(_) => "Lines",
            Section::Gap => "Gap",
            Section::Facts(_) => "Facts",
            Section::Table(_) => "Table",
        })
    }
}

/// The parts of an answer.
#[derive(Debug)]
pub struct Sections<'r> {
    /// Whether nothing that was asked for is missing.
    pub complete: bool,
    list: Vec<Section<'r>>,
}

impl<'r> Sections<'r> {
    /// No parts yet.
    pub fn new(complete: bool) -> Sections<'r> {
        Sections { complete, list: Vec::new() }
    }

    /// A line for people.
    pub fn line(&mut self, text: impl Into<Cow<'r, str>>) {
        self.list.push(Section::Line(text.into()));
    }

    /// Lines for people, made when somebody reads them.
    pub fn lines(&mut self, lines: impl Iterator<Item = String> + 'r) {
        self.list.push(Section::Lines(Box::new(lines)));
    }

    /// An empty line for people.
    pub fn gap(&mut self) {
        self.list.push(Section::Gap);
    }

    /// An empty line, if `there`.
    pub fn gap_if(&mut self, there: bool) {
        if there {
            self.gap();
        }
    }

    /// A table that people see under a title, if `there`.
    pub fn titled(&mut self, title: &'static str, there: bool, table: Table<'r>) {
        if there {
            self.gap();
            self.line(title);
        }
        self.table(table.shown(there));
    }

    /// Names and values for people.
    pub fn facts(&mut self, facts: impl Into<Vec<(&'static str, String)>>) {
        self.list.push(Section::Facts(facts.into()));
    }

    /// A table.
    pub fn table(&mut self, table: Table<'r>) {
        self.list.push(Section::Table(table));
    }

    /// Records that only NDJSON has.
    pub fn records<T: Serialize + 'r, I>(&mut self, record: &'static str, rows: I)
    where
        I: IntoIterator<Item = &'r T> + Clone + 'r,
    {
        self.table(Table::records(record, rows, columns::<T>()));
    }

    /// One record that only NDJSON has.
    pub fn record<T: Serialize + Clone + 'r>(&mut self, record: &'static str, row: T) {
        self.table(Table::records(record, [row], columns::<T>()));
    }

    /// The answer itself as one record, with whether it is complete.
    pub fn itself<T: Serialize + Clone + 'r>(&mut self, record: &'static str, row: T) {
        let mut table = Table::records(record, [row], columns::<T>());
        table.heading.complete = Some(self.complete);
        self.table(table);
    }
}

impl<'r> IntoIterator for Sections<'r> {
    type Item = Section<'r>;
    type IntoIter = std::vec::IntoIter<Section<'r>>;

    fn into_iter(self) -> std::vec::IntoIter<Section<'r>> {
        self.list.into_iter()
    }
}

/// A graph whose nodes lie in clusters, each with a point that its edges begin and end at.
pub struct Graph<'r> {
    /// Its name.
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

/// Nodes that belong together.
pub struct Cluster<'r> {
    /// Its number.
    pub id: u32,
    /// What stands above it.
    pub label: String,
    /// Its nodes: what tells them apart, what stands in them.
    pub nodes: Box<dyn Iterator<Item = (String, String)> + 'r>,
}

impl std::fmt::Debug for Cluster<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cluster").field("id", &self.id).field("label", &self.label).finish_non_exhaustive()
    }
}
