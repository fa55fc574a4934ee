//! The report of `memory_map`.

use serde::Serialize;

use crate::base::{Addr, named_enum};
use crate::model::{Generation, LoaderHeapKind, MallocBlockSize, MallocHeapKind, MallocUse};

named_enum! {
    /// Uses of memory in a process.
    pub enum MemoryKind {
        /// Committed memory of the GC's segments or regions in use.
        GcHeap = "gc-heap",
        /// Committed memory of free regions, and of segments to be freed.
        GcFree = "gc-free",
        /// Address space that the GC has reserved.
        GcReserved = "gc-reserved",
        /// Card table, brick table, mark array and similar structures.
        GcBookkeeping = "gc-bookkeeping",
        /// Handle tables.
        HandleTable = "handle-table",
        /// Code heaps of the JIT, including reserved memory.
        CodeHeap = "code-heap",
        /// Stubs and precodes: the executable heaps of the loader.
        StubHeap = "stub-heap",
        /// Loader heaps with data: method tables, method and field descriptors, dictionaries, statics; including reserved memory.
        LoaderHeap = "loader-heap",
        /// Other mappings of the runtime's executable allocator (`memfd:doublemapper`): the writable views of code. Linux only.
        DoubleMapped = "double-mapped",
        /// Images: executables, libraries, assemblies. A file is an image by its headers, its executable part, the runtime's list, or its
        /// name.
        Module = "module",
        /// Stacks of threads.
        Stack = "stack",
        /// Other mapped files: data.
        File = "file",
        /// The page that createdump adds to the dump. It is not memory of the process.
        DumpWriter = "dump-writer",
        /// Shared memory, or a file whose name is not in the dump. Windows only.
        Shared = "shared",
        /// Heaps of the C library's `malloc` (glibc): memory allocated by native code, `Marshal` and `NativeMemory`.
        Malloc = "malloc",
        /// Other anonymous memory: native heaps, buffers.
        Anonymous = "anonymous",
        /// Other inaccessible address space: guard pages, reserved memory.
        Reserved = "reserved",
        /// Memory of unknown use, in dumps that do not record which memory is mapped from files.
        Unknown = "unknown",
    }
}

impl MemoryKind {
    /// Whether the kind explains the use of the memory.
    pub fn explains(self) -> bool {
        !matches!(self, MemoryKind::Shared | MemoryKind::Anonymous | MemoryKind::Reserved | MemoryKind::Unknown)
    }
}

named_enum! {
    /// How much of the address space a dump lists.
    pub enum MemoryListing {
        /// Every mapping, reserved address space included.
        All = "all",
        /// All memory that the process could access; reserved address space is not listed.
        Accessible = "accessible",
        /// Captured memory, images and mapped files. Other memory is not listed.
        Captured = "captured",
    }
}

/// `memory`: the address space by use.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct MemoryReport {
    /// How much of the address space the dump lists.
    pub listing: MemoryListing,
    /// Why the runtime cannot be read. Memory that only the runtime identifies is then `anonymous`.
    pub runtime_error: Option<String>,
    /// Memory by kind, most accessible memory first. Each byte is counted once.
    pub kinds: Vec<MemoryKindModel>,
    /// The largest ranges of the kinds that do not explain the use.
    pub unexplained: Vec<MemoryRangeModel>,
    /// Allocations of the C library's `malloc`; `null` if none of its heaps was recognized.
    pub malloc: Option<MallocModel>,
    /// With `ranges`: all ranges, by address.
    pub ranges: Option<Vec<MemoryRangeModel>>,
    /// Sums over all kinds.
    pub totals: MemoryTotals,
}

/// Allocations of the C library's `malloc` (glibc).
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct MallocModel {
    /// The first heap and the arenas, largest first. Separately mapped blocks are listed together as one heap.
    pub heaps: Vec<MallocHeapModel>,
    /// The most common sizes of blocks in use, most bytes first.
    pub sizes: Vec<MallocBlockSize>,
}

/// A heap of `malloc`.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct MallocHeapModel {
    /// Kind.
    pub kind: MallocHeapKind,
    /// Address of the first heap, of the arena structure, or of the first separately mapped block.
    pub start: Addr,
    /// Number of ranges.
    pub ranges: u64,
    /// Size in bytes.
    pub bytes: u64,
    /// Bytes in use and free; `null` if blocks are missing from the dump or inconsistent.
    pub parts: Option<MallocUse>,
}

/// Memory of one kind.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct MemoryKindModel {
    /// The kind.
    pub kind: MemoryKind,
    /// Generation, for `gc-heap`.
    pub generation: Option<Generation>,
    /// Kind of the loader heap, for `loader-heap` and `stub-heap`; `null` for stubs in code heaps.
    pub loader_heap: Option<LoaderHeapKind>,
    /// Number of ranges.
    pub ranges: u64,
    /// Bytes of address space.
    pub bytes: u64,
    /// Bytes that the process could read, write or execute.
    pub accessible_bytes: u64,
    /// Bytes that are in the dump.
    pub captured_bytes: u64,
    /// Bytes of all-zero pages in the dump: mostly memory that was never written. `null` except for `stack`, `malloc`, `anonymous` and
    /// `unknown`.
    pub zero_bytes: Option<u64>,
    /// Share of the accessible bytes of all kinds, 0 to 1.
    pub share: f64,
    /// Further bytes of this kind that the runtime lists but the dump does not. They are not included in `bytes`.
    pub unlisted_bytes: u64,
}

/// A range of memory with one use.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct MemoryRangeModel {
    /// First address.
    pub start: Addr,
    /// End address (exclusive).
    pub end: Addr,
    /// Use of the range.
    pub kind: MemoryKind,
    /// Generation, for `gc-heap`.
    pub generation: Option<Generation>,
    /// Kind of the loader heap, for `loader-heap` and `stub-heap`.
    pub loader_heap: Option<LoaderHeapKind>,
    /// Length in bytes.
    pub bytes: u64,
    /// Whether the process could read, write or execute it.
    pub accessible: bool,
    /// Bytes of the range that are in the dump.
    pub captured_bytes: u64,
    /// Permissions: `rwx`, with `-` for those not granted; `null` if the dump does not record them.
    pub permissions: Option<String>,
    /// Index of the GC heap.
    pub heap: Option<u64>,
    /// OS thread id, for stacks.
    pub os_id: Option<u32>,
    /// Path of the image or file, or name of the thread.
    pub name: Option<String>,
}

/// Sums of [`MemoryKindModel`]s.
#[derive(Clone, Copy, Debug, Default, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct MemoryTotals {
    /// Number of ranges.
    pub ranges: u64,
    /// Bytes of address space that the dump lists.
    pub bytes: u64,
    /// Bytes that the process could read, write or execute.
    pub accessible_bytes: u64,
    /// Bytes that are in the dump.
    pub captured_bytes: u64,
    /// Accessible bytes of the kinds that explain the use of the memory.
    pub explained_bytes: u64,
    /// `explained_bytes` as a share of `accessible_bytes`, 0 to 1.
    pub explained_share: f64,
    /// Bytes that the runtime lists but the dump does not.
    pub unlisted_bytes: u64,
}
