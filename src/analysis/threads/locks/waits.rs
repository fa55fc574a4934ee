//! Determines the wait of each blocked thread: from a record of the runtime or library, or else from the thread's frames and stack words.

use std::sync::Arc;

use super::class_constructors::{ClassConstructors, is_of_starts};
use super::objects::{LockObjects, LockType};
use super::primitives::Primitives;
use super::wait_target::WaitTarget;
use crate::analysis::{LockKind, WaitEvidence, WaitKind};
use crate::base::hash::{Map, Set};
use crate::base::missed::tried;
use crate::base::{Addr, AddrRange, Collector, Missing, Name, is_framework_method, len64, plural};
use crate::bcl::Library;
use crate::clr::blocking::{Blocking, BlockingItem};
use crate::clr::generated::importer;
use crate::clr::methods::{MethodName, Methods};
use crate::clr::threads::Thread;
use crate::model::SyncBlockModel;
use crate::session::{Heap, Namer};
use crate::stack::frames::FrameRoots;
use crate::stack::walk::Asked;
use crate::stack::walked::{Frame, Gap};

/// Maximum elements of an array of wait handles.
const MAX_HANDLES: u64 = 1024;
/// Maximum number of frames that are named per thread.
const MAX_FRAMES: usize = 64;
/// Maximum number of objects read from the slots that the innermost runtime frame protects. In practice there are few.
const MAX_PROTECTED: usize = 64;

/// Prefixes of the names of methods and stubs that wait on behalf of their callers.
const WAITING: [&str; 7] = [
    "System.Threading.",
    "ILStubClass.",
    "System.Runtime.CompilerServices.TaskAwaiter",
    "System.Runtime.CompilerServices.ValueTaskAwaiter",
    "System.Runtime.CompilerServices.ConfiguredTaskAwaitable",
    "System.Runtime.CompilerServices.ConfiguredValueTaskAwaitable",
    "System.Runtime.CompilerServices.AsyncHelpers.HandleAsyncEntryPoint",
];

/// Prefix of the names of the methods of both reader-writer locks.
const READER_WRITER: &str = "System.Threading.ReaderWriterLock";

/// Prefix of the names of P/Invoke methods in assemblies of the library.
const IMPORTS: &str = "Interop+";

/// P/Invoke methods in which a thread waits without the flag that it waits: that for a named mutex (.NET 11 on Unix).
const WAITING_IMPORTS: [&str; 1] = ["Interop+Sys.LowLevelCrossProcessMutex_Acquire"];

/// Values of `ThreadBlockingInfo._objectKind`.
const KIND_ENTER: i32 = 0;
const KIND_WAIT: i32 = 1;
const KIND_LOCK: i32 = 2;
const KIND_CONDITION: i32 = 3;

/// The wait of a thread.
#[derive(Clone, Debug)]
pub(super) struct Wait {
    /// Index of the thread in the runtime's list.
    pub(super) thread: usize,
    pub(super) kind: WaitKind,
    /// The lock and its kind.
    pub(super) object: Option<(Addr, LockKind)>,
    pub(super) others: Vec<Addr>,
    /// Whether the thread waits for one of several tasks or handles: `Task.WaitAny`, `WaitHandle.WaitAny`. Otherwise it waits for all.
    pub(super) any: bool,
    pub(super) evidence: WaitEvidence,
    pub(super) timeout: Option<u32>,
    /// Whether the wait is known to have no timeout.
    pub(super) endless: bool,
}

impl Wait {
    /// Creates a wait for one object that a record names.
    pub(super) fn exact(thread: usize, whole: WaitTarget) -> Wait {
        let object = Some((whole.object, whole.kind));
        Wait::new(thread, whole.wait, (object, Vec::new()), WaitEvidence::Exact)
    }

    /// Creates a wait for one object, or for it and others. Whether it has a timeout is not known.
    fn new(thread: usize, kind: WaitKind, (object, others): (Option<(Addr, LockKind)>, Vec<Addr>), evidence: WaitEvidence) -> Wait {
        Wait { thread, kind, object, others, any: false, evidence, timeout: None, endless: false }
    }

    /// Adds the recorded timeout; `None` if it is infinite. The timeout of a barrier is left out: it waits in steps, each with a different timeout.
    fn with_timeout(self, timeout: Option<u32>) -> Wait {
        Wait { timeout: timeout.filter(|_| self.kind != WaitKind::Barrier), endless: timeout.is_none(), ..self }
    }
}

/// A thread with its frames.
#[derive(Debug)]
pub(super) struct Blocked<'t> {
    pub(super) thread: &'t Thread,
    pub(super) stack: Option<AddrRange>,
    /// The methods on the stack, innermost first.
    pub(super) frames: Vec<BlockedFrame>,
    /// The innermost method without a name: the number of `frames` that are below it, and its `MethodDesc`.
    pub(super) unnamed: Option<(usize, Addr)>,
    /// Stack slots that the innermost runtime frame reports to the GC.
    pub(super) protected: FrameRoots,
    /// Stack pointer of the innermost method that may have called the runtime to run a class constructor; `None` if no method did.
    pub(super) starts_class: Option<Addr>,
}

/// A frame of a thread.
#[derive(Clone, Debug)]
pub(super) struct BlockedFrame {
    /// The name of the method; for a P/Invoke stub, the name of the P/Invoke method.
    pub(super) name: Name,
    pub(super) method: Arc<MethodName>,
    pub(super) desc: Addr,
    /// The instruction pointer; `None` for a method without a managed frame, of which only the native part is on the stack.
    pub(super) at: Option<Addr>,
    /// The stack pointer; `None` as for `at`.
    pub(super) sp: Option<Addr>,
}

impl BlockedFrame {
    /// Whether the frame is a library method or stub that waits on behalf of its caller.
    pub(super) fn is_of_waits(&self) -> bool {
        is_of_waits(&self.name) || is_of_starts(self) || self.is_import_of_library()
    }

    /// Whether the frame is a P/Invoke method of the library, such as `Interop+Sys.LowLevelMonitor_Wait`. Optimized callers inline the stub, so that the method
    /// of the runtime's frame is innermost.
    fn is_import_of_library(&self) -> bool {
        self.name.starts_with(IMPORTS) && is_framework_method(self.method.module.as_deref(), &self.name)
    }
}

/// Whether the method with this name waits on behalf of its caller.
fn is_of_waits(method: &str) -> bool {
    WAITING.iter().any(|prefix| method.starts_with(prefix))
}

impl Blocked<'_> {
    /// Returns the innermost frame of a method that does not wait on behalf of its caller. If a method without a name may be that method, returns the
    /// `MethodDesc` of this method.
    pub(super) fn own(&self) -> Result<Option<&BlockedFrame>, Addr> {
        match self.unnamed {
            Some((below, desc)) if self.frames.iter().take(below).all(BlockedFrame::is_of_waits) => Err(desc),
            _ => Ok(own(&self.frames)),
        }
    }

    /// Whether a method whose name begins with `prefix` waits on behalf of its caller.
    fn is_in(&self, prefix: &str) -> bool {
        self.frames.is_empty() || self.frames.iter().take_while(|frame| frame.is_of_waits()).any(|frame| frame.name.starts_with(prefix))
    }
}

impl Blocked<'_> {
    /// Whether the thread is in a method of a reader-writer lock.
    pub(super) fn is_in_reader_writer(&self) -> bool {
        !self.frames.is_empty() && self.is_in(READER_WRITER)
    }

    /// Whether the thread waits in a P/Invoke method, which does not set the flag that it waits.
    fn is_in_import(&self) -> bool {
        is_in_import(&self.frames)
    }
}

/// Whether the innermost frame is a P/Invoke method of the library that waits, called by a method that waits.
fn is_in_import(frames: &[BlockedFrame]) -> bool {
    let waits = |frame: &BlockedFrame| {
        frame.is_import_of_library() && WAITING_IMPORTS.iter().any(|name| frame.name.split('(').next() == Some(*name))
    };
    frames.first().is_some_and(waits) && framed(frames).is_some()
}

/// Returns the innermost frame of a method that does not wait on behalf of its caller.
fn own(frames: &[BlockedFrame]) -> Option<&BlockedFrame> {
    frames.iter().find(|frame| !frame.is_of_waits())
}

/// Returns the part of `stack` with the frames of the methods that wait on behalf of their caller, and with that of the caller.
fn waiting_frames(frames: &[BlockedFrame], stack: AddrRange) -> Option<AddrRange> {
    let start = frames.iter().find_map(|frame| frame.sp)?;
    let outside = frames.iter().skip_while(|frame| frame.is_of_waits()).skip(1);
    let end = outside.filter_map(|frame| frame.sp).find(|sp| *sp > start).unwrap_or(stack.end);
    Some(AddrRange::new(start.max(stack.start), end.min(stack.end))).filter(|range| range.start < range.end)
}

/// Determines the kind of wait from the innermost frames in `System.Threading`.
fn framed(frames: &[BlockedFrame]) -> Option<WaitKind> {
    let waits = [
        ("System.Threading.Thread.Join", WaitKind::Join),
        ("System.Threading.Thread.Sleep", WaitKind::Sleep),
        ("System.Threading.WaitHandle.WaitOne", WaitKind::WaitHandle),
        ("System.Threading.WaitHandle.WaitAny", WaitKind::WaitHandles),
        ("System.Threading.WaitHandle.WaitAll", WaitKind::WaitHandles),
        ("System.Threading.WaitHandle.WaitMultiple", WaitKind::WaitHandles),
    ];
    let kind = |frame: &BlockedFrame| waits.iter().find(|(prefix, _)| frame.name.starts_with(prefix)).map(|(_, kind)| *kind);
    frames.iter().take_while(|frame| frame.is_of_waits()).find_map(kind)
}

/// Returns the threads that have a stack, each with its index in the runtime's list and its frames.
pub(super) fn blocked<'t>(heap: &'t Heap, namer: &Namer, threads: &'t [Thread], notes: &Collector) -> Vec<(usize, Blocked<'t>)> {
    let runtime = heap.runtime();
    let methods = runtime.scoped(notes, |d| Methods::bind(heap.memory(), d, runtime.limits()).ok());
    let walked = match runtime.walk_stacks(Asked::default(), |_| true, notes) {
        Ok(walked) => walked,
        Err(_) if !runtime.descriptor().has_code_tables() => Vec::new(),
        Err(e) => {
            notes.add(Missing::Stacks, None, format!("the stacks of blocked threads cannot be shown: {e}"));
            Vec::new()
        }
    };
    let lost: Vec<&Gap> = walked.iter().filter(|stack| stack.thread.waits()).filter_map(|stack| stack.walk.gaps.first()).collect();
    if let Some(first) = lost.first() {
        let part = runtime.unknown_part(first, namer);
        let threads = plural(len64(lost.len()), "blocked thread");
        notes.add(
            Missing::Stacks.supplied_by(part.remedy),
            first.from,
            format!("the stacks of {threads} cannot be shown: {}", part.reason),
        );
    }
    let blocked = |(index, thread, stack)| {
        (index, Blocked { thread, stack, frames: Vec::new(), unnamed: None, protected: FrameRoots::default(), starts_class: None })
    };
    let mut all: Vec<(usize, Blocked<'t>)> = runtime.stacks_in_use(threads, notes).into_iter().map(blocked).collect();
    let mut names: Map<Addr, Option<(Name, Arc<MethodName>)>> = Map::default();
    // Both lists are in the order of the runtime's thread list.
    let mut rest = walked.iter().peekable();
    for (index, blocked) in &mut all {
        while rest.next_if(|stack| stack.index < *index).is_some() {}
        let Some(stack) = rest.next_if(|stack| stack.index == *index) else { continue };
        let managed = stack.walk.frames.iter().filter_map(|f| match f {
            Frame::Managed(f) => Some((f.code.method_desc, Some(f.instruction()), Some(f.sp))),
            // If the JIT has inlined `Thread.Join`, only the runtime frame of its native part shows the call.
            Frame::Runtime(f) => Some((runtime.stack_walker().ok()?.native(f)?, None, None)),
        });
        let protected = match stack.walk.frames.first() {
            Some(Frame::Runtime(f)) => runtime.stack_walker().ok().and_then(|walker| walker.owned(&f.frame).ok()).unwrap_or_default(),
            _ => FrameRoots::default(),
        };
        // Whether managed code has called the runtime itself, not a native method through P/Invoke.
        let calls = matches!(stack.walk.frames.first(), Some(Frame::Runtime(f)) if !f.frame.is_inlined());
        let mut frame = |(desc, at, sp): (Addr, Option<Addr>, Option<Addr>)| {
            let read = || {
                let method = methods.as_ref()?.name(namer.names()?, desc)?;
                // A P/Invoke stub gets the name of the P/Invoke method.
                let name = importer(&method.name).map_or_else(|| method.to_name(), Name::from);
                Some((name, Arc::new(method)))
            };
            let (name, method) = names.entry(desc).or_insert_with(read).clone()?;
            Some(BlockedFrame { name, method, desc, at, sp })
        };
        let (mut named, mut unnamed) = (Vec::new(), None);
        for of in managed.take(MAX_FRAMES) {
            match frame(of) {
                Some(frame) => named.push(frame),
                None => unnamed = unnamed.or(Some((named.len(), of.0))),
            }
        }
        let mut managed = named;
        managed.shrink_to_fit();
        let starts = calls || managed.first().is_some_and(is_of_starts);
        let caller = managed.iter().find(|frame| !is_of_starts(frame)).and_then(|frame| frame.sp);
        *blocked = Blocked { frames: managed, unnamed, protected, starts_class: caller.filter(|_| starts), ..*blocked };
    }
    all
}

/// Reads the waits of threads.
pub(super) struct Waits<'w> {
    pub(super) heap: &'w Heap,
    pub(super) library: &'w Library,
    pub(super) found: &'w LockObjects,
    pub(super) primitives: &'w Primitives,
    /// Sync blocks by address.
    pub(super) blocks: Map<Addr, SyncBlockModel>,
    pub(super) blocking: Blocking,
    /// `Thread` objects, by address.
    pub(super) thread_objects: Set<Addr>,
    /// The class constructors that are running.
    pub(super) constructors: ClassConstructors,
}

impl Waits<'_> {
    /// Returns the waits of `threads`: those whose timeouts are recorded, and the others.
    pub(super) fn read(&mut self, threads: &[(usize, Blocked<'_>)], notes: &Collector) -> (Vec<Wait>, Vec<Wait>) {
        if !self.blocking.is_placed() {
            let stacks: Vec<(Addr, AddrRange)> = threads.iter().filter_map(|(_, t)| Some((t.thread.address, t.stack?))).collect();
            let blocks = &self.blocks;
            tried(|| self.blocking.find(&stacks, |block| blocks.contains_key(&block)));
        }
        let queued = self.queued(notes);
        let (mut out, mut untimed) = (Vec::new(), Vec::new());
        for (index, thread) in threads {
            let recorded = self.recorded(*index, thread).or_else(|| self.managed(*index, thread));
            if recorded.is_some() {
                out.extend(recorded);
                continue;
            }
            let subsystem = thread.thread.exposed.and_then(|object| self.subsystem(*index, object));
            let queue = || queued.get(&thread.thread.address).map(|object| self.monitor(*index, *object, true));
            let constructor = || self.constructors.waited(self.heap.memory(), *index, thread);
            let by_stack = || (thread.thread.waits() || thread.is_in_import()).then(|| self.by_stack(*index, thread));
            let found = subsystem.or_else(queue).or_else(constructor).or_else(by_stack);
            untimed.extend(found);
        }
        (out, untimed)
    }

    /// Maps each runtime `Thread` in `Monitor.Wait` to the object on which it waits, from the queues of the sync blocks.
    fn queued(&self, notes: &Collector) -> Map<Addr, Addr> {
        let mut out = Map::default();
        for (address, block) in &self.blocks {
            let Some(object) = block.object else { continue };
            match self.blocking.queued(*address, &|n| self.library.afford(n)) {
                Some(list) => out.extend(list.into_iter().map(|thread| (thread, object))),
                // The library notes that the budget is used up.
                None if !self.library.afford(0) => break,
                None if self.blocking.has_queues() => {
                    notes.add(Missing::Locks, *address, "the threads that wait for a monitor cannot be read from its sync block");
                }
                None => {}
            }
        }
        out
    }

    /// Returns the wait that the runtime has recorded on the thread's stack.
    fn recorded(&self, index: usize, thread: &Blocked<'_>) -> Option<Wait> {
        let item: BlockingItem = self.blocking.item(thread.thread.address, thread.stack?, |block| self.blocks.contains_key(&block))?;
        let object = self.blocks.get(&item.block)?.object?;
        Some(self.monitor(index, object, item.waits).with_timeout(item.timeout))
    }

    /// Returns the wait that the library has recorded in `ThreadBlockingInfo` (.NET 9 and later).
    fn managed(&self, index: usize, thread: &Blocked<'_>) -> Option<Wait> {
        let (table, fields) = self.primitives.blocking?;
        let stack = thread.stack?;
        let first = self.library.thread_static_at(table, "t_first", thread.thread.address).ok()??;
        let at = self.library.reference_at(first).filter(|at| stack.contains(*at))?;
        // Field offsets of a structure count from its box, which starts one word before the fields.
        let at = at.minus(self.heap.memory().ptr_bytes())?;
        let object = Addr(self.library.word(at, fields.object)?);
        let timeout = self.library.i32(at, fields.timeout);
        let in_slot = || self.library.reference_at(object).filter(|_| stack.contains(object));
        let timed = |wait: Wait| match timeout {
            // A negative timeout is infinite.
            Some(ms) => wait.with_timeout(u32::try_from(ms).ok()),
            None => wait,
        };
        let whole = |whole| timed(Wait::exact(index, whole));
        match self.library.i32(at, fields.kind)? {
            kind @ (KIND_ENTER | KIND_WAIT) => {
                let object = self.blocks.get(&object)?.object?;
                Some(timed(self.monitor(index, object, kind == KIND_WAIT)))
            }
            KIND_LOCK => {
                let lock = in_slot()?;
                Some(whole(self.primitives.entered(lock)))
            }
            KIND_CONDITION => {
                let condition = in_slot()?;
                let plain = WaitTarget { object: condition, kind: LockKind::Monitor, wait: WaitKind::Condition };
                Some(whole(self.primitives.conditional(self.library, condition).unwrap_or(plain)))
            }
            _ => None,
        }
    }

    /// Returns the wait that the library has recorded in `ThreadWaitInfo`; `None` for a sleep, which has no object.
    fn subsystem(&self, index: usize, thread: Addr) -> Option<Wait> {
        let waited = self.primitives.wait_infos.as_ref()?.waited(self.library, thread)?;
        let object = |w: &WaitTarget| (w.object, w.kind);
        let (kind, first, others) = match waited.objects.as_slice() {
            [one] => (one.wait, Some(object(one)), Vec::new()),
            [first, rest @ ..] => (WaitKind::WaitHandles, Some(object(first)), rest.iter().map(|w| w.object).collect()),
            [] => return None,
        };
        let wait = Wait::new(index, kind, (first, others), WaitEvidence::Exact);
        Some(Wait { any: kind == WaitKind::WaitHandles && !waited.all, ..wait })
    }

    /// Creates a wait to enter the monitor of `object`. With `waits`, the thread is in `Monitor.Wait`, and the target is the lock that contains
    /// `object`, if any.
    fn monitor(&self, index: usize, object: Addr, waits: bool) -> Wait {
        let entered = WaitTarget { object, kind: LockKind::Monitor, wait: WaitKind::Monitor };
        let whole = if waits { self.primitives.waited(object) } else { entered };
        Wait::exact(index, whole)
    }

    /// Infers the wait from the frames, and from the first stack word with the address of a waitable object.
    fn by_stack(&self, index: usize, thread: &Blocked<'_>) -> Wait {
        let own = thread.thread.exposed;
        let is_thread = |object: &Addr| self.thread_objects.contains(object) && Some(*object) != own;
        let wait = |kind, object, others| Wait::new(index, kind, (object, others), WaitEvidence::Stack);
        let protected = thread.protected.slots().take(MAX_PROTECTED).filter_map(|slot| self.library.reference_at(slot));
        // `ThreadNative::Join` has no frame in .NET 8 if `Thread.Join` is inlined.
        let joined = || protected.clone().find(is_thread).map(|_| WaitKind::Join);
        let framed = framed(&thread.frames).or_else(joined);
        let kind = framed.unwrap_or(WaitKind::Other);
        let Some(stack) = thread.stack else { return wait(kind, None, Vec::new()) };
        match framed {
            Some(WaitKind::Sleep) => return wait(kind, None, Vec::new()),
            Some(WaitKind::Join) => {
                let event = |word: Addr| self.primitives.by_handle.get(&word).filter(|w| w.wait == WaitKind::Join).map(|w| w.object);
                let by_event = || self.words(thread, stack).find_map(event);
                let joined = protected.clone().find(is_thread).or_else(by_event).or_else(|| self.words(thread, stack).find(is_thread));
                return wait(kind, joined.map(|object| (object, LockKind::Thread)), Vec::new());
            }
            _ => {}
        }
        for word in self.words(thread, stack) {
            if self.found.kinds.get(&word).is_some_and(|kinds| kinds.is(LockType::SafeWaitHandle)) {
                let plain = WaitTarget { object: word, kind: LockKind::WaitHandle, wait: WaitKind::WaitHandle };
                let whole = self.primitives.by_handle.get(&word).copied().unwrap_or(plain);
                // The methods of a reader-writer lock that wait are never inlined.
                if whole.kind == LockKind::ReaderWriter && !thread.is_in(READER_WRITER) {
                    continue;
                }
                return wait(whole.wait, Some((whole.object, whole.kind)), Vec::new());
            }
            let arrays = &self.found.handle_arrays;
            let last = arrays.partition_point(|(start, _)| *start <= word).checked_sub(1);
            if let Some((array, _)) = last.and_then(|i| arrays.get(i)).filter(|(_, end)| word < *end) {
                let mut objects = self.handles(*array);
                let first = (!objects.is_empty()).then(|| objects.remove(0));
                return wait(WaitKind::WaitHandles, first.map(|object| (object, LockKind::WaitHandle)), objects);
            }
        }
        wait(kind, None, Vec::new())
    }

    /// Returns the wait handles for the safe handles in `array`.
    fn handles(&self, array: Addr) -> Vec<Addr> {
        let all = self.library.references(array, MAX_HANDLES);
        let handles = all.into_iter().map(|(_, handle)| handle).filter(|h| !h.is_null());
        handles.map(|handle| self.primitives.by_handle.get(&handle).map_or(handle, |whole| whole.object)).collect()
    }

    /// Returns the words of a stack that may say what the thread waits for: first those of the frames of the library that wait and of their caller,
    /// then all, innermost first. The native frames below them may hold words of threads that have used the same stack before.
    fn words(&self, thread: &Blocked<'_>, stack: AddrRange) -> impl Iterator<Item = Addr> {
        let memory = self.heap.memory();
        memory.need(stack);
        let words = |range| memory.words(range).map(|(_, bytes)| Addr(memory.shape().number(bytes)));
        let frames = waiting_frames(&thread.frames, stack);
        // Without frames of the library, only the words are known.
        let all = (thread.frames.is_empty() || framed(&thread.frames).is_some()).then(|| words(stack));
        frames.map(words).into_iter().flatten().chain(all.into_iter().flatten())
    }
}

/// Adds a note about waiting threads whose stack is not in the dump.
pub(super) fn note_stacks(threads: &[(usize, Blocked<'_>)], notes: &Collector) {
    let lost = threads.iter().filter(|(_, t)| t.thread.waits() && t.stack.is_none()).count();
    if lost > 0 {
        notes.add(Missing::Stacks, None, format!("what {} waited for is unknown: no stack in the dump", plural(len64(lost), "thread")));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clr::type_names::NameQuality;

    fn frame(name: &str, module: &str, sp: Option<u64>) -> BlockedFrame {
        let (declaring_type, module, quality) = (Addr::NULL, Some(module.to_string()), NameQuality::Exact);
        let method = MethodName { name: name.into(), source: None, module, home: None, token: None, declaring_type, quality };
        BlockedFrame { name: name.into(), method: Arc::new(method), desc: Addr::NULL, at: None, sp: sp.map(Addr) }
    }

    /// Native frames may hold words of threads that have used the same stack before.
    #[test]
    fn what_a_thread_waits_for_is_in_the_frames_that_wait_and_in_that_of_their_caller() {
        let library = "System.Private.CoreLib.dll";
        let mut frames = vec![
            frame("System.Threading.WaitHandle.WaitOneCore()", library, None),
            frame("System.Threading.WaitHandle.WaitOne()", library, Some(0x200)),
            frame("Lab.Run()", "lab.dll", Some(0x300)),
        ];
        let stack = AddrRange::new(Addr(0x100), Addr(0x1000));
        let of = |frames: &[BlockedFrame]| waiting_frames(frames, stack);
        assert_eq!(of(&frames), Some(AddrRange::new(Addr(0x200), Addr(0x1000))));
        frames.push(frame("Lab.Main()", "lab.dll", Some(0x400)));
        assert_eq!(of(&frames), Some(AddrRange::new(Addr(0x200), Addr(0x400))));
        assert_eq!(of(&[]), None);
    }

    /// Frames of a thread in `Thread.Sleep` on .NET 11, after the JIT has inlined the P/Invoke.
    #[test]
    fn imports_of_the_library_wait_on_behalf_of_their_callers() {
        let library = "System.Private.CoreLib.dll";
        let frames = [
            ("Interop+Sys.LowLevelMonitor_Wait(IntPtr)", library),
            ("System.Threading.WaitSubsystem+ThreadWaitInfo.Sleep(Int32)", library),
            ("System.Threading.Thread.Sleep(Int32)", library),
            ("Lab.Program.Main()", "lab.dll"),
        ]
        .map(|(name, module)| frame(name, module, None))
        .to_vec();
        assert_eq!(framed(&frames), Some(WaitKind::Sleep));
        assert_eq!(own(&frames).unwrap().name, "Lab.Program.Main()");
        // A class of the program may have the same name.
        assert!(!frame("Interop+Native.Wait()", "lab.dll", None).is_of_waits());
    }

    /// Frames of a thread that waits for a named mutex on .NET 11.
    #[test]
    fn a_thread_in_the_import_that_takes_a_named_mutex_waits() {
        let library = "System.Private.CoreLib.dll";
        let acquire = ("Interop+Sys.LowLevelCrossProcessMutex_Acquire(Void*, Int32)", library);
        let waits = [
            ("System.Threading.WaitSubsystem+NamedMutex.Wait_Locked(ThreadWaitInfo, Int32, Boolean, LockHolder ByRef)", library),
            ("System.Threading.WaitHandle.WaitOneNoCheck(Int32, Boolean, System.Object, WaitHandleWaitSourceMap)", library),
            ("Lab.Program.Main()", "lab.dll"),
        ];
        let of = |names: &[(&str, &str)]| names.iter().map(|(name, module)| frame(name, module, None)).collect::<Vec<_>>();
        assert!(is_in_import(&of(&[&[acquire], &waits[..]].concat())));
        // A thread that was granted the mutex, one that releases it, and one that creates it.
        assert!(!is_in_import(&of(&waits)));
        assert!(!is_in_import(&of(&[&[("Interop+Sys.LowLevelCrossProcessMutex_Release(Void*)", library)], &waits[..]].concat())));
        assert!(!is_in_import(&of(&[acquire, waits[2]])));
        assert!(!is_in_import(&of(&[&[(acquire.0, "lab.dll")], &waits[..]].concat())));
    }

    #[test]
    fn awaiters_wait_on_behalf_of_their_callers() {
        let waiting = [
            "System.Threading.Tasks.Task.Wait()",
            "System.Runtime.CompilerServices.TaskAwaiter.HandleNonSuccessAndDebuggerNotification(System.Threading.Tasks.Task, ConfigureAwaitOptions)",
            "System.Runtime.CompilerServices.TaskAwaiter<System.Int32>.GetResult()",
            "System.Runtime.CompilerServices.ConfiguredValueTaskAwaitable+ConfiguredValueTaskAwaiter.GetResult()",
        ];
        assert!(waiting.iter().all(|method| is_of_waits(method)));
        assert!(!is_of_waits(
            "System.Runtime.CompilerServices.AsyncTaskMethodBuilder.Start<Lab.Program+<Go>d__0>(Lab.Program+<Go>d__0 ByRef)"
        ));
        assert!(!is_of_waits("Lab.Program.Main()"));
    }
}
