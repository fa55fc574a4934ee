//! Runners of continuations other than the thread pool: objects of types that derive from `SynchronizationContext` or `TaskScheduler`.
//!
//! Source: `docs/internals/async.md#contexts-and-schedulers`.

use std::cell::OnceCell;
use std::collections::VecDeque;

use crate::base::hash::{Map, Set};
use crate::base::{Addr, Collector};
use crate::bcl::tasks::{AsyncType, Tasks, flags};
use crate::clr::library::{FieldAt, noted};
use crate::clr::threads::Thread;
use crate::gc::GcDesc;

/// Maximum number of objects that are followed from a context to the continuations in its queue.
const MAX_OBJECTS: usize = 1 << 16;

/// An object that runs continuations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Runner {
    /// A `SynchronizationContext`.
    Context(Addr),
    /// A `TaskScheduler`.
    Scheduler(Addr),
}

impl Runner {
    /// The context or scheduler.
    pub(super) fn object(self) -> Addr {
        let (Runner::Context(at) | Runner::Scheduler(at)) = self;
        at
    }
}

/// An object that may be posted to a context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Posted {
    /// The delegate that continues a method.
    Delegate,
    /// The box of a method.
    Box,
}

/// The contexts and schedulers of a process, and their threads. Fields are bound, and threads are read, when they are first needed: most processes have
/// nothing that is queued to a context.
pub(super) struct Contexts<'t> {
    tasks: &'t Tasks,
    list: &'t [Thread],
    notes: &'t Collector,
    /// `m_taskScheduler` of a task.
    scheduler: OnceCell<Option<FieldAt>>,
    /// `m_synchronizationContext` of the scheduler that `TaskScheduler.FromCurrentSynchronizationContext` returns.
    of_scheduler: OnceCell<Option<FieldAt>>,
    /// `m_syncContext` of the continuation of an `await`.
    captured: OnceCell<Option<FieldAt>>,
    /// Indices of threads in the runtime's list, each with its current context or the scheduler of the task that it runs.
    threads: OnceCell<Vec<(usize, Runner)>>,
}

impl<'t> Contexts<'t> {
    /// `threads` is the runtime's list.
    pub(super) fn new(tasks: &'t Tasks, threads: &'t [Thread], notes: &'t Collector) -> Contexts<'t> {
        let (scheduler, of_scheduler, captured, found) = Default::default();
        Contexts { tasks, list: threads, notes, scheduler, of_scheduler, captured, threads: found }
    }

    fn field(&self, cell: &OnceCell<Option<FieldAt>>, kind: AsyncType, names: &'static str) -> Option<FieldAt> {
        let bind = || noted(self.tasks.library().types().field_at(self.tasks.table(kind)?, names), "what runs continuations", self.notes);
        *cell.get_or_init(bind)
    }

    /// The context or scheduler of each thread that has one.
    fn of_threads(&self) -> &[(usize, Runner)] {
        self.threads.get_or_init(|| {
            let library = self.tasks.library();
            let field = OnceCell::new();
            let context = |thread: &Thread| {
                let field = self.field(&field, AsyncType::Thread, "_synchronizationContext")?;
                library.reference(thread.exposed?, field).map(Runner::Context)
            };
            let task = self.tasks.table(AsyncType::Task);
            let running = |thread: &Thread| {
                let slot = library.thread_static_at(task?, "t_currentTask", thread.address);
                self.scheduler(library.reference_at(noted(slot, "the tasks that threads run", self.notes)??)?)
            };
            let of = |(index, thread)| [context(thread), running(thread)].into_iter().flatten().map(move |runner| (index, runner));
            self.list.iter().enumerate().flat_map(of).collect()
        })
    }

    /// The threads whose current context is `runner`, or that run one of its tasks: indices in the runtime's list.
    pub(super) fn threads(&self, runner: Runner) -> impl Iterator<Item = usize> + '_ {
        self.of_threads().iter().filter(move |(_, of)| *of == runner).map(|(index, _)| *index)
    }

    /// The current contexts of threads.
    pub(super) fn current(&self) -> impl Iterator<Item = Addr> + '_ {
        self.of_threads().iter().filter_map(|(_, runner)| if let Runner::Context(at) = runner { Some(*at) } else { None })
    }

    /// The runner of the task at `task`; `None` if that is the thread pool, or unknown.
    pub(super) fn scheduler(&self, task: Addr) -> Option<Runner> {
        let library = self.tasks.library();
        let scheduler = library.reference(task, self.field(&self.scheduler, AsyncType::Task, "m_taskScheduler")?)?;
        let kinds = self.tasks.kinds(library.method_table(scheduler)?);
        if kinds.is(AsyncType::PoolScheduler) || !kinds.is(AsyncType::Scheduler) {
            return None;
        }
        if kinds.is(AsyncType::ContextScheduler) {
            return library
                .reference(scheduler, self.field(&self.of_scheduler, AsyncType::ContextScheduler, "m_synchronizationContext")?)
                .map(Runner::Context);
        }
        Some(Runner::Scheduler(scheduler))
    }

    /// The runner in whose queue the task at `task` is: it has been given to a scheduler, which has not run it. `None` for tasks in other states and tasks of the thread
    /// pool.
    pub(super) fn queue_of(&self, task: Addr) -> Option<Runner> {
        let taken = flags::DELEGATE | flags::WAITS_FOR_CHILDREN | flags::COMPLETED;
        self.tasks.plan_of(task).filter(|plan| plan.kinds.is(AsyncType::Task))?;
        let waits = self.tasks.flags(task).is_some_and(|bits| bits & flags::STARTED != 0 && bits & taken == 0);
        waits.then(|| self.scheduler(task)).flatten()
    }

    /// The context to which the continuation object at `object` posts.
    pub(super) fn captured(&self, object: Addr) -> Option<Addr> {
        self.tasks.library().reference(object, self.field(&self.captured, AsyncType::ContextContinuation, "m_syncContext")?)
    }

    /// Returns those of the `wanted` objects that have been posted to the context at `context`: the context refers to an object with the delegate and with a
    /// `SendOrPostCallback`, or to one that has the delegate in a further object, such as an array of arguments. A box, to which many objects may refer, is
    /// in one object with a callback of the library. Objects that lead to a delegate in other ways are not followed: the methods themselves, the continuations
    /// of tasks, and other contexts.
    pub(super) fn posted(&self, context: Addr, wanted: impl Fn(Addr) -> Option<Posted>) -> Set<Addr> {
        let library = self.tasks.library();
        let mut layouts = Layouts { tasks: self.tasks, context, known: Map::default() };
        let (mut out, mut seen) = (Set::default(), Set::from_iter([context]));
        let mut ready = VecDeque::from([(context, None)]);
        while let Some((object, parent)) = ready.pop_front() {
            let mut found = Vec::new();
            layouts.references(object, |target| {
                if let Some(kind) = wanted(target) {
                    found.push((target, kind));
                } else if seen.insert(target) {
                    ready.push_back((target, Some(object)));
                }
                seen.len() < MAX_OBJECTS
            });
            let mut posts = |object: Addr, of_library: bool| {
                let mut any = false;
                layouts.references(object, |target| {
                    let is_callback = library.method_table(target).is_some_and(|mt| self.tasks.kinds(mt).is(AsyncType::PostCallback));
                    any |= is_callback && (!of_library || self.is_of_library(target));
                    !any
                });
                any
            };
            for (target, kind) in found {
                let is_posted = match kind {
                    Posted::Box => posts(object, true),
                    Posted::Delegate => posts(object, false) || parent.is_some_and(|parent| posts(parent, false)),
                };
                out.extend(is_posted.then_some(target));
            }
        }
        out
    }

    /// Whether the delegate at `delegate` has an object of the core library as its target.
    fn is_of_library(&self, delegate: Addr) -> bool {
        let library = self.tasks.library();
        let types = library.types();
        let target = self.tasks.plan_of(delegate).and_then(|plan| library.reference(delegate, plan.next?));
        let info = target.and_then(|target| types.names().method_tables().read(library.method_table(target)?).ok());
        target != Some(delegate) && info.is_some_and(|info| types.is_core(&info))
    }
}

/// The layout of a type.
struct Layout {
    references: GcDesc,
    /// The size of an object without its elements.
    size: u64,
    is_array: bool,
    /// Whether objects of the type are followed only if the search begins with them.
    ends: bool,
}

/// The layouts of the objects that are followed from a context.
struct Layouts<'t> {
    tasks: &'t Tasks,
    context: Addr,
    /// By method table; `None` for types without references.
    known: Map<Addr, Option<Layout>>,
}

impl Layouts<'_> {
    /// Passes the objects to which `object` refers to `visit`, until it returns false.
    fn references(&mut self, object: Addr, mut visit: impl FnMut(Addr) -> bool) {
        let library = self.tasks.library();
        let Some(mt) = library.method_table(object).filter(|_| self.tasks.afford(1)) else { return };
        let tasks = self.tasks;
        let layout = self.known.entry(mt).or_insert_with(|| Layout::of(tasks, mt));
        let Some(layout) = layout.as_ref().filter(|layout| !layout.ends || object == self.context) else { return };
        let elements = if layout.is_array { library.array(object) } else { None };
        let elements = elements.map_or(0, |shape| shape.length.saturating_mul(shape.element_bytes));
        let size = layout.size.saturating_add(elements);
        layout.references.references_while(library.types().memory(), object, size, |_, target| tasks.afford(1) && visit(target));
    }
}

impl Layout {
    fn of(tasks: &Tasks, mt: Addr) -> Option<Layout> {
        const ENDS: [AsyncType; 7] = [
            AsyncType::Box,
            AsyncType::PoolingBox,
            AsyncType::RuntimeContinuation,
            AsyncType::AwaitContinuation,
            AsyncType::Context,
            AsyncType::Scheduler,
            AsyncType::Thread,
        ];
        let kinds = tasks.kinds(mt);
        let types = tasks.library().types();
        let info = types.names().method_tables().read(mt).ok().filter(|info| info.contains_pointers)?;
        let size = info.base_size.into();
        let ends = ENDS.into_iter().any(|kind| kinds.is(kind));
        Some(Layout { references: GcDesc::read(types.memory(), mt, size), size, is_array: info.is_array, ends })
    }
}
