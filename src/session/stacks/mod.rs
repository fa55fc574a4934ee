//! Walks the stacks of the managed threads.

mod fault;
pub(crate) mod frames;
pub(super) mod kept;
mod plan;

use std::sync::Arc;

use rayon::iter::{IntoParallelRefIterator, ParallelIterator};

use super::{Namer, Runtime};
use crate::base::missed::{Carried, Kept, tried};
use crate::base::{Addr, AddrRange, Collector, NoteKind, in_units, len64, plural};
use crate::clr::threads::Thread;
use crate::contract::ContractError;
use crate::dump::{DumpFacts, OsThread, ThreadStacks};
use crate::stack::walk::{Asked, Start};
use crate::stack::walked::{Gap, GapReason, Walk};
use crate::stack::{RegisterNames, Registers, Saved, StackError};
use kept::Way;

/// State flags of threads without a stack: `TS_Unstarted` and `TS_Dead`.
const WITHOUT_STACK: u32 = 0x400 | 0x800;
/// State flag of a thread that runs on its alternate signal stack.
const ON_ALTERNATE_STACK: u32 = 0x40;

/// State flag of a thread whose return address was hijacked for a suspension.
const HIJACKED: u32 = 0x80;

/// A thread with its stack.
#[derive(Debug)]
pub(crate) struct ThreadStack<'t> {
    /// The thread.
    pub(crate) thread: &'t Thread,
    /// Index of the thread in the runtime's thread list.
    pub(crate) index: usize,
    /// The operating system's thread, if it is in the dump.
    pub(crate) native: Option<&'t OsThread>,
    /// The memory of the stack in use, if it is in the dump.
    pub(crate) range: Option<AddrRange>,
    /// The frames and gaps found on the stack.
    pub(crate) walk: Arc<Walk>,
}

impl Thread {
    /// Whether the thread has started and not ended, so that it has a stack.
    pub(crate) fn has_stack(&self) -> bool {
        self.os_id.is_some_and(|id| id != 0) && self.state.is_none_or(|s| s & WITHOUT_STACK == 0)
    }

    /// Whether a return address on the thread's stack was hijacked for a suspension.
    pub(crate) fn is_hijacked(&self) -> bool {
        self.state.is_some_and(|s| s & HIJACKED != 0)
    }

    /// Whether the thread runs on its alternate signal stack, so that its stack pointer is not on its original stack.
    pub(crate) fn on_signal_stack(&self) -> bool {
        self.state.is_some_and(|s| s & ON_ALTERNATE_STACK != 0)
    }
}

impl Runtime {
    /// Walks the stacks of the managed threads for which `wanted` returns true. Adds notes on walks that reached a limit, and on threads that claim
    /// the stack of another thread.
    ///
    /// # Errors
    /// [`ContractError`] if the runtime does not describe its code or its frames.
    pub(crate) fn walk_stacks(
        &self,
        asked: Asked,
        wanted: impl Fn(&Thread) -> bool + Sync,
        notes: &Collector,
    ) -> Result<Vec<ThreadStack<'_>>, ContractError> {
        let walker = self.stack_walker()?;
        notes.extend(&self.file().facts.lost.of_threads());
        let stacks = ThreadStacks::new(self.file());
        // If the thread list is incomplete, the caller has reported that.
        let threads = tried(|| self.thread_list().map_or(&[][..], |list| list.data.as_slice()));
        let kept = self.kept_walks();
        let plan = kept.plan.get_or_init(|| tried(|| plan::plan(self, walker, &stacks, threads)));
        let walks = kept.walks.get_or_init(|| threads.iter().map(|_| Default::default()).collect());
        let listed: Vec<(usize, &Thread)> = threads.iter().enumerate().filter(|(_, t)| t.has_stack() && wanted(t)).collect();
        let carried = Carried::here();
        let walk = |(index, thread): &(usize, &Thread)| {
            let native = thread.os_id.and_then(|id| stacks.thread(id));
            let walk = || {
                Arc::new(match plan.way(*index) {
                    Way::Claimed(by) => Walk::unknown(GapReason::Claimed(by)),
                    Way::Walk { stack, own, bytes } => {
                        let part = plan.budget().part(bytes, asked.registers);
                        let registers = native.and_then(|n| self.registers(n));
                        let cooperative = thread.cooperative == Some(true);
                        let hijacked = thread.is_hijacked();
                        walker.walk(&Start { thread: thread.address, registers, cooperative, hijacked, stack, own, part }, asked)
                    }
                })
            };
            let place = walks.get(*index).filter(|_| !asked.registers).map(|[plain, full]| if asked.roots { full } else { plain });
            let kept = || Kept::explaining(walk, |walk, at| walker.explains(walk, at));
            carried.run(|| match place {
                Some(place) => place.get_or_init(kept).clone(),
                None => kept(),
            })
        };
        let walked: Vec<Kept<Arc<Walk>>> = listed.par_iter().map(walk).collect();
        let walked: Vec<ThreadStack<'_>> = walked
            .iter()
            .zip(&listed)
            .map(|(kept, (index, thread))| {
                let native = thread.os_id.and_then(|id| stacks.thread(id));
                let range = native.and_then(|n| self.stack_in_use(&stacks, thread, n));
                ThreadStack { thread, index: *index, native, range, walk: Arc::clone(kept.get()) }
            })
            .collect();
        note_limits(&walked, notes);
        Ok(walked)
    }

    /// Walks each stack, with the references in its frames, for the fuzz target. Returns the number of frames of each stack, and the number of
    /// frames that its share of the budget allows.
    #[cfg(feature = "internals")]
    pub fn try_stacks(&self, registers: bool) -> Vec<[u64; 2]> {
        let asked = Asked { roots: true, registers };
        let Ok(walked) = self.walk_stacks(asked, |_| true, &Collector::new()) else { return Vec::new() };
        let Some(plan) = self.kept_walks().plan.get() else { return Vec::new() };
        let allowed = |index| match plan.way(index) {
            Way::Claimed(_) => 0,
            Way::Walk { bytes, .. } => plan.budget().part(bytes, registers).frames,
        };
        walked.iter().map(|stack| [len64(stack.walk.frames.len()), allowed(stack.index)]).collect()
    }

    /// The module whose file contains the data that a stack walk missed at `gap`.
    fn module_of_gap(&self, gap: &Gap, namer: &Namer) -> Option<String> {
        let managed = || {
            let (_, module) = self.stack_walker().ok()?.code().image(gap.ip?).ok()??;
            namer.names()?.module(module).name.clone()
        };
        let native = || {
            let Some(StackError::Read(e)) = gap.lack.error() else { return None };
            let modules = &self.file().modules;
            let at = modules.iter().find(|m| m.range().contains(e.address))?;
            Some(at.file_name().to_string())
        };
        tried(|| managed().or_else(native))
    }

    /// The used part of a thread's stack, from the stack pointer to the base of the stack.
    pub(crate) fn stack_in_use(&self, stacks: &ThreadStacks<'_>, thread: &Thread, native: &OsThread) -> Option<AddrRange> {
        let sp = native.stack_pointer?;
        let from = Addr(sp.0.checked_next_multiple_of(self.memory().ptr_bytes())?);
        let mut end = stacks.of(native)?.end;
        // The kernel merges adjacent mappings, so the stack base that the runtime or the C library records is more precise than a mapping's end.
        for closer in [thread.stack_base, native.thread_base].into_iter().flatten() {
            if from < closer && closer < end {
                end = closer;
            }
        }
        (from < end).then(|| AddrRange::new(from, end))
    }

    /// The used part of each thread's stack, with the index in `threads`: at most `Limits::stack_bytes` per stack. `None` if the stack is not in the
    /// dump, or if the stacks together have more bytes than the dump, which means that they overlap.
    pub(crate) fn stacks_in_use<'t>(&self, threads: &'t [Thread], notes: &Collector) -> Vec<(usize, &'t Thread, Option<AddrRange>)> {
        let stacks = ThreadStacks::new(self.file());
        let most = self.limits().stack_bytes;
        let mut left = self.memory().dump_bytes();
        let range = |(index, thread): (usize, &'t Thread)| {
            let native = thread.os_id.and_then(|id| stacks.thread(id));
            let Some(range) = native.and_then(|n| self.stack_in_use(&stacks, thread, n)) else { return (index, thread, None) };
            if range.len() > most {
                let what = format!("only {} of the stack of the thread at {} are scanned", in_units(most), thread.address);
                notes.add(NoteKind::LimitHit, range.start, what);
            }
            let range = AddrRange::of(range.start, range.len().min(most));
            let Some(rest) = left.checked_sub(self.memory().captured(range)) else {
                notes.add(
                    NoteKind::Invalid,
                    range.start,
                    "the stacks of the threads have more bytes than the dump, so not all are scanned",
                );
                return (index, thread, None);
            };
            left = rest;
            (index, thread, Some(range))
        };
        threads.iter().enumerate().filter(|(_, t)| t.has_stack()).map(range).collect()
    }

    /// The used part of the original stack of a thread that is on its signal stack.
    pub(crate) fn own_stack_in_use(&self, stacks: &ThreadStacks<'_>, thread: &Thread) -> Option<AddrRange> {
        plan::own_stack(self.stack_walker().ok()?, stacks, thread)
    }

    /// The registers that the dump has for a thread.
    fn registers(&self, native: &OsThread) -> Option<Registers> {
        registers_of(&self.file().facts, native)
    }
}

/// The registers that the dump has for a thread; `None` without its instruction pointer or stack pointer.
fn registers_of(facts: &DumpFacts, native: &OsThread) -> Option<Registers> {
    let mut registers = Registers::new(facts.arch)?.on(facts.os);
    registers.ip = native.instruction_pointer?;
    for register in &native.registers {
        let number = RegisterNames::of(facts.arch).iter().position(|name| *name == register.name);
        if let Some(number) = number.and_then(|n| u8::try_from(n).ok()) {
            registers.set(number, Saved { value: Some(register.value), place: None });
        }
    }
    registers.set_sp(native.stack_pointer?);
    Some(registers)
}

/// Adds notes on stacks that were not walked to their end, and on threads that claim the same stack.
fn note_limits(walked: &[ThreadStack<'_>], notes: &Collector) {
    let cut: Vec<&ThreadStack<'_>> = walked.iter().filter(|stack| stack.walk.is_cut()).collect();
    if let Some(first) = cut.first() {
        let text = format!(
            "walking {} ended at its limit of frames, reads or memory: the stacks need more than those of a genuine dump of this size",
            plural(len64(cut.len()), "stack")
        );
        notes.add(NoteKind::LimitHit, first.thread.address, text);
    }
    let claims = |stack: &&ThreadStack<'_>| stack.walk.gaps.iter().any(|gap| matches!(gap.lack, GapReason::Claimed(_)));
    let claimed: Vec<&ThreadStack<'_>> = walked.iter().filter(claims).collect();
    if let Some(first) = claimed.first() {
        let text = format!(
            "{} the stack of another thread: it is walked once",
            match claimed.len() {
                1 => "a thread claims".to_string(),
                n => format!("{n} threads claim"),
            }
        );
        notes.add(NoteKind::Invalid, first.thread.address, text);
    }
}
