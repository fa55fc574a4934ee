//! Finds the bounds of stacks, and threads by ID. Uses sorted indices, because a dump may have ten thousand threads.

use std::collections::HashMap;

use super::{DumpFile, OsThread};
use crate::base::{Addr, AddrRange, PAGE};

/// Maximum size in bytes of the guard region below a stack.
const GUARD: u64 = 1 << 20;

/// The threads of a dump by ID, and the memory around their stack pointers.
#[derive(Debug)]
pub(crate) struct ThreadStacks<'d> {
    threads: HashMap<u64, &'d OsThread>,
    /// The regions of the address space, sorted by start.
    mapped: Vec<AddrRange>,
    /// The captured ranges, sorted by start.
    captured: Vec<AddrRange>,
    /// The stack pointers of all threads, sorted.
    pointers: Vec<Addr>,
    /// The threads with these stack pointers.
    at_pointers: Vec<&'d OsThread>,
}

impl<'d> ThreadStacks<'d> {
    /// Indexes the threads, regions and captured ranges of `dump`. Of several threads with the same ID, the first is used.
    pub(crate) fn new(dump: &'d DumpFile) -> ThreadStacks<'d> {
        let mut threads = HashMap::with_capacity(dump.threads.len());
        for thread in &dump.threads {
            threads.entry(u64::from(thread.id)).or_insert(thread);
        }
        let sorted = |mut list: Vec<AddrRange>| {
            list.sort_unstable_by_key(|r| (r.start, r.end));
            list
        };
        let mut by_pointer: Vec<(Addr, &OsThread)> = dump.threads.iter().filter_map(|t| Some((t.stack_pointer?, t))).collect();
        by_pointer.sort_by_key(|(pointer, _)| *pointer);
        let (pointers, at_pointers) = by_pointer.into_iter().unzip();
        ThreadStacks {
            threads,
            pointers,
            at_pointers,
            mapped: sorted(dump.regions.iter().map(|r| r.range).collect()),
            captured: sorted(dump.ranges.iter().map(|r| r.range()).collect()),
        }
    }

    /// The thread with the operating system ID `id`.
    pub(crate) fn thread(&self, id: u64) -> Option<&'d OsThread> {
        self.threads.get(&id).copied()
    }

    /// The thread whose stack pointer is in `stack`; `None` if no stack pointer is, or several are.
    pub(crate) fn within(&self, stack: AddrRange) -> Option<&'d OsThread> {
        let first = self.pointers.partition_point(|p| *p < stack.start);
        let is_in = |index: usize| self.pointers.get(index).is_some_and(|p| *p < stack.end);
        self.at_pointers.get(first).copied().filter(|_| is_in(first) && !is_in(first.saturating_add(1)))
    }

    /// The thread that uses the stack at `address`.
    pub(crate) fn user(&self, address: Addr) -> Option<&'d OsThread> {
        let last = self.pointers.partition_point(|p| *p <= address).checked_sub(1)?;
        self.at_pointers.get(last).copied().filter(|thread| self.of(thread).is_some_and(|used| used.contains(address)))
    }

    /// The mapping that contains `pointer`, or else the captured range. The kernel merges adjacent mappings, so the result may include more than
    /// the stack.
    pub(crate) fn around(&self, pointer: Addr) -> Option<AddrRange> {
        at(&self.mapped, pointer).or_else(|| at(&self.captured, pointer))
    }

    /// The mapping that contains `pointer`, or else the next mapping if it starts within [`GUARD`]: after a stack overflow, the stack pointer is in
    /// the guard region.
    pub(crate) fn at_or_after(&self, pointer: Addr) -> Option<AddrRange> {
        let next = |sorted: &[AddrRange]| sorted.get(sorted.partition_point(|r| r.start <= pointer)).copied();
        let list = if self.mapped.is_empty() { &self.captured } else { &self.mapped };
        self.around(pointer).or_else(|| next(list).filter(|r| r.start.since(pointer).is_some_and(|n| n <= GUARD)))
    }

    /// The used part of the stack of `thread`. If the dump records no stack, as an ELF core, the used part starts at the stack pointer and ends
    /// at the end of the mapping, or before that at the next higher stack pointer of a thread.
    pub(crate) fn of(&self, thread: &OsThread) -> Option<AddrRange> {
        let pointer = thread.stack_pointer;
        let recorded = thread.stack.filter(|s| pointer.is_none_or(|sp| s.contains(sp)));
        recorded.or_else(|| {
            let sp = pointer?;
            let end = self.around(sp)?.end;
            let next = self.pointers.get(self.pointers.partition_point(|p| *p <= sp));
            Some(AddrRange::new(sp, next.map_or(end, |n| end.min(*n))))
        })
    }

    /// The original stack of a thread that runs on another stack, such as the alternate stack of a signal handler; `None` if the stack pointer is
    /// on the original stack.
    ///
    /// The top of the original stack is at thread-local storage, which the C library places at the top of each stack that it allocates. For the
    /// first thread, the top is at the random bytes that the kernel places there (`AT_RANDOM`).
    pub(crate) fn left(&self, dump: &DumpFile, thread: &OsThread) -> Option<AddrRange> {
        const AT_RANDOM: u64 = 25;
        let pointer = thread.stack_pointer?;
        let random = || dump.auxv.iter().find(|(key, _)| *key == AT_RANDOM).map(|(_, value)| Addr(*value));
        let top = if dump.facts.pid == Some(thread.id) { random()? } else { thread.thread_base? };
        let own = self.around(top)?;
        let end = top.plus(PAGE).align_down(PAGE).min(own.end);
        (!own.contains(pointer)).then(|| AddrRange::new(own.start, end))
    }

    /// The whole mapped stack of `thread`, including the unused part below the stack pointer. The stack ends at `base`, the stack base that the
    /// runtime recorded. Without `base`, the stack ends at thread-local storage, which the C library places at the top of each stack that it
    /// allocates.
    pub(crate) fn whole(&self, thread: &OsThread, base: Option<Addr>) -> Option<AddrRange> {
        let Some(pointer) = thread.stack_pointer else { return thread.stack };
        let around = self.around(pointer)?;
        let above = self.pointers.get(self.pointers.partition_point(|p| *p <= pointer)).copied();
        let end = around.end.min(above.unwrap_or(around.end));
        let known = |top: Addr| (pointer < top && top <= end).then_some(top);
        let storage = || known(thread.thread_base?.plus(PAGE).align_down(PAGE));
        let top = base.and_then(known).or_else(storage).unwrap_or(end);
        // If the mapping also contains a lower stack, the boundary between the two is unknown, so the unused part of this stack is left out.
        let below = self.pointers.partition_point(|p| *p < pointer).checked_sub(1).and_then(|i| self.pointers.get(i));
        let start = below.filter(|p| around.contains(**p)).map_or(around.start, |_| pointer.align_down(PAGE));
        Some(AddrRange::new(start, top))
    }
}

/// The range in `sorted` with the highest start at or below `address`, if the range contains the address.
fn at(sorted: &[AddrRange], address: Addr) -> Option<AddrRange> {
    let last = sorted.partition_point(|r| r.start <= address).checked_sub(1)?;
    sorted.get(last).copied().filter(|r| r.contains(address))
}
