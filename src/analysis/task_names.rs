//! Names of types, methods and delegates, made once each.

use crate::analysis::stacks::readable;
use crate::base::hash::Map;
use crate::base::{Addr, Collector, Name};
use crate::clr::methods::Methods;
use crate::session::delegates::Delegates;
use crate::session::tasks::{MachineAt, Tasks, method_of};
use crate::session::{Namer, Runtime};
use crate::stack::CodeBytes;

/// Most reads for one address of code.
const READS: u64 = 1 << 20;

/// Names what tasks are and run.
pub(super) struct Names<'n> {
    tasks: &'n Tasks,
    runtime: &'n Runtime,
    namer: &'n Namer,
    delegates: Delegates,
    types: Map<Addr, Option<Name>>,
    methods: Map<Addr, Option<Name>>,
    /// By address of code.
    code: Map<Addr, Option<Name>>,
}

impl<'n> Names<'n> {
    pub(super) fn new(tasks: &'n Tasks, runtime: &'n Runtime, namer: &'n Namer, notes: &Collector) -> Names<'n> {
        let delegates = Delegates::bind(runtime, tasks.library().types(), notes);
        Names { tasks, runtime, namer, delegates, types: Map::default(), methods: Map::default(), code: Map::default() }
    }

    /// The name of the type at `method_table`.
    pub(super) fn type_name(&mut self, method_table: Addr) -> Option<Name> {
        let namer = self.namer;
        self.types.entry(method_table).or_insert_with(|| namer.name(method_table).map(Name::from)).clone()
    }

    /// The name of the type of the object at `object`.
    pub(super) fn type_of(&mut self, object: Addr) -> Option<Name> {
        let mt = self.tasks.library().method_table(object)?;
        self.type_name(mt)
    }

    /// The asynchronous method whose box is at `object`, with this method table.
    pub(super) fn method(&mut self, object: Addr, method_table: Addr) -> Option<Name> {
        let plan = self.tasks.plan(method_table);
        let machine = match plan.machine.as_ref()? {
            MachineAt::Inside(machine) => machine.method_table,
            MachineAt::Behind(field) => {
                let library = self.tasks.library();
                library.method_table(library.reference(object, *field)?)?
            }
        };
        let namer = self.namer;
        let name = || {
            let name = namer.name(machine)?;
            Some(method_of(&name).unwrap_or(name).into())
        };
        self.methods.entry(machine).or_insert_with(name).clone()
    }

    /// The method of runtime async whose continuation is at `frame`.
    pub(super) fn suspended(&mut self, frame: Addr) -> Option<Name> {
        let ip = self.tasks.suspended_at(frame).0?;
        let (runtime, namer) = (self.runtime, self.namer);
        let name = || {
            let look_up = || runtime.stack_walker().ok()?.code().find(ip).ok().flatten();
            let code = CodeBytes::bounded(READS, look_up)?;
            let methods = runtime.scoped(&Collector::new(), |d| Methods::bind(runtime.memory(), d, runtime.limits()).ok())?;
            Some(methods.name(namer.names()?, code.method_desc)?.name.into())
        };
        self.code.entry(ip).or_insert_with(name).clone()
    }

    /// What the delegate at `delegate` calls: its method, or the type of its target.
    pub(super) fn delegate(&mut self, delegate: Addr) -> Option<Name> {
        let library = self.tasks.library();
        let method = self.delegates.call(delegate).and_then(|call| self.delegates.method_text(&call));
        if let Some(method) = method {
            return Some(Name::from(readable(&method)));
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
