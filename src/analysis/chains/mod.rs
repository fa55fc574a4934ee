//! `async`: what tasks and asynchronous methods wait for.

mod graph;
mod owners;
mod part;
mod paths;
mod queues;
mod roots;
mod sums;
mod through;
mod tree;

use super::ExceptionReader;
use super::task_names::Names;
use crate::base::hash::{Map, Set};
use crate::base::{Addr, Answer, Budget, Count, Name, glob, len64, top_or_all};
use crate::bcl::Library;
use crate::bcl::tasks::{TaskExceptions, Tasks, status};
use crate::model::{
    AsyncChain, AsyncFrame, AsyncReport, AsyncRoot, AsyncRootKind, TaskExceptionModel, TaskModel, TaskStatus, TaskStatusCount,
};
use crate::session::{Error, Heap, TypeFilter, TypePattern};
use graph::{Graph, Listed, NodeIndex, NodeKind};
pub(super) use part::task_part;
use paths::{Path, paths};
use roots::Roots;
pub(super) use sums::is_library;
use sums::sums;
pub(super) use through::{Inner, inner_chains};
use tree::tree;

/// Arguments of `async`.
#[derive(Clone, Debug, Default)]
pub struct AsyncQuery {
    /// Fold equal chains.
    pub merge: bool,
    /// Only chains with an object, or a root, of one of these types; all if empty.
    pub types: Vec<TypePattern>,
    /// Only chains with one of these methods: globs, or parts of names; all if empty.
    pub methods: Vec<String>,
    /// Only chains that hang on these; all if empty.
    pub roots: Vec<AsyncRootKind>,
    /// Only chains with this object.
    pub object: Option<Addr>,
    /// List tasks.
    pub tasks: bool,
    /// List completed tasks only.
    pub completed: bool,
    /// List faulted tasks only.
    pub faulted: bool,
    /// Maximum number of merged trees; 0 for all.
    pub top: usize,
}

impl AsyncQuery {
    fn lists_tasks(&self) -> bool {
        self.tasks || self.completed || self.faulted
    }
}

/// Finds what tasks and asynchronous methods wait for.
///
/// # Errors
/// [`Error::Contract`] if the runtime does not describe types and fields.
pub fn chains(heap: &Heap, query: &AsyncQuery) -> Result<Answer<AsyncReport>, Error> {
    let (runtime, namer, notes) = (heap.runtime(), heap.namer(), heap.begin());
    let tasks = Tasks::bind(Library::bind(runtime, &namer, &notes)?, &notes);
    let names = Names::new(&tasks, runtime, &namer, &notes);
    let graph = Graph::build(heap, &tasks, &names, &notes);
    let budget = Budget::new(runtime.memory().dump_bytes(), runtime.limits().max_memory);
    let exceptions = ExceptionReader::new(runtime, &namer, &notes);
    let roots = Roots::new(runtime, &tasks, &graph, &notes);
    let types = heap.filter(&query.types, &namer, &notes);
    let mut reporter = Reporter { types, tasks: &tasks, graph: &graph, names, roots, query, budget, exceptions };
    let report = reporter.report();
    reporter.budget.note("listing tasks", &notes);
    reporter.names.note(&notes);
    tasks.note(&notes);
    namer.note(&notes);
    Ok(notes.finish(report))
}

/// What makes frames equal: type, method, state or status.
type FrameKey = (Option<Name>, Option<Name>, Option<i32>, Option<TaskStatus>);

/// Makes the report.
struct Reporter<'g> {
    tasks: &'g Tasks,
    graph: &'g Graph,
    names: Names<'g>,
    roots: Roots<'g>,
    query: &'g AsyncQuery,
    types: TypeFilter,
    budget: Budget,
    exceptions: ExceptionReader<'g>,
}

impl Reporter<'_> {
    fn report(&mut self) -> AsyncReport {
        let mut totals = self.graph.totals;
        let mut kept: Vec<(Path, AsyncRoot)> = Vec::new();
        let mut known: Map<NodeIndex, Option<AsyncRoot>> = Map::default();
        let mut abandoned = Set::default();
        for path in paths(self.graph, &self.budget) {
            let root = match known.get(&path.root) {
                Some(root) => root.clone(),
                None => {
                    let root = self.roots.classify(path.root, path.cycle, &mut self.names);
                    known.insert(path.root, root.clone());
                    root
                }
            };
            let Some(root) = root else { continue };
            if root.kind == AsyncRootKind::Abandoned {
                abandoned.insert(path.root);
            }
            if self.wants(&path, &root) {
                kept.push((path, root));
            }
        }
        totals.abandoned = len64(abandoned.len());
        let statuses = self.statuses();
        let tasks = self.query.lists_tasks().then(|| self.task_list());
        totals.unobserved = self.unobserved();
        let (tree, trees) = if self.query.merge {
            let (rows, all) = tree(self, &kept, top_or_all(self.query.top));
            (Some(rows), all)
        } else {
            (None, 0)
        };
        let roots = sums(self, &kept);
        let chains = self.chains(&kept);
        let shown = (self.query.top > 0 && trees > self.query.top).then(|| len64(self.query.top));
        AsyncReport { totals, statuses, chains, merged: self.query.merge, tree, shown, tasks, roots }
    }

    /// Whether the query asks for a chain.
    fn wants(&mut self, path: &Path, root: &AsyncRoot) -> bool {
        if !self.query.roots.is_empty() && !self.query.roots.contains(&root.kind) {
            return false;
        }
        let query = self.query;
        if query.types.is_empty() && query.methods.is_empty() && query.object.is_none() {
            return true;
        }
        let ends = std::iter::once(path.root).chain(path.nodes.iter().copied());
        let nodes: Vec<_> = ends.filter_map(|n| self.graph.node(n).copied()).collect();
        if query.object.is_some_and(|at| root.object != Some(at) && nodes.iter().all(|n| n.address != at)) {
            return false;
        }
        let names = &mut self.names;
        let mut of_type = |mt: Addr| self.types.matches(mt, || names.type_name(mt).unwrap_or_else(|| "".into()));
        let root_is = root.type_name.as_ref().is_some_and(|name| self.types.matches_name(name));
        if !self.types.is_empty() && !root_is && !nodes.iter().any(|n| of_type(n.method_table)) {
            return false;
        }
        let methods: Vec<Name> = path.nodes.iter().filter_map(|n| self.method(*n)).collect();
        let in_method = |pattern: &String| methods.iter().any(|m| matches(pattern, m) || matches(pattern, m.shown()));
        query.methods.is_empty() || query.methods.iter().any(in_method)
    }

    /// The method of a node.
    fn method(&mut self, node: NodeIndex) -> Option<Name> {
        let node = self.graph.node(node)?;
        match node.kind {
            NodeKind::Method => self.names.method(node.address, node.method_table),
            // The rows of its methods have it.
            NodeKind::Task if self.names.is_runtime_async(node.address) => None,
            NodeKind::Task => self.names.work(node.address),
            NodeKind::Callback => self.names.delegate(node.address),
            NodeKind::Frame => self.names.suspended(node.address).name(),
            NodeKind::Running => self.graph.running.get(&node.address).and_then(|running| running.method.clone()),
            NodeKind::Source | NodeKind::Thread => None,
        }
    }

    fn key(&mut self, node: NodeIndex) -> Option<FrameKey> {
        let found = *self.graph.node(node)?;
        let place = || self.tasks.resume_info(found.address).filter(|_| found.kind == NodeKind::Frame);
        let method = match self.method(node) {
            Some(method) => Some(method.display()),
            // Methods without names are equal if they are suspended at the same place.
            None => place().map(|at| at.to_string().into()),
        };
        Some((self.names.type_name(found.method_table), method, found.state, found.status()))
    }

    /// Threads that have the node on their stacks.
    fn threads(&self, node: NodeIndex) -> &[u32] {
        let found = self.graph.node(node);
        if let Some(running) = found.filter(|n| n.kind == NodeKind::Running).and_then(|n| self.graph.running.get(&n.address)) {
            return running.thread.as_slice();
        }
        let at = found.map(|n| n.address);
        at.and_then(|at| self.roots.threads.get(&at)).map_or(&[], Vec::as_slice)
    }

    fn frame(&mut self, node: NodeIndex, visited: bool) -> Option<AsyncFrame> {
        let found = *self.graph.node(node)?;
        let plan = self.tasks.plan(found.method_table);
        let method = self.method(node);
        let type_name = self.names.type_name(found.method_table);
        let file = match found.kind {
            NodeKind::Frame => self.names.suspended(found.address).file(),
            _ => None,
        };
        let label = match (&method, &file) {
            (Some(method), _) => method.clone(),
            (None, Some(file)) => format!("a method of {file} (--modules names it)").into(),
            (None, None) if found.kind == NodeKind::Task && self.names.is_runtime_async(found.address) => "its task".into(),
            (None, None) => type_name.clone().unwrap_or_else(|| "?".into()),
        };
        Some(AsyncFrame {
            display: method.as_ref().map(Name::display),
            label,
            file,
            method,
            state: found.state,
            object: found.address,
            type_name,
            status: found.status(),
            async_void: self.tasks.is_void(found.address, &plan),
            thread: self.threads(node).first().copied(),
            visited,
        })
    }

    fn chains(&mut self, kept: &[(Path, AsyncRoot)]) -> Vec<AsyncChain> {
        let mut out: Vec<AsyncChain> = Vec::with_capacity(if self.query.merge { 0 } else { kept.len() });
        let mut equal: Map<(AsyncRootKind, Name, Vec<Option<FrameKey>>), usize> = Map::default();
        for (path, root) in kept {
            if self.query.merge {
                let keys = path.nodes.iter().map(|n| self.key(*n)).collect();
                let known = equal.entry((root.kind, root.label.clone(), keys)).or_insert(out.len());
                if let Some(chain) = out.get_mut(*known) {
                    chain.count.bump();
                    continue;
                }
            }
            let frames = path.nodes.iter().enumerate().filter_map(|(i, n)| self.frame(*n, i >= path.visited)).collect();
            out.push(AsyncChain { root: root.clone(), count: 1, frames });
        }
        if self.query.merge {
            out.sort_by_key(|chain| std::cmp::Reverse(chain.count));
        }
        out
    }

    fn statuses(&self) -> Vec<TaskStatusCount> {
        let mut counts: Map<TaskStatus, u64> = Map::default();
        for (_, _, bits) in &self.graph.tasks {
            counts.entry(status(*bits)).or_default().bump();
        }
        TaskStatus::ALL.iter().filter_map(|s| Some(TaskStatusCount { status: *s, count: *counts.get(s)? })).collect()
    }

    /// Number of faulted tasks whose exceptions nobody has looked at.
    fn unobserved(&self) -> u64 {
        let faulted = self.graph.tasks.iter().filter(|(_, _, bits)| status(*bits) == TaskStatus::Faulted);
        len64(faulted.filter(|(at, _, _)| self.tasks.exceptions(*at).is_some_and(|e| !e.observed)).count())
    }

    fn task_list(&mut self) -> Vec<TaskModel> {
        /// Bytes of memory that a task of the list takes beside its exceptions.
        const TASK: u64 = 160;
        let query = self.query;
        let wanted = |(_, _, bits): &&Listed| {
            let status = status(*bits);
            let completed = matches!(status, TaskStatus::RanToCompletion | TaskStatus::Canceled | TaskStatus::Faulted);
            match (query.completed, query.faulted) {
                (false, false) => true,
                (true, _) => completed,
                (false, true) => status == TaskStatus::Faulted,
            }
        };
        let graph = self.graph;
        let mut out = Vec::new();
        for (object, method_table, bits) in graph.tasks.iter().filter(wanted) {
            if !self.budget.memory(TASK) {
                break;
            }
            out.push(self.task(*object, *method_table, *bits));
        }
        out.sort_by_key(|t: &TaskModel| (t.status, t.object));
        out
    }

    fn task(&mut self, object: Addr, method_table: Addr, bits: u32) -> TaskModel {
        let status = status(bits);
        let faults = if status == TaskStatus::Faulted { self.tasks.exceptions(object) } else { None };
        let method = self.names.method(object, method_table).or_else(|| self.names.work(object));
        TaskModel {
            object,
            type_name: self.names.type_name(method_table),
            status,
            display: method.as_ref().map(Name::display),
            method,
            unobserved: faults.as_ref().map(|f| !f.observed),
            exceptions: faults.map(|f| fault_models(&f, &mut self.names, &self.exceptions)).unwrap_or_default(),
        }
    }
}

/// The exceptions of a task.
fn fault_models(faults: &TaskExceptions, names: &mut Names<'_>, reader: &ExceptionReader<'_>) -> Vec<TaskExceptionModel> {
    let exception = |at: &Addr| TaskExceptionModel { object: *at, type_name: names.type_of(*at), message: reader.message(*at) };
    faults.exceptions.iter().map(exception).collect()
}

/// Whether a method's name matches: without stars, any part of it.
fn matches(pattern: &str, name: &str) -> bool {
    if pattern.contains(['*', '?']) { glob(pattern, name) } else { name.contains(pattern) }
}
