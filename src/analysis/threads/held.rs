//! Holders of the continuations of methods that nothing known resumes.
//!
//! A method gives a delegate to an object with a custom awaiter. Queues of the program may hold the delegate in any way: as an element of
//! a structure, or in a field of type `object`. A method that has been resumed is in the queue of a context or scheduler until that runs it.

use std::collections::BTreeSet;

use super::contexts::{Contexts, Posted, Runner};
use super::referrers::{Ignored, MAX_REFERRERS, referrers};
use crate::base::hash::{Map, Set};
use crate::base::{Addr, Collector, Count, len64};
use crate::bcl::tasks::{AsyncType, MachineAt, Tasks};
use crate::heapgraph::Roots;
use crate::model::RootKind;
use crate::session::Heap;
use crate::session::roots::RootOptions;

/// The holder of the continuation of a method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Holder {
    /// An object with this method table.
    Object(Addr),
    /// A root.
    Root(RootKind),
}

/// The continuation of a method: its holder, and the queue that it is in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Held {
    /// The holder. Objects of the library that only connect a task with the continuation are ignored if there are others.
    pub(super) holder: Option<Holder>,
    /// The context or scheduler that has the continuation in its queue.
    pub(super) queue: Option<Runner>,
    /// Whether an `await` of the method gave the continuation to a context or scheduler, and another object holds it.
    pub(super) given: bool,
}

/// A suspended method.
#[derive(Clone, Copy, Debug)]
pub(super) struct Method {
    /// Its box.
    pub(super) own: Addr,
    pub(super) method_table: Addr,
    /// Whether it waits for tasks, all of which are complete. Otherwise it waits for nothing that is known, as after `Task.Yield`.
    pub(super) awaits: bool,
    /// Whether it is wanted which root holds the continuation if no object does.
    pub(super) by_root: bool,
}

/// Finds what holds the continuations of `methods`. A method whose continuation was never given away is not in the result. The heap is walked only if there
/// are continuations.
pub(super) fn held(
    heap: &Heap,
    tasks: &Tasks,
    contexts: &Contexts<'_>,
    methods: impl Iterator<Item = Method>,
    notes: &Collector,
) -> Map<Addr, Held> {
    let library = tasks.library();
    let mut continuations: Map<Addr, Method> = Map::default();
    let mut wanted: Map<Addr, Ignored> = Map::default();
    let mut posted: Map<Addr, Posted> = Map::default();
    for method in methods {
        let is_task = tasks.kinds(method.method_table).is(AsyncType::Box);
        // `Task.Yield` posts the box.
        posted.extend((is_task && !method.awaits).then_some((method.own, Posted::Box)));
        // The box has its own delegate where other tasks have their work.
        let Some(continuation) = tasks.action(method.own) else { continue };
        let machine = match tasks.plan(method.method_table).machine {
            Some(MachineAt::Behind(field)) => library.reference(method.own, field),
            _ => None,
        };
        // The method refers to its own continuation, and a delegate may refer to itself.
        wanted.insert(continuation, [Some(method.own), machine]);
        // A pooled box, which is not a task, has its delegate in another field.
        posted.extend(is_task.then_some((continuation, Posted::Delegate)));
        continuations.insert(continuation, method);
    }
    let found = referrers(heap, &wanted, notes);
    let mut out: Map<Addr, Held> = Map::default();
    let mut queues = Queues { contexts, posted: &posted, known: Map::default() };
    for (continuation, method) in &continuations {
        let Some(by) = found.get(continuation) else { continue };
        let of = of_referrers(tasks, &mut queues, (*continuation, method.awaits), by);
        let is_task = posted.contains_key(continuation);
        out.insert(method.own, if is_task { of } else { Held { holder: of.holder, ..Held::default() } });
    }
    for own in posted.iter().filter(|(_, kind)| **kind == Posted::Box).map(|(own, _)| *own) {
        let queue = queues.of(own, contexts.current().collect(), BTreeSet::new());
        if queue.is_some() {
            let held = out.entry(own).or_default();
            held.queue = held.queue.or(queue);
        }
    }
    if continuations.iter().any(|(at, method)| method.by_root && !found.contains_key(at)) {
        let roots = notes.take(Roots::collect(heap, &heap.namer(), &RootOptions::default()));
        for root in roots.roots.iter().filter(|root| !found.contains_key(&root.object)) {
            if let Some(method) = continuations.get(&root.object).filter(|method| method.by_root) {
                out.insert(method.own, Held { holder: Some(Holder::Root(root.kind)), ..Held::default() });
            }
        }
    }
    out
}

/// Determines the holder of a continuation, and the queue that it is in, from its referrers `by`.
/// `awaits` is that of the [`Method`].
fn of_referrers(tasks: &Tasks, queues: &mut Queues<'_>, (continuation, awaits): (Addr, bool), by: &[(Addr, Addr)]) -> Held {
    let (mut scheduled, mut captured) = (BTreeSet::new(), BTreeSet::new());
    let (mut awaited, mut other, mut others) = (false, None, 0u64);
    for (object, mt) in by {
        let kinds = tasks.kinds(*mt);
        if kinds.is(AsyncType::AwaitContinuation) {
            awaited |= kinds.is(AsyncType::ContextContinuation) || kinds.is(AsyncType::SchedulerContinuation);
            captured.extend(queues.contexts.captured(*object).filter(|_| kinds.is(AsyncType::ContextContinuation)));
            continue;
        }
        other = other.or(Some(*mt));
        others.bump();
        if kinds.is(AsyncType::Task) && !kinds.is(AsyncType::Box) {
            scheduled.extend(queues.contexts.queue_of(*object));
        }
    }
    // A method that awaits no task may wait for what another object represents: a queue may still have the delegate of an earlier `await`.
    let one = if awaits { 1..=len64(by.len()) } else { 1..=1 };
    let queue = if by.len() >= MAX_REFERRERS || !one.contains(&others) {
        None
    } else {
        let contexts = match (scheduled.is_empty(), captured.is_empty()) {
            (false, _) => BTreeSet::new(),
            // The objects with the contexts that the method has captured have been collected.
            (true, true) => queues.contexts.current().collect(),
            (true, false) => captured,
        };
        queues.of(continuation, contexts, scheduled)
    };
    Held { holder: other.or_else(|| by.first().map(|(_, mt)| *mt)).map(Holder::Object), queue, given: awaited && other.is_some() }
}

/// Finds the contexts that have continuations in their queues.
struct Queues<'q> {
    contexts: &'q Contexts<'q>,
    posted: &'q Map<Addr, Posted>,
    /// The continuations in the queue of each context.
    known: Map<Addr, Set<Addr>>,
}

impl Queues<'_> {
    /// Returns what is to run the continuation: one of `known`, or one of `contexts` that has it in its queue. `None` if it is in no queue, or in several.
    fn of(&mut self, continuation: Addr, contexts: BTreeSet<Addr>, mut known: BTreeSet<Runner>) -> Option<Runner> {
        for context in contexts {
            let (all, posted) = (self.contexts, self.posted);
            let queued = self.known.entry(context).or_insert_with(|| all.posted(context, |at| posted.get(&at).copied()));
            known.extend(queued.contains(&continuation).then_some(Runner::Context(context)));
        }
        known.first().copied().filter(|_| known.len() == 1)
    }
}
