//! Which threads have an object on their stacks.

use crate::base::hash::{Map, Set};
use crate::base::{Addr, AddrRange, Collector, NoteKind};
use crate::dump::ThreadStacks;
use crate::session::Runtime;

/// The managed ids of threads that have a word with one of the addresses `wanted` on their stacks. A word may be stale.
pub(super) fn holders(runtime: &Runtime, wanted: &Set<Addr>, notes: &Collector) -> Map<Addr, Vec<u32>> {
    let mut out: Map<Addr, Vec<u32>> = Map::default();
    if wanted.is_empty() {
        return out;
    }
    let stacks = ThreadStacks::new(runtime.file());
    let memory = runtime.memory();
    // Stacks do not overlap: unless the dump is forged, their total size cannot exceed that of the dump.
    let mut left = memory.dump_bytes();
    for thread in runtime.threads_if_any(notes).iter().filter(|t| t.has_stack()) {
        let native = thread.os_id.and_then(|id| stacks.thread(id));
        let range = native.and_then(|n| runtime.stack_in_use(&stacks, thread, n));
        let (Some(range), Some(id)) = (range, thread.id) else { continue };
        let most = runtime.limits().stack_bytes;
        if range.len() > most {
            let what = format!("the stack of the thread at {} is searched for {most} bytes only", thread.address);
            notes.add(NoteKind::LimitHit, range.start, what);
        }
        let range = AddrRange::new(range.start, range.start.plus(range.len().min(most)));
        let Some(rest) = left.checked_sub(memory.captured(range)) else {
            notes.add(NoteKind::Invalid, range.start, "the stacks of the threads have more bytes than the dump: not all are searched");
            break;
        };
        left = rest;
        for (_, bytes) in memory.words(range) {
            let word = Addr(memory.shape().number(bytes));
            if wanted.contains(&word) {
                let ids = out.entry(word).or_default();
                if ids.last() != Some(&id) {
                    ids.push(id);
                }
            }
        }
    }
    out
}
