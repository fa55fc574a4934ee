//! The queues of the thread pool, and the work items in them.

use super::Tasks;
use crate::base::{Addr, Collector, Missing, NoteKind};
use crate::clr::library::{NoSuchField, fields_of, noted};

/// Maximum number of assignable queues that are read.
const MAX_QUEUES: u64 = 1 << 12;

fields_of! {
    /// Fields of `ThreadPoolWorkQueue`.
    struct WorkQueueFields {
        global: req "workItems",
        high: opt "highPriorityWorkItems",
        low: opt "lowPriorityWorkItems",
        assignable: opt "_assignableWorkItemQueues",
    }
}

impl Tasks {
    /// The shared queues of the `ThreadPoolWorkQueue` at `object`, with their names.
    pub(crate) fn shared_queues(&self, object: Addr, notes: &Collector) -> Vec<(&'static str, Addr)> {
        let library = self.library();
        let bound = library.method_table(object).map(|mt| WorkQueueFields::bind(library.types(), mt));
        let Some(fields) = bound.and_then(|bound| noted(bound, "thread pool queues", notes)) else { return Vec::new() };
        let own = [("high priority", fields.high), ("global", Some(fields.global)), ("low priority", fields.low)];
        let own = own.into_iter().filter_map(|(name, field)| Some((name, library.reference(object, field?)?)));
        let assignable = fields.assignable.and_then(|f| library.reference(object, f));
        let assignable = assignable.map(|array| self.elements(array, u64::MAX, MAX_QUEUES)).unwrap_or_default();
        own.chain(assignable.into_iter().map(|(_, queue)| ("assignable", queue))).collect()
    }

    /// The items of the shared queue at `queue`, oldest first; `None` if they cannot be read.
    pub(crate) fn queued(&self, queue: Addr, notes: &Collector) -> Option<Vec<Addr>> {
        let items = self.library().collections().queued(queue, &|n| self.afford(n));
        let Some((items, cut)) = noted(items, "thread pool queues", notes).flatten() else {
            notes.add(Missing::Async, queue, "a thread pool queue could not be read");
            return None;
        };
        if cut {
            notes.add(NoteKind::LimitHit, queue, "a thread pool queue has a cycle or exceeds its limit");
        }
        Some(items)
    }

    /// The items of the local queue of a thread at `queue`. `method_table` is the type of the queue. `None` if the items cannot be read.
    ///
    /// # Errors
    /// [`NoSuchField`]
    pub(crate) fn queued_locally(&self, queue: Addr, method_table: Addr, notes: &Collector) -> Result<Option<Vec<Addr>>, NoSuchField> {
        let items = self.library().collections().work_stealing_queue(queue, method_table, &|n| self.afford(n))?;
        if items.is_none() {
            notes.add(Missing::Async, queue, "a local thread pool queue could not be read");
        }
        Ok(items)
    }
}
