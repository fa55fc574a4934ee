//! Plans the stack walks: which stacks to walk, their address ranges, and the budget that the walks share.

use super::kept::{Plan, Way};
use crate::base::hash::Map;
use crate::base::{Addr, AddrRange};
use crate::clr::threads::Thread;
use crate::dump::ThreadStacks;
use crate::session::Runtime;
use crate::stack::WalkBudget;
use crate::stack::walk::StackWalker;

/// The thread that owns each stack, as an index in the list of threads. Two `Thread`s claim the same stack if their OS thread IDs, their stack
/// pointers or their first explicit frames are equal. The first `Thread` in the list owns the stack. Among `Thread`s with equal OS thread IDs,
/// however, the first `Thread` whose stack bounds contain the stack pointer owns the stack.
#[derive(Debug, Default)]
struct Owners {
    by_os_id: Map<u64, usize>,
    by_stack_pointer: Map<Addr, usize>,
    by_first_frame: Map<Addr, usize>,
}

/// Plans the walks of these threads.
pub(super) fn plan(runtime: &Runtime, walker: &StackWalker, stacks: &ThreadStacks<'_>, threads: &[Thread]) -> Plan {
    let sp = |thread: &Thread| stacks.thread(thread.os_id?)?.stack_pointer;
    let with_stack = || threads.iter().enumerate().filter(|(_, thread)| thread.has_stack());
    let mut owners = Owners::default();
    for (index, thread) in with_stack() {
        let Some(id) = thread.os_id else { continue };
        let owner = owners.by_os_id.entry(id).or_insert(index);
        let contains_sp = |index: usize| threads.get(index).is_some_and(|t| sp(t).is_some_and(|sp| is_within(t, sp)));
        if *owner != index && !contains_sp(*owner) && contains_sp(index) {
            *owner = index;
        }
    }
    // For each thread, the address of the thread that owns its stack; `None` if the thread itself owns it.
    let mut claimed: Vec<Option<Addr>> = vec![None; threads.len()];
    for (index, thread) in with_stack() {
        let by_id = thread.os_id.and_then(|id| owners.by_os_id.get(&id).copied()).filter(|by| *by != index);
        // Without a stack pointer, the first explicit frame identifies the stack.
        let by_stack = || match sp(thread) {
            Some(sp) => Some(*owners.by_stack_pointer.entry(sp).or_insert(index)),
            None => Some(*owners.by_first_frame.entry(walker.first_frame(thread.address)?).or_insert(index)),
        };
        let other = by_id.or_else(by_stack).filter(|by| *by != index);
        let owner = other.and_then(|by| threads.get(by)).map(|owner| owner.address);
        if let Some(claim) = claimed.get_mut(index) {
            *claim = owner;
        }
    }
    let mut starts: Vec<Addr> =
        with_stack().filter(|(i, _)| claimed.get(*i).is_some_and(Option::is_none)).filter_map(|(_, t)| sp(t)).collect();
    starts.sort_unstable();
    // Genuine stacks do not overlap, so together they have at most the size of the dump. In a forged dump, the bytes beyond that are not counted.
    let memory = runtime.memory();
    let mut left = memory.dump_bytes();
    let mut take = |range: AddrRange| {
        let bytes = memory.captured(range).min(left);
        left = left.saturating_sub(bytes);
        bytes
    };
    let mut way = |(thread, claimed): (&Thread, Option<Addr>)| {
        if let Some(by) = claimed {
            return Way::Claimed(by);
        }
        let native = thread.os_id.filter(|_| thread.has_stack()).and_then(|id| stacks.thread(id));
        let range = native.and_then(|n| runtime.stack_in_use(stacks, thread, n)).map(|range| {
            let next = starts.get(starts.partition_point(|start| *start <= range.start));
            AddrRange::new(range.start, next.map_or(range.end, |next| range.end.min(*next)))
        });
        let bytes = range.map_or(0, &mut take);
        if !thread.on_signal_stack() {
            return Way::Walk { stack: range, own: None, bytes };
        }
        // The stack pointer is on the signal stack. The walk continues on the original stack, which the explicit frames locate.
        let own = own_stack(walker, stacks, thread);
        let more = own.map_or(0, &mut take);
        Way::Walk { stack: None, own, bytes: bytes.saturating_add(more) }
    };
    let ways: Vec<Way> = threads.iter().zip(claimed).map(&mut way).collect();
    let walked = ways.iter().zip(threads).filter(|(_, thread)| thread.has_stack());
    let sizes: Vec<u64> = walked.filter_map(|(way, _)| if let Way::Walk { bytes, .. } = way { Some(*bytes) } else { None }).collect();
    Plan::new(ways, WalkBudget::new(memory.dump_bytes(), &sizes, runtime.limits().max_memory))
}

/// The used part of the original stack of a thread that is on its signal stack, from the stack pointer of the first method that an explicit frame
/// describes.
pub(crate) fn own_stack(walker: &StackWalker, stacks: &ThreadStacks<'_>, thread: &Thread) -> Option<AddrRange> {
    let sp = walker.first_caller(thread.address)?;
    let end = stacks.at_or_after(sp)?.end;
    Some(AddrRange::new(sp, thread.stack_base.filter(|base| sp < *base && *base < end).unwrap_or(end)))
}

/// Whether `sp` is within the stack bounds that the runtime records for `thread`.
fn is_within(thread: &Thread, sp: Addr) -> bool {
    thread.stack_base.zip(thread.stack_limit).is_some_and(|(base, limit)| limit <= sp && sp < base)
}
