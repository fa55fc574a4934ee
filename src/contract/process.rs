//! A dump opened all the way to its runtimes: what commands and library users start from.

use std::path::Path;
use std::sync::Arc;

use super::{Options, Runtime, RuntimeError, open_runtimes};
use crate::base::{Limits, NoteKind, Progress, Shape, SharedNotes, Silent};
use crate::dump::{self, DumpError, DumpFile, OpenOptions};
use crate::memory::{FileSearch, Memory};

/// A dumped process.
#[derive(Debug)]
pub struct Process {
    /// The dump as its container describes it.
    pub dump: DumpFile,
    /// Its memory, topped up from matching module files.
    pub memory: Memory,
    /// Its runtimes; never an empty list.
    pub runtimes: Result<Vec<Runtime>, RuntimeError>,
    /// What went less than perfectly so far.
    pub notes: SharedNotes,
    /// Caps in force.
    pub limits: Limits,
    /// Where module files may be looked for.
    pub search: FileSearch,
    /// Whom to tell about work that takes long.
    pub progress: Arc<dyn Progress>,
}

impl Process {
    /// Opens the dump at `path` and finds its runtimes. A process without a readable runtime is no error here.
    ///
    /// # Errors
    /// [`DumpError`] where the file is no dump or cannot be read.
    pub fn open(path: &Path, opening: &OpenOptions, options: &Options) -> Result<Process, DumpError> {
        let mut process = Process::of(dump::open(path, opening)?, options);
        if let Some(progress) = &opening.progress {
            process.progress = Arc::clone(progress);
        }
        Ok(process)
    }

    /// Finds the runtimes of an open dump.
    pub fn of(dump: DumpFile, options: &Options) -> Process {
        let notes = SharedNotes::new();
        if dump.facts.truncated_bytes > 0 {
            let what = format!("the dump is truncated: {} bytes of the memory that it declares are missing", dump.facts.truncated_bytes);
            notes.add(NoteKind::TruncatedDump, None, what);
        }
        for oddity in &dump.facts.oddities {
            notes.add(NoteKind::UnreadableStream, None, oddity.clone());
        }
        let shape = dump.facts.shape.unwrap_or_else(|| {
            notes.add(NoteKind::UnreadableStream, None, "the dump does not say its architecture; read as 64-bit little endian");
            Shape::LE64
        });
        let mut memory = Memory::new(&dump, shape);
        if options.record {
            memory.start_recording();
        }
        let runtimes = open_runtimes(&dump, &mut memory, options, &notes);
        Process {
            dump,
            memory,
            runtimes,
            notes,
            limits: options.limits.clone(),
            search: options.search.clone(),
            progress: Arc::new(Silent),
        }
    }

    /// The runtime of the given number, the first by default.
    ///
    /// # Errors
    /// [`RuntimeError`] where there is none.
    pub fn runtime(&self, index: usize) -> Result<&Runtime, RuntimeError> {
        let list = self.runtimes.as_ref().map_err(Clone::clone)?;
        list.get(index).ok_or(RuntimeError::NoSuchRuntime { index, have: list.len() })
    }
}
