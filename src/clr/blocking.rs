//! The runtime's records of threads that wait for a monitor.
//!
//! A thread that blocks in native code keeps a *blocking item* (`DebugBlockingItem`) on its own stack, for debuggers. Threads in
//! `Monitor.Wait` are also queued on the sync block. Source: `threads.h`, `syncblk.h`; measured on .NET 8 to 10.

use std::collections::HashSet;
use std::sync::Arc;

use crate::base::missed::contradiction;
use crate::base::{Addr, AddrRange};
use crate::contract::Descriptor;
use crate::data::{Bound, DebugBlockingItem as Item, Offset, SyncBlock, Thread, WaitEventLink, bind};
use crate::memory::Memory;

/// Maximum number of threads in the queue of a sync block.
const MAX_QUEUED: usize = 1 << 16;

/// A blocking item of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlockingItem {
    /// Address of the `SyncBlock`.
    pub(crate) block: Addr,
    /// Whether the thread is in `Monitor.Wait`. Otherwise it is entering the monitor.
    pub(crate) waits: bool,
    /// Timeout in milliseconds; `None` if infinite.
    pub(crate) timeout: Option<u32>,
}

/// Reads blocking items and wait queues.
#[derive(Debug)]
pub(crate) struct Blocking {
    memory: Arc<Memory>,
    /// The pointer to the item in a thread.
    slot: Option<Offset<Thread, Addr>>,
    /// Whether its offset comes from the descriptor. Otherwise it is a guess.
    placed: bool,
    item: Option<Bound<Item>>,
    queue: Option<WaitQueue>,
}

/// The fields of wait queues.
#[derive(Clone, Copy, Debug)]
struct WaitQueue {
    /// The first item of a sync block's queue.
    first: Offset<SyncBlock, Addr>,
    /// The thread of an item.
    thread: Offset<WaitEventLink, Addr>,
    /// The link of an item to the next item.
    link: Offset<WaitEventLink, Addr>,
}

impl WaitQueue {
    fn bind(d: &Descriptor) -> Option<WaitQueue> {
        Some(WaitQueue {
            first: SyncBlock::WaitQueue.bind(d).ok()?,
            thread: WaitEventLink::Thread.bind(d).ok()?,
            link: WaitEventLink::Link.bind(d).ok()?,
        })
    }
}

/// Value of an infinite timeout.
const ENDLESS: u32 = u32::MAX;
/// Kinds of items.
const ENTER: u32 = 0;
const WAIT: u32 = 1;
/// Number of bytes of a `Thread` that are searched for the item if the offset is unknown.
const SEARCHED: u64 = 0x800;

impl Blocking {
    /// Binds to a runtime. Structures that the descriptor does not have are not read.
    pub(crate) fn bind(memory: &Arc<Memory>, d: &Descriptor) -> Blocking {
        let slot = Thread::DebugBlockingItem.bind(d).ok();
        Blocking {
            memory: Arc::clone(memory),
            slot,
            placed: slot.is_some(),
            item: bind!(d, Item { Lock, AppDomain, Kind, Timeout }).ok(),
            queue: WaitQueue::bind(d),
        }
    }

    /// Whether the descriptor contains the offset of the items in threads.
    pub(crate) fn is_placed(&self) -> bool {
        self.placed
    }

    /// Whether the descriptor describes the wait queues of sync blocks.
    pub(crate) fn has_queues(&self) -> bool {
        self.queue.is_some()
    }

    /// Finds the offset of the items by their shape: the word of a `Thread` that points to an item on the thread's own stack in most of `threads`
    /// (address, stack). The word must point to an item in at least two threads, and any other word in less than half as many threads.
    pub(crate) fn find(&mut self, threads: &[(Addr, AddrRange)], is_block: impl Fn(Addr) -> bool) {
        let word = self.memory.ptr_bytes();
        let reads = |slot: Offset<Thread, Addr>, thread: Addr, stack: AddrRange| self.read(slot.place(thread), stack, &is_block).is_some();
        let hits = |offset: u64| threads.iter().filter(|(t, stack)| reads(Offset::found(offset), *t, *stack)).count();
        let offsets = (0..SEARCHED.checked_div(word).unwrap_or(0)).map(|i| i.saturating_mul(word));
        let mut best: Vec<(usize, u64)> = offsets.map(|o| (hits(o), o)).filter(|(n, _)| *n > 0).collect();
        best.sort_unstable_by(|a, b| b.cmp(a));
        let unrivalled = |most: usize| best.get(1).is_none_or(|(next, _)| next.saturating_mul(2) < most);
        self.slot = best.first().filter(|(most, _)| *most > 1 && unrivalled(*most)).map(|(_, offset)| Offset::found(*offset));
    }

    /// The item of the `Thread` at `thread`, whose used stack is `stack`. `None` if the thread is not blocked in a monitor.
    pub(crate) fn item(&self, thread: Addr, stack: AddrRange, is_block: impl Fn(Addr) -> bool) -> Option<BlockingItem> {
        let slot = self.slot?.place(thread);
        let item = self.read(slot, stack, &is_block);
        let noted = || self.memory.ptr(slot).ok().filter(|at| !at.is_null());
        if item.is_none()
            && self.placed
            && let Some((at, fields)) = noted().zip(self.item.as_ref())
            && !self.is_absent(at, fields, stack)
        {
            contradiction(slot, "the blocking item of a thread is not on its stack, or does not refer to a sync block");
        }
        item
    }

    /// Whether the item at `at` refers to a sync block that is not in the dump, as in mini dumps.
    fn is_absent(&self, at: Addr, item: &Bound<Item>, stack: AddrRange) -> bool {
        let block = || item.get(&self.memory, at, Item::Lock);
        stack.contains(at) && block().is_some_and(|block| self.memory.ptr(block).is_err())
    }

    fn read(&self, slot: Addr, stack: AddrRange, is_block: &impl Fn(Addr) -> bool) -> Option<BlockingItem> {
        let (m, item) = (&self.memory, self.item.as_ref()?);
        let at = m.ptr(slot).ok().filter(|at| stack.contains(*at))?;
        let block = item.get(m, at, Item::Lock).filter(|block| is_block(*block))?;
        let domain = item.get(m, at, Item::AppDomain)?;
        let kind = item.get(m, at, Item::Kind)?;
        let timeout = item.get(m, at, Item::Timeout)?;
        let valid = !domain.is_null() && matches!(kind, ENTER | WAIT);
        valid.then_some(BlockingItem { block, waits: kind == WAIT, timeout: (timeout != ENDLESS).then_some(timeout) })
    }

    /// The `Thread`s in `Monitor.Wait` on the sync block at `block`, in the order in which they will be woken. `None` if the list is corrupt, not
    /// described, or longer than `afford` allows. `afford` limits the total length, because the sync blocks of a forged dump may share a list.
    pub(crate) fn queued(&self, block: Addr, afford: &dyn Fn(u64) -> bool) -> Option<Vec<Addr>> {
        let queue = self.queue?;
        let mut link = queue.first.get(&self.memory, block)?;
        let (mut out, mut seen) = (Vec::new(), HashSet::new());
        while !link.is_null() {
            if !afford(1) || !seen.insert(link) || out.len() >= MAX_QUEUED {
                return None;
            }
            out.push(queue.thread.get(&self.memory, queue.link.owner(link)?)?);
            link = self.memory.ptr(link).ok()?;
        }
        Some(out)
    }
}
