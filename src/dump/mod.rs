//! Parses a dump file into captured ranges, modules, threads and facts. Knows nothing about .NET.
//!
//! Whatever the container, the result is one table of *(target address, length, file offset)*: [`DumpFile::ranges`]. Memory that was mapped
//! but not captured is absent from that table.
//!
//! | module | purpose |
//! | --- | --- |
//! | `open`, `sniff`, `compressed`, `mapping` | any file: format detection, decompression, mapping |
//! | `elf_core`, `elf_notes`, `elf_modules` | ELF cores by createdump, the kernel and gdb |
//! | `minidump`, `minidump_info`, `minidump_memory`, `minidump_reading` | Windows minidumps |
//! | `snapshot` | `.gcdump` files: heap snapshots |
//! | `lost_lists` | which lists of a container are missing or incomplete |
//! | `stacks` | the bounds of the threads' stacks |
//! | `losses` | what is missing from a file, and from the original of a trimmed copy |
//! | `write` | lays out trimmed dumps |
//! | `temp` | writes large arrays to temporary files |
//!
//! `docs/internals/containers.md` says what each writer puts into its dumps.

mod compressed;
mod elf_core;
mod elf_modules;
mod elf_notes;
mod error;
mod fields;
mod files;
#[cfg(test)]
mod hostile_tests;
mod losses;
mod lost_lists;
mod mapping;
#[cfg(feature = "minidump")]
mod minidump;
#[cfg(feature = "minidump")]
mod minidump_info;
#[cfg(feature = "minidump")]
mod minidump_memory;
#[cfg(feature = "minidump")]
mod minidump_reading;
mod open;
#[cfg(test)]
pub(crate) mod real_tests;
mod registers;
pub(crate) mod snapshot;
mod sniff;
mod stacks;
mod temp;
mod write;

use std::path::PathBuf;
use std::sync::Arc;

#[cfg(feature = "cli")]
pub(crate) use compressed::sniff_inside;
pub use compressed::{Cache, Draft as CacheDraft, Found};
pub(crate) use elf_core::diag_page_places;
pub use error::DumpError;
#[cfg(feature = "cli")]
pub(crate) use files::is_same;
pub(crate) use files::regular;
pub use lost_lists::LostLists;
pub use mapping::Bytes;
pub use open::{OpenOptions, open, open_bytes, open_file};
pub use snapshot::{Snapshot, SnapshotNode};
pub use sniff::FileKind;
pub(crate) use sniff::sniff;
pub(crate) use stacks::ThreadStacks;
pub use temp::TempFiles;
#[cfg(feature = "cli")]
pub(crate) use temp::reason;
pub use write::{Layout, Ranges, RedactRegisters, WriteError, has_no_text, lay_out};

use crate::base::{Addr, AddrRange, Arch, Os, Shape, file_name};
pub use crate::model::{Compression, Container};

/// A parsed dump: where its memory lies in the file, and what the container says about the process.
#[derive(Clone, Debug)]
pub struct DumpFile {
    /// The (decompressed) file.
    pub bytes: Arc<Bytes>,
    /// Facts about the process and the container.
    pub facts: DumpFacts,
    /// Captured memory, in file order. Ranges of damaged dumps may overlap; the memory floor resolves that.
    pub ranges: Vec<CapturedRange>,
    /// The mapped regions of the address space, captured or not. Empty if the container does not describe the address space.
    pub regions: Vec<MappedRegion>,
    /// Regions of reserved but not committed addresses, from the memory info list of a minidump. ELF cores list such regions in `regions`,
    /// without any permission.
    pub reserved: Vec<MappedRegion>,
    /// Loaded images, from the module list of a minidump, or derived from the NT_FILE note of an ELF core.
    pub modules: Vec<Module>,
    /// File mappings (NT_FILE). Empty for minidumps.
    pub files: Vec<FileMapping>,
    /// Threads, in dump order.
    pub threads: Vec<OsThread>,
    /// Why the process ended, if recorded.
    pub crash: Option<Crash>,
    /// NT_AUXV entries, *(type, value)*. Empty for minidumps.
    pub auxv: Vec<(u64, u64)>,
    /// The objects of a heap snapshot, which contains nothing else of the process.
    pub snapshot: Option<Arc<Snapshot>>,
}

impl DumpFile {
    /// The mapping of the vDSO, the library that the kernel maps into each process (ELF cores).
    pub(crate) fn kernel_library(&self) -> Option<AddrRange> {
        /// `AT_SYSINFO_EHDR`.
        const LIBRARY: u64 = 33;
        let at = self.auxv.iter().find(|(key, _)| *key == LIBRARY).map(|(_, value)| Addr(*value))?;
        self.regions.iter().map(|r| r.range).find(|range| range.contains(at))
    }

    /// Mappings of the runtime's executable allocator, which maps memory twice, as an anonymous file with the name `doublemapper`
    /// (`doublememorymapper.cpp`).
    pub(crate) fn double_mapped(&self) -> impl Iterator<Item = AddrRange> {
        self.files.iter().filter(|f| f.path.starts_with("/memfd:doublemapper")).map(|f| f.range)
    }
}

#[cfg(any(test, feature = "internals"))]
impl DumpFile {
    /// Removes `hole` from the captured memory, to simulate a dump without it.
    pub fn remove(&mut self, hole: AddrRange) {
        let around = |r: &CapturedRange| {
            let end = r.range().end;
            let (from, to) = (hole.start.clamp(r.start, end), hole.end.clamp(r.start, end));
            let part = |start: Addr, end: Addr| {
                let skip = start.since(r.start).unwrap_or(0);
                CapturedRange { start, len: end.since(start).unwrap_or(0), offset: r.offset.saturating_add(skip) }
            };
            [part(r.start, from), part(to, end)]
        };
        self.ranges = self.ranges.iter().flat_map(around).filter(|r| r.len > 0).collect();
    }
}

/// Facts about the process and the container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DumpFacts {
    /// The path that was opened.
    pub path: PathBuf,
    /// Container format.
    pub container: Container,
    /// Compression of the file, if any.
    pub compression: Option<Compression>,
    /// Operating system of the process.
    pub os: Os,
    /// Architecture of the process.
    pub arch: Arch,
    /// Pointer size and byte order. `None` for a minidump of an unknown architecture.
    pub shape: Option<Shape>,
    /// Process ID.
    pub pid: Option<u32>,
    /// Name of the process.
    pub process_name: Option<String>,
    /// Command line, if recorded. It is user data, which [`InfoReport`](crate::analysis::InfoReport) hides if contents are to be hidden.
    pub command_line: Option<String>,
    /// When the dump was written, in seconds since 1970. ELF cores do not record this time.
    pub time: Option<u64>,
    /// When the process was started, in seconds since 1970. Minidumps only.
    pub started: Option<u64>,
    /// Size of the (decompressed) dump file in bytes.
    pub file_bytes: u64,
    /// Captured memory in bytes.
    pub captured_bytes: u64,
    /// Mapped (committed) memory in bytes, captured or not. `None` if the container does not record it.
    pub mapped_bytes: Option<u64>,
    /// Bytes of memory that the dump declares but the truncated file does not hold. If the dump is a trimmed copy, also those of its original.
    pub truncated_bytes: u64,
    /// Bytes of memory in the file of an ELF core that its program headers do not describe, although they should.
    pub undescribed_bytes: u64,
    /// Damage of the compressed data, which makes all decompressed bytes unreliable. If the dump is a trimmed copy, also that of its original.
    pub damage: Option<String>,
    /// `MINIDUMP_TYPE` flags of a minidump's header.
    pub minidump_flags: Option<u64>,
    /// Whether createdump wrote the header of this ELF core: `EI_OSABI` is 3 (GNU/Linux). The kernel and gdb write 0.
    pub header_of_createdump: bool,
    /// Number of mappings of an ELF core without captured bytes. Kernel cores have many; createdump writes none.
    pub uncaptured_mappings: u64,
    /// How `gcdump trim` changed the dump, if it wrote this file.
    pub trimmed: Option<Trimmed>,
    /// Irregularities that the reader worked around, one sentence each.
    pub oddities: Vec<String>,
    /// Lists that are missing or incomplete.
    pub lost: LostLists,
    /// Whether the file is a temporary copy of standard input: its path is not shown, because it means nothing after the command.
    #[doc(hidden)]
    pub is_standard_input: bool,
}

/// Bit of [`DumpFacts::minidump_flags`] (`MiniDumpWithFullMemory`).
const WITH_FULL_MEMORY: u64 = 0x2;

impl DumpFacts {
    /// Returns the path to show: `-` for standard input.
    pub(crate) fn shown_path(&self) -> String {
        if self.is_standard_input { "-".into() } else { self.path.display().to_string() }
    }

    /// Returns the dump in suggested commands: its path, or `DUMP` for standard input, which can be read only once.
    pub(crate) fn path_in_commands(&self) -> String {
        if self.is_standard_input { "DUMP".into() } else { self.path.display().to_string() }
    }

    /// Whether the file does not have all memory that its writer put into it.
    pub(crate) fn lacks_memory(&self) -> bool {
        self.truncated_bytes > 0 || self.undescribed_bytes > 0
    }

    /// Whether the container states that it holds all memory of the process. Only minidumps record this.
    pub(crate) fn states_all_memory(&self) -> bool {
        self.minidump_flags.is_some_and(|flags| flags & WITH_FULL_MEMORY != 0)
    }
}

/// How `gcdump trim` changed the dump.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trimmed {
    /// Whether the contents of strings and arrays were overwritten.
    pub redacted: bool,
    /// The part of [`DumpFacts::truncated_bytes`] that the original did not have either.
    pub truncated_bytes: u64,
}

/// A range of captured memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CapturedRange {
    /// Address in the process.
    pub start: Addr,
    /// Length in bytes, clamped to the end of the file.
    pub len: u64,
    /// Offset of its bytes in [`DumpFile::bytes`].
    pub offset: u64,
}

impl CapturedRange {
    /// The addresses of the range.
    pub fn range(&self) -> AddrRange {
        AddrRange::of(self.start, self.len)
    }
}

/// A mapped region of the address space, captured or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MappedRegion {
    /// The addresses of the region.
    pub range: AddrRange,
    /// Whether it is readable.
    pub read: bool,
    /// Whether it is writable.
    pub write: bool,
    /// Whether it is executable.
    pub execute: bool,
    /// The kind of mapping. `None` in ELF cores, which list file mappings separately.
    pub backing: Option<Backing>,
    /// Start of the allocation that contains the region. Minidumps only.
    pub allocation: Option<Addr>,
}

impl MappedRegion {
    /// Whether the process could read, write or execute the region.
    pub(crate) fn is_accessible(&self) -> bool {
        self.read || self.write || self.execute
    }
}

/// The kind of mapping (`MEMORY_BASIC_INFORMATION::Type`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backing {
    /// Memory private to the process.
    Private,
    /// A mapped section: a file, or memory that may be shared or mapped twice.
    Section,
    /// An executable image.
    Image,
}

/// A loaded image, or a mapped file that looks like one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Module {
    /// Path as the process knew it, without " (deleted)".
    pub path: String,
    /// Load address.
    pub base: Addr,
    /// Bytes from the lowest to the highest listed address. NT_FILE does not cover `.bss`.
    pub size: u64,
    /// `TimeDateStamp` of the image header (PE).
    pub timestamp: Option<u32>,
    /// File version *(major, minor, build, revision)*, if a minidump records it.
    pub version: Option<[u16; 4]>,
    /// Build ID from a minidump's module record: GUID and age of the PDB (PE; 20 bytes, verbatim), or the GNU build ID (ELF). In ELF cores,
    /// only the captured image contains it.
    pub build_id: Option<Vec<u8>>,
}

impl Module {
    /// The last component of the path. Both kinds of slash separate components.
    pub fn file_name(&self) -> &str {
        file_name(&self.path)
    }

    /// The addresses from the lowest to the highest listed one.
    pub fn range(&self) -> AddrRange {
        AddrRange::of(self.base, self.size)
    }
}

/// An NT_FILE entry: part of a file mapped into memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileMapping {
    /// The addresses of the mapping.
    pub range: AddrRange,
    /// Offset of the mapping in the file, in bytes.
    pub file_offset: u64,
    /// Path as the process knew it, without " (deleted)".
    pub path: String,
}

/// A general-purpose register of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Register {
    /// The register's name as debuggers print it: `rbx`, `x19`.
    pub name: &'static str,
    /// The register's value when the dump was taken.
    pub value: u64,
}

/// An operating system thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OsThread {
    /// Operating system thread ID.
    pub id: u32,
    /// Instruction pointer.
    pub instruction_pointer: Option<Addr>,
    /// Stack pointer.
    pub stack_pointer: Option<Addr>,
    /// The general-purpose registers, stack pointer included, for conservative root scanning.
    pub registers: Vec<Register>,
    /// Base of thread-local storage (`fs_base`; x64 Linux only). The C library places this storage at the top of each stack that it allocates.
    pub thread_base: Option<Addr>,
    /// The thread's current signal (ELF `pr_cursig`), 0 if none.
    pub signal: u32,
    /// Name, if recorded.
    pub name: Option<String>,
    /// The stack as the thread record of a minidump declares it, from the stack pointer to the stack's base.
    pub stack: Option<AddrRange>,
    /// Thread environment block (Windows).
    pub teb: Option<Addr>,
}

/// The signal or exception that ended the process, or for which the dump was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Crash {
    /// ID of the crashing thread.
    pub thread: Option<u32>,
    /// Signal number (ELF) or exception code (minidump).
    pub code: u32,
    /// Display name: `SIGABRT`, `0xe0434352 (CLR exception)`.
    pub name: String,
    /// Faulting or raising address, if recorded.
    pub address: Option<Addr>,
    /// The cause of the signal, as `si_code` (ELF).
    pub signal_code: Option<i32>,
    /// The thread's registers when the exception was raised (minidump).
    pub state: Option<Box<OsThread>>,
    /// Exception parameters (minidump). For a CLR exception, the first parameter is the HRESULT, and the last is the load address of the runtime.
    pub parameters: Vec<u64>,
}
