//! What will run: items of queues, callbacks.

use crate::base::hash::Map;
use crate::base::{Addr, Collector};
use crate::clr::library::FieldAt;
use crate::model::{PoolItem, PoolItemKind};
use crate::session::delegates::Delegates;
use crate::session::tasks::{AsyncType, MachineAt, Tasks, method_of};
use crate::session::{Error, Heap, Namer};

/// What items of one type are, and where what they run is.
#[derive(Clone, Copy)]
enum Plan {
    Task,
    Method,
    /// A callback in this field.
    Callback(FieldAt),
    Other,
}

/// Describes items, each type, method and delegate's method once.
pub(super) struct Describer<'d> {
    namer: &'d Namer,
    tasks: &'d Tasks,
    delegates: Delegates,
    plans: Map<Addr, Plan>,
    types: Map<Addr, Option<String>>,
    machines: Map<Addr, Option<String>>,
    /// By where the method is entered, and the target's type: it may tell generic arguments.
    methods: Map<(Addr, Option<Addr>), Option<String>>,
}

impl<'d> Describer<'d> {
    pub(super) fn bind(heap: &Heap, namer: &'d Namer, tasks: &'d Tasks, notes: &Collector) -> Result<Describer<'d>, Error> {
        let delegates = Delegates::bind(heap.runtime(), namer.types()?, notes);
        let (plans, types, machines, methods) = Default::default();
        Ok(Describer { namer, tasks, delegates, plans, types, machines, methods })
    }

    /// Notes what delegates lack, if any was described.
    pub(super) fn note(&self, notes: &Collector) {
        if !self.methods.is_empty() {
            self.delegates.note(notes);
        }
    }

    /// The name of the type at `method_table`.
    pub(super) fn type_name(&mut self, method_table: Addr) -> Option<String> {
        let namer = self.namer;
        self.types.entry(method_table).or_insert_with(|| namer.name(method_table)).clone()
    }

    /// The method that the delegate at `delegate` calls.
    pub(super) fn delegate(&mut self, delegate: Addr) -> Option<String> {
        let call = self.delegates.call(delegate)?;
        let target = call.target.and_then(|t| self.tasks.library().method_table(t));
        let delegates = &self.delegates;
        self.methods.entry((call.entry, target)).or_insert_with(|| delegates.method_text(&call)).clone()
    }

    /// The asynchronous method whose box is at `object`.
    pub(super) fn async_method(&mut self, object: Addr) -> Option<String> {
        let library = self.tasks.library();
        let plan = self.tasks.plan_of(object)?;
        let machine = match plan.machine.as_ref()? {
            MachineAt::Inside(machine) => machine.method_table,
            MachineAt::Behind(field) => library.method_table(library.reference(object, *field)?)?,
        };
        let namer = self.namer;
        let name = || namer.name(machine).map(|name| method_of(&name).unwrap_or(name));
        self.machines.entry(machine).or_insert_with(name).clone()
    }

    fn plan(&mut self, method_table: Addr) -> Plan {
        let tasks = self.tasks;
        *self.plans.entry(method_table).or_insert_with(|| {
            let plan = tasks.plan(method_table);
            if plan.kinds.is(AsyncType::Box) || plan.kinds.is(AsyncType::PoolingBox) {
                Plan::Method
            } else if plan.kinds.is(AsyncType::Task) {
                Plan::Task
            } else {
                let callback = tasks.library().types().field_at(method_table, "_callback");
                callback.map_or(Plan::Other, Plan::Callback)
            }
        })
    }

    /// An item of a queue.
    pub(super) fn item(&mut self, object: Addr) -> PoolItem {
        let mt = self.tasks.library().method_table(object);
        let type_name = mt.and_then(|mt| self.type_name(mt));
        let plan = mt.map_or(Plan::Other, |mt| self.plan(mt));
        let (kind, what) = match plan {
            Plan::Task => (PoolItemKind::Task, self.tasks.action(object).and_then(|action| self.delegate(action))),
            Plan::Method => (PoolItemKind::AsyncMethod, self.async_method(object)),
            Plan::Callback(field) => {
                let callback = self.tasks.library().reference(object, field);
                let is_delegate = callback.is_some_and(|c| self.delegates.is(c));
                let kind = if is_delegate { PoolItemKind::Callback } else { PoolItemKind::WorkItem };
                (kind, callback.filter(|_| is_delegate).and_then(|c| self.delegate(c)))
            }
            Plan::Other => (PoolItemKind::WorkItem, None),
        };
        let description = what.or_else(|| type_name.clone()).unwrap_or_else(|| object.to_string());
        PoolItem { object, type_name, kind, description }
    }
}
