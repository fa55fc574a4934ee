//! Names of types, of what tasks run and of what delegates call, made once each.

use crate::base::hash::Map;
use crate::base::{Addr, Collector, Name};
use crate::clr::methods::Methods;
use crate::session::delegates::Delegates;
use crate::session::tasks::Tasks;
use crate::session::{Namer, Runtime};
use crate::stack::LookUps;

/// Names what tasks are and run.
pub(super) struct Names<'n> {
    tasks: &'n Tasks,
    runtime: &'n Runtime,
    namer: &'n Namer,
    delegates: Delegates,
    types: Map<Addr, Option<Name>>,
    /// By method table of the state machine.
    methods: Map<Addr, Option<Name>>,
    /// By where the method is entered, and the target's type: it may tell generic arguments.
    calls: Map<(Addr, Option<Addr>), Option<Name>>,
    /// By address of code.
    code: Map<Addr, Option<Name>>,
    look_ups: LookUps,
}

impl<'n> Names<'n> {
    pub(super) fn new(tasks: &'n Tasks, runtime: &'n Runtime, namer: &'n Namer, notes: &Collector) -> Names<'n> {
        let delegates = Delegates::bind(runtime, tasks.library().types(), notes);
        let (types, methods, calls, code) = Default::default();
        Names { tasks, runtime, namer, delegates, types, methods, calls, code, look_ups: LookUps::new(runtime.memory()) }
    }

    /// The name of the type at `method_table`.
    pub(super) fn type_name(&mut self, method_table: Addr) -> Option<Name> {
        let namer = self.namer;
        self.types.entry(method_table).or_insert_with(|| namer.name(method_table)).clone()
    }

    /// The name of the type of the object at `object`.
    pub(super) fn type_of(&mut self, object: Addr) -> Option<Name> {
        let mt = self.tasks.library().method_table(object)?;
        self.type_name(mt)
    }

    /// The asynchronous method whose box is at `object`, with this method table.
    pub(super) fn method(&mut self, object: Addr, method_table: Addr) -> Option<Name> {
        let machine = self.tasks.machine_type(object, &self.tasks.plan(method_table))?;
        let namer = self.namer;
        self.methods.entry(machine).or_insert_with(|| namer.kickoff(machine)).clone()
    }

    /// The method of runtime async whose continuation is at `frame`.
    pub(super) fn suspended(&mut self, frame: Addr) -> Option<Name> {
        let ip = self.tasks.suspended_at(frame).0?;
        let (runtime, namer, look_ups) = (self.runtime, self.namer, &self.look_ups);
        let name = || {
            let look_up = || runtime.stack_walker().ok()?.code().find(ip).ok().flatten();
            let code = look_ups.one(look_up)?;
            let methods = runtime.scoped(&Collector::new(), |d| Methods::bind(runtime.memory(), d, runtime.limits()).ok())?;
            Some(methods.name(namer.names()?, code.method_desc)?.to_name())
        };
        self.code.entry(ip).or_insert_with(name).clone()
    }

    /// Whether the object at `object` is a delegate.
    pub(super) fn is_delegate(&self, object: Addr) -> bool {
        self.delegates.is(object)
    }

    /// The method that the delegate at `delegate` calls.
    pub(super) fn callback(&mut self, delegate: Addr) -> Option<Name> {
        let call = self.delegates.call(delegate)?;
        let target = call.target.and_then(|t| self.tasks.library().method_table(t));
        let delegates = &self.delegates;
        self.calls.entry((call.entry, target)).or_insert_with(|| delegates.called(&call)).clone()
    }

    /// Notes what delegates lack, if the method of one was asked for, and whether code was looked up for too long.
    pub(super) fn note(&self, notes: &Collector) {
        self.look_ups.note(notes);
        if !self.calls.is_empty() {
            self.delegates.note(notes);
        }
    }

    /// Name of what the delegate at `delegate` calls: its method, or the type of its target.
    pub(super) fn delegate(&mut self, delegate: Addr) -> Option<Name> {
        let library = self.tasks.library();
        if let Some(method) = self.callback(delegate) {
            return Some(method);
        }
        let next = self.tasks.plan_of(delegate)?.next?;
        let target = library.reference(delegate, next).filter(|target| *target != delegate)?;
        self.type_of(target)
    }

    /// What the task at `task` runs.
    pub(super) fn work(&mut self, task: Addr) -> Option<Name> {
        self.delegate(self.tasks.action(task)?)
    }
}
