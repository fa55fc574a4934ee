//! A dump, opened all the way to its runtimes.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{Error, Runtime};
use crate::base::{Collector, Limits, NoteKind, Notes, Progress, Shape, Silent};
use crate::contract::{Options, Overlay, RuntimeError, open_runtimes};
use crate::dump::{self, DumpError, DumpFile};
use crate::memory::{FileSearch, Memory};

/// How to open a dump.
#[derive(Clone, Debug, Default)]
pub struct OpenOptions {
    /// Descriptor overlays for runtimes that gcdump does not know, tried before the bundled ones.
    #[doc(hidden)]
    pub overlays: Vec<Overlay>,
    /// Where module files may be looked for.
    #[doc(hidden)]
    pub search: FileSearch,
    /// Caps on what is read, and on memory.
    pub limits: Limits,
    /// Told about work that takes long: decompression, walks.
    pub progress: Option<Arc<dyn Progress>>,
    /// Record what is read of the process's memory: see `Memory::recorder`. What `trim` keeps.
    #[doc(hidden)]
    pub record: bool,
}

impl OpenOptions {
    /// The defaults: no files beside the dump are looked for.
    pub fn new() -> OpenOptions {
        OpenOptions::default()
    }

    /// Also looks for module files in this folder, by name: they give types names, and fill in code and metadata that the dump
    /// lacks. Only files that match the dump are used.
    #[must_use]
    pub fn modules(mut self, folder: impl Into<PathBuf>) -> OpenOptions {
        self.search.modules.push(folder.into());
        self
    }

    /// Caps on what is read, and on memory.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> OpenOptions {
        self.limits = limits;
        self
    }

    /// Told about work that takes long.
    #[must_use]
    pub fn progress(mut self, progress: Arc<dyn Progress>) -> OpenOptions {
        self.progress = Some(progress);
        self
    }

    /// Opens the dump at `path` with these options.
    ///
    /// # Errors
    /// As [`Dump::open`].
    pub fn open(&self, path: impl AsRef<Path>) -> Result<Dump, Error> {
        Dump::open(path, self)
    }
}

/// What all parts of one opened dump share.
#[derive(Debug)]
pub(super) struct Process {
    pub(super) file: DumpFile,
    pub(super) memory: Arc<Memory>,
    pub(super) notes: Notes,
    pub(super) limits: Arc<Limits>,
    pub(super) search: FileSearch,
    pub(super) progress: Arc<dyn Progress>,
}

/// An opened dump of a process.
///
/// ```
/// let dump = gcdump::open("dumps/net10-wks-basics-heap.dmp.zst")?;
/// println!("{} threads", dump.file().threads.len());
/// # Ok::<(), gcdump::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Dump {
    process: Arc<Process>,
    runtimes: Arc<Result<Vec<Runtime>, RuntimeError>>,
}

impl Dump {
    /// Opens the dump at `path`: an ELF core or a Windows minidump, also compressed with zstd or gzip. A process without a
    /// readable runtime is no error here, only for [`Dump::runtime`].
    ///
    /// # Errors
    /// [`Error::Dump`] where the file is no dump or cannot be read.
    pub fn open(path: impl AsRef<Path>, options: &OpenOptions) -> Result<Dump, Error> {
        Dump::try_open(path.as_ref(), options).map_err(Error::Dump)
    }

    fn try_open(path: &Path, options: &OpenOptions) -> Result<Dump, DumpError> {
        let opening =
            dump::OpenOptions { limits: options.limits.clone(), progress: options.progress.clone(), ..dump::OpenOptions::default() };
        Ok(Dump::of(dump::open(path, &opening)?, options))
    }

    /// Finds the runtimes in a dump whose container is parsed already.
    #[doc(hidden)]
    pub fn of(file: DumpFile, options: &OpenOptions) -> Dump {
        let notes = Collector::new();
        if file.facts.truncated_bytes > 0 {
            let what = format!("the dump is cut off: {} bytes of the memory that it announces are missing", file.facts.truncated_bytes);
            notes.add(NoteKind::TruncatedDump, None, what);
        }
        for oddity in &file.facts.oddities {
            notes.add(NoteKind::UnreadableStream, None, oddity.clone());
        }
        let shape = file.facts.shape.unwrap_or_else(|| {
            notes.add(NoteKind::UnreadableStream, None, "the dump does not say its architecture; read as 64-bit little endian");
            Shape::LE64
        });
        let mut memory = Memory::new(&file, shape);
        if options.record {
            memory.start_recording();
        }
        let limits = Arc::new(options.limits.clone());
        let finding = Options { overlays: options.overlays.clone(), search: options.search.clone(), limits: Arc::clone(&limits) };
        let found = open_runtimes(&file, &mut memory, &finding, &notes);
        let process = Arc::new(Process {
            file,
            memory: Arc::new(memory),
            notes: notes.into_notes(),
            limits,
            search: options.search.clone(),
            progress: options.progress.clone().unwrap_or_else(|| Arc::new(Silent)),
        });
        let runtimes = found.map(|list| list.into_iter().map(|d| Runtime::new(Arc::clone(&process), d)).collect());
        Dump { process, runtimes: Arc::new(runtimes) }
    }

    /// The runtime of the process; the first, where it has several.
    ///
    /// # Errors
    /// [`RuntimeError`] where it has none that can be read.
    pub fn runtime(&self) -> Result<Runtime, RuntimeError> {
        self.runtime_at(0)
    }

    /// The runtime at `index`, counted from 0.
    ///
    /// # Errors
    /// [`RuntimeError`] where there is none.
    pub fn runtime_at(&self, index: usize) -> Result<Runtime, RuntimeError> {
        let list = self.runtimes()?;
        list.get(index).cloned().ok_or(RuntimeError::NoSuchRuntime { index, have: list.len() })
    }

    /// Every runtime of the process; never an empty list.
    ///
    /// # Errors
    /// [`RuntimeError`] where it has none that can be read.
    pub fn runtimes(&self) -> Result<&[Runtime], RuntimeError> {
        self.runtimes.as_ref().as_ref().map(Vec::as_slice).map_err(Clone::clone)
    }

    /// The file as its container describes it: modules, OS threads, crash, facts.
    #[doc(hidden)]
    pub fn file(&self) -> &DumpFile {
        &self.process.file
    }

    /// The process's memory, topped up from matching module files.
    #[doc(hidden)]
    pub fn memory(&self) -> &Arc<Memory> {
        &self.process.memory
    }

    /// What went less than perfectly while the dump was opened. Part of every answer about it.
    pub fn notes(&self) -> &Notes {
        &self.process.notes
    }

    /// Caps in force.
    pub fn limits(&self) -> &Limits {
        &self.process.limits
    }
}
