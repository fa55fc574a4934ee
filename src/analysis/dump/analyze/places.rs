//! The places in the code where threads are.

use std::hash::{DefaultHasher, Hash, Hasher};

use super::answers::{Answers, Skip};
use crate::analysis::threads::async_chains::is_library;
use crate::analysis::threads::stacks::frame_key;
use crate::analysis::{ExceptionModel, StackFrameModel, ThreadStackModel};
use crate::analysis::{ExceptionReader, FailFast, Recursion, StacksQuery, each_stack, fail_fast, recursion};
use crate::base::missed::tried;
use crate::base::{Addr, Collector, Name};
use crate::model::StackFrameKind;

/// A summary of the stacks of the threads.
#[derive(Default)]
pub(super) struct Places {
    /// The place of each thread.
    pub(super) threads: Vec<ThreadPlace>,
    /// The stack of the crashed thread, if it is managed.
    pub(super) crashed: Option<CrashedStack>,
}

impl Places {
    /// The place of the thread with a managed id.
    pub(super) fn of(&self, managed_id: u32) -> Option<&ThreadPlace> {
        self.threads.iter().find(|t| t.managed_id == Some(managed_id))
    }
}

/// The place of a thread.
pub(super) struct ThreadPlace {
    pub(super) managed_id: Option<u32>,
    pub(super) name: Option<Name>,
    /// The innermost method on the stack.
    pub(super) innermost: Option<Name>,
    /// The innermost method that belongs to the program, not to a library.
    pub(super) own: Option<Name>,
    /// A hash that is equal for threads with the same methods from `own` outwards.
    pub(super) place: Option<u64>,
    /// Whether the innermost frame is a method, neither in the runtime nor in native code.
    pub(super) in_method: bool,
    /// Whether the thread is a worker of the pool that runs no work.
    pub(super) is_idle: bool,
}

/// The stack of the crashed thread.
pub(super) struct CrashedStack {
    /// The innermost method.
    pub(super) innermost: Option<Name>,
    /// The innermost method that belongs to the program, not to a library.
    pub(super) own: Option<Name>,
    /// The innermost method, other than those that dispatch an exception: the one that has thrown, or that has faulted.
    pub(super) thrower: Option<Name>,
    /// The cycle of methods that takes most of the stack, for stack overflows.
    pub(super) recursion: Option<Recursion>,
    /// Whether the thread is in `Environment.FailFast`.
    pub(super) fails_fast: bool,
}

/// The message, exception and caller of a process that ended itself.
pub(super) struct LastWords {
    pub(super) message: Option<(Addr, String)>,
    pub(super) exception: Option<ExceptionModel>,
    pub(super) caller: Option<Name>,
}

/// Prefix of the names of the methods that dispatch exceptions.
const DISPATCH: &str = "System.Runtime.EH.";

impl Answers<'_> {
    /// The places of the threads.
    pub(super) fn places(&self) -> Result<&Places, Skip> {
        if !self.runtime.descriptor().has_code_tables() {
            return Err(Skip::because("stacks of NativeAOT programs are not walked"));
        }
        self.asked("stacks are not inspected", &self.places, || {
            let mut places = Places::default();
            let mut add = |stack: ThreadStackModel| {
                if stack.crashed {
                    places.crashed = Some(CrashedStack {
                        innermost: methods(&stack).next().and_then(named),
                        own: own(&stack).and_then(|(_, frame)| named(frame)),
                        thrower: thrower(&stack).and_then(named),
                        recursion: recursion(&stack),
                        fails_fast: fail_fast(&stack, is_own).is_some(),
                    });
                }
                places.threads.push(place(&stack));
            };
            let answer = each_stack(self.runtime, &StacksQuery::default(), &mut add)?;
            Ok(answer.map(|_| places))
        })
    }

    /// The stack of the crashed thread; `None` if it is not managed.
    pub(super) fn crashed_stack(&self) -> Result<Option<&CrashedStack>, Skip> {
        Ok(self.places()?.crashed.as_ref())
    }

    /// The arguments and caller of `Environment.FailFast` on the crashed thread. Parts that are missing from the dump are `None`.
    pub(super) fn last_words(&self) -> Option<LastWords> {
        tried(|| self.words())
    }

    fn words(&self) -> Option<LastWords> {
        let os_id = self.runtime.file().crash.as_ref()?.thread?;
        let mut found = None;
        let mut add = |stack: ThreadStackModel| {
            if stack.crashed {
                found = fail_fast(&stack, is_own);
            }
        };
        let query = StacksQuery { threads: vec![os_id.into()], roots: true, ..StacksQuery::default() };
        each_stack(self.runtime, &query, &mut add).ok().map(drop)?;
        let found: FailFast = found?;
        let (namer, scratch) = (self.runtime.namer(), Collector::new());
        let reader = ExceptionReader::new(self.runtime, &namer, &scratch);
        let exceptions = found.others().map(|at| reader.of_thread(at, false));
        let exception = exceptions.into_iter().find(|e| e.method_table.is_some_and(|mt| reader.is_exception(mt)));
        let text = |at: Addr| Some((at, self.heap().ok()?.object(at).ok()?.string().ok()?));
        Some(LastWords {
            message: found.message().and_then(text),
            exception: exception.map(|e| ExceptionModel::clone(&e)),
            caller: found.caller,
        })
    }
}

fn is_own(method: &str) -> bool {
    // Prefixes of the names of stubs, of methods generated at run time, and of P/Invokes of the framework.
    const OTHERS: [&str; 5] = ["ILStubClass.", "DynamicClass.", "Interop+", "Interop.", "Internal."];
    !is_library(method) && !OTHERS.iter().any(|prefix| method.starts_with(prefix))
}

fn methods(stack: &ThreadStackModel) -> impl Iterator<Item = &StackFrameModel> {
    stack.frames.iter().filter(|f| f.kind == StackFrameKind::Managed)
}

/// Returns the innermost frame other than those that dispatch an exception. Since .NET 9 that is done by managed code.
fn thrower(stack: &ThreadStackModel) -> Option<&StackFrameModel> {
    methods(stack).find(|f| !f.method.as_deref().is_some_and(|name| name.starts_with(DISPATCH)))
}

/// Returns the innermost frame whose method belongs to the program, and its index.
fn own(stack: &ThreadStackModel) -> Option<(usize, &StackFrameModel)> {
    let is_it = |(_, f): &(usize, &StackFrameModel)| f.kind == StackFrameKind::Managed && f.method.as_deref().is_some_and(is_own);
    stack.frames.iter().enumerate().find(is_it)
}

fn named(frame: &StackFrameModel) -> Option<Name> {
    Some(Name::shown_as(frame.method.as_deref()?, frame.display.as_deref().map(String::from)))
}

fn place(stack: &ThreadStackModel) -> ThreadPlace {
    let own = own(stack);
    let place = own.map(|(at, _)| {
        let mut hasher = DefaultHasher::new();
        let frames = stack.frames.iter().skip(at).filter(|f| f.kind == StackFrameKind::Managed);
        frames.for_each(|f| frame_key(f).hash(&mut hasher));
        hasher.finish()
    });
    ThreadPlace {
        managed_id: stack.managed_id,
        name: stack.name.clone(),
        innermost: methods(stack).next().and_then(named),
        own: own.and_then(|(_, frame)| named(frame)),
        place,
        in_method: stack.frames.first().is_some_and(|f| f.kind == StackFrameKind::Managed),
        is_idle: is_idle(stack),
    }
}

/// Whether the thread is a worker of the pool that runs no work: its loop is on the stack, and the method that runs work items is not.
fn is_idle(stack: &ThreadStackModel) -> bool {
    let has = |name: &str| methods(stack).any(|f| f.method.as_deref().is_some_and(|method| method.starts_with(name)));
    has("System.Threading.PortableThreadPool+WorkerThread.WorkerThreadStart") && !has("System.Threading.ThreadPoolWorkQueue.Dispatch")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::StackCoverage;

    fn stack(frames: &[(&str, u64)]) -> ThreadStackModel {
        let frame = |(name, offset): &(&str, u64)| StackFrameModel {
            method: Some((*name).into()),
            display: Some((*name).into()),
            offset: Some(*offset),
            ..StackFrameModel::new(StackFrameKind::Managed, Addr(8))
        };
        ThreadStackModel {
            managed_id: Some(4),
            os_id: None,
            name: None,
            crashed: false,
            coverage: StackCoverage::Precise,
            gaps: Vec::new(),
            exception: None,
            waits_for: None,
            repeats: Vec::new(),
            frames: frames.iter().map(frame).collect(),
        }
    }

    /// Returns the place of a stack of frames, innermost first: name, offset in the code.
    fn of(frames: &[(&str, u64)]) -> Option<u64> {
        place(&stack(frames)).place
    }

    #[test]
    fn a_worker_without_work_is_idle() {
        let worker =
            [("System.Threading.PortableThreadPool+WorkerThread.WorkerThreadStart()", 1), ("System.Threading.Thread.StartCallback()", 2)];
        let waits = [("System.Threading.LowLevelLifoSemaphore.Wait(Int32, Boolean)", 3)];
        let works = [("Lab.Work()", 4), ("System.Threading.ThreadPoolWorkQueue.Dispatch()", 5)];
        let idle = |frames: &[(&str, u64)]| place(&stack(frames)).is_idle;
        assert!(idle(&[&waits[..], &worker].concat()));
        assert!(!idle(&[&works[..], &worker].concat()) && !idle(&waits));
    }

    /// The stack of an access violation on .NET 10.
    #[test]
    fn methods_that_dispatch_an_exception_have_not_thrown_it() {
        let dispatch = [("System.Runtime.EH.DispatchEx", 1), ("System.Runtime.EH.RhThrowHwEx", 2)];
        let faulted = [("System.Runtime.InteropServices.Marshal.WriteInt32", 3), ("Lab.Main", 4)];
        let name = |frames: &[(&str, u64)]| thrower(&stack(frames)).and_then(|f| f.method.as_deref().map(String::from));
        assert_eq!(name(&[dispatch, faulted].concat()).as_deref(), Some("System.Runtime.InteropServices.Marshal.WriteInt32"));
        assert_eq!(name(&faulted[1..]).as_deref(), Some("Lab.Main"));
        assert_eq!(name(&dispatch), None);
    }

    #[test]
    fn a_place_does_not_depend_on_how_methods_were_compiled() {
        let first = of(&[("System.Threading.Thread.Sleep", 1), ("Lab.Hold", 20), ("Lab.Step", 30)]);
        assert!(first.is_some());
        assert_eq!(first, of(&[("System.Threading.Thread.Sleep", 2), ("Lab.Hold", 99), ("Lab.Step", 7)]));
        assert_ne!(first, of(&[("System.Threading.Thread.Sleep", 1), ("Lab.Hold", 20), ("Lab.Other", 30)]));
        assert_eq!(of(&[("System.Threading.Thread.Sleep", 1)]), None);
    }
}
