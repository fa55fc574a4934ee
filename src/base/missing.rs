//! Codes of notes of the kind `missing`: the list of what can be missing from an answer.

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

/// Kind of a note, with what is missing if the kind is `missing`. Converts from [`NoteKind`] and [`Missing`].
#[derive(Clone, Copy, Debug)]
pub struct NoteReason {
    pub(super) kind: NoteKind,
    pub(super) code: Option<Missing>,
}

impl From<Missing> for NoteReason {
    fn from(code: Missing) -> NoteReason {
        NoteReason { kind: NoteKind::Missing, code: Some(code) }
    }
}

impl From<NoteKind> for NoteReason {
    /// Memory is missing, unless the reader names a part.
    fn from(kind: NoteKind) -> NoteReason {
        NoteReason { kind, code: (kind == NoteKind::Missing).then_some(Missing::Memory) }
    }
}
