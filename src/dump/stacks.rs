//! Stack bounds, and threads by ID. Indexed, because a dump may have ten thousand threads.

use std::collections::HashMap;

use super::{DumpFile, OsThread};
use crate::base::{Addr, AddrRange, PAGE};

/// Maximum size in bytes of a stack's guard region.
const GUARD: u64 = 1 << 20;

/// The threads of a dump by ID, and the memory around their stack pointers.
#[derive(Debug)]
pub(crate) struct ThreadStacks<'d> {
    threads: HashMap<u64, &'d OsThread>,
    /// Sorted by start.
    mapped: Vec<AddrRange>,
    /// Sorted by start.
    captured: Vec<AddrRange>,
    /// Sorted.
    pointers: Vec<Addr>,
}

impl<'d> ThreadStacks<'d> {
    /// Indexes the threads, regions and ranges of `dump`. The first of several threads with equal IDs wins.
    pub(crate) fn new(dump: &'d DumpFile) -> ThreadStacks<'d> {
        let mut threads = HashMap::with_capacity(dump.threads.len());
        for thread in &dump.threads {
            threads.entry(u64::from(thread.id)).or_insert(thread);
        }
        let sorted = |mut list: Vec<AddrRange>| {
            list.sort_unstable_by_key(|r| (r.start, r.end));
            list
        };
        let mut pointers: Vec<Addr> = dump.threads.iter().filter_map(|t| t.stack_pointer).collect();
        pointers.sort_unstable();
        ThreadStacks {
            threads,
            pointers,
            mapped: sorted(dump.regions.iter().map(|r| r.range).collect()),
            captured: sorted(dump.ranges.iter().map(|r| AddrRange::new(r.start, r.start.plus(r.len))).collect()),
        }
    }

    /// The thread with the operating system ID `id`.
    pub(crate) fn thread(&self, id: u64) -> Option<&'d OsThread> {
        self.threads.get(&id).copied()
    }

    /// The mapping around `pointer`, or else the captured range. The kernel merges adjacent mappings, so this may span
    /// more than the stack.
    pub(crate) fn around(&self, pointer: Addr) -> Option<AddrRange> {
        at(&self.mapped, pointer).or_else(|| at(&self.captured, pointer))
    }

    /// The mapping around `pointer`, or the next one: after a stack overflow, the pointer is in the guard region.
    pub(crate) fn at_or_after(&self, pointer: Addr) -> Option<AddrRange> {
        let next = |sorted: &[AddrRange]| sorted.get(sorted.partition_point(|r| r.start <= pointer)).copied();
        let list = if self.mapped.is_empty() { &self.captured } else { &self.mapped };
        self.around(pointer).or_else(|| next(list).filter(|r| r.start.since(pointer).is_some_and(|n| n <= GUARD)))
    }

    /// The stack of `thread`: as recorded, or else from its stack pointer to the end of the surrounding mapping, stopping at
    /// the next thread's stack pointer. ELF cores do not record stack bounds.
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

    /// The original stack of a thread that runs on another one, as signal handlers do. The C library places thread-local storage at the top
    /// of the stacks that it allocates; at the top of the first thread's stack, the kernel places random bytes (`AT_RANDOM`).
    pub(crate) fn left(&self, dump: &DumpFile, thread: &OsThread) -> Option<AddrRange> {
        const AT_RANDOM: u64 = 25;
        let pointer = thread.stack_pointer?;
        let random = || dump.auxv.iter().find(|(key, _)| *key == AT_RANDOM).map(|(_, value)| Addr(*value));
        let top = if dump.facts.pid == Some(thread.id) { random()? } else { thread.thread_base? };
        let own = self.around(top)?;
        let end = top.plus(PAGE).align_down(PAGE).min(own.end);
        (!own.contains(pointer)).then(|| AddrRange::new(own.start, end))
    }

    /// The whole mapped stack of `thread`, including unused parts below the stack pointer, up to `base` if the runtime recorded it. The C
    /// library places thread-local storage at the top of the stacks that it allocates.
    pub(crate) fn whole(&self, thread: &OsThread, base: Option<Addr>) -> Option<AddrRange> {
        let Some(pointer) = thread.stack_pointer else { return thread.stack };
        let around = self.around(pointer)?;
        let above = self.pointers.get(self.pointers.partition_point(|p| *p <= pointer)).copied();
        let end = around.end.min(above.unwrap_or(around.end));
        let known = |top: Addr| (pointer < top && top <= end).then_some(top);
        let storage = || known(thread.thread_base?.plus(PAGE).align_down(PAGE));
        let top = base.and_then(known).or_else(storage).unwrap_or(end);
        // If the mapping contains several stacks, the stack pointer of the next lower thread bounds this one, whose unused part is left
        // out.
        let below = self.pointers.partition_point(|p| *p < pointer).checked_sub(1).and_then(|i| self.pointers.get(i));
        let start = below.filter(|p| around.contains(**p)).map_or(around.start, |_| pointer.align_down(PAGE));
        Some(AddrRange::new(start, top))
    }
}

fn at(sorted: &[AddrRange], address: Addr) -> Option<AddrRange> {
    let last = sorted.partition_point(|r| r.start <= address).checked_sub(1)?;
    sorted.get(last).copied().filter(|r| r.contains(address))
}
