//! Threads that wait for tasks.

use super::objects::LockType;
use super::waits::Wait;
use crate::analysis::walk::objects_of;
use crate::base::hash::Map;
use crate::base::{Addr, Collector, NoteKind};
use crate::clr::library::{Classifier, fields_of};
use crate::model::{LockKind, WaitKind};
use crate::session::{Heap, Library};

/// Maximum continuations of a task.
const MAX_CONTINUATIONS: u64 = 1 << 16;

fields_of! {
    /// `System.Threading.Tasks.Task`.
    struct TaskFields {
        continuation: req "m_continuationObject",
    }
}

fields_of! {
    /// `List<object>`.
    struct ListFields {
        items: req "_items",
    }
}

/// A thread that waits for tasks has added an event to them as a continuation: replaces the event by the tasks.
pub(super) fn lift(heap: &Heap, library: &Library, types: &Classifier<LockType>, waits: &mut [Wait], notes: &Collector) {
    let events: Map<Addr, usize> =
        waits.iter().enumerate().filter(|(_, w)| w.kind == WaitKind::Task).filter_map(|(i, w)| Some((w.object?.0, i))).collect();
    let Some(table) = types.table(LockType::Task).filter(|_| !events.is_empty()) else { return };
    let fields = match TaskFields::bind(library.types(), table) {
        Ok(fields) => fields,
        Err(missing) => {
            notes.add(NoteKind::Missing, None, format!("the tasks that threads wait for are not told: {missing}"));
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
        // Several continuations are a list.
        let Some(list) = library.method_table(continuation).and_then(&mut list_fields) else { continue };
        let Some(items) = library.reference(continuation, list.items) else { continue };
        for (_, item) in library.references(items, MAX_CONTINUATIONS) {
            if let Some(wait) = events.get(&item) {
                found.entry(*wait).or_default().push(task);
            }
        }
    }
    for (wait, mut tasks) in found {
        let Some(wait) = waits.get_mut(wait) else { continue };
        tasks.sort_unstable();
        tasks.dedup();
        if !tasks.is_empty() {
            wait.object = Some((tasks.remove(0), LockKind::Task));
            wait.others = tasks;
        }
    }
}
