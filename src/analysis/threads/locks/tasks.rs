//! Determines the tasks that threads wait for.

use super::objects::LockType;
use super::waits::Wait;
use crate::analysis::walk::objects_of;
use crate::analysis::{LockKind, WaitKind};
use crate::base::hash::Map;
use crate::base::{Addr, Collector, Missing};
use crate::bcl::Library;
use crate::clr::library::{Classifier, fields_of};
use crate::session::Heap;

/// Maximum number of continuations read of a task.
const MAX_CONTINUATIONS: u64 = 1 << 16;

fields_of! {
    /// `System.Threading.Tasks.Task`.
    struct TaskFields {
        continuation: req "m_continuationObject",
    }
}

fields_of! {
    /// `TaskFactory.CompleteOnInvokePromise<T>`: the task that `Task.WaitAny` creates. It completes when one of several tasks completes.
    struct OnAnyFields {
        tasks: req "_tasks",
    }
}

fields_of! {
    /// `List<object>`.
    struct ListFields {
        items: req "_items",
    }
}

/// A thread that waits for a task waits on an event, which is a continuation of the task. Replaces each such event in `waits` with its tasks.
pub(super) fn lift(heap: &Heap, library: &Library, types: &Classifier<LockType>, waits: &mut [Wait], notes: &Collector) {
    let events: Map<Addr, usize> =
        waits.iter().enumerate().filter(|(_, w)| w.kind == WaitKind::Task).filter_map(|(i, w)| Some((w.object?.0, i))).collect();
    let Some(table) = types.table(LockType::Task).filter(|_| !events.is_empty()) else { return };
    let fields = match TaskFields::bind(library.types(), table) {
        Ok(fields) => fields,
        Err(missing) => {
            notes.add(Missing::Async, None, format!("the tasks that threads wait for cannot be shown: {missing}"));
            return;
        }
    };
    let mut found: Map<usize, Vec<Addr>> = Map::default();
    let mut lists: Map<Addr, Option<ListFields>> = Map::default();
    let mut list_fields = |mt: Addr| *lists.entry(mt).or_insert_with(|| ListFields::bind(library.types(), mt).ok());
    for (task, _) in notes.take(objects_of(heap, |mt| types.of(mt).is(LockType::Task))) {
        let Some(continuation) = library.reference(task, fields.continuation) else { continue };
        if let Some(wait) = events.get(&continuation) {
            found.entry(*wait).or_default().push(task);
            continue;
        }
        // Several continuations are stored in a list.
        let Some(list) = library.method_table(continuation).and_then(&mut list_fields) else { continue };
        let Some(items) = library.reference(continuation, list.items) else { continue };
        for (_, item) in library.references(items, MAX_CONTINUATIONS) {
            if let Some(wait) = events.get(&item) {
                found.entry(*wait).or_default().push(task);
            }
        }
    }
    for (wait, tasks) in found {
        let Some(wait) = waits.get_mut(wait) else { continue };
        let mut tasks: Vec<Addr> = tasks.into_iter().flat_map(|task| first_of(library, types, &mut list_fields, task)).collect();
        tasks.sort_unstable();
        tasks.dedup();
        if !tasks.is_empty() {
            wait.object = Some((tasks.remove(0), LockKind::Task));
            wait.others = tasks;
        }
    }
}

/// Returns the tasks passed to `Task.WaitAny` if `task` is the task that `WaitAny` created; otherwise `task` itself.
fn first_of(
    library: &Library,
    types: &Classifier<LockType>,
    list_fields: &mut impl FnMut(Addr) -> Option<ListFields>,
    task: Addr,
) -> Vec<Addr> {
    let mut tasks = || {
        let mt = library.method_table(task).filter(|mt| types.of(*mt).is(LockType::OnAny))?;
        let list = library.reference(task, OnAnyFields::bind(library.types(), mt).ok()?.tasks)?;
        // The tasks are in an array or a `List<Task>`.
        let items = library.method_table(list).and_then(&mut *list_fields).and_then(|fields| library.reference(list, fields.items));
        let tasks = library.references(items.unwrap_or(list), MAX_CONTINUATIONS).into_iter().map(|(_, task)| task);
        let tasks: Vec<Addr> = tasks.filter(|task| !task.is_null()).collect();
        (!tasks.is_empty()).then_some(tasks)
    };
    tasks().unwrap_or_else(|| vec![task])
}
