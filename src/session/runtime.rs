//! One .NET runtime of the process, whose parts are bound on first use.

use std::sync::{Arc, OnceLock};

use super::Namer;
use super::bindings::Bindings;
use super::carve::searched;
use super::heap_parts::HeapParts;
use super::limit_setting::hard_limit;
use super::process::Process;
use super::readers::Readers;
use super::stacks::kept::KeptWalks;
use super::startup::Startup;
use crate::base::missed::{Kept, tried, watched};
use crate::base::{Addr, Answer, Collector, Limits, Missing, NoteKind, Notes, Progress, Remedy};
use crate::clr::fields::CORE;
use crate::clr::header::Headers;
use crate::clr::threads::{Thread, Threads};
use crate::clr::type_names::TypeNames;
use crate::contract::{ContractError, Description, Descriptor};
use crate::dump::DumpFile;
use crate::gc::{Collections, Gc};
use crate::heapgraph::IndexUse;
use crate::memory::Memory;
use crate::model::{Carve, GcKind, GcLayout, RuntimeKind};
use crate::stack::walk::StackWalker;

type Bound<T> = OnceLock<Kept<Result<T, ContractError>>>;
#[derive(Debug)]
struct Inner {
    bindings: Arc<Bindings>,
    /// Index of the runtime among the runtimes of the process.
    index: usize,
    /// A note on the other runtimes.
    others: Option<String>,
    gc: Bound<Arc<Answer<Gc>>>,
    threads: Bound<Answer<Vec<Thread>>>,
    heap: Bound<Arc<HeapParts>>,
    readers: Bound<Readers>,
    walks: KeptWalks,
}

/// A .NET runtime in the dumped process.
#[derive(Clone, Debug)]
pub struct Runtime {
    inner: Arc<Inner>,
}

impl Runtime {
    /// The runtime at `index` of the process. `others` is a sentence about the other runtimes.
    pub(super) fn new(process: Arc<Process>, description: Description, index: usize, others: Option<String>) -> Runtime {
        let (gc, threads, heap, readers) = (OnceLock::new(), OnceLock::new(), OnceLock::new(), OnceLock::new());
        let bindings = Arc::new(Bindings::new(process, description));
        Runtime { inner: Arc::new(Inner { bindings, index, others, gc, threads, heap, readers, walks: KeptWalks::default() }) }
    }

    /// A second handle of the runtime that has read nothing yet, for answers about failures of reading.
    pub(crate) fn unread(&self) -> Runtime {
        let Inner { bindings, index, others, .. } = &*self.inner;
        Runtime::new(Arc::clone(bindings.process()), bindings.description().clone(), *index, others.clone())
    }

    /// Index of the runtime among the runtimes of the process, from 0.
    pub fn index(&self) -> usize {
        self.inner.index
    }

    /// The kind of the runtime.
    pub fn kind(&self) -> RuntimeKind {
        self.description().kind()
    }

    /// The version, such as `10.0.12`, or only `10.0`; `None` if it is unknown.
    pub fn version(&self) -> Option<&str> {
        self.description().version.as_deref()
    }

    /// Whether the garbage collector is that of workstations or of servers. `None` if the GC's structures cannot be read, and for Mono.
    pub fn gc_kind(&self) -> Option<GcKind> {
        self.gc().ok()?.kind()
    }

    /// Whether the heap consists of regions or of segments. `None` as for [`Runtime::gc_kind`].
    pub fn gc_layout(&self) -> Option<GcLayout> {
        self.gc().ok()?.layout()
    }

    /// Adds a note if the process has other runtimes.
    pub(crate) fn note_others(&self, notes: &Collector) {
        if let Some(others) = &self.inner.others {
            notes.add(NoteKind::OtherRuntimes.supplied_by(Remedy::OtherRuntime), None, others.clone());
        }
    }

    /// The parts that are bound once and depend on no other part.
    pub(crate) fn bindings(&self) -> &Arc<Bindings> {
        &self.inner.bindings
    }

    fn process(&self) -> &Process {
        self.inner.bindings.process()
    }

    /// The description of the runtime: version, module, source of its layouts, descriptor.
    #[doc(hidden)]
    pub fn description(&self) -> &Description {
        self.inner.bindings.description()
    }

    /// Types, fields, globals and contracts of the runtime.
    #[doc(hidden)]
    pub fn descriptor(&self) -> &Arc<Descriptor> {
        &self.description().descriptor
    }

    /// The process's memory.
    #[doc(hidden)]
    pub fn memory(&self) -> &Arc<Memory> {
        &self.process().memory
    }

    /// The dump file.
    #[doc(hidden)]
    pub fn file(&self) -> &DumpFile {
        &self.process().file
    }

    /// The limits in force.
    pub fn limits(&self) -> &Arc<Limits> {
        &self.process().limits
    }

    /// Which index file answers may use.
    pub(crate) fn index_use(&self) -> &IndexUse {
        &self.process().index
    }

    /// Progress reporting of long operations.
    pub(crate) fn progress(&self) -> &dyn Progress {
        &*self.process().progress
    }

    /// Begins an answer about this runtime, with the notes of opening the dump.
    pub(crate) fn begin(&self) -> Collector {
        let notes = Collector::new();
        self.note_others(&notes);
        notes.extend(&self.process().notes);
        notes
    }

    /// Binds readers in a separate descriptor scope. Layouts that the descriptor does not have are added to `notes`.
    pub(crate) fn scoped<T>(&self, notes: &Collector, bind: impl FnOnce(&Arc<Descriptor>) -> T) -> T {
        self.inner.bindings.scoped(notes, bind)
    }

    /// The reader of object headers and sync blocks; `None` if the descriptor does not have the layouts.
    pub(crate) fn headers(&self, notes: &Collector) -> Option<Headers> {
        let moving = self.moves_objects();
        self.scoped(notes, |d| Headers::bind(self.memory(), d, self.limits()).ok()).map(|h| h.while_moving(moving))
    }

    /// Whether a collection was moving objects when the dump was taken.
    pub(super) fn moves_objects(&self) -> bool {
        self.gc().is_ok_and(|gc| gc.facts().moves_objects())
    }

    /// The GC's structures.
    ///
    /// # Errors
    /// [`ContractError`] if the runtime does not advertise the GC contract in a supported version, or does not describe a part of the contract.
    #[doc(hidden)]
    pub fn gc(&self) -> Result<&Arc<Answer<Gc>>, ContractError> {
        bound(&self.inner.gc, || {
            // Without the threads, less is known about the state of the GC, but no answer is partial because of that.
            let threads = tried(|| self.threads_if_any(&Collector::new()));
            let image = self.description().gc_image.as_ref();
            let carve = self.process().carve;
            if carve == Carve::Always {
                return self.carved("that was requested").map(Arc::new);
            }
            let mut read = Gc::bind(self.memory(), self.descriptor(), self.limits(), image, threads);
            if let Ok(gc) = &mut read {
                // Read only if the limit is asked for.
                let process = Arc::clone(self.inner.bindings.process());
                let started = move || Startup::of(&process.file, &process.memory);
                let environment = move || started().map(|startup| startup.environment).unwrap_or_default();
                gc.data.set_limit_setting(Box::new(move |properties| hard_limit(&environment(), properties)));
            }
            match read {
                Ok(gc) if carve == Carve::Never || gc.has_heap() => Ok(gc),
                Err(e) if carve == Carve::Never => Err(e),
                read => self.carved_instead(read),
            }
            .map(Arc::new)
        })
    }

    /// The carved heap, or else `read`, which has no heap.
    fn carved_instead(&self, read: Result<Answer<Gc>, ContractError>) -> Result<Answer<Gc>, ContractError> {
        let why = read.as_ref().map_or_else(ToString::to_string, |_| "the GC's lists of segments are lost".into());
        let Ok(mut carved) = self.carved(&why) else { return read };
        if carved.carved().is_none_or(|c| c.objects() == 0) {
            return read;
        }
        // These notes have the reasons why the lists are lost.
        if let Ok(read) = read {
            carved.notes.extend(&read.notes);
            carved.notes.extend(&read.segments().notes);
        }
        Ok(carved)
    }

    /// Reads the heap without the GC's structures. `why` is the reason, as a part of a sentence.
    fn carved(&self, why: &str) -> Result<Answer<Gc>, ContractError> {
        if self.descriptor().is_mono() {
            return Gc::of_mono(self.memory(), self.descriptor(), self.limits(), self.description().gc_image.as_ref());
        }
        Gc::carve(self.memory(), self.descriptor(), self.limits(), searched(self, why.into()), self.progress())
    }

    /// The GC's records of its collections; `None` if the records were not found. `notes` report whether they are missing from the dump.
    pub(crate) fn collections(&self, notes: &Collector) -> Option<Collections> {
        notes.with(self.gc().ok()?.collections()).clone()
    }

    /// The threads in the order of the runtime's list, up to the first broken link. [`Runtime::threads`] returns handles instead.
    ///
    /// # Errors
    /// [`ContractError`] if the descriptor does not have the thread list.
    #[doc(hidden)]
    pub fn thread_list(&self) -> Result<&Answer<Vec<Thread>>, ContractError> {
        bound(&self.inner.threads, || {
            let mut list = self.thread_reader()?.list();
            if self.descriptor().is_native_aot() {
                let namer = self.namer();
                for thread in &mut list.data {
                    let (found, missed) = watched(|| self.find_managed(&namer, thread));
                    if found.is_none()
                        && let Some((at, ..)) = missed.first()
                    {
                        let what =
                            format!("the object of the thread at {}: a part of its thread statics is not in the dump", thread.address);
                        list.notes.add(Missing::Threads, at, what);
                    }
                }
            }
            self.match_ids(&mut list);
            Ok(list)
        })
    }

    /// Finds the managed `Thread` and the managed thread ID of a thread of a NativeAOT program; `None` if one of them was not found. Only thread
    /// statics refer to the managed `Thread`.
    fn find_managed(&self, namer: &Namer, thread: &mut Thread) -> Option<()> {
        const THREAD: &str = "System.Threading.Thread";
        let types = namer.types().ok()?;
        let definition = types.definition_named(CORE, THREAD)?;
        let (memory, objects) = (self.memory(), types.objects());
        let is_thread = |at: &Addr| objects.method_table(*at).is_some_and(|mt| types.definition(mt) == Some(definition));
        let fields = |object: Addr| -> Vec<Addr> {
            let fields = objects.method_table(object).and_then(|mt| types.instance_fields(mt));
            let references = fields.iter().flat_map(|list| list.iter()).filter(|f| f.is_reference());
            references.filter_map(|f| memory.ptr(object.plus(f.offset)).ok()).filter(|a| !a.is_null()).collect()
        };
        let found = thread.statics.iter().flat_map(|(_, block)| fields(*block)).find(is_thread)?;
        thread.exposed = Some(found);
        let id = types.field_at(objects.method_table(found)?, "_managedThreadId").ok()?;
        let id_object = memory.ptr(id.of_object(found)).ok().filter(|a| !a.is_null())?;
        let number = types.field_at(objects.method_table(id_object)?, "_managedThreadId").ok()?;
        thread.id = memory.u32(number.of_object(id_object)).ok();
        thread.id.map(drop)
    }

    /// The managed threads; empty if the runtime does not describe the list. Losses are added to `notes`.
    pub(crate) fn threads_if_any(&self, notes: &Collector) -> &[Thread] {
        self.thread_list().map_or(&[], |list| notes.with(list).as_slice())
    }

    /// Whether the thread list can be read to its end.
    pub(crate) fn has_all_threads(&self) -> bool {
        self.thread_list().is_ok_and(|list| list.complete())
    }

    /// Notes on allocation contexts of threads that cannot be read, because the thread list cannot be read or the descriptor does not have a layout.
    pub(crate) fn context_losses(&self) -> Notes {
        // The walker finds the free memory of Mono's nursery without the threads' allocation contexts.
        if self.descriptor().is_mono() {
            return Notes::new();
        }
        self.thread_reader().map_or_else(
            |e| {
                let mut notes = Notes::new();
                notes.add(Missing::Threads, None, format!("the allocation contexts of the threads cannot be read: {e}"));
                notes
            },
            |reader| reader.context_losses().clone(),
        )
    }

    /// The parts of the heap that are built once; `open` creates them.
    ///
    /// # Errors
    /// The errors of `open`.
    pub(super) fn heap_parts(
        &self,
        open: impl FnOnce() -> Result<Arc<HeapParts>, ContractError>,
    ) -> Result<&Arc<HeapParts>, ContractError> {
        bound(&self.inner.heap, open)
    }

    /// The reader of the thread list.
    ///
    /// # Errors
    /// [`ContractError`] if the descriptor does not have the layouts.
    pub(crate) fn thread_reader(&self) -> Result<Threads, ContractError> {
        Threads::bind(self.memory(), self.descriptor(), self.limits())
    }

    /// Creates a namer for one answer.
    pub(crate) fn namer(&self) -> Namer {
        Namer::new(&self.inner.bindings)
    }

    /// The readers of objects, values and types, bound once.
    ///
    /// # Errors
    /// [`ContractError`] if the descriptor does not have the layouts of types and fields.
    pub(crate) fn readers_or(&self, bind: impl FnOnce() -> Result<Readers, ContractError>) -> Result<&Readers, ContractError> {
        bound(&self.inner.readers, bind)
    }

    /// Type names, bound once, so that all [`Namer`]s share one module cache.
    pub(crate) fn type_names(&self) -> Result<&Arc<TypeNames>, ContractError> {
        self.inner.bindings.type_names()
    }

    /// The stack walker, bound once.
    ///
    /// # Errors
    /// [`ContractError`] if the runtime does not describe its code or its frames.
    pub(crate) fn stack_walker(&self) -> Result<&StackWalker, ContractError> {
        self.inner.bindings.stack_walker()
    }

    /// Notes on layouts for stack walks that the descriptor does not have.
    pub(crate) fn stack_losses(&self) -> &Notes {
        self.inner.bindings.stack_losses()
    }

    /// The stack walks so far.
    pub(super) fn kept_walks(&self) -> &KeptWalks {
        &self.inner.walks
    }
}

fn bound<T>(cell: &Bound<T>, bind: impl FnOnce() -> Result<T, ContractError>) -> Result<&T, ContractError> {
    cell.get_or_init(|| Kept::of(bind)).get().as_ref().map_err(Clone::clone)
}
