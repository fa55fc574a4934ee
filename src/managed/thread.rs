//! Managed threads.

use std::fmt;
use std::sync::Arc;

use super::Frame;
use super::frame::Stack;
use crate::base::{Addr, Answer, Collector, Name};
use crate::clr::threads::{self, AllocContext};
use crate::contract::ContractError;
use crate::dump::OsThread;
use crate::managed::Object;
use crate::session::{Error, Gaps, Namer, Runtime};
use crate::stack::walk::Asked;

/// A managed thread.
///
/// ```
/// let runtime = gcdump::open("dumps/net10-wks-basics-heap.dmp.zst")?.runtime()?;
/// for thread in runtime.threads()? {
///     for frame in thread.frames()? {
///         println!("{}", frame.method().map_or_else(|| frame.kind().to_string(), |method| method.name().to_string()));
///     }
/// }
/// # Ok::<(), gcdump::Error>(())
/// ```
#[derive(Clone)]
pub struct Thread {
    runtime: Runtime,
    thread: Arc<threads::Thread>,
    is_finalizer: bool,
}

impl fmt::Debug for Thread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Thread({}, managed id {:?}, OS id {:?})", self.address(), self.managed_id(), self.os_id())
    }
}

/// Threads of the same runtime are equal if they are at the same address.
impl PartialEq for Thread {
    fn eq(&self, other: &Thread) -> bool {
        self.address() == other.address()
    }
}

impl Eq for Thread {}

impl Runtime {
    /// The threads that have run managed code, in the order of the runtime's list. If the list is damaged, only the threads before the
    /// damage are returned, with a note.
    ///
    /// # Errors
    /// [`Error::Contract`] if the runtime does not describe its threads.
    pub fn threads(&self) -> Result<Answer<Vec<Thread>>, Error> {
        let notes = self.begin();
        let list = self.managed_threads(&notes)?;
        Ok(notes.finish(list))
    }

    /// The threads of [`Runtime::threads`]. Losses are added to `notes`.
    ///
    /// # Errors
    /// See [`Runtime::threads`].
    pub(crate) fn managed_threads(&self, notes: &Collector) -> Result<Vec<Thread>, ContractError> {
        let finalizer = self.thread_reader()?.finalizer(self.thread_list()?, notes);
        Ok(self.noted_threads(notes)?.iter().map(|thread| Thread::new(self, thread, finalizer)).collect())
    }

    /// The first thread with these IDs.
    pub(super) fn thread_with(&self, managed_id: Option<u32>, os_id: Option<u64>) -> Option<Thread> {
        let threads = self.thread_list().ok()?;
        let thread = threads.iter().find(|thread| thread.id == managed_id && thread.os_id.filter(|id| *id != 0) == os_id)?;
        Some(Thread::new(self, thread, self.thread_reader().ok()?.finalizer(threads, &Collector::new())))
    }
}

impl Thread {
    /// `finalizer` is the address of the finalizer thread.
    fn new(runtime: &Runtime, thread: &threads::Thread, finalizer: Option<Addr>) -> Thread {
        Thread { runtime: runtime.clone(), thread: Arc::new(thread.clone()), is_finalizer: finalizer == Some(thread.address) }
    }

    /// The runtime that the thread belongs to.
    pub fn runtime(&self) -> &Runtime {
        &self.runtime
    }

    /// Address of the runtime's `Thread`.
    pub fn address(&self) -> Addr {
        self.thread.address
    }

    /// The managed thread ID (`Environment.CurrentManagedThreadId`); `None` if it is not in the dump.
    pub fn managed_id(&self) -> Option<u32> {
        self.thread.id
    }

    /// The thread ID of the operating system; `None` for a thread that has not started or has ended.
    pub fn os_id(&self) -> Option<u64> {
        self.thread.os_id.filter(|id| *id != 0)
    }

    /// The managed name, or else the operating system's name. `None` if the thread has no name, or if the name is not in the dump.
    pub fn name(&self) -> Option<String> {
        let native = self.runtime.file().threads.iter().find(|native| Some(u64::from(native.id)) == self.os_id());
        self.named(&self.runtime.readers().ok()?.namer, native).map(|name| name.as_str().into())
    }

    /// [`Thread::name`] for an answer whose names `namer` reads. `native` is the thread of the operating system.
    pub(crate) fn named(&self, namer: &Namer, native: Option<&OsThread>) -> Option<Name> {
        namer.thread_name(self.thread.exposed, native)
    }

    /// The fields of the runtime's `Thread`, for answers that show its pointers and flags as they are.
    pub(crate) fn data(&self) -> &threads::Thread {
        &self.thread
    }

    /// The names of the thread's state flags, such as `background` and `threadpool-worker`; empty if the flags are not in the dump.
    pub fn states(&self) -> Vec<String> {
        let native_aot = self.runtime.descriptor().is_native_aot();
        self.thread.state.map(|state| threads::state_names(state, native_aot)).unwrap_or_default()
    }

    /// Whether the thread is in cooperative mode: it runs managed code, or code of the runtime that may access objects. `None` if the mode is not
    /// in the dump.
    pub fn is_cooperative(&self) -> Option<bool> {
        self.thread.cooperative
    }

    /// Whether this is the finalizer thread; false if the finalizer thread is unknown.
    pub fn is_finalizer(&self) -> bool {
        self.is_finalizer
    }

    /// The allocation context; `None` if the thread has no allocation context, or if the context is not in the dump.
    pub fn allocation_context(&self) -> Option<AllocContext> {
        self.thread.context
    }

    /// The managed `System.Threading.Thread`; `None` if this object has not been created yet or is not in the dump.
    ///
    /// # Errors
    /// [`Error::Contract`] if the runtime does not describe objects.
    pub fn object(&self) -> Result<Option<Object>, Error> {
        self.object_at(self.thread.exposed)
    }

    /// The exception in flight: thrown, and not yet handled. `None` if the thread has no such exception, or if the exception is not in the dump.
    ///
    /// # Errors
    /// See [`Thread::object`].
    pub fn exception(&self) -> Result<Option<Object>, Error> {
        self.object_at(self.thread.exception)
    }

    fn object_at(&self, address: Option<Addr>) -> Result<Option<Object>, Error> {
        let heap = self.runtime.heap()?;
        Ok(address.and_then(|address| heap.object_if_any(address)))
    }

    /// The stack frames, innermost first: managed methods, and the runtime's own frames between managed and native code. Native frames are not
    /// included. Empty for a thread without a stack. Notes report frames that are missing. Each call walks the stack. The objects that a stack holds
    /// are among [`Heap::roots`](crate::Heap::roots).
    ///
    /// # Errors
    /// [`Error::Contract`] if the runtime does not describe its code or its frames.
    pub fn frames(&self) -> Result<Answer<Vec<Frame>>, Error> {
        let notes = self.runtime.begin();
        let walked = self.runtime.walk_stacks(Asked { roots: true, registers: true }, |thread| thread.address == self.address(), &notes)?;
        notes.extend(self.runtime.stack_losses());
        let Some(walked) = walked.into_iter().next() else { return Ok(notes.finish(Vec::new())) };
        let (namer, mut gaps) = (self.runtime.namer(), Gaps::default());
        for gap in walked.walk.gaps.iter().filter(|gap| gap.lack.loses_frames()) {
            let part = self.runtime.unknown_part(gap, &namer);
            gaps.add(&part.reason, gap.from, part.remedy);
        }
        gaps.note(&notes);
        let count = walked.walk.frames.len();
        let stack = Arc::new(Stack::new(&self.runtime, walked.walk));
        Ok(notes.finish((0..count).map(|index| Frame::new(&stack, index)).collect()))
    }
}
