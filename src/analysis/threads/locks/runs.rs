//! Finds the threads that run awaited work: a task on which another thread waits, or a task or async method that this task awaits. What an async
//! method awaits is in its state machine. Other tasks, such as that of `Task.WhenAll`, are continuations of the tasks that they await.
//!
//! A thread runs an async method if its stack holds the method's box and has a frame of the state machine's `MoveNext`. It runs the delegate of a
//! task if the task is flagged as invoked, and the stack holds the task and a library frame that invokes delegates. With runtime async, the runtime
//! keeps a record in the thread while it resumes the methods of a task.

use super::deadlocks::{Edge, MAX_EDGES};
use super::needs::{Alternative, Antecedents, Needs, Step};
use super::queued::Queued;
use super::waits::{Blocked, BlockedFrame, Wait};
use crate::analysis::threads::stack_words::holders;
use crate::analysis::{WaitEdgeKind, WaitKind};
use crate::base::hash::{Map, Set};
use crate::base::{Addr, Collector, NoteKind, len64};
use crate::bcl::Library;
use crate::bcl::tasks::{AsyncType, Tasks, Waiter, flags};
use crate::clr::library::FieldAt;
use crate::clr::threads::Thread;
use crate::session::{Error, Heap, Namer};

/// Returns an edge from each waiting thread to the thread that runs the awaited task or method. If several threads seem to run it, it gets no edge. If
/// the thread waits for one of several tasks, it has an edge for each, unless one of them ends without a blocked thread. If no thread runs a method that is ready, the
/// edges lead to the threads that would have to run it.
///
/// # Errors
/// [`Error::Contract`] if the runtime does not describe types and fields.
pub(super) fn runs(
    heap: &Heap,
    namer: &Namer,
    (threads, stacks): (&[Thread], &[(usize, Blocked<'_>)]),
    (waits, continued): (&[Wait], &[Addr]),
    notes: &Collector,
) -> Result<Vec<Edge>, Error> {
    let waiting: Set<usize> = waits.iter().map(|w| w.thread).collect();
    let for_tasks: Vec<(&Wait, Addr)> = waits.iter().filter(|w| w.kind == WaitKind::Task).filter_map(|w| Some((w, w.object?.0))).collect();
    if for_tasks.is_empty() {
        return Ok(Vec::new());
    }
    let tasks = Tasks::bind(Library::bind(heap.runtime(), namer, notes)?, notes);
    let mut steps = Steps::new(&tasks, continued, notes);
    let mut needs = |(w, task): (&'_ Wait, Addr)| {
        let first: Vec<Addr> = [task].into_iter().chain(w.others.iter().copied()).collect();
        Needs::of(&first, w.any, |node| steps.of(node))
    };
    let awaited: Vec<(&Wait, Addr, Needs)> = for_tasks.into_iter().map(|(w, task)| (w, task, needs((w, task)))).collect();
    let alternatives = awaited.iter().any(|(_, _, needs)| !needs.any.is_empty());
    let wanted: Set<Addr> = awaited.iter().flat_map(|(_, _, needs)| needs.nodes()).collect();
    let ranges =
        stacks.iter().filter(|(i, _)| alternatives || waiting.contains(i)).filter_map(|(i, t)| Some((u32::try_from(*i).ok()?, t.stack?)));
    let on_stacks = holders(heap.memory(), ranges, &wanted);
    let frames: Map<u32, &[BlockedFrame]> =
        stacks.iter().filter_map(|(i, t)| Some((u32::try_from(*i).ok()?, t.frames.as_slice()))).collect();
    let by_address: Map<Addr, u32> = stacks.iter().filter_map(|(i, t)| Some((t.thread.address, u32::try_from(*i).ok()?))).collect();
    let mut resumed: Map<Addr, Vec<u32>> = Map::default();
    for (task, thread) in tasks.resumed(stacks.iter().map(|(_, t)| t.thread), notes) {
        let open = tasks.flags(task).is_some_and(|f| f & flags::COMPLETED == 0);
        resumed.entry(task).or_default().extend(by_address.get(&thread).filter(|_| open));
    }
    let queued = Queued::find(heap, &tasks, awaited.iter().flat_map(|(_, _, needs)| &needs.all).copied(), (threads, stacks), notes);
    let mut out = Vec::new();
    let is_blocked = |thread: u32| usize::try_from(thread).is_ok_and(|thread| waiting.contains(&thread));
    // The thread that runs the task or method at `node`, other than the thread that waits for it. With `blocked`, only threads that wait are considered.
    let runner = |node: Addr, from: u32, blocked: bool| {
        if !on_stacks.contains_key(&node) && !resumed.contains_key(&node) {
            return None;
        }
        let frame = Frame::of(&tasks, namer, node);
        let has = |frame: &Frame, thread: u32| frames.get(&thread).is_some_and(|frames| frames.iter().any(|f| frame.is(f)));
        let on = on_stacks.get(&node).map_or(&[][..], Vec::as_slice).iter().copied();
        let by_frame =
            on.filter(|thread| !blocked || is_blocked(*thread)).filter(|thread| frame.as_ref().is_some_and(|frame| has(frame, *thread)));
        let by_record = resumed.get(&node).into_iter().flatten().copied();
        let mut running = by_record.chain(by_frame).filter(|thread| *thread != from);
        running.next().filter(|_| running.next().is_none())
    };
    for (wait, task, needs) in awaited {
        if out.len() >= MAX_EDGES {
            let what = format!("threads wait for tasks that other threads run more than {MAX_EDGES} times: some deadlocks may be missing");
            notes.add(NoteKind::LimitHit, None, what);
            break;
        }
        let Ok(from) = u32::try_from(wait.thread) else { continue };
        let certain = wait.endless;
        let edge = |to, certain, any| Edge { from, to, object: task, certain, kind: WaitEdgeKind::Runs, later: false, context: None, any };
        out.extend(needs.all.iter().filter_map(|node| runner(*node, from, true)).map(|to| edge(to, certain, None)));
        // The numbers of alternatives continue after those of the groups.
        let last = u32::try_from(needs.any.len()).unwrap_or(u32::MAX);
        out.extend((last..u32::MAX).zip(&needs.all).flat_map(|(number, node)| queued.edges(wait, task, *node, number)));
        for (number, group) in (0..).zip(&needs.any) {
            let of = |one: &Alternative| -> Vec<u32> { one.nodes.iter().filter_map(|node| runner(*node, from, false)).collect() };
            let runners: Vec<Vec<u32>> = group.iter().map(of).collect();
            // If no thread is known to run an alternative, a timer may end it, or what ends it is unknown.
            if group.iter().zip(&runners).any(|(one, threads)| one.ends && threads.is_empty()) {
                continue;
            }
            let certain = certain && runners.iter().all(|threads| !threads.is_empty());
            out.extend(runners.concat().into_iter().map(|to| edge(to, certain, Some(number))));
        }
    }
    tasks.note(notes);
    Ok(out)
}

/// The frame of a thread that runs a task.
enum Frame {
    /// `MoveNext` of the state machine with this canonical method table: generic instantiations may share the code.
    Method(Addr),
    Delegate,
}

impl Frame {
    /// Returns the frame to look for on the stack of the thread that runs the task at `node`; `None` if the task is not running.
    fn of(tasks: &Tasks, namer: &Namer, node: Addr) -> Option<Frame> {
        let plan = tasks.plan_of(node)?;
        let state = tasks.flags(node);
        if state.is_some_and(|f| f & flags::COMPLETED != 0) {
            return None;
        }
        if let Some(machine) = tasks.machine_type(node, &plan) {
            let suspended = tasks.position(node, &plan).and_then(|p| p.state).is_some_and(|state| state >= 0);
            let canonical = namer.names()?.method_tables().canonical(machine).ok();
            return canonical.filter(|_| !suspended).map(Frame::Method);
        }
        tasks.action(node).filter(|_| state.is_some_and(|f| f & flags::DELEGATE != 0)).map(|_| Frame::Delegate)
    }

    fn is(&self, frame: &BlockedFrame) -> bool {
        let name = frame.method.name.as_str();
        match self {
            Frame::Method(machine) => frame.method.declaring_type == *machine && name.ends_with(".MoveNext()"),
            Frame::Delegate => {
                let by = ["System.Threading.Tasks.Task.InnerInvoke", "System.Threading.Tasks.Task.Execute"];
                by.iter().any(|prefix| name.starts_with(prefix))
                    || name.starts_with("System.Threading.Tasks.Task<") && name.contains(".InnerInvoke")
            }
        }
    }
}

/// Determines what tasks and methods await.
struct Steps<'t> {
    tasks: &'t Tasks,
    /// The field `_timer` of the tasks of `Task.Delay` and of `Task.WaitAsync`, by method table.
    timers: Map<Addr, Option<FieldAt>>,
    antecedents: Antecedents,
    notes: &'t Collector,
}

impl<'t> Steps<'t> {
    /// `continued` are the tasks that have a continuation.
    fn new(tasks: &'t Tasks, continued: &[Addr], notes: &'t Collector) -> Steps<'t> {
        let mut antecedents = Vec::new();
        let mut waiters = Vec::new();
        for task in continued.iter().filter(|task| tasks.flags(**task).is_some_and(|f| f & flags::COMPLETED == 0)) {
            if !tasks.afford(1) {
                break;
            }
            tasks.waiters(*task, &mut waiters);
            antecedents.extend(waiters.drain(..).filter_map(|w| if let Waiter::Node(node) = w { Some((node, *task)) } else { None }));
        }
        Steps { tasks, timers: Map::default(), antecedents: Antecedents::new(antecedents), notes }
    }

    fn of(&mut self, node: Addr) -> Option<Step> {
        let tasks = self.tasks;
        let plan = tasks.plan_of(node).filter(|plan| plan.is_node() && tasks.afford(1))?;
        let is = |kind| plan.kinds.is(kind);
        let completed = is(AsyncType::Task) && tasks.flags(node).is_some_and(|f| f & flags::COMPLETED != 0);
        if completed || (is(AsyncType::DelayPromise) || is(AsyncType::CancellationPromise)) && self.is_timed(node) {
            return Some(Step { ends: true, ..Step::default() });
        }
        let mut awaits = tasks.awaits(node, &plan, self.notes);
        awaits.extend(self.antecedents.of(node));
        let canceled = is(AsyncType::CancellationPromise);
        // The token is an alternative that cannot be followed.
        awaits.extend(canceled.then_some(Addr::NULL));
        tasks.afford(len64(awaits.len())).then_some(())?;
        Some(Step { awaits, any: canceled || is(AsyncType::WhenAny) || is(AsyncType::WhenAnyOfTwo), ends: false })
    }

    /// Whether the task at `node` has a timer. Those of `Task.Delay` and `Task.WaitAsync` without a timeout have none.
    fn is_timed(&mut self, node: Addr) -> bool {
        let library = self.tasks.library();
        let Some(mt) = library.method_table(node) else { return false };
        let field = *self.timers.entry(mt).or_insert_with(|| library.types().field_at(mt, "_timer").ok());
        field.is_some_and(|field| library.reference(node, field).is_some())
    }
}
