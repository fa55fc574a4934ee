//! Names types, the methods that tasks run, and the methods that delegates call. Each name is created once.

use std::sync::OnceLock;

use crate::base::hash::Map;
use crate::base::{Addr, Collector, Name};
use crate::bcl::delegates::Delegates;
use crate::bcl::tasks::{AsyncType, Running, Tasks};
use crate::session::continuations::{Suspended, SuspendedMethods};
use crate::session::{Namer, Runtime};

/// Creates and caches the names.
pub(in crate::analysis) struct Names<'n> {
    tasks: &'n Tasks,
    runtime: &'n Runtime,
    namer: &'n Namer,
    delegates: Delegates,
    types: Map<Addr, Option<Name>>,
    /// Names of async methods, by method table of the state machine.
    methods: Map<Addr, Option<Name>>,
    /// Names of the methods of delegates, by entry point and by type of the target, which may determine generic arguments.
    calls: Map<(Addr, Option<Addr>), Option<Name>>,
    suspended: SuspendedMethods,
    /// Runtime async methods that threads run, by task.
    running: OnceLock<Map<Addr, Running>>,
    notes: &'n Collector,
}

impl<'n> Names<'n> {
    pub(in crate::analysis) fn new(tasks: &'n Tasks, runtime: &'n Runtime, namer: &'n Namer, notes: &'n Collector) -> Names<'n> {
        let delegates = Delegates::bind(runtime, tasks.library().types(), notes);
        let (types, methods, calls) = Default::default();
        let suspended = SuspendedMethods::new(runtime.bindings(), tasks.continuation_fields());
        let running = OnceLock::new();
        Names { tasks, runtime, namer, delegates, types, methods, calls, suspended, running, notes }
    }

    /// Returns the name of the type at `method_table`.
    pub(in crate::analysis) fn type_name(&mut self, method_table: Addr) -> Option<Name> {
        let namer = self.namer;
        self.types.entry(method_table).or_insert_with(|| namer.name(method_table)).clone()
    }

    /// Returns the name of the type of the object at `object`.
    pub(in crate::analysis) fn type_of(&mut self, object: Addr) -> Option<Name> {
        let mt = self.tasks.library().method_table(object)?;
        self.type_name(mt)
    }

    /// Returns the async method whose box is at `object`. `method_table`: the method table of the box.
    pub(in crate::analysis) fn method(&mut self, object: Addr, method_table: Addr) -> Option<Name> {
        let machine = self.tasks.machine_type(object, &self.tasks.plan(method_table))?;
        let namer = self.namer;
        self.methods.entry(machine).or_insert_with(|| namer.kickoff(machine)).clone()
    }

    /// Returns the runtime async method whose continuation is at `frame`.
    pub(in crate::analysis) fn suspended(&self, frame: Addr) -> Suspended {
        self.namer.names().map_or(Suspended::Unknown, |names| self.suspended.of(names, frame))
    }

    /// Whether the object at `object` is a delegate.
    pub(in crate::analysis) fn is_delegate(&self, object: Addr) -> bool {
        self.delegates.is(object)
    }

    /// Returns the method that the delegate at `delegate` calls.
    pub(in crate::analysis) fn callback(&mut self, delegate: Addr) -> Option<Name> {
        let call = self.delegates.call(delegate)?;
        let target = call.target.and_then(|t| self.tasks.library().method_table(t));
        let delegates = &self.delegates;
        self.calls.entry((call.entry, target)).or_insert_with(|| delegates.called(&call)).clone()
    }

    /// Adds notes if the budget for code lookups is used up and, if a delegate was looked up, about delegates that could not be named.
    pub(in crate::analysis) fn note(&self, notes: &Collector) {
        self.suspended.note(notes);
        if !self.calls.is_empty() {
            self.delegates.note(notes);
        }
    }

    /// Returns the name of the method that the delegate at `delegate` calls, or else the name of its target's type.
    pub(in crate::analysis) fn delegate(&mut self, delegate: Addr) -> Option<Name> {
        let library = self.tasks.library();
        if let Some(method) = self.callback(delegate) {
            return Some(method);
        }
        let next = self.tasks.plan_of(delegate)?.next?;
        let target = library.reference(delegate, next).filter(|target| *target != delegate)?;
        self.type_of(target)
    }

    /// Returns the runtime async methods that threads run, by task.
    pub(in crate::analysis) fn running(&self) -> &Map<Addr, Running> {
        let find = || self.tasks.running(self.runtime, self.runtime.threads_if_any(self.notes), self.namer, self.notes);
        self.running.get_or_init(find)
    }

    /// Returns the method that the task at `task` runs. For runtime async, this is the outermost method, because the delegate only resumes methods.
    pub(in crate::analysis) fn work(&mut self, task: Addr) -> Option<Name> {
        if !self.is_runtime_async(task) {
            return self.delegate(self.tasks.action(task)?);
        }
        match self.methods_of(task, self.notes).last() {
            Some(outermost) => self.suspended(*outermost).name(),
            None => self.running().get(&task)?.method.clone(),
        }
    }

    /// Returns the continuations of the suspended methods of the runtime async task at `task`, innermost first. If a thread runs the innermost
    /// method, the list starts with the continuation of the caller.
    pub(in crate::analysis) fn methods_of(&self, task: Addr, notes: &Collector) -> Vec<Addr> {
        let chain = self.tasks.chain(task, notes);
        if !chain.frames.is_empty() || chain.leaf.is_some() {
            return chain.frames;
        }
        self.running().get(&task).map(|running| self.tasks.chain_from(running.next, notes).frames).unwrap_or_default()
    }

    /// Returns the method that the queued task at `task` will run next. For runtime async, this is the innermost suspended method.
    pub(in crate::analysis) fn next_work(&mut self, task: Addr) -> Option<Name> {
        if !self.is_runtime_async(task) {
            return self.work(task);
        }
        let first = self.tasks.chain(task, self.notes).frames.first().copied();
        first.and_then(|frame| self.suspended(frame).name())
    }

    /// Whether the object at `task` is a runtime async task.
    pub(in crate::analysis) fn is_runtime_async(&self, task: Addr) -> bool {
        self.tasks.plan_of(task).is_some_and(|plan| plan.kinds.is(AsyncType::RuntimeAsyncTask))
    }
}
