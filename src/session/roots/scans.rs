//! Stacks read word by word: every word that points to an object is a root.

use super::options::{ROOT_BYTES, RootOptions, enumerated};
use crate::base::hash::Map;
use crate::base::missed::tried;
use crate::base::{Addr, AddrRange, Budget, Collector, Count, Missing, NoteKind, Notes, in_units};
use crate::clr::threads::Thread;
use crate::dump::{OsThread, ThreadStacks};
use crate::gc::{ObjectStarts, Walker};
use crate::heapgraph::{Origin, RawRoot, RootFlags, RootThread, Roots, StackRoots, StaticIndex, ThreadIndex};
use crate::memory::Memory;
use crate::model::{CoverageKind, RootCoverageModel, RootKind};
use crate::session::Heap;
use crate::stack::walk::Asked;

/// Adds every value of the stacks and registers of `threads` that points to an object.
pub(super) fn scanned_roots((heap, budget): (&Heap, &Budget), threads: &[Thread], options: &RootOptions, roots: &mut Roots) -> StackRoots {
    let notes = Collector::new();
    let index = notes.with(heap.starts());
    let stacks = ThreadStacks::new(heap.runtime().file());
    note_contradictions(heap, &notes);
    let mut scans = Scans::new(heap, budget);
    scans.flags = scans.flags.with(RootFlags::SCANNED);
    for (thread, at) in enumerated(threads).filter(|(t, _)| t.has_stack()) {
        scans.lacks.threads.bump();
        let native = thread.os_id.and_then(|id| stacks.thread(id));
        let Some(native) = native.filter(|t| t.stack_pointer.is_some() && !t.registers.is_empty()) else {
            scans.lacks.no_registers.bump();
            continue;
        };
        scans.thread((thread, at), native, &stacks, index, (options, &notes), roots);
    }
    if let Some(at) = scans.forged {
        notes.add(NoteKind::Invalid, at, "the stacks of the threads have more bytes than the dump, so not all are scanned");
    }
    let mut coverage = Vec::new();
    for kind in [RootKind::Stack, RootKind::Register].into_iter().filter(|k| options.wants(*k)) {
        let missing = scans.lacks.missing(kind);
        if !missing.is_empty() {
            notes.add(Missing::Stacks, None, format!("roots of kind {kind}: {}", missing.join("; ")));
        }
        let (covered, reason) = scans.lacks.coverage(kind, heap.walker());
        coverage.push(RootCoverageModel { kind, coverage: covered, reason: Some(reason) });
    }
    StackRoots { coverage, notes: notes.into_notes(), doubts: Notes::new() }
}

/// Adds the notes on stacks that contradict themselves, which only walks of the frames find: words of such a stack may be lost.
fn note_contradictions(heap: &Heap, notes: &Collector) {
    let walking = Collector::new();
    let walked = heap.runtime().walk_stacks(Asked { roots: true, registers: false }, |_| true, &walking).map(drop);
    let found = walking.into_notes();
    let invalid = found.iter().filter(|note| walked.is_ok() && note.kind == NoteKind::Invalid);
    invalid.for_each(|note| notes.add(note.kind, note.address, note.message.clone()));
}

/// Adds the words on all stacks and in all registers that point to objects. SGen treats every such word as a reference.
pub(super) fn native_roots((heap, budget): (&Heap, &Budget), options: &RootOptions, roots: &mut Roots) -> StackRoots {
    let notes = Collector::new();
    let (file, memory) = (heap.runtime().file(), heap.memory());
    let index = notes.with(heap.starts()).as_ref();
    let stacks = ThreadStacks::new(file);
    let mut scans = Scans::new(heap, budget);
    for native in &file.threads {
        scans.lacks.threads.bump();
        let Some(at) = roots.threads.push(RootThread { managed_id: None, os_id: Some(native.id.into()) }) else { break };
        if options.wants(RootKind::Register) {
            native.registers.iter().for_each(|r| scans.register((at, r.name), Addr(r.value), index, roots));
        }
        let Some(sp) = native.stack_pointer else {
            scans.lacks.no_registers.bump();
            continue;
        };
        let end = stacks.of(native).map(|range| native.thread_base.filter(|base| sp < *base && *base < range.end).unwrap_or(range.end));
        let Some(end) = end.filter(|end| sp < *end) else {
            scans.lacks.no_stack.bump();
            continue;
        };
        let range = AddrRange::new(sp.align_down(memory.ptr_bytes()), end.min(sp.plus(heap.limits().stack_bytes)));
        let captured = memory.captured(range);
        scans.lacks.scanned.bump();
        scans.lacks.cut.grow(u64::from(captured < range.len() || captured > scans.budget));
        if captured <= scans.budget && options.wants(RootKind::Stack) {
            scans.budget = scans.budget.saturating_sub(captured);
            memory.scan(range);
            scans.words((at, range), index, roots);
        }
    }
    let kinds = [RootKind::Stack, RootKind::Register].into_iter().filter(|k| options.wants(*k));
    let coverage = kinds.map(|kind| {
        let (coverage, reason) = scans.lacks.coverage(kind, heap.walker());
        RootCoverageModel { kind, coverage, reason: Some(reason) }
    });
    StackRoots { coverage: coverage.collect(), notes: notes.into_notes(), doubts: Notes::new() }
}

/// Number of threads with each obstacle.
#[derive(Default)]
pub(super) struct Lacks {
    /// Threads with a stack.
    pub(super) threads: u64,
    scanned: u64,
    pub(super) no_registers: u64,
    pub(super) no_stack: u64,
    pub(super) cut: u64,
    pub(super) elsewhere: u64,
    /// Threads whose stack belongs to another thread.
    pub(super) claimed: u64,
}

/// Scans memory for words that point to objects.
pub(super) struct Scans<'h> {
    heap: &'h Heap,
    /// The budget of all roots.
    pub(super) kept: &'h Budget,
    pub(super) lacks: Lacks,
    flags: RootFlags,
    /// Registers by name.
    registers: Map<&'static str, StaticIndex>,
    /// Number of bytes of stacks that may still be scanned. Stacks do not overlap, so only the stacks of a forged dump exceed the size of the dump.
    budget: u64,
    forged: Option<Addr>,
}

impl<'h> Scans<'h> {
    pub(super) fn new(heap: &'h Heap, kept: &'h Budget) -> Scans<'h> {
        let budget = heap.memory().dump_bytes();
        Scans { heap, kept, lacks: Lacks::default(), flags: RootFlags::CONSERVATIVE, registers: Map::default(), budget, forged: None }
    }

    /// Adds a root, up to the limit.
    pub(super) fn add(&self, roots: &mut Roots, root: RawRoot) {
        if roots.roots.len() <= self.heap.limits().roots && self.kept.memory(ROOT_BYTES) {
            roots.roots.push(root);
        }
    }

    fn object_at(&self, index: &ObjectStarts, address: Addr) -> Option<(Addr, RootFlags)> {
        let (_, object) = index.containing(self.heap.walker(), address)?;
        let interior = if object == address { RootFlags::NONE } else { RootFlags::INTERIOR };
        Some((object, self.flags.with(interior)))
    }

    pub(super) fn register(&mut self, (thread, name): (ThreadIndex, &'static str), value: Addr, index: &ObjectStarts, roots: &mut Roots) {
        if let Some((object, flags)) = self.object_at(index, value) {
            let name = *self.registers.entry(name).or_insert_with(|| roots.names.push(name.into()).unwrap_or_default());
            self.add(roots, RawRoot { kind: RootKind::Register, address: None, object, flags, origin: Origin::Register(thread, name) });
        }
    }

    /// Scans a few words. Returns the number of words that point to objects.
    pub(super) fn words(&self, (thread, range): (ThreadIndex, AddrRange), index: &ObjectStarts, roots: &mut Roots) -> u64 {
        let memory = self.heap.memory();
        let mut found = 0u64;
        for (at, bytes) in memory.words(range) {
            if let Some((object, flags)) = self.object_at(index, Addr(memory.shape().number(bytes))) {
                found.bump();
                self.add(roots, RawRoot { kind: RootKind::Stack, address: Some(at), object, flags, origin: Origin::Stack(thread) });
            }
        }
        found
    }

    /// Scans the whole stack of a thread, and its registers.
    fn thread(
        &mut self,
        (thread, at): (&Thread, ThreadIndex),
        native: &OsThread,
        stacks: &ThreadStacks<'_>,
        index: &ObjectStarts,
        (options, notes): (&RootOptions, &Collector),
        roots: &mut Roots,
    ) {
        if options.wants(RootKind::Register) {
            native.registers.iter().for_each(|r| self.register((at, r.name), Addr(r.value), index, roots));
        }
        if options.wants(RootKind::Stack) {
            match self.heap.runtime().stack_in_use(stacks, thread, native) {
                Some(range) => self.range((thread, at), range, index, notes, roots),
                None => self.lacks.no_stack.bump(),
            }
            if thread.on_signal_stack() {
                match tried(|| self.heap.runtime().own_stack_in_use(stacks, thread)) {
                    Some(range) => self.range((thread, at), range, index, notes, roots),
                    None => self.lacks.elsewhere.bump(),
                }
            }
        }
    }

    /// Scans a part of a stack.
    pub(super) fn range(
        &mut self,
        (thread, at): (&Thread, ThreadIndex),
        mut range: AddrRange,
        index: &ObjectStarts,
        notes: &Collector,
        roots: &mut Roots,
    ) {
        let (memory, limits): (&Memory, _) = (self.heap.memory(), self.heap.limits());
        self.lacks.scanned.bump();
        let captured = memory.captured(range);
        if captured > self.budget {
            self.forged = self.forged.or(Some(range.start));
            self.lacks.cut.bump();
            return;
        }
        self.budget = self.budget.saturating_sub(captured);
        let mut cut = captured < range.len();
        if range.len() > limits.stack_bytes {
            let what = format!("only {} of the stack of the thread at {} are scanned", in_units(limits.stack_bytes), thread.address);
            notes.add(NoteKind::LimitHit, range.start, what);
            range = AddrRange::of(range.start, limits.stack_bytes);
            cut = true;
        }
        memory.scan(range);
        self.words((at, range), index, roots);
        self.lacks.cut.grow(u64::from(cut || roots.roots.len() > limits.roots));
    }
}

impl Lacks {
    pub(super) fn missing(&self, kind: RootKind) -> Vec<String> {
        let of = |n: u64, what: &str| (n > 0).then(|| format!("{n} of {} threads {what}", self.threads));
        let mut reasons: Vec<String> = Vec::new();
        reasons.extend(of(self.no_registers, "have no registers in the dump"));
        reasons.extend(of(self.claimed, "claim the stack of another thread"));
        if kind == RootKind::Stack {
            reasons.extend(of(self.no_stack, "have no stack in the dump"));
            reasons.extend(of(self.cut, "have only a part of their stack in the dump"));
            reasons.extend(of(self.elsewhere, "were on their signal stack, and their original stack was not scanned"));
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
