//! `stacks`: the stack of each managed thread.

mod cycles;
mod fail_fast;
mod merge;
mod overflow;
mod report;

pub use report::*;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::analysis::ExceptionReader;
use crate::analysis::threads::locks::thread_locks;
use crate::analysis::threads::tiers::Tiers;
use crate::base::hash::Map;
use crate::base::missed::watched;
use crate::base::{Addr, Answer, Budget, Collector, Count, Missing, Name, glob, is_framework_method, len64};
use crate::clr::methods::{GenericContext, Methods};
use crate::clr::objects::Objects;
use crate::clr::threads::Thread;
use crate::contract::ContractError;
use crate::model::StackFrameKind;
use crate::session::{Error, FrameReader, Gaps, Heap, NamedMethod, Namer, Runtime, ThreadStack, UnknownPart, argument_bytes};
use crate::stack::code::CodeOrigin;
use crate::stack::frames::ProtectedFrame;
use crate::stack::gc_info::{FrameSlot, Location};
use crate::stack::walk::{Asked, StackWalker};
use crate::stack::walked::{Frame, Gap, ManagedFrame, Part, RuntimeFrame, Walk};
pub(crate) use fail_fast::{FailFast, fail_fast};
use merge::Merger;
pub(crate) use merge::{folded as folded_stacks, folded_tree, key as frame_key, label as frame_label, repeated as repeated_frames};
pub(crate) use overflow::{Recursion, recursion};

/// Maximum bytes of names and frames in the answer, per byte of the dump.
const EXPANSION: u64 = 4;
/// Bytes that a thread, a frame or a reference takes in addition to its texts.
const PLAIN: u64 = 256;
const _: () = assert!(size_of::<StackFrameModel>() <= 256 && size_of::<ThreadStackModel>() <= 256);

/// Options of [`stacks`].
#[derive(Clone, Debug, Default)]
pub struct StacksQuery {
    /// Only threads with these managed or OS ids; all if empty.
    pub threads: Vec<u64>,
    /// Only threads with a frame in a method that matches one of these globs; all if empty.
    pub methods: Vec<String>,
    /// Whether to list the references that each frame holds.
    pub roots: bool,
    /// Whether to list the arguments of each method.
    pub arguments: bool,
    /// Whether to list the local variables of each method.
    pub locals: bool,
    /// Whether to list the wait of each thread, which requires a walk of the heap.
    pub waits: bool,
    /// Whether to fold threads with equal stacks.
    pub merge: bool,
}

/// Walks the stacks of the managed threads.
///
/// # Errors
/// [`Error::Contract`] if the runtime does not describe its threads, its code or its frames; [`Error::Nothing`] if no thread has one
/// of the ids, or a frame in one of the methods.
pub fn stacks(runtime: &Runtime, query: &StacksQuery) -> Result<Answer<StacksReport>, Error> {
    let (mut list, mut merger) = (Vec::new(), Merger::default());
    let mut add = |thread: ThreadStackModel| if query.merge { merger.add(&thread) } else { list.push(thread) };
    let mut answer = each_stack(runtime, query, &mut add)?;
    let rows =
        if query.merge { StacksRows::Merged { merged: merger.merged() } } else { StacksRows::Threads { threads: list, not_listed: None } };
    let notes = Collector::new();
    let fault = runtime.fault().filter(|fault| {
        let ids = [fault.managed_id.map(u64::from), fault.thread.map(u64::from)];
        query.threads.is_empty() || ids.into_iter().flatten().any(|id| query.threads.contains(&id))
    });
    // Native frames name their images.
    if fault.is_some() {
        answer.notes.extend(&runtime.file().facts.lost.of_modules());
        answer.notes.extend(&notes.notes());
    }
    Ok(answer.map(|total| StacksReport { total, rows, fault }))
}

/// Like [`stacks`], but passes each thread to `each`, the crashed thread first, so that not all need to be in memory. Returns the number of threads.
pub(crate) fn each_stack(runtime: &Runtime, query: &StacksQuery, each: &mut dyn FnMut(ThreadStackModel)) -> Result<Answer<u64>, Error> {
    let notes = runtime.begin();
    notes.extend(runtime.thread_reader()?.identity_losses());
    notes.extend(&runtime.file().facts.lost.of_crash());
    notes.with(runtime.thread_list()?);
    runtime.note_thread_ids(&notes);
    runtime.note_thread_objects(&notes);
    runtime.note_in_flight(&notes);
    let wanted = |t: &Thread| {
        let ids = [t.id.map(u64::from), t.os_id];
        query.threads.is_empty() || ids.into_iter().flatten().any(|id| query.threads.contains(&id))
    };
    // References are always read, because the coverage of the stacks depends on them.
    let walked = runtime.walk_stacks(Asked { roots: true, registers: query.arguments || query.locals }, wanted, &notes);
    let mut walked = walked.map_err(|e| match e {
        // Without the references of frames, roots are incomplete; here, the frames themselves are missing.
        ContractError::NativeAot { .. } => ContractError::NativeAotStacks,
        e => e,
    })?;
    notes.extend(runtime.stack_losses());
    let namer = runtime.namer();
    let exceptions = ExceptionReader::new(runtime, &namer, &notes);
    let mut waits = if query.waits { thread_locks(runtime, &namer, &notes)?.waits } else { BTreeMap::new() };
    let mut reporter = Reporter::new(runtime, &namer, &notes, query);
    let crashed = runtime.file().crash.as_ref().and_then(|c| c.thread).map(u64::from);
    let is_crashed = |thread: &Thread| crashed.is_some() && thread.os_id == crashed;
    walked.sort_by_key(|stack| !is_crashed(stack.thread));
    let (mut total, mut gaps) = (0u64, Gaps::default());
    for stack in &walked {
        let thread = stack.thread;
        let mut model = ThreadStackModel {
            managed_id: thread.id,
            os_id: thread.os_id,
            name: reporter.thread_name(stack),
            crashed: is_crashed(thread),
            coverage: coverage(stack),
            gaps: stack.walk.gaps.iter().map(|gap| reporter.gap(gap)).collect(),
            exception: None,
            waits_for: waits.remove(&stack.index).map(Box::new),
            frames: Vec::new(),
            repeats: Vec::new(),
        };
        // Gaps are noted even if none of the known frames matches, because an unknown frame may match. A gap that loses only references is noted only
        // if references are listed.
        model.gaps.iter().filter(|gap| query.roots || gap.loses_frames).for_each(|gap| gaps.add(&gap.reason, gap.from, gap.remedy));
        let texts = model.gaps.iter().fold(PLAIN, |n, gap| n.saturating_add(PLAIN).saturating_add(len64(gap.reason.len())));
        if !reporter.budget.memory(texts) {
            reporter.budget.note("listing stacks", &notes);
            break;
        }
        model.frames = reporter.frames(stack);
        model.repeats = cycles::cycles(&model.frames);
        let stands_in = |glob_text: &String| {
            let names = model.frames.iter().flat_map(|f| [f.method.as_deref(), f.display.as_deref()]).flatten();
            names.into_iter().any(|name| matches(glob_text, name))
        };
        if query.methods.is_empty() || query.methods.iter().any(stands_in) {
            model.exception = thread.exception.map(|a| exceptions.of_thread(a, true));
            total.bump();
            each(model);
        }
    }
    gaps.note(&notes);
    if total == 0 && !(query.threads.is_empty() && query.methods.is_empty()) {
        let what = if query.methods.is_empty() {
            "no managed thread with one of these ids has a stack"
        } else {
            "no thread has such a method on its stack"
        };
        namer.note(&notes);
        return Err(Error::Nothing(what.into()).given(&notes.into_notes()));
    }
    reporter.frames.note_lines(&notes);
    reporter.tiers.iter().for_each(|t| t.note(&notes));
    reporter.frames.note_variables(&notes);
    exceptions.note_lines();
    namer.note(&notes);
    Ok(notes.finish(total))
}

impl StacksReport {
    /// Whether one of the methods that `patterns` select, by which the threads were selected, belongs to the framework.
    pub(crate) fn selected_framework(&self, patterns: &[String]) -> bool {
        let found = |f: &StackFrameModel| {
            let names = || [&f.method, &f.display].into_iter().flatten();
            let of_framework = f.method.as_deref().is_some_and(|method| is_framework_method(f.module.as_deref(), method));
            of_framework && patterns.iter().any(|pattern| names().any(|name| matches(pattern, name)))
        };
        !patterns.is_empty() && self.rows.threads().iter().flat_map(|t| &t.frames).any(found)
    }
}

/// Whether `name` matches. A pattern without parameters also matches names with parameters. A pattern without wildcards matches any part of the name.
fn matches(pattern: &str, name: &str) -> bool {
    let plain = name.split('(').next().unwrap_or(name).trim_end();
    if pattern.contains(['*', '?']) { glob(pattern, name) || glob(pattern, plain) } else { name.contains(pattern) }
}

/// Returns how completely the references of a stack are known.
fn coverage(stack: &ThreadStack<'_>) -> StackCoverage {
    let walk = &stack.walk;
    match (walk.gaps.is_empty(), walk.frames.is_empty()) {
        (true, _) => StackCoverage::Precise,
        (false, false) => StackCoverage::Partial,
        (false, true) if stack.range.is_some() => StackCoverage::Conservative,
        (false, true) => StackCoverage::Unavailable,
    }
}

/// Converts walked stacks to models. Each method is named once.
struct Reporter<'r> {
    runtime: &'r Runtime,
    walker: Option<&'r StackWalker>,
    namer: &'r Namer,
    notes: &'r Collector,
    roots: bool,
    arguments: bool,
    locals: bool,
    frames: FrameReader<'r>,
    objects: Option<Objects>,
    heap: Option<Heap>,
    /// Names of generic instantiations, by method and possible generic contexts.
    exact: Map<(Addr, Vec<GenericContext>), Option<Name>>,
    /// Names of the types of runtime frames.
    frame_types: Map<Arc<str>, Name>,
    /// `None` if stacks are merged, because the tree does not show tiers.
    tiers: Option<Tiers<'r>>,
    /// Whether the notes about object starts were added to the answer.
    starts_noted: Cell<bool>,
    budget: Budget,
}

impl<'r> Reporter<'r> {
    fn new(runtime: &'r Runtime, namer: &'r Namer, notes: &'r Collector, query: &StacksQuery) -> Reporter<'r> {
        let memory = runtime.memory();
        let (methods, objects) = runtime.scoped(notes, |d| {
            let methods = Methods::bind(memory, d, runtime.limits()).ok();
            (methods, Objects::bind(memory, d).ok())
        });
        let frames = FrameReader::new(runtime, namer, methods, query.arguments || query.locals);
        let heap = query.roots.then(|| runtime.heap().map_err(|e| notes.add(Missing::Heap, None, format!("the heap cannot be read: {e}"))));
        let heap = heap.and_then(Result::ok);
        heap.iter().for_each(|heap| heap.note(notes));
        let budget = Budget::new(memory.dump_bytes().saturating_mul(EXPANSION), runtime.limits().max_memory);
        Reporter {
            runtime,
            walker: runtime.stack_walker().ok(),
            namer,
            notes,
            roots: query.roots,
            arguments: query.arguments,
            locals: query.locals,
            frames,
            objects,
            heap,
            exact: Map::default(),
            frame_types: Map::default(),
            tiers: (!query.merge).then(|| Tiers::new(runtime, namer, notes)),
            starts_noted: Cell::new(false),
            budget,
        }
    }

    fn thread_name(&self, stack: &ThreadStack<'_>) -> Option<Name> {
        self.namer.thread_name(stack.thread.exposed, stack.native)
    }

    /// Returns the names of a method, and adds a note if the dump does not have them.
    fn named(&mut self, method: Addr) -> Option<NamedMethod> {
        let named = self.frames.name(method);
        if named.is_none() {
            self.notes.add(Missing::Metadata, method, format!("the method at {method} has no name in the dump"));
        }
        named
    }

    /// Returns the name of a method in shared generic code, with the type arguments that the frame shows.
    fn exact(&mut self, walk: &Walk, frame: &ManagedFrame) -> Option<Name> {
        let (methods, names, method, contexts) =
            (self.frames.methods()?, self.namer.names()?, frame.code.method_desc, walk.contexts(frame));
        let key = (method, contexts.to_vec());
        if let Some(known) = self.exact.get(&key) {
            return known.clone();
        }
        let exact = || {
            let context = methods.instance(names, method, contexts)?;
            methods.exact_name(names, method, context).map(|m| Name::from(m.shown().into_owned()))
        };
        let exact = exact();
        // Each frame may have a different context, so the cache is charged to the budget.
        if self.budget.memory(PLAIN.saturating_add(exact.as_ref().map_or(0, |name| len64(name.len())))) {
            self.exact.insert(key, exact.clone());
        }
        exact
    }

    fn frames(&mut self, stack: &ThreadStack<'_>) -> Vec<StackFrameModel> {
        let mut out = Vec::with_capacity(stack.walk.frames.len());
        // These frames are about references only.
        let protected = if self.roots { stack.walk.protected.as_slice() } else { &[] };
        let protected: Vec<StackFrameModel> = protected.iter().filter_map(|frame| self.protected(frame)).collect();
        let mut protected = protected.into_iter().peekable();
        let mut frames = stack.walk.frames.iter().peekable();
        loop {
            let at = frames.peek().map(|frame| frame.sp());
            // Frames of native code are where they are on the stack.
            let model = match protected.next_if(|inner| at.is_none_or(|at| inner.sp < at)) {
                Some(inner) => inner,
                None => match frames.next() {
                    Some(Frame::Managed(frame)) => self.managed(&stack.walk, frame),
                    Some(walked @ Frame::Runtime(frame)) => self.runtime_frame(walked, frame),
                    None => break,
                },
            };
            let texts = [&model.method, &model.display, &model.module, &model.file];
            let bytes = texts.into_iter().flatten().fold(PLAIN, |n, t| n.saturating_add(len64(t.len())));
            let variables = [&model.arguments, &model.locals].into_iter().flatten();
            let bytes = variables.fold(bytes, |n, list| n.saturating_add(argument_bytes(list)));
            if !self.budget.memory(bytes) {
                self.budget.note("listing stacks", self.notes);
                break;
            }
            out.push(model);
        }
        out
    }

    fn managed(&mut self, walk: &Walk, frame: &ManagedFrame) -> StackFrameModel {
        let (code, named) = (&frame.code, self.named(frame.code.method_desc));
        let line = named.as_ref().and_then(|n| self.frames.line(&n.method, frame));
        let arguments = if self.arguments { self.frames.arguments(walk, frame) } else { None };
        let arguments = arguments.map(|found| self.frames.models(found));
        let locals = if self.locals { self.frames.locals(walk, frame) } else { None };
        let locals = locals.map(|found| self.frames.models(found));
        StackFrameModel {
            kind: StackFrameKind::Managed,
            ip: Some(frame.ip),
            sp: frame.sp,
            method: named.as_ref().map(|n| n.signature.clone()),
            display: self.exact(walk, frame).or_else(|| named.as_ref().map(|n| n.display.clone())),
            method_desc: Some(code.method_desc),
            module: named.and_then(|n| n.module),
            offset: Some(code.offset(frame.ip)),
            line: line.as_ref().map(|l| l.line),
            file: line.map(|l| l.file),
            part: match frame.part {
                Part::Body => Some(FramePart::Body),
                Part::Catch | Part::Finally => Some(FramePart::Handler),
                Part::Filter => Some(FramePart::Filter),
                Part::Funclet => None,
            },
            code: Some(match code.origin {
                CodeOrigin::Jitted { .. } => CodeKind::Jit,
                CodeOrigin::ReadyToRun { .. } => CodeKind::ReadyToRun,
            }),
            tier: match code.origin {
                CodeOrigin::Jitted { .. } => self.tiers.as_mut().and_then(|t| t.of(code.method_desc, code.start)),
                CodeOrigin::ReadyToRun { .. } => None,
            },
            frame_type: None,
            address: None,
            unwound: frame.unwound,
            roots: self.roots.then(|| self.slots(walk, frame)),
            arguments,
            locals,
        }
    }

    fn runtime_frame(&mut self, walked: &Frame, frame: &RuntimeFrame) -> StackFrameModel {
        let method_desc = self.runtime.method_of(walked);
        let named = method_desc.and_then(|m| self.named(m));
        StackFrameModel {
            ip: frame.ip,
            method: named.as_ref().map(|n| n.signature.clone()),
            display: named.as_ref().map(|n| n.display.clone()),
            method_desc,
            module: named.and_then(|n| n.module),
            frame_type: walked.type_name().map(|name| self.frame_type(name)),
            address: Some(frame.frame.address),
            roots: self.roots.then(|| self.owned(frame)),
            ..StackFrameModel::new(StackFrameKind::Runtime, frame.frame.address)
        }
    }

    /// A frame of native code that protects references. `None` for what only looks like one and has no references.
    fn protected(&mut self, frame: &ProtectedFrame) -> Option<StackFrameModel> {
        let memory = self.runtime.memory();
        let slot = |at: Addr| {
            let value = memory.word(at).ok();
            let location = Location::Register { number: u8::MAX, place: Some(at) };
            // What only looks like a frame may hold any values.
            let interior = frame.interior || !frame.listed;
            let root = self.slot(&FrameSlot { location, value, interior, pinned: false }, None).filter(|_| value != Some(0))?;
            Some(StackRootModel { precise: frame.listed, interior: frame.interior, ..root })
        };
        // Dumps without a heap have only the objects to which frames of methods refer.
        let (roots, missed) = watched(|| self.listed(frame.each().filter_map(slot)));
        if memory.has_lost(&missed) {
            missed.tell();
        }
        (frame.listed || !roots.is_empty()).then(|| StackFrameModel {
            frame_type: Some(self.frame_type(&ProtectedFrame::NAME.into())),
            address: Some(frame.address),
            roots: Some(roots),
            ..StackFrameModel::new(StackFrameKind::Runtime, frame.address)
        })
    }

    fn frame_type(&mut self, name: &Arc<str>) -> Name {
        self.frame_types.entry(Arc::clone(name)).or_insert_with(|| Name::from(&**name)).clone()
    }

    /// Returns the references that a managed frame holds.
    fn slots(&self, walk: &Walk, frame: &ManagedFrame) -> Vec<StackRootModel> {
        let register = frame.frame_register;
        self.listed(walk.held(frame).filter_map(|slot| self.slot(&slot, register)))
    }

    /// Lists `roots` as long as the answer's memory budget permits.
    fn listed(&self, roots: impl Iterator<Item = StackRootModel>) -> Vec<StackRootModel> {
        let fits = |root: &StackRootModel| {
            let texts = len64(root.location.len()).saturating_add(root.type_name.as_ref().map_or(0, |name| len64(name.shown().len())));
            self.budget.memory(PLAIN.saturating_add(texts))
        };
        roots.take_while(fits).collect()
    }

    fn slot(&self, slot: &FrameSlot, frame_register: Option<u8>) -> Option<StackRootModel> {
        let (address, location) = (slot.location.address(), slot.location.text(self.runtime.file().facts.arch, frame_register));
        let Some(value) = slot.value else {
            let what = format!("the contents of {location} are not in the dump");
            self.notes.add(Missing::Stacks, address, what);
            return Some(self.root(location, address, None, (slot.interior, slot.pinned, true)));
        };
        // An interior pointer may point anywhere: to a local, to a static, to native memory.
        let object = if slot.interior { self.containing(Addr(value))? } else { Addr(value) };
        Some(self.root(location, address, Some(object), (slot.interior, slot.pinned, true)))
    }

    /// Returns the references that a runtime frame reports to the GC.
    fn owned(&self, frame: &RuntimeFrame) -> Vec<StackRootModel> {
        let memory = self.runtime.memory();
        // The walk has already reported failed reads.
        let Some(owned) = self.walker.filter(|_| frame.reports).and_then(|walker| walker.owned(&frame.frame).ok()) else {
            return Vec::new();
        };
        let slot = |slot: Addr| match memory.ptr(slot) {
            Ok(object) if object.is_null() => None,
            object => Some(self.root(format!("[{slot}]"), Some(slot), object.ok(), (false, false, true))),
        };
        let words = [owned.words, frame.passed].into_iter().flatten();
        words.clone().for_each(|range| memory.need(range));
        let word = |(at, bytes): (Addr, &[u8])| {
            let value = Addr(memory.shape().number(bytes));
            let object = self.containing(value)?;
            Some(self.root(format!("[{at}]"), Some(at), Some(object), (object != value, false, false)))
        };
        let words = words.flat_map(|range| memory.words(range));
        self.listed(owned.slots().filter_map(slot).chain(words.filter_map(word)))
    }

    fn root(&self, location: String, slot: Option<Addr>, object: Option<Addr>, flags: (bool, bool, bool)) -> StackRootModel {
        let (interior, pinned, precise) = flags;
        let method_table = object.and_then(|o| self.objects.as_ref()?.method_table(o));
        StackRootModel { location, slot, object, type_name: method_table.and_then(|mt| self.namer.name(mt)), interior, pinned, precise }
    }

    /// Returns the object that contains `address`.
    fn containing(&self, address: Addr) -> Option<Addr> {
        let heap = self.heap.as_ref()?;
        let starts = heap.starts();
        // The notes about object starts are added once for all slots.
        if !self.starts_noted.replace(true) {
            self.notes.with(starts);
        }
        starts.data.containing(heap.walker(), address).map(|(_, object)| object)
    }

    fn gap(&mut self, gap: &Gap) -> StackGap {
        let UnknownPart { reason, remedy, module } = self.runtime.unknown_part(gap, self.namer);
        StackGap { from: gap.from, to: gap.to, loses_frames: gap.lack.loses_frames(), reason, module, remedy }
    }
}
