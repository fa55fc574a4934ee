//! `async`: the objects that tasks and asynchronous methods wait for.

mod graph;
mod outgrown;
mod owners;
mod part;
mod paths;
mod query;
mod queues;
mod report;
mod reporter;
mod roots;
mod sums;
mod through;
mod tree;

pub use report::*;

use crate::analysis::ExceptionReader;
use crate::analysis::threads::task_names::Names;
use crate::base::hash::{Map, Set};
use crate::base::{Answer, Budget, Collector, len64, top_or_all};
use crate::bcl::Library;
use crate::bcl::tasks::Tasks;
use crate::session::{Error, Heap};
use graph::{Graph, NodeIndex};
pub(in crate::analysis) use part::task_part;
use paths::{Path, paths};
pub use query::AsyncQuery;
use reporter::Reporter;
use roots::Roots;
pub(in crate::analysis) use sums::is_library;
use sums::{by_root, roots_of_threads, sums};
pub(in crate::analysis) use through::{Inner, inner_chains};
use tree::tree;

/// Finds the chains of tasks and asynchronous methods, and their roots. The root of a chain is the object that the chain waits for.
///
/// # Errors
/// [`Error::Contract`] if the runtime does not describe types and fields.
pub fn async_chains(heap: &Heap, query: &AsyncQuery) -> Result<Answer<AsyncReport>, Error> {
    let (runtime, namer, notes) = (heap.runtime(), heap.namer(), heap.begin());
    notes.extend(&runtime.file().facts.lost.of_threads());
    let tasks = Tasks::bind(Library::bind(runtime, &namer, &notes)?, &notes);
    let names = Names::new(&tasks, runtime, &namer, &notes);
    let graph = Graph::build(heap, &tasks, &names, &notes);
    let budget = Budget::new(runtime.memory().dump_bytes(), runtime.limits().max_memory);
    let exceptions = ExceptionReader::new(runtime, &namer, &notes);
    let roots = Roots::new(heap, &tasks, &graph, &notes);
    let types = heap.filter(&query.types, &namer, &notes);
    let mut reporter = Reporter { types, tasks: &tasks, graph: &graph, names, roots, query, budget, exceptions };
    let report = report(&mut reporter, &notes);
    reporter.budget.note("listing tasks", &notes);
    reporter.names.note(&notes);
    tasks.note(&notes);
    namer.note(&notes);
    Ok(notes.finish(report))
}

/// Makes the report.
fn report(reporter: &mut Reporter<'_>, notes: &Collector) -> AsyncReport {
    let mut totals = reporter.graph.totals;
    let mut kept: Vec<(Path, AsyncRoot)> = Vec::new();
    let mut known: Map<NodeIndex, Option<AsyncRoot>> = Map::default();
    let mut abandoned = Set::default();
    for path in paths(reporter.graph, &reporter.budget) {
        let root = match known.get(&path.root) {
            Some(root) => root.clone(),
            None => {
                let root = reporter.roots.classify(path.root, path.cycle, &mut reporter.names);
                known.insert(path.root, root.clone());
                root
            }
        };
        let Some(root) = root else { continue };
        if root.kind == AsyncRootKind::Abandoned {
            abandoned.insert(path.root);
        }
        if reporter.wants(&path, &root) {
            kept.push((path, root));
        }
    }
    totals.abandoned = len64(abandoned.len());
    let statuses = reporter.statuses();
    let tasks = reporter.query.lists_tasks().then(|| reporter.task_list());
    totals.unobserved = reporter.unobserved();
    let (tree, trees) = if reporter.query.merge {
        let (rows, all) = tree(reporter, &kept, top_or_all(reporter.query.top), notes);
        (Some(rows), all)
    } else {
        (None, 0)
    };
    let groups = by_root(kept.iter().map(|(_, root)| root));
    let threads = roots_of_threads(reporter, &kept, &groups);
    let roots = sums(reporter, &kept, groups);
    let chains = reporter.chains(&kept);
    let shown = (reporter.query.top > 0 && trees > reporter.query.top).then(|| len64(reporter.query.top));
    AsyncReport { totals, statuses, chains, merged: reporter.query.merge, tree, shown, tasks, roots, threads }
}
