//! Tasks, async methods and their continuations, read from the fields of objects on the heap.
//!
//! Source: `docs/internals/async.md`. Fields are looked up by name once per type, which results in a [`Plan`]. Objects are read by the
//! offsets in the plan.

mod continuations;
mod plan;
mod queues;

use std::sync::{Arc, Mutex, PoisonError};

pub(crate) use continuations::Running;
pub(crate) use plan::{Machine, MachineAt, Outside, Plan};

use super::library::Library;
use crate::base::hash::Map;
use crate::base::missed::Kept;
use crate::base::{Addr, Budget, Collector, Missing};
use crate::clr::library::{Classifier, FieldAt, Kinds, NoSuchField, fields_of, library_types, noted};
use crate::model::TaskStatus;
use crate::session::continuations::ContinuationFields;

library_types! {
    /// Types of the library that take part in asynchronous work.
    pub(crate) enum AsyncType {
        in "System.Private.CoreLib" {
            Task = "System.Threading.Tasks.Task",
            Box = "System.Runtime.CompilerServices.AsyncTaskMethodBuilder`1+AsyncStateMachineBox`1",
            PoolingBox = "System.Runtime.CompilerServices.PoolingAsyncValueTaskMethodBuilder`1+StateMachineBox`1",
            RuntimeAsyncTask = "System.Runtime.CompilerServices.AsyncHelpers+RuntimeAsyncTask`1",
            RuntimeContinuation = "System.Runtime.CompilerServices.Continuation",
            Dispatcher = "System.Runtime.CompilerServices.AsyncDispatcherInfo",
            /// The event that a thread waits for in `Wait` or `Result`.
            BlockedWait = "System.Threading.Tasks.Task+SetOnInvokeMres",
            /// The event that a thread waits for in `WaitAll`.
            BlockedWaitAll = "System.Threading.Tasks.Task+SetOnCountdownMres",
            TaskContinuation = "System.Threading.Tasks.TaskContinuation",
            ContinueWith = "System.Threading.Tasks.ContinueWithTaskContinuation",
            AwaitContinuation = "System.Threading.Tasks.AwaitTaskContinuation",
            ContextContinuation = "System.Threading.Tasks.SynchronizationContextAwaitTaskContinuation",
            SchedulerContinuation = "System.Threading.Tasks.TaskSchedulerAwaitTaskContinuation",
            ContinuationWrapper = "System.Runtime.CompilerServices.AsyncMethodBuilderCore+ContinuationWrapper",
            Contingent = "System.Threading.Tasks.Task+ContingentProperties",
            ExceptionHolder = "System.Threading.Tasks.TaskExceptionHolder",
            DispatchInfo = "System.Runtime.ExceptionServices.ExceptionDispatchInfo",
            Delegate = "System.Delegate",
            Action = "System.Action",
            List = "System.Collections.Generic.List`1",
            DelayPromise = "System.Threading.Tasks.Task+DelayPromise",
            /// The task of `Task.WaitAsync`.
            CancellationPromise = "System.Threading.Tasks.Task+CancellationPromise`1",
            /// The task of `Task.WhenAny` and `Task.WaitAny`.
            WhenAny = "System.Threading.Tasks.TaskFactory+CompleteOnInvokePromise`1",
            /// The task of `Task.WhenAny` for two tasks.
            WhenAnyOfTwo = "System.Threading.Tasks.Task+TwoTaskWhenAnyPromise`1",
            ValueTaskSource = "System.Threading.Tasks.ValueTask+ValueTaskSourceAsTask",
            ValueTaskSourceOf = "System.Threading.Tasks.ValueTask`1+ValueTaskSourceAsTask",
            Timer = "System.Threading.TimerQueueTimer",
            PeriodicTimer = "System.Threading.PeriodicTimer+State",
            Semaphore = "System.Threading.SemaphoreSlim",
            SemaphoreWaiter = "System.Threading.SemaphoreSlim+TaskNode",
            WorkQueue = "System.Threading.ThreadPoolWorkQueue",
            LocalQueue = "System.Threading.ThreadPoolWorkQueue+WorkStealingQueue",
            Thread = "System.Threading.Thread",
            Context = "System.Threading.SynchronizationContext",
            /// The type of callbacks that are posted to a `SynchronizationContext`.
            PostCallback = "System.Threading.SendOrPostCallback",
            Scheduler = "System.Threading.Tasks.TaskScheduler",
            /// The scheduler of the thread pool.
            PoolScheduler = "System.Threading.Tasks.ThreadPoolTaskScheduler",
            /// The scheduler that posts tasks to a `SynchronizationContext`.
            ContextScheduler = "System.Threading.Tasks.SynchronizationContextTaskScheduler",
        }
    }
}

fields_of! {
    /// Fields of every `Task`.
    pub(crate) struct TaskFields {
        flags: req "m_stateFlags",
        continuation: req "m_continuationObject",
        action: opt "m_action",
        state: opt "m_stateObject",
        contingent: opt "m_contingentProperties",
    }
}

/// The fields that lead from a task to its exceptions.
#[derive(Clone, Copy, Debug)]
struct Faults {
    holder: FieldAt,
    exceptions: FieldAt,
    handled: FieldAt,
    exception: FieldAt,
}

/// Bits of `Task.m_stateFlags`.
pub(crate) mod flags {
    pub(crate) const DELEGATE: u32 = 0x20000;
    pub(crate) const WAITS_FOR_CHILDREN: u32 = 0x80_0000;
    pub(crate) const COMPLETED: u32 = 0x160_0000;
    pub(crate) const STARTED: u32 = 0x10000;
    pub(crate) const PROMISE: u32 = 0x400;
    pub(crate) const CONTINUATION: u32 = 0x200;
    pub(crate) const ALL_STATUS: [(u32, super::TaskStatus); 7] = [
        (0x20_0000, super::TaskStatus::Faulted),
        (0x40_0000, super::TaskStatus::Canceled),
        (0x100_0000, super::TaskStatus::RanToCompletion),
        (WAITS_FOR_CHILDREN, super::TaskStatus::WaitingForChildrenToComplete),
        (DELEGATE, super::TaskStatus::Running),
        (STARTED, super::TaskStatus::WaitingToRun),
        (0x200_0000, super::TaskStatus::WaitingForActivation),
    ];
}

/// The value of `Task.Status` for a task with these state flags.
pub(crate) fn status(state_flags: u32) -> TaskStatus {
    flags::ALL_STATUS.iter().find(|(bit, _)| state_flags & bit != 0).map_or(TaskStatus::Created, |(_, status)| *status)
}

/// Maximum number of references that are followed from a continuation object to its waiter.
const STEPS: u32 = 16;

/// The continuation of a task or of another source of a result: the task, method, thread or callback that continues when the source completes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waiter {
    /// A task, or the box of an async method.
    Node(Addr),
    /// A blocked thread, given by the event object that it waits for.
    Thread(Addr),
    /// Any other continuation, such as a delegate.
    Callback(Addr),
}

/// The suspension point of a box.
#[derive(Clone, Debug)]
pub(crate) struct Position {
    /// `<>1__state`; `None` if it cannot be read.
    pub(crate) state: Option<i32>,
    /// For each awaiter field that is set, the objects to which it refers.
    pub(crate) awaiters: Vec<Vec<Addr>>,
}

/// The exceptions of a task.
#[derive(Clone, Debug, Default)]
pub(crate) struct TaskExceptions {
    pub(crate) exceptions: Vec<Addr>,
    /// Whether the program has observed the exceptions.
    pub(crate) observed: bool,
}

/// Reads tasks and async methods.
#[derive(Debug)]
pub(crate) struct Tasks {
    library: Library,
    kinds: Classifier<AsyncType>,
    fields: Option<TaskFields>,
    faults: Option<Faults>,
    continuations: Option<ContinuationFields>,
    /// The modules `System.Threading.Channels` and `System.Net.Sockets`, if loaded.
    channels: Option<Addr>,
    sockets: Option<Addr>,
    plans: Mutex<Map<Addr, Kept<Arc<Plan>>>>,
    machines: Mutex<Map<Addr, Kept<Option<Arc<Machine>>>>>,
    action: Option<Addr>,
    sentinel: Option<Addr>,
    /// The budget for finding callbacks and reading lists. In a forged dump, a million objects may refer to one list.
    budget: Budget,
}

impl Tasks {
    /// Binds to the types of `library`. Adds notes on fields that this runtime does not have.
    pub(crate) fn bind(library: Library, notes: &Collector) -> Tasks {
        let kinds = Classifier::<AsyncType>::bind(library.types());
        let budget = Budget::new(library.types().memory().dump_bytes(), None);
        let mut out = Tasks {
            action: kinds.table(AsyncType::Action),
            channels: library.types().module_named("System.Threading.Channels"),
            sockets: library.types().module_named("System.Net.Sockets"),
            library,
            kinds,
            fields: None,
            faults: None,
            continuations: None,
            plans: Mutex::default(),
            machines: Mutex::default(),
            sentinel: None,
            budget,
        };
        if !out.kinds.defines(AsyncType::Task) {
            let what = "tasks: the definition of System.Threading.Tasks.Task is not in the dump";
            notes.add(Missing::Async, None, what);
        }
        // If the class `Task` has no method table, the process has never used tasks, and there is nothing to bind.
        if let Some(table) = out.kinds.table(AsyncType::Task) {
            let field = |names: &'static str, what: &str| noted(out.library.types().field_at(table, names), what, notes);
            field("m_action", "task delegates");
            field("m_contingentProperties", "task exceptions");
            out.fields = noted(TaskFields::bind(out.library.types(), table), "tasks", notes);
            out.faults = out.bind_faults(notes);
            out.bind_continuations(notes);
            // Many types contain a `ManualResetValueTaskSourceCore`. Check in one of them, `PeriodicTimer`, that the field for the state of
            // callbacks exists.
            if let Some(timer) = out.kinds.table(AsyncType::PeriodicTimer).filter(|mt| out.plan(*mt).states.is_empty()) {
                let name = out.library.types().names().name(timer).name.clone();
                noted::<()>(Err(NoSuchField::Absent { type_name: name, field: plan::STATE }), "result sources of value tasks", notes);
            }
            out.sentinel = noted(out.library.static_object(table, "s_taskCompletionSentinel"), "task completion", notes).flatten();
        }
        out
    }

    fn bind_faults(&self, notes: &Collector) -> Option<Faults> {
        let types = self.library.types();
        let field = |kind: AsyncType, names: &'static str| {
            let table = self.kinds.table(kind)?;
            noted(types.field_at(table, names), "task exceptions", notes)
        };
        Some(Faults {
            holder: field(AsyncType::Contingent, "m_exceptionsHolder")?,
            exceptions: field(AsyncType::ExceptionHolder, "m_faultExceptions")?,
            handled: field(AsyncType::ExceptionHolder, "m_isHandled")?,
            exception: field(AsyncType::DispatchInfo, "_exception")?,
        })
    }

    /// Charges `n` steps: fields and items to read. Returns false if fewer steps are left.
    pub(crate) fn afford(&self, n: u64) -> bool {
        self.budget.steps(n)
    }

    /// Adds notes on data that was not read because of limits.
    pub(crate) fn note(&self, notes: &Collector) {
        self.budget.note("reading tasks", notes);
        self.library.note(notes);
    }

    /// The elements that are not null among the first `count` elements of the array of references at `array`: slot and target. Empty if the
    /// elements exceed the budget. At most `most` elements are read; if there are more, [`Tasks::note`] adds a note.
    pub(crate) fn elements(&self, array: Addr, count: u64, most: u64) -> Vec<(Addr, Addr)> {
        let length = self.library.array(array).map_or(0, |shape| shape.length.min(count).min(most));
        let mut all = if self.afford(length.max(1)) { self.library.first_references(array, count, most) } else { Vec::new() };
        all.retain(|(_, item)| !item.is_null());
        all
    }

    /// The reader of objects of the base class library.
    pub(crate) fn library(&self) -> &Library {
        &self.library
    }

    /// The async types that the type at `method_table` is or derives from.
    pub(crate) fn kinds(&self, method_table: Addr) -> Kinds<AsyncType> {
        self.kinds.of(method_table)
    }

    /// The method table of `kind`, which must not be a generic type; `None` if the process has not loaded it.
    pub(crate) fn table(&self, kind: AsyncType) -> Option<Addr> {
        self.kinds.table(kind)
    }

    /// The plan for reading objects of the type at `method_table`.
    pub(crate) fn plan(&self, method_table: Addr) -> Arc<Plan> {
        let known = || self.plans.lock().unwrap_or_else(PoisonError::into_inner);
        let found = known().get(&method_table).map(|plan| Arc::clone(plan.get()));
        found.unwrap_or_else(|| {
            let plan = Kept::of(|| Arc::new(Plan::make(self, method_table)));
            Arc::clone(known().entry(method_table).or_insert(plan).get())
        })
    }

    /// The plan for reading the object at `object`; `None` if it is not an object.
    pub(crate) fn plan_of(&self, object: Addr) -> Option<Arc<Plan>> {
        let method_table = self.library.method_table(object)?;
        let known = self.plans.lock().unwrap_or_else(PoisonError::into_inner).get(&method_table).map(|plan| Arc::clone(plan.get()));
        // The method table is checked first, so that the cache has no plans for invalid words.
        let valid = || self.library.types().names().method_tables().is_valid(method_table) == Ok(true);
        known.or_else(|| valid().then(|| self.plan(method_table)))
    }

    fn machine(&self, method_table: Addr) -> Option<Arc<Machine>> {
        let known = || self.machines.lock().unwrap_or_else(PoisonError::into_inner);
        let found = known().get(&method_table).map(|machine| machine.get().clone());
        found.unwrap_or_else(|| {
            let machine = Kept::of(|| Machine::of_class(self, method_table).map(Arc::new));
            known().entry(method_table).or_insert(machine).get().clone()
        })
    }

    /// `m_stateFlags` of the task at `task`.
    pub(crate) fn flags(&self, task: Addr) -> Option<u32> {
        self.library.u32(task, self.fields?.flags)
    }

    /// The delegate that the task at `task` runs.
    pub(crate) fn action(&self, task: Addr) -> Option<Addr> {
        self.library.reference(task, self.fields?.action?)
    }

    /// The exceptions of the faulted task at `task`. `None` if the task has no exceptions, or if the list of exceptions is not in the dump.
    pub(crate) fn exceptions(&self, task: Addr) -> Option<TaskExceptions> {
        let contingent = self.library.reference(task, self.fields?.contingent?)?;
        let faults = self.faults?;
        let holder = self.library.reference(contingent, faults.holder)?;
        let list = self.library.reference(holder, faults.exceptions)?;
        let mut exceptions = Vec::new();
        let plan = self.plan_of(list)?;
        for (_, item) in self.items(list, &plan) {
            let exception = self.library.reference(item, faults.exception);
            exceptions.extend(exception);
        }
        Some(TaskExceptions { exceptions, observed: self.library.u8(holder, faults.handled)? != 0 })
    }

    /// The non-null items of a `List<T>` of references: slot and target.
    fn items(&self, list: Addr, plan: &Plan) -> Vec<(Addr, Addr)> {
        let read = || {
            let (items, size) = plan.list?;
            let size = u64::from(self.library.u32(list, size)?);
            Some(self.elements(self.library.reference(list, items)?, size, u64::MAX))
        };
        read().unwrap_or_default()
    }

    /// The suspension point of the async method whose box is at `object`.
    pub(crate) fn position(&self, object: Addr, plan: &Plan) -> Option<Position> {
        let (machine, at) = match plan.machine.as_ref()? {
            MachineAt::Inside(machine) => (Arc::clone(machine), object),
            MachineAt::Behind(field) => {
                let at = self.library.reference(object, *field)?;
                (self.machine(self.library.method_table(at)?)?, at)
            }
        };
        let set =
            |slots: &Vec<u64>| -> Vec<Addr> { slots.iter().filter_map(|offset| self.library.reference_at(at.plus(*offset))).collect() };
        let awaiters = machine.awaiters.iter().map(set).filter(|refs| !refs.is_empty()).collect();
        let state = machine.state.and_then(|field| self.library.i32(at, field));
        Some(Position { state, awaiters })
    }

    /// The method table of the state machine whose box is at `object`.
    pub(crate) fn machine_type(&self, object: Addr, plan: &Plan) -> Option<Addr> {
        match plan.machine.as_ref()? {
            MachineAt::Inside(machine) => Some(machine.method_table),
            MachineAt::Behind(field) => self.library.method_table(self.library.reference(object, *field)?),
        }
    }

    /// Whether the box at `object` belongs to an `async void` method.
    pub(crate) fn is_void(&self, object: Addr, plan: &Plan) -> bool {
        match &plan.machine {
            Some(MachineAt::Inside(machine)) => machine.is_void,
            Some(MachineAt::Behind(field)) => {
                let machine = self.library.reference(object, *field).and_then(|at| self.machine(self.library.method_table(at)?));
                machine.is_some_and(|m| m.is_void)
            }
            None => false,
        }
    }

    /// Adds the waiters that continue when the task at `task` completes, according to its `m_continuationObject`.
    pub(crate) fn waiters(&self, task: Addr, out: &mut Vec<Waiter>) {
        if let Some(continuation) = self.fields.and_then(|f| self.library.reference(task, f.continuation)) {
            self.resolve_all(continuation, out);
        }
    }

    /// Adds the waiter of the continuation at `object` or, if the object is a list, the waiters of all continuations in the list.
    pub(crate) fn resolve_all(&self, object: Addr, out: &mut Vec<Waiter>) {
        let Some(plan) = self.plan_of(object) else { return };
        if plan.list.is_some() {
            out.extend(self.items(object, &plan).into_iter().filter_map(|(_, item)| self.resolve(item)));
        } else {
            out.extend(self.resolve(object));
        }
    }

    /// The waiter of the continuation at `object`, found by following the references from one continuation object to the next.
    pub(crate) fn resolve(&self, object: Addr) -> Option<Waiter> {
        let mut at = object;
        let mut delegate = None;
        for _ in 0..STEPS {
            let plan = self.plan_of(at)?;
            if plan.kinds.is(AsyncType::Delegate) {
                delegate = delegate.or(Some(at));
            }
            if plan.is_node() {
                return Some(Waiter::Node(at));
            }
            if plan.kinds.is(AsyncType::BlockedWait) || plan.kinds.is(AsyncType::BlockedWaitAll) {
                return Some(Waiter::Thread(at));
            }
            match plan.next.and_then(|field| self.library.reference(at, field)) {
                // A closed delegate refers to its target, an open delegate to itself.
                Some(next) if next != at => at = next,
                _ => break,
            }
        }
        // An object around a delegate, such as an `AwaitTaskContinuation`, is not a callback itself.
        Some(Waiter::Callback(delegate.unwrap_or(object)))
    }

    /// Whether the object at `object` is the sentinel that replaces the continuation in every completed task.
    pub(crate) fn is_sentinel(&self, object: Addr) -> bool {
        self.sentinel == Some(object)
    }

    /// Adds the tasks and methods that continue through the callbacks in the object at `object`. The state of such a callback is the task, the
    /// box of the method, or an `Action` that refers to the task or box. Callbacks of sources that have completed are skipped.
    pub(crate) fn states(&self, object: Addr, plan: &Plan, out: &mut Vec<Waiter>) {
        for callback in &plan.states {
            let Some(state) = self.library.reference_at(object.plus(callback.state)) else { continue };
            if self.plan_of(state).is_some_and(|p| p.is_node() || p.is_action) && callback.is_due(self, object) {
                out.extend(self.node(state));
            }
        }
    }

    /// Adds the tasks and methods that continue through the `Action`s in the object at `object`.
    pub(crate) fn delegates(&self, object: Addr, plan: &Plan, out: &mut Vec<Waiter>) {
        let fields = plan.actions.iter().filter_map(|offset| self.library.reference_at(object.plus(*offset)));
        let items = if plan.array_of_actions { self.elements(object, u64::MAX, u64::MAX) } else { Vec::new() };
        let items = items.into_iter().map(|(_, item)| item);
        let actions = fields.chain(items).filter(|a| self.library.method_table(*a).is_some_and(|mt| Some(mt) == self.action));
        out.extend(actions.filter_map(|action| self.node(action)));
    }

    fn node(&self, object: Addr) -> Option<Waiter> {
        self.resolve(object).filter(|waiter| matches!(waiter, Waiter::Node(_)))
    }
}
