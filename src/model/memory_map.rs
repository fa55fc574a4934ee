use serde::Serialize;

use super::segment::Generation;
use crate::base::{Addr, named_enum};

named_enum! {
    /// What memory of a process is for.
    pub enum MemoryKind {
        /// Committed memory of the GC's segments or regions in use.
        GcHeap = "gc-heap",
        /// Committed memory of free regions, and of segments to be freed.
        GcFree = "gc-free",
        /// Address space that the GC has reserved.
        GcReserved = "gc-reserved",
        /// Card table, brick table, mark array and the like.
        GcBookkeeping = "gc-bookkeeping",
        /// Handle tables.
        HandleTable = "handle-table",
        /// Code heaps of the JIT, with what they reserve.
        CodeHeap = "code-heap",
        /// Stubs and precodes: the executable heaps of the loader.
        StubHeap = "stub-heap",
        /// Loader heaps with data: method tables, descriptors of methods and fields, dictionaries, statics; with what they reserve.
        LoaderHeap = "loader-heap",
        /// Mappings of the runtime's executable allocator (`memfd:doublemapper`) that no list names: the writable views of code. Linux
        /// only.
        DoubleMapped = "double-mapped",
        /// Images: executables, libraries, assemblies. A file is one if its headers say so, a part of it is executable, the runtime lists it,
        /// or it is named like one.
        Module = "module",
        /// Stacks of threads.
        Stack = "stack",
        /// Other mapped files: data.
        File = "file",
        /// The page that createdump adds: not memory of the process.
        DumpWriter = "dump-writer",
        /// Shared memory, or a file whose name the dump does not tell. Windows only.
        Shared = "shared",
        /// Heaps of the C library's `malloc` (glibc): what native code, `Marshal` and `NativeMemory` allocate.
        Malloc = "malloc",
        /// Memory of no file that no list names: native heaps, buffers.
        Anonymous = "anonymous",
        /// Address space that nothing can be read from or written to, and that no list names: guard pages, reserves.
        Reserved = "reserved",
        /// Not known, since the dump does not tell which memory is of files.
        Unknown = "unknown",
    }
}

named_enum! {
    /// What a heap of the runtime's loader is for. A collectible assembly has one heap for the first three.
    pub enum LoaderHeapKind {
        /// What running code reads often: method tables, descriptors of methods, dictionaries.
        HighFrequency = "high-frequency",
        /// What is mostly read while types are loaded: classes, descriptors of fields, modules.
        LowFrequency = "low-frequency",
        /// Statics of primitive types, since .NET 9.
        Statics = "statics",
        /// Stubs, for P/Invoke and others.
        Stub = "stub",
        /// Other code of the runtime.
        Executable = "executable",
        /// Precodes that jump to a method's code, and their data.
        FixupPrecode = "fixup-precode",
        /// Precodes that load a method's descriptor, and their data.
        StubPrecode = "stub-precode",
        /// Helpers of precompiled code.
        DynamicHelpers = "dynamic-helpers",
        /// Cells through which calls of interface methods go.
        IndirectionCells = "indirection-cells",
        /// Which method of which type such a call leads to.
        CacheEntries = "cache-entries",
    }
}

impl LoaderHeapKind {
    /// Whether it has code.
    pub fn is_code(self) -> bool {
        use LoaderHeapKind::{DynamicHelpers, Executable, FixupPrecode, Stub, StubPrecode};
        matches!(self, Stub | Executable | FixupPrecode | StubPrecode | DynamicHelpers)
    }
}

impl MemoryKind {
    /// Whether it tells what the memory is for.
    pub fn explains(self) -> bool {
        !matches!(self, MemoryKind::Shared | MemoryKind::Anonymous | MemoryKind::Reserved | MemoryKind::Unknown)
    }
}

named_enum! {
    /// How much of the address space a dump lists.
    pub enum MemoryListing {
        /// Every mapping, reserved address space included.
        All = "all",
        /// All that the process could access; reserved address space is not listed.
        Accessible = "accessible",
        /// What was captured, and images and mapped files. Other memory is not listed.
        Captured = "captured",
    }
}

/// `memory`: the address space by what it is for.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct MemoryReport {
    /// How much of the address space the dump lists.
    pub listing: MemoryListing,
    /// Why there is no runtime to ask: memory that only it knows is `anonymous` then.
    pub runtime_error: Option<String>,
    /// By kind, the one with most accessible memory first. Each byte counts once.
    pub kinds: Vec<MemoryKindModel>,
    /// The largest ranges of kinds that explain nothing.
    pub unexplained: Vec<MemoryRangeModel>,
    /// What the C library's `malloc` has allocated; `null` where no heap of it was recognized.
    pub malloc: Option<MallocModel>,
    /// With `--ranges`: every range, by address.
    pub ranges: Option<Vec<MemoryRangeModel>>,
    /// Sums over all kinds.
    pub totals: MemoryTotals,
}

named_enum! {
    /// Kinds of heaps of `malloc`.
    pub enum MallocHeapKind {
        /// The first heap, which the kernel grows (`brk`).
        Brk = "brk",
        /// Heaps of an arena, which threads share.
        Arena = "arena",
        /// Large blocks, mapped one by one.
        Mapped = "mapped",
    }
}

/// What the C library's `malloc` has allocated (glibc).
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct MallocModel {
    /// The first heap, each arena, and the blocks mapped one by one; the largest first.
    pub heaps: Vec<MallocHeapModel>,
    /// The most common sizes of blocks in use, by their bytes.
    pub sizes: Vec<MallocBlockSize>,
}

/// A heap of `malloc`.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct MallocHeapModel {
    /// Its kind.
    pub kind: MallocHeapKind,
    /// Its first address; that of the arena, or of the first block that was mapped.
    pub start: Addr,
    /// Number of ranges.
    pub ranges: u64,
    /// Bytes.
    pub bytes: u64,
    /// What is in use; `null` where the dump does not have all blocks, or they contradict each other.
    pub parts: Option<MallocUse>,
}

impl MallocUse {
    /// The two together.
    #[must_use]
    pub(crate) fn with(self, other: MallocUse) -> MallocUse {
        MallocUse {
            used: self.used.with(other.used),
            free: self.free.with(other.free),
            left_bytes: self.left_bytes.saturating_add(other.left_bytes),
        }
    }
}

/// What is in use in heaps of `malloc`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct MallocUse {
    /// Blocks in use, with their headers, and those that threads keep for their next allocations.
    pub used: super::Sum,
    /// Free blocks between them.
    pub free: super::Sum,
    /// What is left at the end.
    pub left_bytes: u64,
}

/// Blocks of one size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct MallocBlockSize {
    /// Bytes of one, with its header.
    pub size: u64,
    /// Number of blocks.
    pub count: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// Memory of one kind.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct MemoryKindModel {
    /// What it is for.
    pub kind: MemoryKind,
    /// Generation, of `gc-heap`.
    pub generation: Option<Generation>,
    /// Which heap of the loader, of `loader-heap` and `stub-heap`; `null` for stubs in code heaps.
    pub loader_heap: Option<LoaderHeapKind>,
    /// Number of ranges.
    pub ranges: u64,
    /// Bytes of address space.
    pub bytes: u64,
    /// Those of them that the process could read, write or execute.
    pub accessible_bytes: u64,
    /// Those of them that are in the dump.
    pub captured_bytes: u64,
    /// Bytes of whole pages of zeros among those in the dump: mostly memory that was never written. Of `stack`, `malloc`, `anonymous` and `unknown`; `null`
    /// for others.
    pub zero_bytes: Option<u64>,
    /// Its part of the accessible bytes of all kinds, 0 to 1.
    pub share: f64,
    /// Further bytes that the runtime says are of this kind, but that the dump does not list: in none of the sums.
    pub unlisted_bytes: u64,
}

/// A range of memory for one thing.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct MemoryRangeModel {
    /// First address.
    pub start: Addr,
    /// First address behind it.
    pub end: Addr,
    /// What it is for.
    pub kind: MemoryKind,
    /// Generation, of `gc-heap`.
    pub generation: Option<Generation>,
    /// Which heap of the loader, of `loader-heap` and `stub-heap`.
    pub loader_heap: Option<LoaderHeapKind>,
    /// Length in bytes.
    pub bytes: u64,
    /// Whether the process could read, write or execute it.
    pub accessible: bool,
    /// Bytes of it in the dump.
    pub captured_bytes: u64,
    /// `rwx`, with `-` for what was not allowed; `null` if the dump does not tell.
    pub permissions: Option<String>,
    /// Index of the GC heap.
    pub heap: Option<u64>,
    /// OS thread id, of stacks.
    pub os_id: Option<u32>,
    /// Path of the image or file; name of the thread.
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
    /// Those of them that the process could read, write or execute.
    pub accessible_bytes: u64,
    /// Those of them that are in the dump.
    pub captured_bytes: u64,
    /// Accessible bytes of kinds that tell what the memory is for.
    pub explained_bytes: u64,
    /// Their part of the accessible bytes, 0 to 1.
    pub explained_share: f64,
    /// Bytes that the runtime names but the dump does not list.
    pub unlisted_bytes: u64,
}
