//! The waiters of `SemaphoreSlim`.

use super::library::Library;
use crate::base::hash::Map;
use crate::base::{Addr, Collector, NoteKind};
use crate::clr::library::FieldAt;

impl Library {
    /// Adds the tasks of `WaitAsync` in the list of the semaphore at `semaphore` to `out`, each with the semaphore. `head` is `SemaphoreSlim.m_asyncHead`
    /// and `next` is `TaskNode.Next`.
    pub(crate) fn semaphore_waiters(
        &self,
        semaphore: Addr,
        (head, next): (FieldAt, FieldAt),
        out: &mut Map<Addr, Addr>,
        notes: &Collector,
    ) {
        let mut at = self.reference(semaphore, head);
        while let Some(waiter) = at.filter(|_| self.afford(1)) {
            // A waiter is on only one list, so this list is damaged.
            if out.insert(waiter, semaphore).is_some() {
                let what = "the list of waiters of a semaphore has a cycle, or includes waiters of another semaphore";
                notes.add(NoteKind::LimitHit, waiter, what);
                return;
            }
            at = self.reference(waiter, next);
        }
    }
}
