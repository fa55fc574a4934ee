//! An opened dump: its file, memory and runtimes.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use super::process::Process;
use super::{Error, HeapSnapshot, Runtime};
use crate::base::missed::tried;
use crate::base::{Arch, Budget, Collector, Limits, NoteKind, Notes, Os, Progress, Shape, Silent, be, in_units, len64, plural};
use crate::contract::{Description, Options, Overlay, RuntimeError, open_runtimes, own_program};
use crate::dump::{self, Bytes, Cache, Container, DumpError, DumpFile};
use crate::heapgraph::IndexUse;
use crate::memory::{FileId, FileSearch, Memory, ModuleFile, unlisted_modules};
use crate::model::{Carve, RuntimeKind};

/// Options for opening a dump.
#[derive(Clone, Debug, Default)]
pub struct OpenOptions {
    /// Descriptor overlays for runtimes that gcdump does not support. They are tried before the bundled overlays.
    #[doc(hidden)]
    pub overlays: Vec<Overlay>,
    /// Where to search for module files and PDBs on this machine.
    #[doc(hidden)]
    pub search: FileSearch,
    /// The path of a temporary copy of standard input. Answers about the dump at this path do not show it.
    #[doc(hidden)]
    pub standard_input: Option<PathBuf>,
    /// Limits on reads and memory.
    pub limits: Limits,
    /// Receives the progress of long operations, such as decompression and heap walks.
    pub progress: Option<Arc<dyn Progress>>,
    /// Cache for decompressed dumps.
    #[doc(hidden)]
    pub cache: Option<Arc<dyn Cache>>,
    /// The index file that answers may use.
    #[doc(hidden)]
    pub index: IndexUse,
    /// When the heap is carved out of memory.
    pub carve: Carve,
    /// Records which memory of the process is read: see `Memory::recorder`. Used by `trim`.
    #[doc(hidden)]
    pub record: bool,
    /// Modules, each with the contents of its file, which complete the module's missing memory. The caller must know that the process had loaded
    /// exactly these files. Used for copies of a dump.
    #[doc(hidden)]
    pub fill: Vec<(dump::Module, Arc<Bytes>)>,
    /// Hides contents: strings, characters, elements of numeric arrays, exception messages, thread names and process arguments are shown as
    /// `(hidden)`. Lengths, counts, types and numeric fields remain.
    pub hide_contents: bool,
}

impl OpenOptions {
    /// Creates the default options, which open only the dump itself.
    pub fn new() -> OpenOptions {
        OpenOptions::default()
    }

    /// Searches this folder for module files by name. If the path is a file, this file is used as a module file. If the file is a single-file
    /// program, its bundled files are used. Module files supply code and metadata that are missing from the dump, and thereby type names. Only
    /// files that match the dump are used.
    #[must_use]
    pub fn modules(mut self, folder: impl Into<PathBuf>) -> OpenOptions {
        self.search.modules.push(folder.into());
        self
    }

    /// Searches this folder for PDBs by name. Portable PDBs supply source lines; PDBs of NativeAOT programs for Windows supply type and
    /// field names. A PDB is used only if the debug information of a module identifies it.
    #[must_use]
    pub fn symbols(mut self, folder: impl Into<PathBuf>) -> OpenOptions {
        self.search.symbols.push(folder.into());
        self
    }

    /// Sets the limits on reads and memory.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> OpenOptions {
        self.limits = limits;
        self
    }

    /// Reports the progress of long operations to `progress`.
    #[must_use]
    pub fn progress(mut self, progress: Arc<dyn Progress>) -> OpenOptions {
        self.progress = Some(progress);
        self
    }

    /// Sets when the heap is carved out of memory rather than read from the GC's structures.
    #[must_use]
    pub fn carve(mut self, carve: Carve) -> OpenOptions {
        self.carve = carve;
        self
    }

    /// Opens the dump at `path` with these options.
    ///
    /// # Errors
    /// See [`Dump::open`].
    pub fn open(&self, path: impl AsRef<Path>) -> Result<Dump, Error> {
        Dump::open(path, self)
    }
}

/// An opened dump of a process.
///
/// ```
/// let dump = gcdump::open("dumps/net10-wks-basics-heap.dmp.zst")?;
/// println!("{} modules, {} runtimes", dump.modules()?.len(), dump.runtimes()?.len());
/// # Ok::<(), gcdump::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Dump {
    process: Arc<Process>,
    runtimes: Arc<Result<Vec<Runtime>, RuntimeError>>,
    snapshot: Option<HeapSnapshot>,
}

impl Dump {
    /// Opens the dump at `path`: an ELF core, a Windows minidump, or a `.gcdump` file, optionally compressed with zstd or gzip. Succeeds
    /// without a readable runtime; [`Dump::runtime`] then fails.
    ///
    /// # Errors
    /// [`Error::Dump`] if the file is not a dump or cannot be read.
    pub fn open(path: impl AsRef<Path>, options: &OpenOptions) -> Result<Dump, Error> {
        Dump::parsed(|opening| dump::open(path.as_ref(), opening), options)
    }

    /// Opens the dump in `file`, which was opened at `path`. Only `file` is read, even if the path now names another file.
    ///
    /// # Errors
    /// See [`Dump::open`].
    pub fn open_file(file: &File, path: impl AsRef<Path>, options: &OpenOptions) -> Result<Dump, Error> {
        Dump::parsed(|opening| dump::open_file(file, path.as_ref(), opening), options)
    }

    fn parsed(open: impl FnOnce(&dump::OpenOptions) -> Result<DumpFile, DumpError>, options: &OpenOptions) -> Result<Dump, Error> {
        let (limits, progress, cache) = (options.limits.clone(), options.progress.clone(), options.cache.clone());
        let opening = dump::OpenOptions { limits, progress, cache, ..dump::OpenOptions::default() };
        let mut file = open(&opening).map_err(Error::Dump)?;
        file.facts.is_standard_input = options.standard_input.as_ref() == Some(&file.facts.path);
        Ok(Dump::of(file, options))
    }

    /// Finds the runtimes in a dump whose container is already parsed.
    #[doc(hidden)]
    pub fn of(mut file: DumpFile, options: &OpenOptions) -> Dump {
        let notes = Collector::new();
        let lost = file.facts.truncated_bytes;
        if lost > 0 {
            let what = format!("the dump is cut off: {} of memory listed in its header {} missing", in_units(lost), be(lost));
            notes.add(NoteKind::TruncatedDump, None, what);
        }
        if let Some(damage) = &file.facts.damage {
            notes.add(NoteKind::DamagedStream, None, damage.clone());
        }
        for oddity in &file.facts.oddities {
            notes.add(NoteKind::UnreadableStream, None, oddity.clone());
        }
        notes.extend(&file.facts.lost.of_system());
        let shape = file.facts.shape.unwrap_or_else(|| {
            notes.add(NoteKind::UnreadableStream, None, "the dump does not name its architecture; assuming 64-bit little endian");
            Shape::LE64
        });
        let mut memory = Memory::new(&file, shape);
        if options.record {
            memory.start_recording();
        }
        if options.hide_contents {
            memory.hide_contents();
            hide_contents(&mut file);
        }
        let limits = Arc::new(options.limits.clone());
        let budget = Arc::new(Budget::new(file.facts.file_bytes, limits.max_memory));
        memory.begin(Arc::clone(&budget));
        if file.facts.container == Container::ElfCore && file.files.is_empty() {
            file.modules = tried(|| unlisted_modules(&file, &memory, &limits));
            let found = plural(len64(file.modules.len()), "ELF image");
            let what = format!("the core has no list of mapped files (NT_FILE): {found} found by captured headers, without paths");
            notes.add(NoteKind::UnreadableStream, None, what);
        }
        options.search.note_unused(&file, &notes);
        let search = options.search.of_process(own_program(&file).map(|m| m.path.as_str()), &file, limits.max_memory);
        let finding = Options { overlays: options.overlays.clone(), search: search.clone(), limits: Arc::clone(&limits) };
        // The search for runtimes probes memory that may contain anything, so its failed reads are not reported.
        let found = match file.snapshot {
            Some(_) => Err(RuntimeError::Snapshot),
            None => tried(|| open_runtimes(&file, &mut memory, &finding, &notes)),
        };
        memory.opened();
        for (module, bytes) in &options.fill {
            memory.complete(module, bytes);
        }
        budget.note("opening the dump", &notes);
        let process = Arc::new(Process {
            file,
            memory: Arc::new(memory),
            notes: notes.into_notes(),
            limits,
            search,
            progress: options.progress.clone().unwrap_or_else(|| Arc::new(Silent)),
            carve: options.carve,
            // While reads are recorded, answers must read the dump itself.
            index: if options.record { IndexUse::None } else { options.index.clone() },
        });
        // If the dump is damaged or truncated, this is reported first, because advice that applies to complete dumps would be misleading.
        let (missing, damage) = (process.file.facts.truncated_bytes, process.file.facts.damage.clone());
        let found = found.map_err(|why| match (Box::new(why), damage) {
            (why, Some(damage)) if *why != RuntimeError::Snapshot => RuntimeError::Damaged { damage, why },
            (why, _) if missing > 0 => RuntimeError::Cut { missing, why },
            (why, _) if budget.met() => RuntimeError::Bounded { why },
            (why, _) => *why,
        });
        let snapshot = process.file.snapshot.as_ref().map(|_| HeapSnapshot::new(Arc::clone(&process)));
        let runtimes = found.map(|list| {
            let others: Vec<Option<String>> = (0..list.len()).map(|index| others(index, &list)).collect();
            let runtimes = list.into_iter().zip(others).enumerate();
            runtimes.map(|(index, (d, others))| Runtime::new(Arc::clone(&process), d, index, others)).collect()
        });
        Dump { process, runtimes: Arc::new(runtimes), snapshot }
    }

    /// The objects of a `.gcdump` file, for functions of [`crate::analysis`] such as `stat`, `retained`, `paths` and `diff`; `None` for the dump of
    /// a process.
    pub fn snapshot(&self) -> Option<&HeapSnapshot> {
        self.snapshot.as_ref()
    }

    /// The runtime of the process, or the first of several.
    ///
    /// # Errors
    /// [`RuntimeError`] if the process has no runtime that gcdump can read, if the dump does not have the data that describes it, or if this is a
    /// `.gcdump` file, which has no runtime.
    pub fn runtime(&self) -> Result<Runtime, RuntimeError> {
        self.runtime_at(0)
    }

    /// The runtime at `index`, from 0.
    ///
    /// # Errors
    /// [`RuntimeError`] if no such runtime exists.
    pub fn runtime_at(&self, index: usize) -> Result<Runtime, RuntimeError> {
        let list = self.runtimes()?;
        list.get(index).cloned().ok_or(RuntimeError::NoSuchRuntime { index, have: list.len() })
    }

    /// All runtimes of the process, at least one.
    ///
    /// # Errors
    /// See [`Dump::runtime`].
    pub fn runtimes(&self) -> Result<&[Runtime], RuntimeError> {
        self.runtimes.as_ref().as_ref().map(Vec::as_slice).map_err(Clone::clone)
    }

    /// The operating system of the process.
    pub fn os(&self) -> Os {
        self.process.file.facts.os
    }

    /// The architecture of the process.
    pub fn architecture(&self) -> Arch {
        self.process.file.facts.arch
    }

    /// The process ID; `None` if the dump does not record it.
    pub fn process_id(&self) -> Option<u32> {
        self.process.file.facts.pid
    }

    /// The name of the process; `None` if the dump does not record it.
    pub fn process_name(&self) -> Option<&str> {
        self.process.file.facts.process_name.as_deref()
    }

    /// The time at which the dump was written, in whole seconds. `None` for ELF cores, which do not record it.
    pub fn time(&self) -> Option<SystemTime> {
        SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(self.process.file.facts.time?))
    }

    /// The contents of the container except memory: modules, OS threads, crash, facts.
    #[doc(hidden)]
    pub fn file(&self) -> &DumpFile {
        &self.process.file
    }

    /// The process's memory, completed from matching module files.
    #[doc(hidden)]
    pub fn memory(&self) -> &Arc<Memory> {
        &self.process.memory
    }

    /// Finds the file on this machine for an image that the container lists and that has the identity `id`. Without `id`, returns only a file whose
    /// contents were compared with the dump when the dump was opened.
    pub(crate) fn file_of(&self, module: &dump::Module, id: Option<&FileId>) -> Option<ModuleFile> {
        let (search, os) = (&self.process.search, self.process.file.facts.os);
        let used = || {
            let sites = self.runtimes.as_ref().as_ref().into_iter().flatten().map(|r| &r.description().site);
            let site = sites.into_iter().find(|s| s.module.as_ref().is_some_and(|m| m.base == module.base))?;
            site.filled.file.clone()
        };
        let used = used();
        search.candidates(&module.path, id, os).into_iter().find(|file| match (&used, id) {
            (Some(used), _) => used == file.path(),
            (None, Some(id)) => file.open().is_ok_and(|bytes| id.check(&bytes, self.process.memory.shape()).is_ok()),
            (None, None) => false,
        })
    }

    /// Notes on opening the dump. They are part of every answer about the dump.
    pub fn notes(&self) -> &Notes {
        &self.process.notes
    }

    /// The limits in force.
    pub fn limits(&self) -> &Limits {
        &self.process.limits
    }
}

/// The message that an answer is about the runtime at `index` of `all`, and how to select the others; `None` for the only runtime.
fn others(index: usize, all: &[Description]) -> Option<String> {
    let name = |d: &Description| {
        let kind = match d.kind() {
            RuntimeKind::NativeAot => ".NET NativeAOT",
            RuntimeKind::Mono => "Mono",
            RuntimeKind::CoreClr => ".NET",
        };
        let module = || d.site.module.as_ref().map_or("(unknown version)", |m| m.file_name()).to_string();
        format!("{kind} {}", d.version.clone().unwrap_or_else(module))
    };
    let mine = name(all.get(index)?);
    let others: Vec<(usize, &Description)> = all.iter().enumerate().filter(|(i, _)| *i != index).collect();
    let names = others.iter().map(|(i, d)| format!("runtime {i} is {}", name(d))).collect::<Vec<_>>().join(", ");
    (!others.is_empty()).then(|| format!("this answer is about {mine}, one of {} runtimes in the process; {names}", all.len()))
}

/// Hides the container's thread names, and arguments in its process name. The command line remains, because readers search it for module
/// names.
fn hide_contents(file: &mut DumpFile) {
    // In a `.gcdump` file of an earlier version, the process name may be the whole command line.
    if let Some(name) = &mut file.facts.process_name
        && let Some(end) = name.find(' ')
    {
        name.truncate(end);
    }
    for thread in &mut file.threads {
        thread.name = thread.name.take().map(|_| Memory::HIDDEN.into());
    }
}
