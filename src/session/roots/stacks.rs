//! Roots on stacks and in registers: the references that the GC info of methods reports for their frames. If GC info is unavailable or not
//! wanted, every word that points to an object is a root.
//!
//! Source: `docs/internals/stacks.md`. A scan finds all objects that a suspended thread holds on its stack or in its registers, but also
//! stale values.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::options::{ROOT_BYTES, RootOptions, enumerated};
use super::resolvers::Resolvers;
use super::scans::Scans;
use crate::base::hash::Map;
use crate::base::missed::{tried, watched};
use crate::base::{Addr, AddrRange, Budget, Collector, Count, Missing, Notes, Remedy};
use crate::clr::methods::{GenericContext, Methods};
use crate::clr::threads::Thread;
use crate::contract::ContractError;
use crate::dump::ThreadStacks;
use crate::gc::ObjectStarts;
use crate::heapgraph::{FrameIndex, Origin, RawRoot, RootFlags, RootFrame, Roots, StackRoots, ThreadIndex};
use crate::model::{CoverageKind, RootCoverageModel, RootKind};
use crate::session::{Heap, Namer, ThreadStack, UnknownPart};
use crate::stack::StackError;
use crate::stack::frames::ProtectedFrame;
use crate::stack::gc_info::{FrameSlot, Location};
use crate::stack::walk::{Asked, StackWalker};
use crate::stack::walked::{Frame, Gap, GapReason, Walk};

/// Why references that native code protects may be missing.
const UNDESCRIBED: &str = "the descriptor does not describe the references that native code of the runtime protects";

/// Why objects that the code of dynamic methods keeps alive may be missing.
const UNRESOLVED: &str = "what keeps the code of a running DynamicMethod is not in the dump";

/// Adds the references that the frames of `threads` hold. Where the references are unknown, adds the words that point to objects.
///
/// # Errors
/// [`ContractError`] if the runtime does not describe its code or its frames.
pub(super) fn frame_roots(
    (heap, budget): (&Heap, &Budget),
    namer: &Namer,
    threads: &[Thread],
    options: &RootOptions,
    roots: &mut Roots,
) -> Result<StackRoots, ContractError> {
    let notes = Collector::new();
    let runtime = heap.runtime();
    let walker = runtime.stack_walker()?;
    let walked = runtime.walk_stacks(Asked { roots: true, registers: false }, |_| true, &notes)?;
    let index = notes.with(heap.starts()).as_ref();
    let mut reader = Reader {
        heap,
        namer,
        walker,
        notes: &notes,
        index,
        methods: runtime.scoped(&notes, |d| Methods::bind(heap.memory(), d, runtime.limits()).ok()),
        names: Map::default(),
        resolvers: Resolvers::bind(heap, namer),
        kept: Map::default(),
        native: ProtectedFrame::NAME.into(),
        stacks: ThreadStacks::new(runtime.file()),
        scans: Scans::new(heap, budget),
        reasons: BTreeMap::new(),
        broken: BTreeSet::new(),
        words: 0,
        unlisted: 0,
        doubtful: 0,
        whole: 0,
        wanted: [options.wants(RootKind::Stack), options.wants(RootKind::Register)],
    };
    let indices: Vec<ThreadIndex> = enumerated(threads).map(|(_, i)| i).collect();
    for stack in &walked {
        let Some(index) = indices.get(stack.index).copied() else { continue };
        reader.scans.lacks.threads.bump();
        reader.thread(stack, index, roots);
    }
    let mut reasons: Vec<String> = Vec::new();
    let total = reader.scans.lacks.threads;
    let mut doubts = Notes::new();
    reasons.extend(reader.broken.iter().filter(|_| reader.doubtful == 0).cloned());
    // A gap in a stack has no effect if none of its words points to an object.
    for (reason, (count, at, remedy)) in reader.reasons.iter().filter(|_| reader.doubtful > 0) {
        let times = if *count > 1 { format!(" ({count} times)") } else { String::new() };
        doubts.add(Missing::Stacks.supplied_by(*remedy), *at, format!("{reason}{times}"));
        reasons.push(reason.clone());
    }
    let described = walker.describes_protected();
    let resolved = !reader.resolvers.as_ref().is_some_and(Resolvers::lost_any);
    let lost: Vec<&str> =
        [(described, UNDESCRIBED), (resolved, UNRESOLVED)].iter().filter(|(known, _)| !known).map(|(_, why)| *why).collect();
    lost.iter().for_each(|why| notes.add(Missing::Stacks, None, *why));
    let words = (reader.words > 0).then(|| "arguments of calls that the runtime was preparing are conservative roots".to_string());
    let unlisted = (reader.unlisted > 0).then(|| {
        "the list of references that native code protects is not in the dump: what looks like one is a root if it points to an object"
            .to_string()
    });
    let cover = |kind: RootKind| {
        let missing = reader.scans.lacks.missing(kind);
        if !missing.is_empty() {
            notes.add(Missing::Stacks, None, format!("roots of kind {kind}: {}", missing.join("; ")));
        }
        let lost: Vec<String> = lost.iter().filter(|_| kind == RootKind::Stack).map(|why| why.to_string()).collect();
        let all: Vec<String> = {
            let words = words.iter().chain(&unlisted).filter(|_| kind == RootKind::Stack);
            missing.iter().chain(&lost).chain(&reasons).chain(words).cloned().collect()
        };
        let coverage = match (missing.is_empty() && lost.is_empty() && reader.broken.is_empty(), all.is_empty()) {
            (true, true) => CoverageKind::Complete,
            (true, false) => CoverageKind::Conservative,
            (false, _) if reader.whole == 0 && roots.roots.iter().all(|r| !r.kind.is_of_stacks()) => CoverageKind::Unavailable,
            (false, _) => CoverageKind::Partial,
        };
        let precise = format!("{} of {total} stacks are precise", reader.whole);
        let reason = (coverage != CoverageKind::Complete).then(|| format!("{precise}; {}", all.join("; ")));
        RootCoverageModel { kind, coverage, reason }
    };
    let coverage = [RootKind::Stack, RootKind::Register].into_iter().filter(|k| options.wants(*k)).map(cover).collect();
    Ok(StackRoots { coverage, notes: notes.into_notes(), doubts })
}

/// Converts walked stacks to roots.
struct Reader<'h> {
    heap: &'h Heap,
    namer: &'h Namer,
    walker: &'h StackWalker,
    notes: &'h Collector,
    index: &'h ObjectStarts,
    methods: Option<Methods>,
    /// Method names by MethodDesc.
    names: Map<Addr, Arc<str>>,
    /// Finds the resolvers of dynamic methods; `None` if types are not known.
    resolvers: Option<Resolvers<'h>>,
    /// The objects that the code of a method keeps alive, by MethodDesc and the contexts that may determine the method's generic instance.
    kept: Map<(Addr, Vec<GenericContext>), Arc<[Addr]>>,
    /// The name of the frames in which native code protects references.
    native: Arc<str>,
    stacks: ThreadStacks<'h>,
    scans: Scans<'h>,
    /// Why parts of stacks are scanned, with the number of times and the first place.
    reasons: BTreeMap<String, (u64, Option<Addr>, Option<Remedy>)>,
    /// The reasons that are contradictions: the words of such a stack may not be those of the process, so references of its frames are lost.
    broken: BTreeSet<String>,
    /// Number of roots among words that the runtime's frames own.
    words: u64,
    /// Number of roots among words of what looks like references that native code protects.
    unlisted: u64,
    /// Number of roots among words of stack parts whose references are unknown.
    doubtful: u64,
    /// Number of threads without gaps.
    whole: u64,
    /// Whether roots on stacks, and roots in registers, are wanted.
    wanted: [bool; 2],
}

impl Reader<'_> {
    fn thread(&mut self, stack: &ThreadStack<'_>, thread: ThreadIndex, roots: &mut Roots) {
        for frame in &stack.walk.frames {
            if let Frame::Managed(f) = frame {
                self.code((f.code.method_desc, stack.walk.contexts(f)), thread, roots);
            }
            match frame {
                Frame::Managed(f) if Walk::holds_any(f) => {
                    let method = self.name(f.code.method_desc);
                    if !self.scans.kept.memory(ROOT_BYTES) {
                        continue;
                    }
                    let Some(at) = roots.frames.push(RootFrame { thread, method, register: f.frame_register }) else { return };
                    stack.walk.held(f).for_each(|slot| self.slot(&slot, at, roots));
                }
                Frame::Managed(_) => {}
                Frame::Runtime(f) => {
                    // The walk has already reported failed reads.
                    let Some(owned) = f.reports.then(|| self.walker.owned(&f.frame).ok()).flatten() else { continue };
                    let wanted = self.wants(RootKind::Stack);
                    for range in [owned.words, f.passed].into_iter().filter(|_| wanted).flatten() {
                        self.heap.memory().need(range);
                        self.words = self.words.saturating_add(self.scans.words((thread, range), self.index, roots));
                    }
                    if owned.slot_count() == 0 {
                        continue;
                    }
                    let method = f.frame.of.name.clone().unwrap_or_else(|| "a frame of the runtime".into());
                    let Some(at) = roots.frames.push(RootFrame { thread, method, register: None }) else { return };
                    for slot in owned.slots() {
                        let value = self.heap.memory().word(slot).ok();
                        let location = Location::Register { number: u8::MAX, place: Some(slot) };
                        self.slot(&FrameSlot { location, value, interior: false, pinned: false }, at, roots);
                    }
                }
            }
        }
        let wanted = self.wants(RootKind::Stack);
        for frame in stack.walk.protected.iter().filter(|_| wanted) {
            if !frame.listed {
                // The frame may be stale, and so may its references.
                self.unlisted = self.unlisted.saturating_add(self.scans.words((thread, frame.slots), self.index, roots));
                continue;
            }
            let Some(at) = roots.frames.push(RootFrame { thread, method: Arc::clone(&self.native), register: None }) else { return };
            for slot in frame.each() {
                let value = self.heap.memory().word(slot).ok();
                let location = Location::Register { number: u8::MAX, place: Some(slot) };
                self.slot(&FrameSlot { location, value, interior: frame.interior, pinned: false }, at, roots);
            }
        }
        if stack.walk.gaps.is_empty() {
            self.whole.bump();
        }
        for gap in &stack.walk.gaps {
            self.gap(gap, stack, thread, roots);
        }
    }

    /// Adds the objects that the code of a frame keeps alive: the loader allocators of a collectible method, which keep the statics of its types alive,
    /// and the resolver of a `DynamicMethod` (`GcStackCrawlCallBack` in `gcenv.ee.cpp`).
    fn code(&mut self, (method, contexts): (Addr, &[GenericContext]), thread: ThreadIndex, roots: &mut Roots) {
        if !self.wants(RootKind::Stack) {
            return;
        }
        let kept = self.kept_by(method, contexts);
        if kept.is_empty() || !self.scans.kept.memory(ROOT_BYTES) {
            return;
        }
        let Some(at) = roots.frames.push(RootFrame { thread, method: self.name(method), register: None }) else { return };
        for object in kept.iter() {
            let root = RawRoot { kind: RootKind::Stack, address: None, object: *object, flags: RootFlags::NONE, origin: Origin::Code(at) };
            self.scans.add(roots, root);
        }
    }

    fn kept_by(&mut self, method: Addr, contexts: &[GenericContext]) -> Arc<[Addr]> {
        let (methods, namer, resolvers) = (self.methods.as_ref(), self.namer, self.resolvers.as_ref());
        let find = || -> Option<Arc<[Addr]>> {
            let (methods, types) = (methods?, namer.types().ok()?);
            let tables = types.names().method_tables();
            let mut owners = methods.owners(types.names(), method);
            match methods.instance(types.names(), method, contexts) {
                Some(GenericContext::MethodTable(exact)) => owners.push(exact),
                Some(GenericContext::Method(exact)) => owners.extend(methods.owners(types.names(), exact)),
                // The frame holds the object itself.
                Some(GenericContext::This(_)) | None => {}
            }
            let modules =
                owners.into_iter().filter(|mt| tables.read(*mt).is_ok_and(|i| i.is_collectible)).filter_map(|mt| tables.loader_module(mt));
            let mut found: Vec<Addr> = modules.filter_map(|module| types.loader().allocator_object(module)).collect();
            found.extend(resolvers.and_then(|resolvers| resolvers.of(methods, method)));
            found.sort_unstable();
            found.dedup();
            Some(found.into())
        };
        let memory = self.heap.memory();
        let key = (method, contexts.to_vec());
        let kept = self.kept.entry(key).or_insert_with(|| {
            // Dumps of most kinds do not have all structures of all methods.
            let (found, missed) = watched(find);
            if memory.has_lost(&missed) {
                missed.tell();
            }
            found.unwrap_or_default()
        });
        Arc::clone(kept)
    }

    /// Adds a reference that a frame holds.
    fn slot(&mut self, slot: &FrameSlot, frame: FrameIndex, roots: &mut Roots) {
        let address = slot.location.address();
        let kind = if address.is_some() { RootKind::Stack } else { RootKind::Register };
        if !self.wants(kind) || slot.value == Some(0) {
            return;
        }
        let Some(value) = slot.value.map(Addr) else {
            self.notes.add(Missing::Stacks, address, "a reference that a frame holds is not in the dump");
            self.scans.lacks.cut.bump();
            return;
        };
        let mut flags = if slot.pinned { RootFlags::PINNED } else { RootFlags::NONE };
        let object = if slot.interior {
            // The pointer may also point to a local, a static or native memory. In that case it is not a root.
            let Some((_, object)) = self.index.containing(self.heap.walker(), value) else { return };
            flags = flags.with(if object == value { RootFlags::NONE } else { RootFlags::INTERIOR });
            object
        } else {
            value
        };
        self.scans.add(roots, RawRoot { kind, address, object, flags, origin: Origin::Slot(frame, slot.location.place()) });
    }

    fn wants(&self, kind: RootKind) -> bool {
        let [stack, register] = self.wanted;
        if kind == RootKind::Stack { stack } else { register }
    }

    /// Scans a part of the stack whose references are unknown.
    fn gap(&mut self, gap: &Gap, stack: &ThreadStack<'_>, thread: ThreadIndex, roots: &mut Roots) {
        let first = roots.roots.len();
        self.scan_gap(gap, stack, thread, roots);
        for root in roots.roots.iter_mut().skip(first) {
            self.doubtful.bump();
            root.flags = root.flags.with(RootFlags::DOUBTFUL);
        }
    }

    fn scan_gap(&mut self, gap: &Gap, stack: &ThreadStack<'_>, thread: ThreadIndex, roots: &mut Roots) {
        let runtime = self.heap.runtime();
        if matches!(gap.lack, GapReason::Claimed(_)) {
            // The references there are roots of the other thread.
            self.scans.lacks.claimed.bump();
            return;
        }
        let Some(native) = stack.native.filter(|n| n.stack_pointer.is_some() && !n.registers.is_empty()) else {
            self.scans.lacks.no_registers.bump();
            return;
        };
        let UnknownPart { reason, remedy, .. } = runtime.unknown_part(gap, self.namer);
        if gap.lack.error().and_then(StackError::contradiction).is_some() {
            self.broken.insert(reason.clone());
        }
        let entry = self.reasons.entry(reason).or_insert((0, gap.from, remedy));
        entry.0 = entry.0.saturating_add(1);
        let whole = gap.from.is_none();
        if self.wants(RootKind::Register) {
            let own = native.registers.iter().map(|r| (r.name, r.value)).filter(|_| whole);
            let of_frame = gap.registers.iter().filter_map(|(name, saved)| Some((*name, saved.value.filter(|_| saved.place.is_none())?)));
            own.chain(of_frame).for_each(|(name, value)| self.scans.register((thread, name), Addr(value), self.index, roots));
        }
        if !self.wants(RootKind::Stack) {
            return;
        }
        for place in gap.registers.iter().filter_map(|(_, saved)| saved.place) {
            let slot = AddrRange::of(place, 8);
            self.heap.memory().need(slot);
            self.scans.words((thread, slot), self.index, roots);
        }
        let Some(range) = runtime.stack_in_use(&self.stacks, stack.thread, native) else {
            self.scans.lacks.no_stack.bump();
            return;
        };
        // A thread on its signal stack continues on its original stack, which may be at lower addresses.
        let own = stack.thread.on_signal_stack().then(|| tried(|| runtime.own_stack_in_use(&self.stacks, stack.thread)));
        if own == Some(None) && gap.to.is_none_or(|to| !range.contains(to)) {
            self.scans.lacks.elsewhere.bump();
        }
        let [from, to] = [gap.from.map(|at| at.align_down(8)), gap.to];
        for range in parts_of_gap(from, to, range, own.flatten()).into_iter().flatten() {
            self.scans.range((stack.thread, thread), range, self.index, self.notes, roots);
        }
    }

    fn name(&mut self, method: Addr) -> Arc<str> {
        let (methods, namer) = (self.methods.as_ref(), self.namer);
        let name = || methods.zip(namer.names()).and_then(|(m, types)| m.name(types, method)).map(|n| n.shown().into_owned());
        let name = || name().unwrap_or_else(|| format!("method {method}")).into();
        Arc::clone(self.names.entry(method).or_insert_with(name))
    }
}

/// The parts of a stack that belong to a gap. `range` is the stack in use, and `own`, for a thread on its signal stack, the part of the original
/// stack that follows it.
fn parts_of_gap(from: Option<Addr>, to: Option<Addr>, range: AddrRange, own: Option<AddrRange>) -> [Option<AddrRange>; 2] {
    let from = from.unwrap_or(range.start);
    let begins_in = |part: AddrRange| part.start <= from && from <= part.end;
    // The end of a part that begins at `start`: where the gap ends, if that is in the part.
    let end = |part: AddrRange, start: Addr| to.filter(|to| start <= *to && *to <= part.end);
    let of = |part: AddrRange, start: Addr| AddrRange::new(start, end(part, start).unwrap_or(part.end));
    match own {
        Some(own) if begins_in(own) && !begins_in(range) => [Some(of(own, from)), None],
        Some(own) => {
            let start = from.clamp(range.start, range.end);
            // A gap that does not end on the signal stack continues on the original stack.
            let rest = end(range, start).is_none().then(|| of(own, own.start));
            [Some(of(range, start)), rest]
        }
        None => {
            let start = from.max(range.start);
            let end = to.unwrap_or(range.end).max(start).min(range.end.max(start));
            [Some(AddrRange::new(start, end)), None]
        }
    }
}
