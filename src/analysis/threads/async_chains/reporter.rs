//! Makes the report.

use super::graph::{Graph, Listed, NodeIndex, NodeKind};
use super::paths::Path;
use super::query::AsyncQuery;
use super::roots::Roots;
use crate::analysis::ExceptionReader;
use crate::analysis::threads::task_names::Names;
use crate::analysis::{AsyncChain, AsyncFrame, AsyncRoot, AsyncRootKind, TaskExceptionModel, TaskModel, TaskStatusCount};
use crate::base::hash::Map;
use crate::base::{Addr, Budget, Count, Name, glob, is_framework_method, is_of_framework, len64};
use crate::bcl::tasks::{TaskExceptions, Tasks, status};
use crate::model::TaskStatus;
use crate::session::TypeFilter;

/// The key by which frames are merged: type, method, state, status.
pub(super) type FrameKey = (Option<Name>, Option<Name>, Option<i32>, Option<TaskStatus>);

/// Makes the report.
pub(super) struct Reporter<'g> {
    pub(super) tasks: &'g Tasks,
    pub(super) graph: &'g Graph,
    pub(super) names: Names<'g>,
    pub(super) roots: Roots<'g>,
    pub(super) query: &'g AsyncQuery,
    pub(super) types: TypeFilter,
    pub(super) budget: Budget,
    pub(super) exceptions: ExceptionReader<'g>,
}

impl Reporter<'_> {
    /// Whether the query selects a chain.
    pub(super) fn wants(&mut self, path: &Path, root: &AsyncRoot) -> bool {
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
    pub(super) fn method(&mut self, node: NodeIndex) -> Option<Name> {
        let node = self.graph.node(node)?;
        match node.kind {
            NodeKind::Method => self.names.method(node.address, node.method_table),
            // The methods of such a task have separate nodes.
            NodeKind::Task if self.names.is_runtime_async(node.address) => None,
            NodeKind::Task => self.names.work(node.address),
            NodeKind::Callback => self.names.delegate(node.address),
            NodeKind::Frame => self.names.suspended(node.address).name(),
            NodeKind::Running => self.graph.running.get(&node.address).and_then(|running| running.method.clone()),
            NodeKind::Source | NodeKind::Thread => None,
        }
    }

    pub(super) fn key(&mut self, node: NodeIndex) -> Option<FrameKey> {
        let found = *self.graph.node(node)?;
        let place = || self.tasks.resume_info(found.address).filter(|_| found.kind == NodeKind::Frame);
        let method = match self.method(node) {
            Some(method) => Some(method.display()),
            // Methods without names are equal if they are suspended at the same offset.
            None => place().map(|at| at.to_string().into()),
        };
        Some((self.names.type_name(found.method_table), method, found.state, found.status()))
    }

    /// Managed ids of the threads that run the node or have it on their stacks.
    pub(super) fn threads(&self, node: NodeIndex) -> &[u32] {
        let found = self.graph.node(node);
        if let Some(running) = found.filter(|n| n.kind == NodeKind::Running).and_then(|n| self.graph.running.get(&n.address)) {
            return running.thread.as_slice();
        }
        let at = found.map(|n| n.address);
        at.and_then(|at| self.roots.threads.get(&at)).map_or(&[], Vec::as_slice)
    }

    pub(super) fn frame(&mut self, node: NodeIndex, visited: bool) -> Option<AsyncFrame> {
        let found = *self.graph.node(node)?;
        let plan = self.tasks.plan(found.method_table);
        let method = self.method(node);
        let type_name = self.names.type_name(found.method_table);
        let file = match found.kind {
            NodeKind::Frame => self.names.suspended(found.address).file(),
            _ => None,
        };
        let is_task = found.kind == NodeKind::Task && self.names.is_runtime_async(found.address);
        let framework = match (&method, &file) {
            (Some(method), _) => is_of_framework(method.shown()),
            (None, Some(file)) => is_framework_method(Some(file), ""),
            (None, None) => is_task || type_name.as_ref().is_some_and(|name| is_of_framework(name.shown())),
        };
        let label = match (&method, &file) {
            (Some(method), _) => method.clone(),
            (None, Some(file)) => format!("a method of {file}").into(),
            (None, None) if is_task => "its task".into(),
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
            framework,
        })
    }

    pub(super) fn chains(&mut self, kept: &[(Path, AsyncRoot)]) -> Vec<AsyncChain> {
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

    pub(super) fn statuses(&self) -> Vec<TaskStatusCount> {
        let mut counts: Map<TaskStatus, u64> = Map::default();
        for (_, _, bits) in &self.graph.tasks {
            counts.entry(status(*bits)).or_default().bump();
        }
        TaskStatus::ALL.iter().filter_map(|s| Some(TaskStatusCount { status: *s, count: *counts.get(s)? })).collect()
    }

    /// Number of faulted tasks with an unobserved exception.
    pub(super) fn unobserved(&self) -> u64 {
        let faulted = self.graph.tasks.iter().filter(|(_, _, bits)| status(*bits) == TaskStatus::Faulted);
        len64(faulted.filter(|(at, _, _)| self.tasks.exceptions(*at).is_some_and(|e| !e.observed)).count())
    }

    pub(super) fn task_list(&mut self) -> Vec<TaskModel> {
        /// Bytes of memory that a listed task takes, without its exceptions.
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

    pub(super) fn task(&mut self, object: Addr, method_table: Addr, bits: u32) -> TaskModel {
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
pub(super) fn fault_models(faults: &TaskExceptions, names: &mut Names<'_>, reader: &ExceptionReader<'_>) -> Vec<TaskExceptionModel> {
    let exception = |at: &Addr| TaskExceptionModel { object: *at, type_name: names.type_of(*at), message: reader.message(*at) };
    faults.exceptions.iter().map(exception).collect()
}

/// Whether a method's name matches. A pattern without stars matches any part of it.
pub(super) fn matches(pattern: &str, name: &str) -> bool {
    if pattern.contains(['*', '?']) { glob(pattern, name) } else { name.contains(pattern) }
}
