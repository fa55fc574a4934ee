//! The links of the thread list, which point to threads or to the links inside them.
//!
//! Source: `ThreadStore::m_ThreadList` (threads.h). Up to .NET 10 it is an `SList` of links, each embedded in a `Thread`. In .NET 11 and
//! NativeAOT, links contain the address of the next `Thread`.

use super::Descriptor;
use crate::base::Addr;
use crate::base::missed::tried;
use crate::data::{IdDispenser, Offset, Thread, ThreadStore, bind, globals};
use crate::memory::Memory;

/// Maximum number of threads that are counted to determine the kind of links.
const MOST_COUNTED: u32 = 1 << 10;

/// Kind of the links in the thread list, by their target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ThreadLinks {
    /// The next thread.
    ToThreads {
        /// The link in a thread.
        link: Offset<Thread, Addr>,
    },
    /// The link in the next thread.
    ToLinks {
        /// The link in a thread.
        link: Offset<Thread, Addr>,
    },
}

impl ThreadLinks {
    /// Determines the kind of the links in the list that begins with `first`, for threads that have their link in the field `link`. If the runtime's
    /// table of ids is in the dump, the table decides, because it contains each thread at the index of its id. Otherwise, the kind is used whose list
    /// has as many threads as the store counts. If neither decides, the descriptor does: only an `SList` has a second word.
    pub(crate) fn of(d: &Descriptor, memory: &Memory, first: Addr, link: Offset<Thread, Addr>) -> ThreadLinks {
        let (to_threads, to_links) = (ThreadLinks::ToThreads { link }, ThreadLinks::ToLinks { link });
        if d.is_native_aot() {
            return to_threads;
        }
        // Failed reads are not reported: if the assumed kind is wrong, `thread` is not the address of a thread.
        let proven = |links: &ThreadLinks| links.thread(first).is_some_and(|thread| tried(|| has_its_id(d, memory, thread)) == Some(true));
        if let Some(links) = [to_threads, to_links].into_iter().find(proven) {
            return links;
        }
        let counts = |links: &ThreadLinks| tried(|| links.is_as_long_as_counted(d, memory, first)) == Some(true);
        if let Some(links) = [to_links, to_threads].into_iter().find(counts) {
            return links;
        }
        let next_word = ThreadStore::FirstThreadLink.offset(d).ok().map(|at| at.saturating_add(memory.ptr_bytes()));
        // Only descriptors of the new list have the field `GCFrame`. Overlays describe it for the old list too, whose first word has another
        // position.
        let is_new = next_word.is_some() && next_word == ThreadStore::ThreadCount.offset(d).ok() && Thread::GCFrame.is_in(d);
        if is_new { to_threads } else { to_links }
    }

    /// Whether the list that begins with `first` has as many threads as the store counts; `None` if the dump does not have the count.
    fn is_as_long_as_counted(self, d: &Descriptor, memory: &Memory, first: Addr) -> Option<bool> {
        let store = memory.ptr(globals::ThreadStore.of(d).ok()?).ok()?;
        let counted = bind!(d, ThreadStore { ThreadCount }).ok()?.get(memory, store, ThreadStore::ThreadCount)?;
        let mut value = first;
        for _ in 0..counted.min(MOST_COUNTED) {
            if value.is_null() {
                return Some(false);
            }
            value = memory.ptr(self.next(self.thread(value)?)).ok()?;
        }
        Some(value.is_null())
    }

    /// The thread that a link of this `value` points to; `None` if the value is too small.
    pub(crate) fn thread(self, value: Addr) -> Option<Addr> {
        match self {
            ThreadLinks::ToThreads { .. } => Some(value),
            ThreadLinks::ToLinks { link } => link.owner(value),
        }
    }

    /// The address of the link in `thread`.
    pub(crate) fn next(self, thread: Addr) -> Addr {
        let (ThreadLinks::ToThreads { link } | ThreadLinks::ToLinks { link }) = self;
        link.place(thread)
    }
}

/// Whether the runtime's table of ids has `thread` under its id; `None` if the table is missing from the dump or the descriptor.
fn has_its_id(d: &Descriptor, memory: &Memory, thread: Addr) -> Option<bool> {
    let dispenser = memory.ptr(globals::ThinlockThreadIdDispenser.of(d).ok()?).ok()?;
    let table = bind!(d, IdDispenser { IdToThread }).ok()?.get(memory, dispenser, IdDispenser::IdToThread)?;
    let id = bind!(d, Thread { Id }).ok()?.get(memory, thread, Thread::Id)?;
    let entry = memory.ptr(table.element(u64::from(id), memory.ptr_bytes())).ok()?;
    Some(id != 0 && entry == thread)
}
