//! Floor 1: turns a file into ranges of captured memory, modules, threads and facts. Knows nothing of .NET.
//!
//! Every container reduces to one table, *(target address, length, file offset)*: [`DumpFile::ranges`]. Memory that was
//! mapped but not captured is simply not in that table; nothing here ever stands in for it.

mod bytes;
mod compressed;
mod elf_core;
mod elf_modules;
mod elf_notes;
mod error;
mod fields;
#[cfg(test)]
mod hostile_tests;
mod minidump;
mod minidump_info;
mod minidump_memory;
mod open;
#[cfg(test)]
mod real_tests;
mod registers;
mod sniff;
mod stacks;
mod write;

use std::path::PathBuf;
use std::sync::Arc;

pub use bytes::Bytes;
pub use error::DumpError;
pub use open::{OpenOptions, open, open_bytes};
pub use sniff::{FileKind, sniff};
pub use stacks::ThreadStacks;
pub use write::{Layout, RedactRegisters, WriteError, lay_out};

use crate::base::{Addr, AddrRange, Arch, Os, Shape};
pub use crate::model::{Compression, Container};

/// One dump, parsed: where its memory lies in the file, and what the container says about the process.
#[derive(Clone, Debug)]
pub struct DumpFile {
    /// The file's bytes, mapped.
    pub bytes: Arc<Bytes>,
    /// What the container says about the process and itself.
    pub facts: DumpFacts,
    /// Captured memory, in the order of the file. May overlap in damaged or odd dumps; the memory floor decides.
    pub ranges: Vec<CapturedRange>,
    /// The address space as the container describes it, captured or not. Empty where it does not.
    pub regions: Vec<MappedRegion>,
    /// Loaded images: from the module list of a minidump, from NT_FILE of an ELF core.
    pub modules: Vec<Module>,
    /// File mappings (NT_FILE). Empty for minidumps.
    pub files: Vec<FileMapping>,
    /// Threads of the process in the order of the dump.
    pub threads: Vec<OsThread>,
    /// Why the process ended, where the dump says so.
    pub crash: Option<Crash>,
    /// NT_AUXV entries: (type, value). Empty for minidumps.
    pub auxv: Vec<(u64, u64)>,
}

/// What the container says about the process and about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DumpFacts {
    /// Path that was opened.
    pub path: PathBuf,
    /// Container format.
    pub container: Container,
    /// How the file was compressed, if it was.
    pub compression: Option<Compression>,
    /// Operating system of the process.
    pub os: Os,
    /// Architecture of the process.
    pub arch: Arch,
    /// Pointer size and byte order of the process. `None` where the container does not tell (unknown architecture in a minidump).
    pub shape: Option<Shape>,
    /// Process id.
    pub pid: Option<u32>,
    /// Name or command line of the process, as far as recorded.
    pub process_name: Option<String>,
    /// Seconds since 1970 when the dump was written, where the container says.
    pub time: Option<u64>,
    /// Bytes of the dump file (decompressed).
    pub file_bytes: u64,
    /// Bytes of memory that the dump holds.
    pub captured_bytes: u64,
    /// Bytes of address space that the dump describes, captured or not. `None` where the container does not tell.
    pub mapped_bytes: Option<u64>,
    /// Bytes of memory that the dump announces but the file does not hold, because it was cut off.
    pub truncated_bytes: u64,
    /// Flags of a minidump's header (`MINIDUMP_TYPE`).
    pub minidump_flags: Option<u64>,
    /// ELF: program headers whose memory was mapped but not captured at all (kernel cores have many, createdump none).
    pub uncaptured_mappings: u64,
    /// What gcdump left out when it wrote this dump; `None` for dumps of other writers.
    pub trimmed: Option<Trimmed>,
    /// Things the loader had to work around, in words.
    pub oddities: Vec<String>,
}

/// A dump that gcdump made of another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trimmed {
    /// Whether strings and the elements of arrays were overwritten.
    pub redacted: bool,
}

/// A stretch of captured memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CapturedRange {
    /// Address in the process.
    pub start: Addr,
    /// Bytes captured, already clamped to the file's end.
    pub len: u64,
    /// Where they lie in [`DumpFile::bytes`].
    pub offset: u64,
}

/// A stretch of the process's address space, captured or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MappedRegion {
    /// Where it lies.
    pub range: AddrRange,
    /// Readable, where known.
    pub read: bool,
    /// Writable, where known.
    pub write: bool,
    /// Executable, where known.
    pub execute: bool,
}

/// An image or mapped file that the container lists as a module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Module {
    /// Path as the process knew it, without " (deleted)".
    pub path: String,
    /// Lowest address.
    pub base: Addr,
    /// Bytes from the lowest to the highest address of it that the container lists. NT_FILE leaves out `.bss`.
    pub size: u64,
    /// PE: link time stamp of the image's header.
    pub timestamp: Option<u32>,
    /// File version resource (major, minor, build, revision), where a minidump records it.
    pub version: Option<[u16; 4]>,
    /// Build id that the container itself records (module records of a minidump). PE: GUID and age of the PDB, 20 bytes as
    /// they stand in the record; ELF: the GNU build id. ELF cores have it only in the captured image.
    pub build_id: Option<Vec<u8>>,
}

impl Module {
    /// The last component of the path; both kinds of slashes count.
    pub fn file_name(&self) -> &str {
        self.path.rsplit(['/', '\\']).next().unwrap_or(&self.path)
    }
}

/// One NT_FILE entry: a stretch of a file in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileMapping {
    /// Where it is mapped.
    pub range: AddrRange,
    /// Offset in the file, bytes.
    pub file_offset: u64,
    /// Path as the process knew it, without " (deleted)".
    pub path: String,
}

/// A general register of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Register {
    /// Its name as debuggers print it: `rbx`, `x19`.
    pub name: &'static str,
    /// What it held when the dump was taken.
    pub value: u64,
}

/// A thread of the operating system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OsThread {
    /// Thread id of the operating system.
    pub id: u32,
    /// Instruction pointer.
    pub instruction_pointer: Option<Addr>,
    /// Stack pointer.
    pub stack_pointer: Option<Addr>,
    /// All general registers, the stack pointer included, for a conservative scan of roots.
    pub registers: Vec<Register>,
    /// Base of the thread's own data (x64 Linux: `fs_base`). The C library keeps it at the top of the stacks that it makes.
    pub thread_base: Option<Addr>,
    /// Signal that this thread was handling (ELF `pr_cursig`), 0 for none.
    pub signal: u32,
    /// Name, where recorded.
    pub name: Option<String>,
    /// Captured stack memory (minidump thread record).
    pub stack: Option<AddrRange>,
    /// Thread environment block (Windows).
    pub teb: Option<Addr>,
}

/// Why the process ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Crash {
    /// Thread that crashed.
    pub thread: Option<u32>,
    /// Signal number (ELF) or exception code (minidump).
    pub code: u32,
    /// In words: `SIGABRT`, `0xe0434352 (CLR exception)`.
    pub name: String,
    /// Faulting or raising address, where recorded.
    pub address: Option<Addr>,
    /// Exception parameters (minidump). For a CLR exception: HRESULT first, the runtime's base last.
    pub parameters: Vec<u64>,
}
