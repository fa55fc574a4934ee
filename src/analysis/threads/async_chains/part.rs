//! The part of the answer of `object` about a task, the box of an asynchronous method, or a continuation.

use super::reporter::fault_models;
use crate::analysis::ExceptionReader;
use crate::analysis::threads::task_names::Names;
use crate::analysis::{TaskPart, TaskWaiter};
use crate::base::{Addr, Collector, Name};
use crate::bcl::Library;
use crate::bcl::tasks::{AsyncType, Plan, Tasks, Waiter, flags, status};
use crate::model::TaskStatus;
use crate::session::{Namer, Runtime};

/// Describes a continuation of runtime async: the suspended method, if the continuation has one, the awaited object, and the continuation that
/// resumes next.
fn continuation(tasks: &Tasks, names: &mut Names<'_>, object: Addr, plan: &Plan) -> Option<TaskPart> {
    let library = tasks.library();
    let method = if plan.suspends { names.suspended(object).name() } else { None };
    let caller = tasks.caller(object).and_then(|caller| {
        let method = names.suspended(caller).name();
        let type_name = names.type_name(library.method_table(caller)?);
        Some(TaskWaiter { object: caller, type_name, display: method.as_ref().map(Name::display), method })
    });
    Some(TaskPart {
        status: None,
        display: method.as_ref().map(Name::display),
        method,
        state: if plan.suspends { tasks.suspension(object) } else { None },
        awaits: tasks.awaited(object).into_iter().collect(),
        waiters: caller.into_iter().collect(),
        exceptions: Vec::new(),
        unobserved: None,
    })
}

/// Returns status, awaiters, waiters and exceptions of the task, box or continuation at `object`. `None` for other objects, and if the type cannot be
/// determined.
pub(in crate::analysis) fn task_part(runtime: &Runtime, namer: &Namer, object: Addr, notes: &Collector) -> Option<TaskPart> {
    // Losses are noted only if the object is a task, box or continuation.
    let losses = Collector::new();
    let tasks = Tasks::bind(Library::bind(runtime, namer, &losses).ok()?, &losses);
    let method_table = tasks.library().method_table(object)?;
    let plan = tasks.plan(method_table);
    let mut names = Names::new(&tasks, runtime, namer, &losses);
    if plan.kinds.is(AsyncType::RuntimeContinuation) {
        let part = continuation(&tasks, &mut names, object, &plan);
        names.note(&losses);
        tasks.note(&losses);
        notes.extend(&losses.into_notes());
        return part;
    }
    if !plan.is_node() {
        return None;
    }
    let bits = tasks.flags(object);
    let pending = bits.is_none_or(|b| b & flags::COMPLETED == 0);
    let position = if pending { tasks.position(object, &plan) } else { None };
    let mut found = Vec::new();
    tasks.waiters(object, &mut found);
    tasks.states(object, &plan, &mut found);
    let waiter = |found: Waiter, names: &mut Names<'_>| {
        let (Waiter::Node(at) | Waiter::Thread(at) | Waiter::Callback(at)) = found;
        let mt = tasks.library().method_table(at)?;
        let method = match found {
            Waiter::Node(_) => names.method(at, mt).or_else(|| names.work(at)),
            Waiter::Callback(_) => names.delegate(at),
            Waiter::Thread(_) => None,
        };
        (!tasks.is_sentinel(at)).then(|| TaskWaiter {
            object: at,
            type_name: names.type_name(mt),
            display: method.as_ref().map(Name::display),
            method,
        })
    };
    let status = bits.map(status);
    let faults = if status == Some(TaskStatus::Faulted) { tasks.exceptions(object) } else { None };
    let reader = ExceptionReader::new(runtime, namer, notes);
    let method = names.method(object, method_table).or_else(|| names.work(object));
    let part = TaskPart {
        status,
        display: method.as_ref().map(Name::display),
        method,
        state: position.as_ref().and_then(|p| p.state),
        awaits: position.map(|p| p.awaiters.into_iter().flatten().collect()).unwrap_or_default(),
        waiters: found.into_iter().filter_map(|w| waiter(w, &mut names)).collect(),
        unobserved: faults.as_ref().map(|f| !f.observed),
        exceptions: faults.map(|f| fault_models(&f, &mut names, &reader)).unwrap_or_default(),
    };
    names.note(&losses);
    tasks.note(&losses);
    notes.extend(&losses.into_notes());
    Some(part)
}
