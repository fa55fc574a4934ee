//! Finds the threads that would have to run awaited work: a task or method is ready, in the queue of a `SynchronizationContext` or `TaskScheduler`, and only
//! the threads of this context or scheduler run it.
//!
//! A continuation is in the queue of a context if the context refers to it; the task that a scheduler has to run names the scheduler. The threads are those
//! whose current context it is, or that run one of its tasks. Whether other threads would run it as well is unknown if the thread pool runs it: a scheduler
//! may start further work there, so it gets no edges, and deadlocks through a context of pool threads are only possible.

use super::deadlocks::Edge;
use super::waits::{Blocked, Wait};
use crate::analysis::WaitEdgeKind;
use crate::analysis::threads::contexts::{Contexts, Runner};
use crate::analysis::threads::held::{Held, Method, held};
use crate::base::hash::{Map, Set};
use crate::base::{Addr, Collector};
use crate::bcl::tasks::{AsyncType, Tasks, flags};
use crate::clr::threads::Thread;
use crate::session::Heap;

/// Determines which threads would have to run work that is ready.
pub(super) struct Queued<'q> {
    contexts: Contexts<'q>,
    held: Map<Addr, Held>,
    /// Whether the thread pool started a thread, by its index in the runtime's list; threads of unknown state are left out.
    by_pool: Map<usize, bool>,
}

impl<'q> Queued<'q> {
    /// `needed`: the tasks and methods for which threads wait. `list` is the runtime's list of threads.
    pub(super) fn find(
        heap: &'q Heap,
        tasks: &'q Tasks,
        needed: impl Iterator<Item = Addr>,
        (list, stacks): (&'q [Thread], &[(usize, Blocked<'_>)]),
        notes: &'q Collector,
    ) -> Queued<'q> {
        let contexts = Contexts::new(tasks, list, notes);
        let ready: Set<Addr> = needed.collect();
        let mut ready: Vec<Addr> = ready.into_iter().collect();
        ready.sort_unstable();
        let methods = ready.into_iter().filter_map(|node| suspended(tasks, node));
        let held = held(heap, tasks, &contexts, methods, notes);
        let is_core = !heap.runtime().descriptor().is_native_aot() && !heap.runtime().descriptor().is_mono();
        let known = |thread: &Blocked<'_>| is_core && thread.thread.state.is_some();
        let by_pool = stacks.iter().filter(|(_, t)| known(t)).map(|(index, t)| (*index, t.thread.is_pool_worker())).collect();
        Queued { contexts, held, by_pool }
    }

    /// The edges from the thread of `wait`, which waits for the task at `task` and so for `node`, to the threads that would have to run `node`. They are
    /// alternatives with this `number` if there are several threads.
    pub(super) fn edges(&self, wait: &Wait, task: Addr, node: Addr, number: u32) -> Vec<Edge> {
        let queue = self.contexts.queue_of(node).or_else(|| self.held.get(&node)?.queue);
        let Some(queue) = queue else { return Vec::new() };
        let threads: Vec<usize> = self.contexts.threads(queue).collect();
        // Whether all threads are known not to be of the pool.
        let own = threads.iter().all(|thread| self.by_pool.get(thread) == Some(&false));
        if matches!(queue, Runner::Scheduler(_)) && !own {
            return Vec::new();
        }
        edges(wait, (task, queue.object()), &threads, own, number)
    }
}

/// The edges from a waiting thread to `threads`, which run the context or scheduler. `own`: whether the program has started all of them.
fn edges(wait: &Wait, (task, context): (Addr, Addr), threads: &[usize], own: bool, number: u32) -> Vec<Edge> {
    let Ok(from) = u32::try_from(wait.thread) else { return Vec::new() };
    let any = (threads.len() > 1).then_some(number);
    let edge = |to: &usize| {
        let to = u32::try_from(*to).ok()?;
        let (certain, context) = (wait.endless && own, Some(context));
        Some(Edge { from, to, object: task, certain, kind: WaitEdgeKind::Context, later: false, context, any })
    };
    threads.iter().filter_map(edge).collect()
}

/// The asynchronous method whose box is at `node`, if it is suspended and does not wait for a task that is not complete.
fn suspended(tasks: &Tasks, node: Addr) -> Option<Method> {
    let method_table = tasks.library().method_table(node)?;
    let plan = tasks.plan(method_table);
    let is_pending = |task: Addr| tasks.flags(task).is_none_or(|bits| bits & flags::COMPLETED == 0);
    if !plan.kinds.is(AsyncType::Box) || !is_pending(node) {
        return None;
    }
    let position = tasks.position(node, &plan)?;
    // The awaited object is a task, or else the source of a `ValueTask`, which may not have completed.
    let is_complete = |at: &Addr| tasks.plan_of(*at).is_some_and(|plan| plan.kinds.is(AsyncType::Task)) && !is_pending(*at);
    let ready = position.state.is_none_or(|state| state >= 0) && position.awaiters.iter().flatten().all(is_complete);
    ready.then_some(Method { own: node, method_table, awaits: !position.awaiters.is_empty(), by_root: false })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::{LockKind, WaitEvidence, WaitKind};

    fn wait(endless: bool) -> Wait {
        Wait {
            thread: 4,
            kind: WaitKind::Task,
            object: Some((Addr(0x1000), LockKind::Task)),
            others: Vec::new(),
            any: false,
            evidence: WaitEvidence::Exact,
            timeout: None,
            endless,
        }
    }

    #[test]
    fn edges_lead_to_all_threads_of_a_context() {
        let of = |endless, threads: &[usize], own| {
            let found = edges(&wait(endless), (Addr(0x1000), Addr(0x2000)), threads, own, 7);
            assert!(found.iter().all(|e| e.kind == WaitEdgeKind::Context && e.context == Some(Addr(0x2000)) && e.from == 4));
            found.into_iter().map(|e| (e.to, e.certain, e.any)).collect::<Vec<_>>()
        };
        assert_eq!(of(true, &[4], true), [(4, true, None)]);
        assert_eq!(of(true, &[4, 5], true), [(4, true, Some(7)), (5, true, Some(7))]);
        // A wait with a timeout, and threads of the pool.
        assert_eq!(of(false, &[4], true), [(4, false, None)]);
        assert_eq!(of(true, &[4], false), [(4, false, None)]);
        assert!(of(true, &[], true).is_empty());
    }
}
