//! Describes the work of the thread pool: queued items and callbacks.

use crate::analysis::threads::task_names::Names;
use crate::analysis::{PoolItem, PoolItemKind};
use crate::base::hash::Map;
use crate::base::{Addr, Name};
use crate::bcl::tasks::{AsyncType, Tasks};
use crate::clr::library::FieldAt;

/// How to find the method that queue items of one type run.
#[derive(Clone, Copy)]
enum Plan {
    Task,
    Method,
    /// A task of runtime async.
    AsyncTask,
    /// A callback in this field.
    Callback(FieldAt),
    Other,
}

/// Describes items.
pub(super) struct Describer<'d> {
    tasks: &'d Tasks,
    pub(super) names: Names<'d>,
    plans: Map<Addr, Plan>,
}

impl<'d> Describer<'d> {
    pub(super) fn new(tasks: &'d Tasks, names: Names<'d>) -> Describer<'d> {
        Describer { tasks, names, plans: Map::default() }
    }

    /// Returns the name of the type at `method_table`.
    pub(super) fn type_name(&mut self, method_table: Addr) -> Option<Name> {
        self.names.type_name(method_table)
    }

    /// Returns the method that the delegate at `delegate` calls.
    pub(super) fn delegate(&mut self, delegate: Addr) -> Option<Name> {
        self.names.callback(delegate)
    }

    fn plan(&mut self, method_table: Addr) -> Plan {
        let tasks = self.tasks;
        *self.plans.entry(method_table).or_insert_with(|| {
            let plan = tasks.plan(method_table);
            if plan.kinds.is(AsyncType::Box) || plan.kinds.is(AsyncType::PoolingBox) {
                Plan::Method
            } else if plan.kinds.is(AsyncType::RuntimeAsyncTask) {
                Plan::AsyncTask
            } else if plan.kinds.is(AsyncType::Task) {
                Plan::Task
            } else {
                let callback = tasks.library().types().field_at(method_table, "_callback");
                callback.map_or(Plan::Other, Plan::Callback)
            }
        })
    }

    /// Describes the queue item at `object`.
    pub(super) fn item(&mut self, object: Addr) -> PoolItem {
        let mt = self.tasks.library().method_table(object);
        let type_name = mt.and_then(|mt| self.type_name(mt));
        let plan = mt.map_or(Plan::Other, |mt| self.plan(mt));
        let (kind, what) = match plan {
            Plan::AsyncTask => (PoolItemKind::AsyncMethod, self.names.next_work(object)),
            Plan::Task => (PoolItemKind::Task, self.tasks.action(object).and_then(|action| self.delegate(action))),
            Plan::Method => (PoolItemKind::AsyncMethod, mt.and_then(|mt| self.names.method(object, mt))),
            Plan::Callback(field) => {
                let callback = self.tasks.library().reference(object, field);
                let is_delegate = callback.is_some_and(|c| self.names.is_delegate(c));
                let kind = if is_delegate { PoolItemKind::Callback } else { PoolItemKind::WorkItem };
                (kind, callback.filter(|_| is_delegate).and_then(|c| self.delegate(c)))
            }
            Plan::Other => (PoolItemKind::WorkItem, None),
        };
        let description = what.or_else(|| type_name.clone()).unwrap_or_else(|| object.to_string().into());
        PoolItem { object, type_name, kind, display: description.display(), description }
    }
}
