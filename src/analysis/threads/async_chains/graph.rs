//! The graph of waits: pending tasks, asynchronous methods, sources, blocked threads.

use super::outgrown::drop_outgrown;
use super::queues::queued;
use crate::analysis::AsyncTotals;
use crate::analysis::threads::task_names::Names;
use crate::analysis::walk::objects_of;
use crate::base::hash::{Map, Set};
use crate::base::{Addr, Collector, Count, Missing, len64, plural};
use crate::bcl::tasks::{AsyncType, Outside, Plan, Running, Tasks, Waiter, flags, status};
use crate::model::TaskStatus;
use crate::session::Heap;

/// Index of a node.
pub(super) type NodeIndex = u32;

/// The kind of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NodeKind {
    /// A task that is not an asynchronous method.
    Task,
    /// An asynchronous method.
    Method,
    /// An object that holds a callback, such as the source of a `ValueTask`.
    Source,
    /// A blocked thread, represented by the event that it waits for.
    Thread,
    /// A delegate, or an unknown continuation.
    Callback,
    /// The continuation of a method of runtime async.
    Frame,
    /// The task of a runtime async method that a thread is running.
    Running,
}

impl NodeKind {
    /// Whether the node represents an asynchronous method.
    pub(super) fn is_method(self) -> bool {
        matches!(self, NodeKind::Method | NodeKind::Frame | NodeKind::Running)
    }
}

/// A node of the graph.
#[derive(Clone, Copy, Debug)]
pub(super) struct Node {
    pub(super) address: Addr,
    pub(super) method_table: Addr,
    pub(super) kind: NodeKind,
    /// `m_stateFlags`; `None` if the node is not a task.
    pub(super) flags: Option<u32>,
    /// `<>1__state` of a method, or the number of a suspension point.
    pub(super) state: Option<i32>,
    /// Whether an awaiter field of the method is set.
    pub(super) awaits: bool,
    /// The task that a continuation belongs to.
    pub(super) task: Option<Addr>,
}

/// A task of the heap: address, method table, flags.
pub(super) type Listed = (Addr, Addr, u32);

/// The graph, and other results of the walk.
pub(super) struct Graph {
    pub(super) nodes: Vec<Node>,
    /// Edges from a node to its waiter, sorted.
    pub(super) edges: Vec<(NodeIndex, NodeIndex)>,
    /// Number of edges that lead to each node.
    pub(super) incoming: Vec<u32>,
    /// Every task.
    pub(super) tasks: Vec<Listed>,
    pub(super) totals: AsyncTotals,
    /// Methods of runtime async that threads run, by task.
    pub(super) running: Map<Addr, Running>,
    /// Addresses of the objects in the queues of the thread pool.
    pub(super) queued: Set<Addr>,
    /// Semaphores and channels, which may have waiters: address and method table.
    pub(super) owners: Vec<(Addr, Addr)>,
}

/// Objects that the walk found.
#[derive(Default)]
struct Found {
    tasks: Vec<(Addr, Addr)>,
    pooling: Vec<(Addr, Addr)>,
    sources: Vec<(Addr, Addr)>,
    queues: Vec<(Addr, Addr)>,
    owners: Vec<(Addr, Addr)>,
}

/// Builds the graph of `heap`.
struct Builder<'t> {
    tasks: &'t Tasks,
    nodes: Vec<Node>,
    index: Map<Addr, NodeIndex>,
    edges: Vec<(NodeIndex, NodeIndex)>,
    /// Edges from objects that hold a plain delegate, which may be stale.
    weak: Vec<(NodeIndex, NodeIndex)>,
    /// The edges from sources other than tasks: a source that is not in use may have the waiter of its last use.
    sourced: Set<(NodeIndex, NodeIndex)>,
    totals: AsyncTotals,
    /// By task of runtime async: the innermost suspended method, which resumes first.
    innermost: Map<Addr, NodeIndex>,
    /// By task of runtime async, if a thread runs an inner method: the outermost method, with which the task completes.
    outermost: Map<Addr, NodeIndex>,
    /// By innermost method: the object that it awaits, according to its continuation.
    leaves: Map<NodeIndex, Addr>,
    running: Map<Addr, Running>,
}

impl Graph {
    pub(super) fn build(heap: &Heap, tasks: &Tasks, names: &Names<'_>, notes: &Collector) -> Graph {
        let found = find(heap, tasks, notes);
        let mut builder = Builder {
            tasks,
            nodes: Vec::new(),
            index: Map::default(),
            edges: Vec::new(),
            weak: Vec::new(),
            sourced: Set::default(),
            totals: AsyncTotals::default(),
            innermost: Map::default(),
            outermost: Map::default(),
            leaves: Map::default(),
            running: names.running().clone(),
        };
        let listed = builder.nodes_of(&found, notes);
        builder.frames(notes);
        builder.continuations();
        builder.sources(&found);
        builder.drop_outgrown(heap, notes);
        let queued = queued(tasks, &found.queues, notes);
        builder.awaiters(&queued, notes);
        builder.finish(listed, queued, found.owners)
    }

    /// The nodes that wait for `node`.
    pub(super) fn waiters(&self, node: NodeIndex) -> impl Iterator<Item = NodeIndex> + '_ {
        let from = self.edges.partition_point(|(n, _)| *n < node);
        self.edges.iter().skip(from).take_while(move |(n, _)| *n == node).map(|(_, waiter)| *waiter)
    }

    /// Edges from a waiter to the awaited node, sorted.
    pub(super) fn reversed(&self) -> Vec<(NodeIndex, NodeIndex)> {
        let mut out: Vec<_> = self.edges.iter().map(|(from, to)| (*to, *from)).collect();
        out.sort_unstable();
        out
    }

    /// Returns the number of edges that lead to `node`.
    pub(super) fn incoming(&self, node: NodeIndex) -> u32 {
        usize::try_from(node).ok().and_then(|i| self.incoming.get(i)).copied().unwrap_or(0)
    }

    pub(super) fn node(&self, index: NodeIndex) -> Option<&Node> {
        self.nodes.get(usize::try_from(index).ok()?)
    }
}

fn find(heap: &Heap, tasks: &Tasks, notes: &Collector) -> Found {
    let others = [AsyncType::WorkQueue, AsyncType::LocalQueue];
    let owns = |plan: &Plan| plan.kinds.is(AsyncType::Semaphore) || plan.outside == Some(Outside::Channel);
    let wanted = |mt: Addr| {
        let plan = tasks.plan(mt);
        plan.is_node() || plan.is_source() || owns(&plan) || others.iter().any(|kind| plan.kinds.is(*kind))
    };
    let objects = notes.take(objects_of(heap, wanted));
    let mut found = Found::default();
    // Consecutive objects often have the same type, and looking up a plan costs more than reading an object.
    let mut last = None;
    for (address, mt) in objects {
        let plan = match &last {
            Some((known, plan)) if *known == mt => plan,
            _ => &last.insert((mt, tasks.plan(mt))).1,
        };
        let object = (address, mt);
        if plan.kinds.is(AsyncType::Task) {
            found.tasks.push(object);
        } else if plan.kinds.is(AsyncType::PoolingBox) {
            found.pooling.push(object);
        }
        if plan.is_source() {
            found.sources.push(object);
        }
        if plan.kinds.is(AsyncType::WorkQueue) || plan.kinds.is(AsyncType::LocalQueue) {
            found.queues.push(object);
        }
        if owns(plan) {
            found.owners.push(object);
        }
    }
    found
}

impl Builder<'_> {
    fn add(&mut self, node: Node) -> Option<NodeIndex> {
        if let Some(known) = self.index.get(&node.address) {
            return Some(*known);
        }
        let index = NodeIndex::try_from(self.nodes.len()).ok()?;
        self.index.insert(node.address, index);
        self.nodes.push(node);
        Some(index)
    }

    /// Adds nodes for pending tasks and methods. Returns all tasks.
    fn nodes_of(&mut self, found: &Found, notes: &Collector) -> Vec<Listed> {
        let mut listed = Vec::with_capacity(found.tasks.len());
        self.totals.tasks = len64(found.tasks.len());
        let mut waiters = Vec::new();
        let mut unread = (0u64, None);
        for (address, method_table) in found.tasks.iter().copied() {
            let Some(bits) = self.tasks.flags(address) else {
                unread.0.bump();
                unread.1 = unread.1.or(Some(address));
                continue;
            };
            listed.push((address, method_table, bits));
            let kind = if self.tasks.kinds(method_table).is(AsyncType::Box) { NodeKind::Method } else { NodeKind::Task };
            if bits & flags::COMPLETED == 0 {
                self.totals.pending.bump();
                self.totals.methods.grow(u64::from(kind == NodeKind::Method));
                self.add(Node { address, method_table, kind, flags: Some(bits), state: None, awaits: false, task: None });
            } else {
                waiters.clear();
                self.tasks.waiters(address, &mut waiters);
                self.totals
                    .completing
                    .grow(u64::from(waiters.iter().any(|w| !matches!(w, Waiter::Callback(at) if self.tasks.is_sentinel(*at)))));
            }
        }
        for (address, method_table) in found.pooling.iter().copied() {
            // A box without an awaiter is unused, or its method is running.
            let position = self.tasks.position(address, &self.tasks.plan(method_table));
            if position.is_some_and(|p| !p.awaiters.is_empty()) {
                self.totals.methods.bump();
                self.add(Node { address, method_table, kind: NodeKind::Method, flags: None, state: None, awaits: false, task: None });
            }
        }
        if unread.0 > 0 {
            notes.add(Missing::Async, unread.1, format!("the state of {} cannot be read", plural(unread.0, "task")));
        }
        listed
    }

    /// Returns the node that resumes first when the waiter at `at` is notified: the innermost method of a task of runtime async, otherwise the
    /// node of the object.
    fn entry(&self, at: Addr) -> Option<NodeIndex> {
        self.innermost.get(&at).or_else(|| self.index.get(&at)).copied()
    }

    /// Adds suspended methods of runtime async, with edges from the innermost one to the task. If a thread runs a method of the task, the edges lead
    /// from the task, which represents this method, to the outermost one.
    fn frames(&mut self, notes: &Collector) {
        for index in 0..self.nodes.len() {
            let (Some(task), Ok(of_task)) = (self.nodes.get(index).copied(), NodeIndex::try_from(index)) else { continue };
            if !self.tasks.kinds(task.method_table).is(AsyncType::RuntimeAsyncTask) {
                continue;
            }
            let mut chain = self.tasks.chain(task.address, notes);
            // A task with a continuation is suspended again, so no thread runs it.
            let runs = self.running.get(&task.address).filter(|_| chain.frames.is_empty() && chain.leaf.is_none());
            let is_running = runs.is_some();
            if let Some(next) = runs.map(|running| running.next) {
                chain = self.tasks.chain_from(next, notes);
            } else {
                self.running.remove(&task.address);
            }
            let mut inner = is_running.then_some(of_task);
            for address in chain.frames {
                let Some(method_table) = self.tasks.library().method_table(address) else { break };
                let (state, task) = (self.tasks.suspension(address), Some(task.address));
                let node = Node { address, method_table, kind: NodeKind::Frame, flags: None, state, awaits: false, task };
                let Some(frame) = self.add(node) else { return };
                self.totals.methods.bump();
                if let Some(inner) = inner {
                    self.edges.push((inner, frame));
                }
                inner = Some(frame);
                self.innermost.entry(node.task.unwrap_or(address)).or_insert(frame);
            }
            if is_running {
                self.totals.methods.bump();
                self.innermost.remove(&task.address);
                self.outermost.extend(inner.map(|outer| (task.address, outer)));
                if let Some(own) = self.nodes.get_mut(index) {
                    own.kind = NodeKind::Running;
                }
            } else if let Some(outer) = inner {
                self.edges.push((outer, of_task));
                let awaited = chain.leaf.and_then(|leaf| self.tasks.awaited(leaf));
                self.leaves.extend(self.innermost.get(&task.address).copied().zip(awaited));
            }
        }
    }

    /// Returns the node of a waiter, and adds one for a thread or callback. `None` for a task that is not in the graph, such as a completed one.
    fn waiter(&mut self, waiter: Waiter) -> Option<NodeIndex> {
        let (address, kind) = match waiter {
            Waiter::Node(at) => return self.entry(at),
            Waiter::Thread(at) => (at, NodeKind::Thread),
            Waiter::Callback(at) => (at, NodeKind::Callback),
        };
        let method_table = self.tasks.library().method_table(address)?;
        self.add(Node { address, method_table, kind, flags: None, state: None, awaits: false, task: None })
    }

    /// Adds edges from tasks to their continuations.
    fn continuations(&mut self) {
        let mut waiters = Vec::new();
        for index in 0..self.nodes.len() {
            let Some(node) = self.nodes.get(index).filter(|n| n.flags.is_some()).copied() else { continue };
            waiters.clear();
            self.tasks.waiters(node.address, &mut waiters);
            let ends = self.outermost.get(&node.address).and_then(|outer| usize::try_from(*outer).ok());
            self.edges_to(ends.unwrap_or(index), &waiters);
        }
    }

    fn edges_to(&mut self, from: usize, waiters: &[Waiter]) {
        let Ok(from) = NodeIndex::try_from(from) else { return };
        for waiter in waiters {
            if let Some(to) = self.waiter(*waiter).filter(|to| *to != from) {
                self.edges.push((from, to));
            }
        }
    }

    /// Adds edges from sources to pending nodes. Waiters that are not in the graph are ignored, because a pooled source keeps the waiter of its last
    /// use.
    fn sources(&mut self, found: &Found) {
        let (mut waiters, mut delegates) = (Vec::new(), Vec::new());
        for (address, method_table) in found.sources.iter().copied() {
            let plan = self.tasks.plan(method_table);
            for (weak, list) in [(false, &mut waiters), (true, &mut delegates)] {
                list.clear();
                if weak { self.tasks.delegates(address, &plan, list) } else { self.tasks.states(address, &plan, list) }
            }
            for (weak, list) in [(false, &waiters), (true, &delegates)] {
                for waiter in list {
                    let Waiter::Node(at) = waiter else { continue };
                    let Some(to) = self.entry(*at).filter(|_| *at != address) else { continue };
                    // A node that is not in the graph yet is a pooled box whose method is running.
                    let kind = if plan.is_node() { NodeKind::Method } else { NodeKind::Source };
                    let node = Node { address, method_table, kind, flags: None, state: None, awaits: false, task: None };
                    let Some(from) = self.add(node) else { return };
                    if weak {
                        self.weak.push((from, to));
                    } else {
                        self.edges.push((from, to));
                        self.sourced.insert((from, to));
                    }
                }
            }
        }
    }

    /// Removes edges from arrays of delegates that nothing refers to.
    fn drop_outgrown(&mut self, heap: &Heap, notes: &Collector) {
        let (nodes, tasks) = (&self.nodes, self.tasks);
        let array = |index: NodeIndex| {
            let node = usize::try_from(index).ok().and_then(|i| nodes.get(i))?;
            (node.kind == NodeKind::Source && tasks.plan(node.method_table).array_of_actions).then_some(node.address)
        };
        drop_outgrown(heap, &mut self.weak, array, notes);
    }

    /// Compares the awaiters of methods with the edges found so far, and adds missing edges.
    fn awaiters(&mut self, queued: &Set<Addr>, notes: &Collector) {
        let mut unread = (0u64, None);
        let mut into: Vec<(NodeIndex, NodeIndex)> = self.edges.iter().map(|(from, to)| (*to, *from)).collect();
        into.sort_unstable();
        let mut weak: Vec<(NodeIndex, NodeIndex)> = self.weak.iter().map(|(from, to)| (*to, *from)).collect();
        weak.sort_unstable();
        let leading = |list: &[(NodeIndex, NodeIndex)], to: NodeIndex| -> Vec<NodeIndex> {
            let from = list.partition_point(|(n, _)| *n < to);
            list.iter().skip(from).take_while(|(n, _)| *n == to).map(|(_, from)| *from).collect()
        };
        let mut stale = Set::default();
        for at in 0..self.nodes.len() {
            let (Some(node), Ok(index)) = (self.nodes.get(at).copied(), NodeIndex::try_from(at)) else { continue };
            let mut from = leading(&into, index);
            let (mut awaited, suspended) = match node.kind {
                NodeKind::Method => {
                    let Some(position) = self.tasks.position(node.address, &self.tasks.plan(node.method_table)) else {
                        unread.0.bump();
                        unread.1 = unread.1.or(Some(node.address));
                        continue;
                    };
                    let awaited: Vec<Addr> = position.awaiters.into_iter().flatten().collect();
                    if let Some(own) = self.nodes.get_mut(at) {
                        own.state = position.state;
                    }
                    let suspended = !awaited.is_empty();
                    (awaited, suspended)
                }
                // An inner method of the same task leads to this one. The task's list of continuations confirms this edge.
                NodeKind::Frame if self.innermost.get(&node.task.unwrap_or_default()) != Some(&index) => {
                    self.totals.suspended.bump();
                    self.totals.confirmed.bump();
                    continue;
                }
                NodeKind::Frame => match self.leaves.get(&index) {
                    Some(awaited) => (vec![*awaited], self.is_open(*awaited)),
                    // The awaiter is one of the variables that the continuation has captured.
                    None => (self.tasks.captured(node.address), !node.task.is_some_and(|task| queued.contains(&task))),
                },
                _ => continue,
            };
            let has_leaf = node.kind == NodeKind::Method || self.leaves.contains_key(&index);
            if let Some(own) = self.nodes.get_mut(at) {
                own.awaits = has_leaf && !awaited.is_empty();
            }
            let names = |from: &NodeIndex| {
                let node = usize::try_from(*from).ok().and_then(|i| self.nodes.get(i));
                node.is_some_and(|n| awaited.contains(&n.address) || n.task.is_some_and(|task| awaited.contains(&task)))
            };
            if from.is_empty() {
                // If several objects hold the method's delegate, only objects that the method awaits are used.
                let holders = leading(&weak, index);
                let awaited: Vec<NodeIndex> = holders.iter().copied().filter(names).collect();
                from = if awaited.is_empty() { holders } else { awaited };
                self.edges.extend(from.iter().map(|from| (*from, index)));
            }
            if !suspended {
                continue;
            }
            self.totals.suspended.bump();
            if from.iter().any(names) {
                self.totals.confirmed.bump();
                // A method waits for one object at a time.
                stale.extend(
                    from.iter().filter(|other| !names(other)).map(|other| (*other, index)).filter(|edge| self.sourced.contains(edge)),
                );
            } else if has_leaf && !from.is_empty() {
                self.totals.contradicted.bump();
            } else if !has_leaf {
                awaited.clear();
            }
            if from.is_empty()
                && let Some(from) = self.awaited(&awaited)
            {
                self.edges.push((from, index));
            }
        }
        self.edges.retain(|edge| !stale.contains(edge));
        if unread.0 > 0 {
            let what = format!("what {} waited for is unknown: no state machine can be read", plural(unread.0, "asynchronous method"));
            notes.add(Missing::Async, unread.1, what);
        }
    }

    /// Whether the object at `awaited` is not a completed task.
    fn is_open(&self, awaited: Addr) -> bool {
        let is_task = self.tasks.plan_of(awaited).is_some_and(|plan| plan.kinds.is(AsyncType::Task));
        !is_task || self.tasks.flags(awaited).is_none_or(|bits| bits & flags::COMPLETED == 0)
    }

    /// Returns the node of the first awaited object that is in the graph. Otherwise, adds a node for the first one that is not a task.
    fn awaited(&mut self, awaited: &[Addr]) -> Option<NodeIndex> {
        if let Some(known) = awaited.iter().find_map(|at| self.index.get(at)) {
            return Some(*known);
        }
        let other = awaited.iter().find_map(|at| {
            let mt = self.tasks.library().method_table(*at)?;
            (!self.tasks.kinds(mt).is(AsyncType::Task)).then_some((*at, mt))
        });
        let (address, method_table) = other?;
        self.add(Node { address, method_table, kind: NodeKind::Source, flags: None, state: None, awaits: false, task: None })
    }

    fn finish(mut self, tasks: Vec<Listed>, queued: Set<Addr>, owners: Vec<(Addr, Addr)>) -> Graph {
        self.edges.sort_unstable();
        self.edges.dedup();
        let mut incoming = vec![0u32; self.nodes.len()];
        for (_, to) in &self.edges {
            if let Some(n) = usize::try_from(*to).ok().and_then(|i| incoming.get_mut(i)) {
                n.bump();
            }
        }
        Graph { nodes: self.nodes, edges: self.edges, incoming, tasks, totals: self.totals, running: self.running, queued, owners }
    }
}

impl Node {
    /// Returns the status of a task; `None` if the node is not a task.
    pub(super) fn status(&self) -> Option<TaskStatus> {
        self.flags.map(status)
    }
}
