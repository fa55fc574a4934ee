//! Plans stack walks: which stacks, their ranges, and the budget of each walk.

use super::kept::{Plan, Way};
use crate::base::hash::Map;
use crate::base::{Addr, AddrRange};
use crate::clr::threads::Thread;
use crate::dump::ThreadStacks;
use crate::session::Runtime;
use crate::stack::WalkBudget;
use crate::stack::walk::StackWalker;

/// Assigns each stack to one thread. A stack is identified by the OS thread ID, the stack pointer, and the chain of frames. If several
/// `Thread`s claim one of these, it belongs to the thread whose stack bounds contain it, or else to the first.
#[derive(Debug, Default)]
struct Owners {
    of_ids: Map<u64, usize>,
    of_pointers: Map<Addr, usize>,
    of_frames: Map<Addr, usize>,
}

/// Plans the walks of these threads.
pub(super) fn plan(runtime: &Runtime, walker: &StackWalker, stacks: &ThreadStacks<'_>, threads: &[Thread]) -> Plan {
    let sp = |thread: &Thread| stacks.thread(thread.os_id?)?.stack_pointer;
    let listed = || threads.iter().enumerate().filter(|(_, thread)| thread.has_stack());
    let mut owners = Owners::default();
    for (index, thread) in listed() {
        let Some(id) = thread.os_id else { continue };
        let owner = owners.of_ids.entry(id).or_insert(index);
        let fits = |index: usize| threads.get(index).is_some_and(|t| sp(t).is_some_and(|sp| is_within(t, sp)));
        if *owner != index && !fits(*owner) && fits(index) {
            *owner = index;
        }
    }
    let mut claimed: Vec<Option<Addr>> = vec![None; threads.len()];
    for (index, thread) in listed() {
        let by_id = thread.os_id.and_then(|id| owners.of_ids.get(&id).copied()).filter(|by| *by != index);
        // Without a stack pointer, the chain of frames identifies the stack.
        let by_place = || match sp(thread) {
            Some(sp) => Some(*owners.of_pointers.entry(sp).or_insert(index)),
            None => Some(*owners.of_frames.entry(walker.first_frame(thread.address)?).or_insert(index)),
        };
        let other = by_id.or_else(by_place).filter(|by| *by != index);
        let owner = other.and_then(|by| threads.get(by)).map(|owner| owner.address);
        if let Some(claim) = claimed.get_mut(index) {
            *claim = owner;
        }
    }
    let mut starts: Vec<Addr> = listed().filter(|(i, _)| claimed.get(*i).is_some_and(Option::is_none)).filter_map(|(_, t)| sp(t)).collect();
    starts.sort_unstable();
    // Stacks do not overlap, so in total they have no more bytes than the dump, unless it is forged.
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
        // The walk continues from the signal stack to the thread's original stack, whose position the stack pointer does not show.
        let own = own_stack(walker, stacks, thread);
        let more = own.map_or(0, &mut take);
        Way::Walk { stack: None, own, bytes: bytes.saturating_add(more) }
    };
    let ways: Vec<Way> = threads.iter().zip(claimed).map(&mut way).collect();
    let walked = ways.iter().zip(threads).filter(|(_, thread)| thread.has_stack());
    let sizes: Vec<u64> = walked.filter_map(|(way, _)| if let Way::Walk { bytes, .. } = way { Some(*bytes) } else { None }).collect();
    Plan::new(ways, WalkBudget::new(memory.dump_bytes(), &sizes, runtime.limits().max_memory))
}

/// The memory in use on the original stack of a thread that is on its signal stack, starting at the interrupted method.
pub(crate) fn own_stack(walker: &StackWalker, stacks: &ThreadStacks<'_>, thread: &Thread) -> Option<AddrRange> {
    let sp = walker.first_caller(thread.address)?;
    let end = stacks.at_or_after(sp)?.end;
    Some(AddrRange::new(sp, thread.stack_base.filter(|base| sp < *base && *base < end).unwrap_or(end)))
}

/// Whether `sp` is within the stack bounds that the runtime records for `thread`.
fn is_within(thread: &Thread, sp: Addr) -> bool {
    thread.stack_base.zip(thread.stack_limit).is_some_and(|(base, limit)| limit <= sp && sp < base)
}
