//! Codes of notes of the kind `missing`: the list of what can be missing from an answer, and of what would supply it.

use super::named_enum;
use super::notes::NoteKind;

named_enum! {
    /// Part that is missing from an answer: the `code` of a [`Note`](super::Note) of the kind `missing`.
    pub enum Missing {
        /// Bytes that are neither in the dump nor in a module file.
        Memory = "memory",
        /// Descriptions of structures: neither the runtime nor an overlay has them.
        Layouts = "layouts",
        /// Names of types and methods, and fields of types: metadata of modules.
        Metadata = "metadata",
        /// The list of modules, or the headers of modules.
        Modules = "modules",
        /// Arguments, environment, and properties of the process.
        Process = "process",
        /// Segments, regions, allocation contexts, and statistics of the GC.
        Heap = "heap",
        /// Contents, sizes and elements of objects; methods of delegates.
        Objects = "objects",
        /// GC handles.
        Handles = "handles",
        /// Finalization queues.
        Finalization = "finalization",
        /// Static fields and thread statics.
        Statics = "statics",
        /// Managed threads.
        Threads = "threads",
        /// Frames of threads, and the references that frames hold.
        Stacks = "stacks",
        /// Source lines, arguments and locals: debug info.
        DebugInfo = "debug-info",
        /// The code of methods, and its tier.
        Code = "code",
        /// Holders of locks, and waiting threads.
        Locks = "locks",
        /// Tasks, continuations, queues of the thread pool, timers.
        Async = "async",
        /// Exceptions, and their stack traces.
        Exceptions = "exceptions",
        /// Identities of native memory: heaps of the loader and of malloc, images.
        NativeMemory = "native-memory",
        /// A part that is the answer of another command.
        Answer = "answer",
        /// One dump of several, a part of a .gcdump file, or a module that was not downloaded.
        File = "file",
    }
}

named_enum! {
    /// The source of missing data: the `remedy` of a [`Note`](super::Note). A program with a command line adds the option that helps.
    #[non_exhaustive]
    pub enum Remedy {
        /// The file of the module that the note names, in a folder with module files.
        ModuleFile = "module-file",
        /// The files of the application and its framework, in a folder with module files.
        ProgramFiles = "program-files",
        /// The file that the note names, if the user vouches for it: the dump cannot prove that it matches.
        GivenFile = "given-file",
        /// The files of the runtime, in a folder with module files.
        RuntimeFiles = "runtime-files",
        /// The symbols of the program: its file, or the `.dbg` file or PDB beside it.
        Symbols = "symbols",
        /// An overlay that describes the runtime.
        Overlay = "overlay",
        /// The choice of another runtime of the process.
        OtherRuntime = "other-runtime",
        /// A higher limit on memory.
        MoreMemory = "more-memory",
    }
}

/// The kind of a note, the missing part for the kind `missing`, and the source of the missing data. Converts from [`NoteKind`] and [`Missing`].
#[derive(Clone, Copy, Debug)]
pub struct NoteReason {
    pub(super) kind: NoteKind,
    pub(super) code: Option<Missing>,
    pub(super) remedy: Option<Remedy>,
}

impl NoteReason {
    /// Returns this reason with the source of the missing data, if one is known.
    #[must_use]
    pub fn supplied_by(self, remedy: impl Into<Option<Remedy>>) -> NoteReason {
        NoteReason { remedy: remedy.into(), ..self }
    }
}

impl NoteKind {
    /// Returns the reason of a note of this kind with the source of what is missing, if one is known.
    #[must_use]
    pub fn supplied_by(self, remedy: impl Into<Option<Remedy>>) -> NoteReason {
        NoteReason::from(self).supplied_by(remedy)
    }
}

impl Missing {
    /// Returns the reason of a note that this part is missing, with the source of the part, if one is known.
    #[must_use]
    pub fn supplied_by(self, remedy: impl Into<Option<Remedy>>) -> NoteReason {
        NoteReason::from(self).supplied_by(remedy)
    }
}

impl From<Missing> for NoteReason {
    fn from(code: Missing) -> NoteReason {
        NoteReason { kind: NoteKind::Missing, code: Some(code), remedy: None }
    }
}

impl From<NoteKind> for NoteReason {
    /// For the kind `missing`, the missing part is memory.
    fn from(kind: NoteKind) -> NoteReason {
        NoteReason { kind, code: (kind == NoteKind::Missing).then_some(Missing::Memory), remedy: None }
    }
}
