//! The conservative stack scan: every stack word and register that points to an object counts as a root.
//!
//! Source: `docs/internals/gc-structures.md#conservative-stack-scan`. It finds everything a suspended thread holds on its
//! stack or in its registers, but also stale values.

use super::{Origin, Root, RootFlags, RootOptions, Roots, ThreadIndex, enumerated};
use crate::base::{Addr, AddrRange, Collector, Count, NoteKind};
use crate::clr::threads::Thread;
use crate::dump::{OsThread, ThreadStacks};
use crate::gc::{ObjectStarts, Walker};
use crate::memory::Memory;
use crate::model::{CoverageKind, RootKind};
use crate::session::Heap;

/// State flag of a thread that runs on its alternate signal stack instead of its own.
const ON_ALTERNATE_STACK: u32 = 0x40;
/// State flags of threads without a stack (not started, or exited).
const WITHOUT_STACK: u32 = 0x400 | 0x800;

/// Number of threads per obstacle to the scan.
#[derive(Default)]
struct Lacks {
    /// Threads with a stack.
    threads: u64,
    scanned: u64,
    no_registers: u64,
    no_stack: u64,
    cut: u64,
    elsewhere: u64,
}

/// Adds the objects that stacks and registers of `threads` point to.
pub(super) fn stack_roots(heap: &Heap, threads: &[Thread], options: &RootOptions, notes: &Collector, roots: &mut Roots) {
    let mut lacks = Lacks::default();
    let memory = heap.memory();
    let index = notes.with(heap.starts());
    let stacks = ThreadStacks::new(heap.runtime().file());
    // Stacks do not overlap: unless the dump is forged, their total size cannot exceed that of the dump.
    let (mut budget, mut forged) = (memory.dump_bytes(), None);
    for (thread, thread_index) in enumerated(threads) {
        let Some(os_id) = thread.os_id.filter(|id| *id != 0) else { continue };
        if thread.state.is_some_and(|s| s & WITHOUT_STACK != 0) {
            continue;
        }
        lacks.threads.bump();
        let Some(native) = stacks.thread(os_id).filter(|t| t.stack_pointer.is_some() && !t.registers.is_empty()) else {
            lacks.no_registers.bump();
            continue;
        };
        if thread.state.is_some_and(|s| s & ON_ALTERNATE_STACK != 0) {
            lacks.elsewhere.bump();
        }
        if options.wants(RootKind::Register) {
            for register in &native.registers {
                let Some((object, flags)) = object_at(heap, index, Addr(register.value)) else { continue };
                let origin = Origin::Register(thread_index, register.name);
                roots.roots.push(Root { kind: RootKind::Register, address: None, object, flags, origin });
            }
        }
        if options.wants(RootKind::Stack) {
            let Some(range) = stack_of(memory, &stacks, thread, native) else {
                lacks.no_stack.bump();
                continue;
            };
            lacks.scanned.bump();
            let captured = memory.captured(range);
            if captured > budget {
                forged = forged.or(Some(range.start));
                lacks.cut.bump();
                continue;
            }
            budget = budget.saturating_sub(captured);
            let cut = scan(heap, (thread, thread_index), range, notes, roots);
            lacks.cut.grow(u64::from(cut || captured < range.len()));
        }
    }
    if let Some(at) = forged {
        notes.add(NoteKind::Invalid, at, "the stacks of the threads have more bytes than the dump: not all are scanned");
    }
    for kind in [RootKind::Stack, RootKind::Register].into_iter().filter(|k| options.wants(*k)) {
        let missing = lacks.missing(kind);
        if !missing.is_empty() {
            notes.add(NoteKind::Missing, None, format!("roots of kind {kind}: {}", missing.join("; ")));
        }
        let (coverage, reason) = lacks.coverage(kind, heap.walker());
        roots.cover(kind, coverage, Some(reason));
    }
}

fn object_at(heap: &Heap, index: &ObjectStarts, address: Addr) -> Option<(Addr, RootFlags)> {
    let (_, object) = index.containing(heap.walker(), address)?;
    let interior = if object == address { RootFlags::NONE } else { RootFlags::INTERIOR };
    Some((object, RootFlags::CONSERVATIVE.with(interior)))
}

/// Scans the words of `range`. Returns whether it was only scanned in part.
fn scan(heap: &Heap, (thread, thread_index): (&Thread, ThreadIndex), mut range: AddrRange, notes: &Collector, roots: &mut Roots) -> bool {
    let (memory, index, limits) = (heap.memory(), &heap.starts().data, heap.limits());
    let mut cut = false;
    if range.len() > limits.stack_bytes {
        let what = format!("the stack of the thread at {} is scanned for {} bytes only", thread.address, limits.stack_bytes);
        notes.add(NoteKind::LimitHit, range.start, what);
        range = AddrRange::new(range.start, range.start.plus(limits.stack_bytes));
        cut = true;
    }
    memory.scan(range);
    for (at, bytes) in memory.words(range) {
        if roots.roots.len() > limits.roots {
            return true;
        }
        if let Some((object, flags)) = object_at(heap, index, Addr(memory.shape().number(bytes))) {
            let origin = Origin::Stack(thread_index);
            roots.roots.push(Root { kind: RootKind::Stack, address: Some(at), object, flags, origin });
        }
    }
    cut
}

/// The used part of a thread's stack: from its stack pointer to its end.
fn stack_of(memory: &Memory, stacks: &ThreadStacks<'_>, thread: &Thread, native: &OsThread) -> Option<AddrRange> {
    let sp = native.stack_pointer?;
    let from = Addr(sp.0.checked_next_multiple_of(memory.ptr_bytes())?);
    let mut end = stacks.of(native)?.end;
    // The kernel merges adjacent mappings: the end known to the runtime or the C library is more precise.
    for closer in [thread.stack_base, native.thread_base].into_iter().flatten() {
        if from < closer && closer < end {
            end = closer;
        }
    }
    (from < end).then(|| AddrRange::new(from, end))
}

impl Lacks {
    fn missing(&self, kind: RootKind) -> Vec<String> {
        let of = |n: u64, what: &str| (n > 0).then(|| format!("{n} of {} threads {what}", self.threads));
        let mut reasons: Vec<String> = Vec::new();
        reasons.extend(of(self.no_registers, "have no registers in the dump"));
        if kind == RootKind::Stack {
            reasons.extend(of(self.no_stack, "have no stack in the dump"));
            reasons.extend(of(self.cut, "have only a part of their stack in the dump"));
            reasons.extend(of(self.elsewhere, "were on their signal stack, and their own was not scanned"));
        }
        reasons
    }

    fn coverage(&self, kind: RootKind, heap: &Walker) -> (CoverageKind, String) {
        let mut reasons = self.missing(kind);
        let whole = heap.segments().iter().all(|s| s.captured_bytes >= s.allocated_bytes);
        let none = self.threads == 0 || self.no_registers == self.threads || kind == RootKind::Stack && self.scanned == 0;
        if !whole {
            reasons.push("objects missing from the dump cannot be recognized".into());
        }
        if none {
            reasons.push("no thread could be scanned".into());
            return (CoverageKind::Unavailable, reasons.join("; "));
        }
        if reasons.is_empty() {
            return (CoverageKind::Conservative, "scanned conservatively; some roots may be stale".into());
        }
        (CoverageKind::Partial, reasons.join("; "))
    }
}
