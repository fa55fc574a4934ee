//! The roots of chains: the objects that the innermost methods wait for.

use super::graph::{Graph, Node, NodeIndex, NodeKind};
use super::owners::{Owners, owners};
use crate::analysis::threads::contexts::{Contexts, Runner};
use crate::analysis::threads::held::{Held, Holder, Method, held};
use crate::analysis::threads::stack_words::holders;
use crate::analysis::threads::task_names::Names;
use crate::analysis::{AsyncRoot, AsyncRootKind};
use crate::base::hash::{Map, Set};
use crate::base::{Addr, Collector, Name};
use crate::bcl::tasks::{AsyncType, Outside, Tasks, flags};
use crate::clr::library::{FieldAt, noted};
use crate::session::Heap;

/// The due time, in milliseconds, of a timer that is not set: never, or no longer because it has fired.
const NOT_SET: u32 = u32::MAX;

/// Classifies the roots of a graph.
pub(super) struct Roots<'g> {
    tasks: &'g Tasks,
    graph: &'g Graph,
    owners: Owners,
    /// Managed ids of threads, by an object on their stacks.
    pub(super) threads: Map<Addr, Vec<u32>>,
    /// Threads that are blocked in a wait for a task.
    blocked: Set<u32>,
    /// The field `_timer` of the task of `Task.Delay`, and `_dueTime` of the timer.
    delay: Option<(FieldAt, FieldAt)>,
    /// The field `_owner` of `PeriodicTimer+State`.
    periodic: Option<FieldAt>,
    /// By type: the field `_currentSocket` of a socket operation, or `_source` of a `ValueTask` adapter.
    fields: Map<Addr, Option<FieldAt>>,
    /// By method that nothing known resumes: what holds its continuation.
    held: Map<Addr, Held>,
    contexts: Contexts<'g>,
    /// Managed ids of the threads in the runtime's list.
    ids: Vec<Option<u32>>,
}

impl<'g> Roots<'g> {
    pub(super) fn new(heap: &'g Heap, tasks: &'g Tasks, graph: &'g Graph, notes: &'g Collector) -> Roots<'g> {
        let runtime = heap.runtime();
        let root = |i: usize| graph.incoming.get(i) == Some(&0);
        let sources: Set<Addr> = graph.nodes.iter().filter(|n| n.kind == NodeKind::Source).map(|n| n.address).collect();
        let waits = |n: &Node| n.kind == NodeKind::Task && tasks.kinds(n.method_table).is(AsyncType::SemaphoreWaiter);
        let entered = graph.nodes.iter().any(waits);
        let needed = |mt: Addr| if tasks.kinds(mt).is(AsyncType::Semaphore) { entered } else { !sources.is_empty() };
        let listed: Vec<(Addr, Addr)> = graph.owners.iter().copied().filter(|(_, mt)| needed(*mt)).collect();
        let owners = owners(tasks, &listed, |at| sources.contains(&at), notes);
        let on_stacks = graph.nodes.iter().enumerate().filter(|(i, n)| {
            n.kind == NodeKind::Thread
                || root(*i) && n.kind == NodeKind::Method && (!n.awaits || n.state.is_some_and(|s| s < 0))
                || root(*i) && n.kind == NodeKind::Task && n.flags.is_some_and(|f| f & flags::DELEGATE != 0)
        });
        let wanted = on_stacks.map(|(_, n)| n.address).collect();
        let list = runtime.threads_if_any(notes);
        let stacks = runtime.stacks_in_use(list, notes);
        let threads = holders(runtime.memory(), stacks.into_iter().filter_map(|(_, t, range)| Some((t.id?, range?))), &wanted);
        let forgotten = graph.nodes.iter().enumerate().filter(|(i, n)| {
            root(*i) && n.kind == NodeKind::Method && n.state.is_none_or(|s| s >= 0) && !graph.queued.contains(&n.address)
        });
        let forgotten = forgotten.map(|(_, n)| Method {
            own: n.address,
            method_table: n.method_table,
            awaits: n.awaits,
            by_root: !n.awaits && n.state.is_some() && !threads.contains_key(&n.address),
        });
        let contexts = Contexts::new(tasks, list, notes);
        let held = held(heap, tasks, &contexts, forgotten, notes);
        let events = graph.nodes.iter().filter(|n| n.kind == NodeKind::Thread);
        let blocked = events.filter_map(|n| threads.get(&n.address)).flatten().copied().collect();
        let types = tasks.library().types();
        let bind = |kind: AsyncType, field: &'static str| noted(types.field_at(tasks.table(kind)?, field), "task timers", notes);
        let timer = || bind(AsyncType::DelayPromise, "_timer").zip(bind(AsyncType::Timer, "_dueTime"));
        let periodic = || bind(AsyncType::PeriodicTimer, "_owner");
        let ids = list.iter().map(|thread| thread.id).collect();
        let (delay, periodic, fields) = (timer(), periodic(), Map::default());
        Roots { tasks, graph, owners, threads, blocked, delay, periodic, fields, held, contexts, ids }
    }

    /// Returns the root for the node at `index`. No edge leads to this node, unless it was chosen from a cycle, as `cycle` indicates.
    pub(super) fn classify(&mut self, index: NodeIndex, cycle: bool, names: &mut Names<'_>) -> Option<AsyncRoot> {
        let node = *self.graph.node(index)?;
        let (kind, object, label) = match node.kind {
            _ if cycle => (AsyncRootKind::Cycle, node.address, "methods and tasks that wait for each other".into()),
            NodeKind::Method => self.method(index, &node, names),
            NodeKind::Task => self.task(&node, names),
            NodeKind::Frame => self.suspended(&node),
            NodeKind::Running => self.running(&node),
            _ => self.source(node.address, node.method_table, names),
        };
        Some(AsyncRoot { kind, object: Some(object), node: Some(node.address), type_name: names.type_of(object), label })
    }

    /// Managed ids of the threads that wait for the node at `index`, directly or not. They have it on their stacks, but do not run it.
    fn waiting(&self, index: NodeIndex) -> Set<u32> {
        let (mut seen, mut ready, mut out) = (Set::from_iter([index]), vec![index], Set::default());
        while let Some(at) = ready.pop() {
            if let Some(event) = self.graph.node(at).filter(|n| n.kind == NodeKind::Thread) {
                out.extend(self.threads.get(&event.address).into_iter().flatten().copied());
            }
            ready.extend(self.graph.waiters(at).filter(|waiter| seen.insert(*waiter)));
        }
        out
    }

    fn method(&self, index: NodeIndex, node: &Node, names: &mut Names<'_>) -> (AsyncRootKind, Addr, Name) {
        let held = self.held.get(&node.address).copied().unwrap_or_default();
        if let Some(queue) = held.queue {
            return self.queued(queue, names);
        }
        let on_stacks = self.threads.get(&node.address);
        let may_run = node.state.is_some_and(|state| state < 0);
        let waiting = on_stacks.filter(|_| !may_run).map(|_| self.waiting(index)).unwrap_or_default();
        let threads = on_stacks.filter(|ids| ids.iter().any(|id| !waiting.contains(id)));
        let blocked = threads.is_some_and(|ids| ids.iter().any(|id| !waiting.contains(id) && self.blocked.contains(id)));
        if let Some(by) = by_holder(node, &held, threads.is_some() && !blocked) {
            let label = match by {
                ByHolder::Given => {
                    "awaits a task that has completed; its continuation was given to a context or scheduler that has not run it".into()
                }
                ByHolder::Holder(Holder::Root(kind)) => format!("its continuation is held by a root ({kind})").into(),
                ByHolder::Holder(Holder::Object(mt)) => {
                    let by = names.type_name(mt).map_or_else(|| "an object".into(), |name| name.display());
                    format!("its continuation is held by {by}").into()
                }
            };
            return (AsyncRootKind::Unknown, node.address, label);
        }
        let (kind, label) = match (self.graph.queued.contains(&node.address), node.state) {
            (true, _) => (AsyncRootKind::Queue, "ready, in a thread pool queue"),
            (_, Some(0..)) if blocked => (AsyncRootKind::Unknown, "what it awaits is unknown"),
            _ if blocked => (AsyncRootKind::Thread, "runs on a thread that is blocked in Wait or Result"),
            _ if threads.is_some() => (AsyncRootKind::Running, "runs on a thread"),
            _ if node.awaits => (AsyncRootKind::Unknown, "awaits a task that has completed"),
            (_, Some(0..)) => (AsyncRootKind::Abandoned, "nothing can complete it"),
            (_, Some(_)) => (AsyncRootKind::Unknown, "runs, but is on no thread's stack"),
            (_, None) => (AsyncRootKind::Unknown, "its state is unknown"),
        };
        (kind, node.address, label.into())
    }

    /// A method or task in the queue of a context or scheduler.
    fn queued(&self, queue: Runner, names: &mut Names<'_>) -> (AsyncRootKind, Addr, Name) {
        let name = names.type_of(queue.object()).map_or_else(|| "an object".into(), |name| name.display());
        let ids: Vec<String> = self.contexts.threads(queue).filter_map(|i| Some(self.ids.get(i).copied()??.to_string())).collect();
        let threads = match ids.as_slice() {
            [] => String::new(),
            [one] => format!("thread {one}"),
            all => format!("threads {}", all.join(", ")),
        };
        let label = match queue {
            Runner::Context(_) if threads.is_empty() => format!("ready, posted to {name}"),
            Runner::Context(_) => format!("ready, posted to {name}, the context of {threads}"),
            Runner::Scheduler(_) if threads.is_empty() => format!("ready, queued to the scheduler {name}"),
            Runner::Scheduler(_) => format!("ready, queued to the scheduler {name} of {threads}"),
        };
        (AsyncRootKind::Context, queue.object(), label.into())
    }

    /// A suspended method of runtime async that no edge leads to.
    fn suspended(&self, node: &Node) -> (AsyncRootKind, Addr, Name) {
        let task = node.task.unwrap_or(node.address);
        let (kind, label) = if self.graph.queued.contains(&task) {
            (AsyncRootKind::Queue, "ready, in a thread pool queue")
        } else if node.awaits {
            (AsyncRootKind::Unknown, "awaits a task that has completed")
        } else {
            (AsyncRootKind::Unknown, "what it awaits is unknown")
        };
        (kind, task, label.into())
    }

    /// A method of runtime async that a thread runs.
    fn running(&self, node: &Node) -> (AsyncRootKind, Addr, Name) {
        let thread = self.graph.running.get(&node.address).and_then(|running| running.thread);
        if thread.is_some_and(|id| self.blocked.contains(&id)) {
            return (AsyncRootKind::Thread, node.address, "runs on a thread that is blocked in Wait or Result".into());
        }
        (AsyncRootKind::Running, node.address, "runs on a thread".into())
    }

    fn task(&mut self, node: &Node, names: &mut Names<'_>) -> (AsyncRootKind, Addr, Name) {
        let library = self.tasks.library();
        let kinds = self.tasks.kinds(node.method_table);
        let bits = node.flags.unwrap_or(0);
        let own = |kind, label: &str| (kind, node.address, Name::from(label));
        if kinds.is(AsyncType::DelayPromise) {
            if self.graph.queued.contains(&node.address) {
                return own(AsyncRootKind::Queue, "Task.Delay that has expired, in a thread pool queue");
            }
            return own(AsyncRootKind::Timer, &self.delay_of(node.address).label());
        }
        if kinds.is(AsyncType::SemaphoreWaiter) {
            let Some(owner) = self.owners.by_waiter.get(&node.address).copied() else {
                return own(AsyncRootKind::Semaphore, "an unknown semaphore");
            };
            let count = self.owners.semaphore.and_then(|s| library.i32(owner, s.count));
            let count = count.map_or_else(String::new, |n| format!(" with count {n}"));
            return (AsyncRootKind::Semaphore, owner, format!("SemaphoreSlim{count}; .NET does not record who took it").into());
        }
        if kinds.is(AsyncType::ValueTaskSource) || kinds.is(AsyncType::ValueTaskSourceOf) {
            let source = self.field(node.method_table, "_source").and_then(|f| library.reference(node.address, f));
            if let Some((source, mt)) = source.and_then(|s| Some((s, library.method_table(s)?))) {
                return self.source(source, mt, names);
            }
        }
        if self.graph.queued.contains(&node.address) {
            return own(AsyncRootKind::Queue, "ready, in a thread pool queue");
        }
        if bits & flags::WAITS_FOR_CHILDREN != 0 {
            return own(AsyncRootKind::Unknown, "its delegate has returned; it waits for its child tasks");
        }
        if bits & flags::DELEGATE != 0 {
            return match self.threads.get(&node.address) {
                Some(ids) if ids.iter().any(|id| self.blocked.contains(id)) => {
                    own(AsyncRootKind::Thread, "runs on a thread that is blocked in Wait or Result")
                }
                Some(_) => own(AsyncRootKind::Running, "runs on a thread"),
                None => own(AsyncRootKind::Unknown, "runs, but is on no thread's stack"),
            };
        }
        if let Some(queue) = self.contexts.queue_of(node.address) {
            return self.queued(queue, names);
        }
        if bits & flags::STARTED != 0 {
            return own(AsyncRootKind::Unknown, "scheduled, but not in a thread pool queue");
        }
        let name = names.type_name(node.method_table).map_or_else(|| "a task".into(), |name| name.display());
        if bits & flags::PROMISE != 0 || self.tasks.action(node.address).is_none() {
            return (AsyncRootKind::Promise, node.address, name);
        }
        own(AsyncRootKind::Unknown, if bits & flags::CONTINUATION != 0 { "a continuation of an unknown task" } else { "not started" })
    }

    /// Reads the timer of the task of `Task.Delay` at `task`.
    fn delay_of(&self, task: Addr) -> Delay {
        let library = self.tasks.library();
        let Some((timer, due)) = self.delay else { return Delay::Unknown };
        if library.word(task, timer) == Some(0) {
            return Delay::Infinite;
        }
        let due_time = || {
            let timer = library.reference(task, timer)?;
            // A `TimeProvider` supplies timers of other types.
            library.method_table(timer).filter(|mt| self.tasks.kinds(*mt).is(AsyncType::Timer))?;
            library.u32(timer, due)
        };
        due_time().map_or(Delay::Unknown, Delay::of)
    }

    fn source(&mut self, object: Addr, mt: Addr, names: &mut Names<'_>) -> (AsyncRootKind, Addr, Name) {
        let library = self.tasks.library();
        let kinds = self.tasks.kinds(mt);
        let name = names.type_name(mt).map_or_else(|| "an object".into(), |name| name.display());
        if kinds.is(AsyncType::PeriodicTimer) {
            let timer = self.periodic.and_then(|f| library.reference(object, f));
            return (AsyncRootKind::Timer, timer.unwrap_or(object), "PeriodicTimer".into());
        }
        if self.tasks.plan(mt).outside == Some(Outside::SocketOperation) {
            let socket = self.field(mt, "_currentSocket").and_then(|f| library.reference(object, f));
            return (AsyncRootKind::Socket, socket.unwrap_or(object), "an operation of a socket".into());
        }
        if let Some(channel) = self.owners.by_waiter.get(&object).copied() {
            let of = names.type_of(channel).map_or_else(|| "a channel".into(), |name| name.display());
            return (AsyncRootKind::Channel, channel, of);
        }
        (AsyncRootKind::Source, object, name)
    }

    fn field(&mut self, mt: Addr, name: &'static str) -> Option<FieldAt> {
        let types = self.tasks.library().types();
        *self.fields.entry(mt).or_insert_with(|| types.field_at(mt, name).ok())
    }
}

/// Returns what is known of a suspended method from the holder of its continuation. `runs`: whether a thread may be about to run the method.
fn by_holder(node: &Node, held: &Held, runs: bool) -> Option<ByHolder> {
    match (node.state, node.awaits) {
        (Some(0..), true) => held.given.then_some(ByHolder::Given),
        (Some(0..), false) if !runs => held.holder.map(ByHolder::Holder),
        _ => None,
    }
}

/// The reason why a suspended method that nothing known resumes is not abandoned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ByHolder {
    /// A context or scheduler has the continuation.
    Given,
    Holder(Holder),
}

/// The state of the timer of `Task.Delay`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Delay {
    /// The task has no timer: the delay is infinite.
    Infinite,
    /// The timer has fired, since it is not set anymore while the task is pending.
    Expired,
    /// The timer is set, for this many milliseconds in all.
    Of(u32),
    /// The timer is not in the dump, or is one of a `TimeProvider`.
    Unknown,
}

impl Delay {
    /// The delay whose timer has this due time.
    fn of(due: u32) -> Delay {
        if due == NOT_SET { Delay::Expired } else { Delay::Of(due) }
    }

    fn label(self) -> String {
        match self {
            Delay::Infinite => "Task.Delay that never ends".into(),
            Delay::Expired => "Task.Delay that has expired".into(),
            Delay::Of(ms) => format!("Task.Delay of {}", duration(ms)),
            Delay::Unknown => "Task.Delay".into(),
        }
    }
}

/// A number of milliseconds in words.
fn duration(ms: u32) -> String {
    if ms.is_multiple_of(1000) { format!("{} s", ms / 1000) } else { format!("{ms} ms") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_suspended_method_is_described_by_the_holder_of_its_continuation() {
        let node = |state, awaits| Node {
            address: Addr(0x1000),
            method_table: Addr(0x10),
            kind: NodeKind::Method,
            flags: Some(0),
            state,
            awaits,
            task: None,
        };
        let holder = Some(Holder::Object(Addr(0x20)));
        let held = |given| Held { holder, given, ..Held::default() };
        let of = |node: Node, given, runs| by_holder(&node, &held(given), runs);
        assert_eq!(of(node(Some(0), true), true, false), Some(ByHolder::Given));
        // The object may hold the continuation since an earlier `await`.
        assert_eq!(of(node(Some(0), true), false, false), None);
        assert_eq!(of(node(Some(1), false), false, false), holder.map(ByHolder::Holder));
        assert_eq!(of(node(Some(1), false), false, true), None);
        assert_eq!(of(node(Some(-1), false), true, false), None);
        assert_eq!(of(node(None, false), true, false), None);
        assert_eq!(by_holder(&node(Some(0), false), &Held::default(), false), None);
    }
}
