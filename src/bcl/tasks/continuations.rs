//! Continuation chains of runtime async (.NET 11): suspended methods, and methods that threads are running.
//!
//! Source: `docs/internals/runtime-async.md`.

use super::{AsyncType, Plan, Tasks};
use crate::base::hash::{Map, Set};
use crate::base::{Addr, Collector, Missing, Name, NoteKind};
use crate::clr::library::{NoSuchField, fields_of, noted};
use crate::clr::threads::Thread;
use crate::gc::GcDesc;
use crate::session::continuations::{ContinuationFields, SuspendedMethods};
use crate::session::{Namer, Runtime};
use crate::stack::walk::Asked;
use crate::stack::walked::{Frame, Gap, Walk};

/// Maximum number of nested dispatchers of one thread that are read.
const MAX_NESTED: usize = 1 << 10;
/// Maximum size in bytes of a continuation whose references are read.
const MAX_CONTINUATION: u64 = 1 << 16;
/// Part of the name of the stub through which the library's dispatch loop calls a resumed method.
const STUB: &str = "IL_STUB_AsyncResume";
/// Types of the library whose methods are on the stack between the dispatch loop and the stub.
const HELPERS: [&str; 2] =
    ["System.Runtime.CompilerServices.AsyncHelpers", "System.Runtime.CompilerServices.RuntimeAsyncInstrumentationHelpers"];
/// The type whose methods complete a task and run its continuations. If the dispatch loop has called such a method, no method of the task is
/// running any more.
const COMPLETION: &str = "System.Threading.Tasks.Task";

fields_of! {
    /// Fields of `AsyncDispatcherInfo`, a structure on the stack of a thread that resumes methods of a task.
    struct DispatcherFields {
        next: req "Next",
        continuation: req "NextContinuation",
        task: req "CurrentTask",
    }
}

/// The continuation chain of a task.
#[derive(Clone, Debug, Default)]
pub(crate) struct Chain {
    /// The innermost continuation, if it represents the awaited task or source and not a method.
    pub(crate) leaf: Option<Addr>,
    /// The continuations of methods, from the innermost outwards.
    pub(crate) frames: Vec<Addr>,
}

/// A method that a thread is running.
#[derive(Clone, Debug)]
pub(crate) struct Running {
    /// The continuation of the method that awaits the running one, if any.
    pub(crate) next: Option<Addr>,
    /// The managed thread ID.
    pub(crate) thread: Option<u32>,
    /// Name of the method; `None` if unknown.
    pub(crate) method: Option<Name>,
}

impl Tasks {
    pub(super) fn bind_continuations(&mut self, notes: &Collector) {
        self.continuations = noted(ContinuationFields::bind(self.library.types()), "runtime async methods", notes).flatten();
    }

    /// The fields of continuations, if the process has any.
    pub(crate) fn continuation_fields(&self) -> Option<ContinuationFields> {
        self.continuations
    }

    /// The continuation chain of the task at `task`; empty while a thread runs a method of the task.
    pub(crate) fn chain(&self, task: Addr, notes: &Collector) -> Chain {
        let first = self.fields.and_then(|f| self.library.reference(task, f.state?));
        self.chain_from(first, notes)
    }

    /// The continuation chain that begins with the continuation at `first`.
    pub(crate) fn chain_from(&self, first: Option<Addr>, notes: &Collector) -> Chain {
        let mut out = Chain::default();
        let Some(next) = self.continuations.map(|f| f.next) else { return out };
        let mut seen = Set::default();
        let mut at = first;
        while let Some(object) = at {
            let Some(plan) = self.plan_of(object).filter(|plan| plan.kinds.is(AsyncType::RuntimeContinuation)) else { break };
            if !seen.insert(object) {
                notes.add(NoteKind::LimitHit, object, "the continuations of a task have a cycle");
                break;
            }
            if !self.afford(1) {
                break;
            }
            if plan.suspends {
                out.frames.push(object);
            } else if out.frames.is_empty() {
                out.leaf = Some(object);
            }
            at = self.library.reference(object, next);
        }
        out
    }

    /// The continuation of the method that awaits the method whose continuation is at `object`.
    pub(crate) fn caller(&self, object: Addr) -> Option<Addr> {
        self.library.reference(object, self.continuations?.next)
    }

    /// The number of the suspension point of the method whose continuation is at `object`.
    pub(crate) fn suspension(&self, object: Addr) -> Option<i32> {
        self.library.i32(object, self.continuations?.state?)
    }

    /// Address of the `ResumeInfo` of the continuation at `object`. The `ResumeInfo` identifies the suspension point.
    pub(crate) fn resume_info(&self, object: Addr) -> Option<Addr> {
        self.library.reference(object, self.continuations?.info?)
    }

    /// The task or other source for which the continuation at `leaf` waits: see [`Chain::leaf`].
    pub(crate) fn awaited(&self, leaf: Addr) -> Option<Addr> {
        let plan = self.plan_of(leaf)?;
        plan.awaited.iter().find_map(|field| self.library.reference(leaf, *field))
    }

    /// The objects to which the captured variables in the continuation at `object` refer.
    pub(crate) fn captured(&self, object: Addr) -> Vec<Addr> {
        let tables = self.library.types().names().method_tables();
        let read = || {
            let mt = self.library.method_table(object)?;
            let base = tables.read(self.continuations?.base).ok()?.base_size;
            let info = tables.read(mt).ok()?;
            // Variables follow the fields of the base type. Base sizes include the object header; offsets do not.
            let first = u64::from(base).saturating_sub(self.library.types().pointer_bytes());
            let slots = GcDesc::offsets(self.library.types().memory(), &info, MAX_CONTINUATION);
            let own = slots.into_iter().filter(|at| *at >= first && self.afford(1));
            Some(own.filter_map(|at| self.library.reference_at(object.plus(at))).collect())
        };
        read().unwrap_or_default()
    }

    /// The methods of runtime async that `threads` are running, by address of the task.
    pub(crate) fn running(&self, runtime: &Runtime, threads: &[Thread], namer: &Namer, notes: &Collector) -> Map<Addr, Running> {
        let found = self.dispatchers(threads.iter(), notes);
        if found.is_empty() {
            return Map::default();
        }
        let methods = SuspendedMethods::new(runtime.bindings(), self.continuations);
        let on: Set<Addr> = found.iter().map(|d| d.thread).collect();
        let stacks = runtime.walk_stacks(Asked::default(), |t| on.contains(&t.address), notes).unwrap_or_default();
        let mut out = Map::default();
        for dispatcher in found {
            let stack = stacks.iter().find(|s| s.thread.address == dispatcher.thread);
            let found = stack.map(|s| resumed(&s.walk, dispatcher.at, &methods, namer));
            if let (Some(Err(gap)), Some(stack)) = (&found, stack) {
                let part = runtime.unknown_part(gap, namer);
                let what =
                    format!("the thread at {}: the method that it runs for a task is unknown: {}", stack.thread.address, part.reason);
                notes.add(Missing::Stacks.supplied_by(part.remedy), gap.from, what);
            }
            let method = found.and_then(Result::ok).flatten();
            let thread = threads.iter().find(|t| t.address == dispatcher.thread).and_then(|t| t.id);
            out.insert(dispatcher.task, Running { next: dispatcher.next, thread, method });
        }
        methods.note(notes);
        out
    }

    /// The tasks whose methods `threads` are running, each with the address of the `Thread`.
    pub(crate) fn resumed<'t>(&self, threads: impl Iterator<Item = &'t Thread>, notes: &Collector) -> Vec<(Addr, Addr)> {
        self.dispatchers(threads, notes).into_iter().map(|d| (d.task, d.thread)).collect()
    }

    /// The tasks that the task or method at `node` awaits, according to its state machine or its innermost continuation.
    pub(crate) fn awaits(&self, node: Addr, plan: &Plan, notes: &Collector) -> Vec<Addr> {
        if plan.kinds.is(AsyncType::RuntimeAsyncTask) {
            return self.chain(node, notes).leaf.and_then(|leaf| self.awaited(leaf)).into_iter().collect();
        }
        self.position(node, plan).into_iter().flat_map(|p| p.awaiters).flatten().collect()
    }

    /// The dispatchers of the tasks whose methods `threads` are running.
    fn dispatchers<'t>(&self, threads: impl Iterator<Item = &'t Thread>, notes: &Collector) -> Vec<Dispatcher> {
        noted(self.dispatchers_of(threads), "running runtime async methods", notes).unwrap_or_default()
    }

    fn dispatchers_of<'t>(&self, threads: impl Iterator<Item = &'t Thread>) -> Result<Vec<Dispatcher>, NoSuchField> {
        let mut out = Vec::new();
        let types = self.library.types();
        let Some(table) = self.kinds.table(AsyncType::Dispatcher) else { return Ok(out) };
        let fields = DispatcherFields::bind(types, table)?;
        // Field offsets in a structure are relative to its boxed form.
        let within = |at: Addr, offset: u64| self.library.reference_at(at.plus(offset).minus(types.pointer_bytes())?);
        for thread in threads.filter(|t| t.has_stack()) {
            let slot = self.library.thread_static_at(table, "t_current", thread.address)?;
            let mut at = slot.and_then(|slot| self.library.reference_at(slot));
            let mut seen = Set::default();
            while let Some(place) = at.filter(|at| seen.len() < MAX_NESTED && seen.insert(*at) && self.afford(1)) {
                let task = within(place, fields.task.offset);
                let is_one = |task: &Addr| self.plan_of(*task).is_some_and(|plan| plan.kinds.is(AsyncType::RuntimeAsyncTask));
                if let Some(task) = task.filter(is_one) {
                    let next = within(place, fields.continuation.offset);
                    out.push(Dispatcher { at: place, thread: thread.address, task, next });
                }
                at = within(place, fields.next.offset);
            }
        }
        Ok(out)
    }
}

/// The contents of an `AsyncDispatcherInfo`.
struct Dispatcher {
    at: Addr,
    /// Address of the `Thread`.
    thread: Addr,
    task: Addr,
    next: Option<Addr>,
}

/// The method that a dispatch loop has resumed. `place` is the dispatcher, a local variable of the loop. Walking inwards from the loop, the
/// method is the first frame that is neither a helper nor the stub. `None` if it does not exist, or its name is unknown.
///
/// # Errors
/// The gap of the stack in which the frame of the loop or of the method may be.
fn resumed<'w>(walk: &'w Walk, place: Addr, methods: &SuspendedMethods, namer: &Namer) -> Result<Option<Name>, &'w Gap> {
    let Some(names) = namer.names() else { return Ok(None) };
    let managed = walk.frames.iter().filter_map(|frame| if let Frame::Managed(frame) = frame { Some(frame) } else { None });
    let inner: Vec<_> = managed.take_while(|frame| frame.sp <= place).collect();
    // All frames from `from` to the loop must be known.
    let known = |from: Addr| {
        let within = |gap: &&Gap| gap.from.is_none_or(|start| start <= place) && gap.to.is_none_or(|end| end > from);
        walk.gaps.iter().filter(|gap| gap.lack.loses_frames()).find(within).map_or(Ok(()), Err)
    };
    // The outermost of these frames is the dispatch loop.
    for frame in inner.iter().rev().skip(1) {
        known(frame.sp)?;
        let Some(method) = methods.named(names, frame.code.method_desc) else { return Ok(None) };
        if method.name.contains(STUB) || HELPERS.iter().any(|helper| method.name.starts_with(helper)) {
            continue;
        }
        return Ok((!method.name.starts_with(COMPLETION)).then(|| method.to_name()));
    }
    known(Addr::NULL)?;
    Ok(None)
}

impl Plan {
    /// Sets the fields that describe a type of continuations. The runtime generates types for suspended methods; types of the library
    /// represent an awaited task or source.
    pub(super) fn set_continuation(&mut self, tasks: &Tasks, method_table: Addr) {
        let types = tasks.library.types();
        let field = |name| types.field_at(method_table, name).ok();
        self.awaited = ["Task", "Source"].into_iter().filter_map(field).collect();
        self.next = field("RuntimeAsyncTask");
        self.suspends = self.awaited.is_empty() && tasks.continuations.is_some_and(|f| f.base != method_table);
    }
}
