//! Determines the tasks that threads wait for.

use super::objects::{LockObjects, LockType};
use super::primitives::Primitives;
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

/// A thread that waits for a task waits on an event, which is a continuation of the task. Replaces each such event in `waits` with its tasks, or with the
/// semaphore if the task is one of `SemaphoreSlim.WaitAsync`: `Wait` calls it as well if other callers of `WaitAsync` wait. Returns all tasks that have a
/// continuation, if any thread waits for a task.
pub(super) fn lift(
    heap: &Heap,
    library: &Library,
    types: &Classifier<LockType>,
    (found_locks, primitives): (&LockObjects, &Primitives),
    waits: &mut [Wait],
    notes: &Collector,
) -> Vec<Addr> {
    let events: Map<Addr, usize> =
        waits.iter().enumerate().filter(|(_, w)| w.kind == WaitKind::Task).filter_map(|(i, w)| Some((w.object?.0, i))).collect();
    let Some(table) = types.table(LockType::Task).filter(|_| !events.is_empty()) else { return Vec::new() };
    let fields = match TaskFields::bind(library.types(), table) {
        Ok(fields) => fields,
        Err(missing) => {
            notes.add(Missing::Async, None, format!("the tasks that threads wait for cannot be shown: {missing}"));
            return Vec::new();
        }
    };
    let mut continued = Vec::new();
    let mut found: Map<usize, Vec<Addr>> = Map::default();
    let mut lists: Map<Addr, Option<ListFields>> = Map::default();
    let mut list_fields = |mt: Addr| *lists.entry(mt).or_insert_with(|| ListFields::bind(library.types(), mt).ok());
    for (task, _) in notes.take(objects_of(heap, |mt| types.of(mt).is(LockType::Task))) {
        let Some(continuation) = library.reference(task, fields.continuation) else { continue };
        continued.push(task);
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
    let mut semaphores = None;
    for (wait, tasks) in found {
        let Some(wait) = waits.get_mut(wait) else { continue };
        if let [task] = tasks.as_slice()
            && library.method_table(*task).is_some_and(|mt| types.of(mt).is(LockType::SemaphoreWaiter))
            && let Some(semaphore) = semaphores.get_or_insert_with(|| by_waiter(library, types, (found_locks, primitives), notes)).get(task)
        {
            let whole = primitives.counted(*semaphore);
            (wait.kind, wait.object) = (whole.wait, Some((whole.object, whole.kind)));
            continue;
        }
        let alternatives = match tasks.as_slice() {
            [task] => first_of(library, types, &mut list_fields, *task),
            _ => None,
        };
        wait.any = alternatives.is_some();
        let mut tasks = alternatives.unwrap_or(tasks);
        tasks.sort_unstable();
        tasks.dedup();
        if !tasks.is_empty() {
            wait.object = Some((tasks.remove(0), LockKind::Task));
            wait.others = tasks;
        }
    }
    continued
}

/// Maps the tasks of `SemaphoreSlim.WaitAsync` to their semaphores.
fn by_waiter(
    library: &Library,
    types: &Classifier<LockType>,
    (found, primitives): (&LockObjects, &Primitives),
    notes: &Collector,
) -> Map<Addr, Addr> {
    let mut out = Map::default();
    let head = primitives.semaphore.and_then(|fields| fields.first);
    let next = types.table(LockType::SemaphoreWaiter).and_then(|mt| library.types().field_at(mt, "Next").ok());
    if let Some(list) = head.zip(next) {
        found.of(LockType::Semaphore).for_each(|semaphore| library.semaphore_waiters(semaphore, list, &mut out, notes));
    }
    out
}

/// Returns the tasks passed to `Task.WaitAny` if `task` is the task that `WaitAny` created.
fn first_of(
    library: &Library,
    types: &Classifier<LockType>,
    list_fields: &mut impl FnMut(Addr) -> Option<ListFields>,
    task: Addr,
) -> Option<Vec<Addr>> {
    let mt = library.method_table(task).filter(|mt| types.of(*mt).is(LockType::OnAny))?;
    let list = library.reference(task, OnAnyFields::bind(library.types(), mt).ok()?.tasks)?;
    // The tasks are in an array or a `List<Task>`.
    let items = library.method_table(list).and_then(list_fields).and_then(|fields| library.reference(list, fields.items));
    let tasks = library.references(items.unwrap_or(list), MAX_CONTINUATIONS).into_iter().map(|(_, task)| task);
    let tasks: Vec<Addr> = tasks.filter(|task| !task.is_null()).collect();
    (!tasks.is_empty()).then_some(tasks)
}
