//! Finds the OS threads of managed threads whose ids the dump does not have.
//!
//! A process in a container sees the ids of the PID namespace of this container, and the runtime records those. A dump that is written from outside the
//! container has the ids of the writer's namespace. The stacks are at the same addresses in both.

use super::Runtime;
use crate::base::missed::tried;
use crate::base::{Addr, AddrRange, Answer, NoteKind, be, len64, plural};
use crate::clr::threads::Thread;
use crate::data::{Thread as Fields, bind};
use crate::dump::{DumpFile, OsThread, ThreadStacks};

impl Runtime {
    /// If the dump has other thread ids than the runtime recorded, sets the ids of `list` to those of the dump, and adds a note.
    pub(super) fn match_ids(&self, list: &mut Answer<Vec<Thread>>) {
        let frame = bind!(&self.descriptor().scope(), Fields { Frame? }).ok();
        // A thread without an explicit frame has an invalid pointer, and the dump may not have the pointer.
        let first_frame = |thread: &Thread| tried(|| frame.as_ref()?.get(self.memory(), thread.address, Fields::Frame));
        let Some(found) = found(self.file(), &list.data, first_frame) else { return };
        let count = len64(found.iter().flatten().count());
        let with_stack = len64(list.data.iter().filter(|t| t.has_stack()).count());
        for (thread, found) in list.data.iter_mut().zip(found) {
            thread.os_id = found.or(thread.os_id);
        }
        let text = format!(
            "the dump has other thread ids than the runtime recorded, as if it was written from outside the container of the process: \
             {count} of {} {} found by their stacks",
            plural(with_stack, "thread"),
            be(with_stack)
        );
        list.notes.add(NoteKind::ThreadIds, None, text);
    }
}

/// For each thread, the id of the OS thread that uses its stack. `None` if the recorded ids are those of the dump, or if no thread is found.
///
/// A recorded id that the dump has may be that of another thread, so an id counts only if nothing contradicts it.
fn found(file: &DumpFile, threads: &[Thread], first_frame: impl Fn(&Thread) -> Option<Addr>) -> Option<Vec<Option<u64>>> {
    let stacks = ThreadStacks::new(file);
    let listed = || threads.iter().filter(|t| t.has_stack());
    let is_known = |thread: &Thread| thread.recorded_id.is_some_and(|id| stacks.thread(id).is_some());
    if listed().all(is_known) {
        return None;
    }
    let user = |thread: &Thread| -> Option<&OsThread> {
        let bounds = thread.stack_limit.zip(thread.stack_base).filter(|(limit, base)| limit < base);
        let within = bounds.and_then(|(limit, base)| stacks.within(AddrRange::new(limit, base)));
        within.or_else(|| stacks.user(first_frame(thread)?))
    };
    let contradicted = |thread: &Thread| user(thread).is_some_and(|native| Some(u64::from(native.id)) != thread.recorded_id);
    if listed().any(|thread| is_known(thread) && !contradicted(thread)) {
        return None;
    }
    let id = |thread: &Thread| user(thread).filter(|_| thread.has_stack()).map(|native| u64::from(native.id));
    let found: Vec<Option<u64>> = threads.iter().map(id).collect();
    found.iter().any(Option::is_some).then_some(found)
}
