//! Threads that wait until another thread has run a class constructor.
//!
//! Source: `DeadlockAwareLock` in `threads.h`, `ListLockEntryBase` in `listlock.h`; `docs/internals/locks.md#class-constructors`.

use std::collections::BTreeSet;

use super::wait_target::WaitTarget;
use super::waits::{Blocked, BlockedFrame, Wait};
use crate::analysis::{LockKind, WaitEvidence, WaitKind};
use crate::base::hash::Map;
use crate::base::missed::tried;
use crate::base::{Addr, AddrRange};
use crate::clr::method_table::MethodTables;
use crate::memory::Memory;
use crate::session::Namer;

/// Bytes of a `Thread` that are searched for a pointer to a lock entry. The offset of the pointer depends on the runtime.
const SEARCHED: u64 = 0x400;
/// Offset of the type in the lock entry of a class constructor, in words from the holder.
const TYPE_AT: u64 = 2;

/// Whether this frame belongs to the library code that runs class constructors.
pub(super) fn is_of_starts(frame: &BlockedFrame) -> bool {
    let library = ["System.Runtime.CompilerServices.InitHelpers.", "System.Runtime.CompilerServices.StaticsHelpers."];
    library.iter().any(|prefix| frame.name.starts_with(prefix))
}

/// The class constructors that threads run.
#[derive(Debug, Default)]
pub(super) struct ClassConstructors {
    /// Indices in the thread list of the threads that run the constructor, by canonical method table.
    running: Map<Addr, BTreeSet<usize>>,
    /// Indices of these threads, by the address of their `Thread`.
    threads: Map<Addr, usize>,
    tables: Option<MethodTables>,
}

impl ClassConstructors {
    /// Finds the frames of class constructors.
    pub(super) fn find(namer: &Namer, threads: &[(usize, Blocked<'_>)]) -> ClassConstructors {
        let Some(tables) = namer.names().map(|names| names.method_tables()) else { return ClassConstructors::default() };
        let mut out = ClassConstructors { tables: Some(tables.clone()), ..ClassConstructors::default() };
        for (index, thread) in threads {
            for frame in thread.frames.iter().filter(|frame| frame.method.name.ends_with("..cctor()")) {
                let Ok(canonical) = tables.canonical(frame.method.declaring_type) else { continue };
                out.running.entry(canonical).or_default().insert(*index);
                out.threads.insert(thread.thread.address, *index);
            }
        }
        out
    }

    /// Returns the wait of a thread for a class constructor that another thread runs. The class comes from the lock entry that the `Thread` refers to
    /// while it waits. If that is not found, the class is searched on the native stack.
    pub(super) fn waited(&self, memory: &Memory, index: usize, thread: &Blocked<'_>) -> Option<Wait> {
        if self.running.is_empty() || thread.thread.cooperative == Some(true) {
            return None;
        }
        let whole = |object| WaitTarget { object, kind: LockKind::ClassConstructor, wait: WaitKind::ClassConstructor };
        if let Some(class) = tried(|| self.recorded(memory, index, thread.thread.address)) {
            return Some(Wait::exact(index, whole(class)));
        }
        let native = AddrRange::new(thread.stack?.start, thread.starts_class?);
        memory.need(native);
        let word = |(_, bytes): (Addr, &[u8])| Addr(memory.shape().number(bytes));
        let class = memory.words(native).map(word).find(|class| self.runs(*class).any(|other| other != index))?;
        Some(Wait { evidence: WaitEvidence::Stack, ..Wait::exact(index, whole(class)) })
    }

    /// The threads that run the constructor of the class.
    pub(super) fn runs(&self, class: Addr) -> impl Iterator<Item = usize> {
        let canonical = self.running.get(&class).map(|_| class);
        let canonical = canonical.or_else(|| tried(|| self.tables.as_ref()?.canonical(class).ok()));
        canonical.and_then(|canonical| self.running.get(&canonical)).into_iter().flatten().copied()
    }

    /// Searches the `Thread` for a pointer to the lock entry of a class, and returns the class. The holder of the entry must be a thread that runs
    /// the constructor of this class.
    fn recorded(&self, memory: &Memory, index: usize, thread: Addr) -> Option<Addr> {
        let word = memory.ptr_bytes();
        let class = |entry: Addr| {
            let holder = self.threads.get(&memory.search_at(entry)?).filter(|holder| **holder != index)?;
            let class = memory.search_at(entry.plus(TYPE_AT.checked_mul(word)?))?;
            self.runs(class).any(|runs| runs == *holder).then_some(class)
        };
        memory.search(AddrRange::of(thread, SEARCHED)).find_map(|(_, value)| class(Addr(value)))
    }
}
