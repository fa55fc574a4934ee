//! The answer of `async`: chains of asynchronous methods, the merged tree, and tasks by status.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::folds::{self, Indent, Part};
use crate::analysis::{AsyncChain, AsyncFrame, AsyncReport, AsyncRow, TaskModel};
use crate::base::{Addr, Name};
use crate::output::Paging;
use crate::output::columns::{Columns, Readers, columns};
use crate::output::report::{Cluster, Graph, Report, Sections};
use crate::output::table::Table;
use crate::output::{count, plural};

/// Maximum width of the tree's indent.
const MAX_INDENT: usize = 60;
/// Maximum number of threads that a row of a tree lists on a screen.
const MAX_THREADS: usize = 8;
/// Maximum number of frames printed for each chain.
const MAX_FRAMES: usize = 200;

/// A frame with its chain.
#[derive(Serialize)]
struct Row<'r> {
    chain: usize,
    count: u64,
    root_kind: &'static str,
    root_object: Option<Addr>,
    root: &'r str,
    /// Index of the frame from 0, innermost first.
    index: usize,
    #[serde(flatten)]
    frame: &'r AsyncFrame,
}

fn rows(chains: &[AsyncChain]) -> impl Iterator<Item = Row<'_>> + Clone {
    chains.iter().enumerate().flat_map(|(chain, c)| {
        c.frames.iter().enumerate().map(move |(index, frame)| Row {
            chain,
            count: c.count,
            root_kind: c.root.kind.name(),
            root_object: c.root.object,
            root: &c.root.label,
            index,
            frame,
        })
    })
}

fn row_columns<'r>() -> Columns<'r, Row<'r>> {
    columns![
        Row<'r>,
        id(chain),
        count(count),
        text(root_kind, 9).whole(),
        address(root_object),
        text(root, 40),
        id(index),
        address(frame.object),
        word(frame.state, 5),
        word(frame.status, 20),
        id(frame.thread),
        names(frame.method, 60),
        names(frame.type_name, 60)
    ]
}

/// A row of the trees on the screen: a row of the answer, or the first of several folded rows.
#[derive(Clone)]
struct TreeRow<'r> {
    row: &'r AsyncRow,
    /// Whether several rows are folded into this one.
    folded: bool,
    text: String,
}

/// Returns the rows of the trees. If `fold`, intermediate framework rows are folded.
fn tree_rows(rows: &[AsyncRow], fold: bool) -> Vec<TreeRow<'_>> {
    let parts = if fold { folds::of_rows(rows) } else { (0..rows.len()).map(Part::Item).collect() };
    let mut indent = Indent::default();
    let row = |part: Part| match part {
        Part::Item(i) => {
            let row = rows.get(i)?;
            Some(TreeRow { row, folded: false, text: indented(indent.shown(row.depth), &row_text(row)) })
        }
        Part::Fold(range) => {
            let of = rows.get(range)?;
            let (row, last) = (of.first()?, of.last()?);
            let text = indented(indent.shown(row.depth), &folds::line(of.len(), of.iter().map(|r| &*r.label)));
            indent.fold(last.depth, of.len());
            Some(TreeRow { row, folded: true, text })
        }
    };
    parts.into_iter().filter_map(row).collect()
}

fn indented(depth: u32, text: &str) -> String {
    format!("{}{text}", " ".repeat(usize::try_from(depth).unwrap_or(MAX_INDENT).saturating_mul(2).min(MAX_INDENT)))
}

/// Describes a row of the tree.
fn row_text(row: &AsyncRow) -> String {
    let kind = row.root.map_or_else(String::new, |kind| format!("{kind}: "));
    let ids: Vec<String> = row.threads.iter().take(MAX_THREADS).map(ToString::to_string).collect();
    let more = row.threads.len().saturating_sub(ids.len());
    let threads = match ids.as_slice() {
        [] => String::new(),
        [one] => format!("  ← thread {one}"),
        some if more > 0 => format!("  ← threads {} and {more} more", some.join(", ")),
        all => format!("  ← threads {}", all.join(", ")),
    };
    let visited = if row.visited { "  (see above)" } else { "" };
    format!("{kind}{}{threads}{visited}", row.label)
}

fn tree_columns<'r>() -> Columns<'r, TreeRow<'r>> {
    columns![
        TreeRow<'r>,
        count(row.count).keep(9),
        address("example", |r| r.row.example.filter(|_| !r.folded)).keep(7),
        word("state", 5, |r| r.row.state.filter(|_| !r.folded)).right().keep(4),
        word("status", 20, |r| r.row.status.filter(|_| !r.folded)),
        text("root, and what waits for it" = text, 100).name().least(44)
    ]
}

fn task_columns<'r>() -> Columns<'r, TaskModel> {
    columns![
        TaskModel,
        address(object).keep(9),
        word(status, 20).keep(8),
        text("exception", 60, |t| {
            let first = t.exceptions.first()?;
            let name = first.type_name.as_ref().map_or("?", Name::shown);
            let unobserved = if t.unobserved == Some(true) { " (unobserved)" } else { "" };
            Some(first.message.as_ref().map_or_else(|| format!("{name}{unobserved}"), |m| format!("{name}: {m}{unobserved}")))
        })
        .lines(2)
        .keep(6)
        .only(Readers::All),
        names(method, 60),
        names(type_name, 60).keep(5)
    ]
}

/// Columns by which chains can be sorted.
fn chain_columns<'r>() -> Columns<'r, AsyncChain> {
    columns![
        AsyncChain,
        count(count),
        word("root_kind" = root.kind, 9),
        text("root" = root.label, 40),
        address("root_object" = root.object),
        count("frames", |c| c.frames.len())
    ]
}

/// Columns by which trees can be sorted.
fn whole_tree_columns<'r>() -> Columns<'r, Vec<AsyncRow>> {
    columns![
        Vec<AsyncRow>,
        count("count", |tree| tree.first().map(|row| row.count)),
        text("root_kind", 9, |tree| tree.first().and_then(|row| row.root).map(|kind| kind.name())),
        names("root", 40, |tree| tree.first().map(|row| &row.label)),
        address("root_object", |tree| tree.first().and_then(|row| row.example)),
        count("frames", |tree| tree.len())
    ]
}

/// Describes a frame.
fn line(frame: &AsyncFrame) -> String {
    let name = frame.label.shown();
    let state = frame.state.map_or_else(String::new, |s| format!(", state {s}"));
    let void = if frame.async_void { ", async void" } else { "" };
    let status = frame.status.map_or_else(String::new, |s| format!(", {s}"));
    let thread = frame.thread.map_or_else(String::new, |id| format!(", thread {id}"));
    let visited = if frame.visited { " (see above)" } else { "" };
    format!("  {} {name}{state}{status}{void}{thread}{visited}", frame.object)
}

impl Report for AsyncReport {
    fn page(&mut self, to: &mut Paging) {
        if let Some(tasks) = &mut self.tasks {
            to.tells_cuts = true;
            to.whole_list("tasks", tasks, &task_columns());
            return;
        }
        let Some(tree) = &mut self.tree else {
            to.tells_cuts = true;
            to.whole_list("chains", &mut self.chains, &chain_columns());
            return;
        };
        let mut trees: Vec<Vec<AsyncRow>> = Vec::new();
        for row in tree.drain(..) {
            match trees.last_mut().filter(|_| row.depth > 0) {
                Some(last) => last.push(row),
                None => trees.push(vec![row]),
            }
        }
        self.shown = to.list("tree", &mut trees, 0, &whole_tree_columns()).or(self.shown);
        tree.extend(trees.into_iter().flatten());
    }

    fn describe<'r>(&'r self, to: &mut Sections<'r>) {
        let tasks = self.tasks.is_some();
        to.table(Table::records("task", self.tasks.iter().flatten(), task_columns()).csv(tasks).shown(tasks));
        to.records("chain", &self.chains);
        to.records("row", self.tree.iter().flatten());
        to.records("status", &self.statuses);
        let tree = tree_rows(self.tree.as_deref().unwrap_or_default(), !to.view.framework);
        let any = !tasks && !tree.is_empty();
        to.table(Table::new(tree, tree_columns()).shown(any));
        to.table(Table::new(rows(&self.chains), row_columns()).csv(!tasks).shown(false));
        if !tasks && self.tree.is_none() {
            for chain in &self.chains {
                let object = chain.root.object.map_or_else(|| "?".into(), |o| o.to_string());
                let times = if chain.count > 1 { format!("{}× ", chain.count) } else { String::new() };
                to.line(format!("{times}{}: {} {object}", chain.root.kind, chain.root.label));
                let frames = chain.frames.get(..MAX_FRAMES).unwrap_or(&chain.frames);
                let parts = if to.view.framework { (0..frames.len()).map(Part::Item).collect() } else { folds::of_chain(frames) };
                to.lines(parts.into_iter().filter_map(|part| match part {
                    Part::Item(i) => frames.get(i).map(line),
                    Part::Fold(range) => {
                        let of = frames.get(range)?;
                        Some(format!("  {}", folds::line(of.len(), of.iter().map(|f| f.label.shown()))))
                    }
                }));
                if let Some(more) = chain.frames.len().checked_sub(MAX_FRAMES).filter(|n| *n > 0) {
                    to.line(format!("  … {} (--json lists all)", plural(crate::base::len64(more), "more frame")));
                }
            }
        }
        to.gap_if(tasks || !self.chains.is_empty());
        to.record("totals", self.totals);
        if let Some(shown) = self.shown.filter(|_| !to.paged) {
            to.line(format!("… {} listed (--top 0 lists all)", plural(shown, "root")));
        }
        let t = &self.totals;
        if t.tasks == 0 && self.chains.is_empty() {
            return to.none("No tasks found");
        }
        let statuses: Vec<String> = self.statuses.iter().map(|s| format!("{} {}", count(s.count), s.status)).collect();
        to.line(format!("{}: {}", plural(t.tasks, "task"), statuses.join(", ")));
        to.line(format!(
            "{} pending, {} of them suspended in an await; the awaited object confirms this for {}{}",
            plural(t.methods, "asynchronous method"),
            count(t.suspended),
            count(t.confirmed),
            if t.contradicted > 0 { format!(", and contradicts it for {}", count(t.contradicted)) } else { String::new() }
        ));
        for (n, what) in [
            (t.abandoned, "abandoned (--root abandoned)"),
            (t.unobserved, "faulted with unobserved exceptions (--faulted)"),
            (t.completing, "completed, but with continuations that have not run"),
        ] {
            if n > 0 {
                to.line(format!("{} {what}", count(n)));
            }
        }
    }

    fn graph(&self) -> Option<Graph<'_>> {
        let mut labels: BTreeMap<Addr, String> = BTreeMap::new();
        for chain in &self.chains {
            if let Some(at) = chain.root.object {
                labels.entry(at).or_insert_with(|| format!("{}: {} {at}", chain.root.kind, chain.root.label));
            }
            for f in &chain.frames {
                let name = f.label.shown();
                let state = f.state.map_or_else(String::new, |s| format!(" state {s}"));
                labels.insert(f.object, format!("{name}{state} {}", f.object));
            }
        }
        let ids: BTreeMap<Addr, u32> = labels.keys().copied().zip(0u32..).collect();
        let mut edges: BTreeSet<(u32, u32)> = BTreeSet::new();
        for chain in &self.chains {
            let objects: Vec<Addr> = chain.root.object.into_iter().chain(chain.frames.iter().map(|f| f.object)).collect();
            let linked = objects.windows(2).filter_map(|pair| Some((*ids.get(pair.first()?)?, *ids.get(pair.last()?)?)));
            edges.extend(linked.filter(|(from, to)| from != to));
        }
        Some(Graph {
            name: "async",
            clusters: Box::new(labels.into_values().zip(0u32..).map(|(label, id)| Cluster { id, label, nodes: None })),
            edges: Box::new(edges.into_iter()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_counts_the_threads_that_it_does_not_list() {
        let text = |threads: u32| {
            row_text(&AsyncRow {
                depth: 1,
                count: 1,
                root: None,
                label: "Lab.Wait".into(),
                state: None,
                status: None,
                example: None,
                threads: (1..=threads).collect(),
                visited: false,
                framework: false,
            })
        };
        assert_eq!(text(1), "Lab.Wait  ← thread 1");
        assert_eq!(text(8), "Lab.Wait  ← threads 1, 2, 3, 4, 5, 6, 7, 8");
        assert_eq!(text(40), "Lab.Wait  ← threads 1, 2, 3, 4, 5, 6, 7, 8 and 32 more");
    }
}
