//! Loader heaps of the runtime, and memory of the C library.

use serde::Serialize;

use crate::base::named_enum;

named_enum! {
    /// Kinds of loader heaps. A collectible assembly has a single heap for the first three kinds.
    pub enum LoaderHeapKind {
        /// Data that running code reads often: method tables, method descriptors, dictionaries.
        HighFrequency = "high-frequency",
        /// Data that is mostly read while types are loaded: `EEClass`es, field descriptors, modules.
        LowFrequency = "low-frequency",
        /// Statics of primitive types, since .NET 9.
        Statics = "statics",
        /// Stubs, for P/Invoke and other purposes.
        Stub = "stub",
        /// Other code of the runtime.
        Executable = "executable",
        /// Precodes that jump to a method's code, with their data.
        FixupPrecode = "fixup-precode",
        /// Precodes that load a method descriptor, with their data.
        StubPrecode = "stub-precode",
        /// Helpers of precompiled code.
        DynamicHelpers = "dynamic-helpers",
        /// Indirection cells for calls of interface methods.
        IndirectionCells = "indirection-cells",
        /// Cache entries that map a call of an interface method and a type to the type's method.
        CacheEntries = "cache-entries",
    }
}

impl LoaderHeapKind {
    /// Whether the heap contains code.
    pub fn is_code(self) -> bool {
        use LoaderHeapKind::{DynamicHelpers, Executable, FixupPrecode, Stub, StubPrecode};
        matches!(self, Stub | Executable | FixupPrecode | StubPrecode | DynamicHelpers)
    }
}

named_enum! {
    /// Kinds of heaps of `malloc`.
    pub enum MallocHeapKind {
        /// The first heap, which the kernel grows (`brk`).
        Brk = "brk",
        /// Heaps of an arena, which threads share.
        Arena = "arena",
        /// Large blocks with a mapping each.
        Mapped = "mapped",
    }
}

impl MallocUse {
    /// Returns the sum of both.
    #[must_use]
    pub(crate) fn with(self, other: MallocUse) -> MallocUse {
        MallocUse {
            used: self.used.with(other.used),
            free: self.free.with(other.free),
            left_bytes: self.left_bytes.saturating_add(other.left_bytes),
        }
    }
}

/// Used and free memory in heaps of `malloc`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct MallocUse {
    /// Blocks in use with their headers, and blocks in thread caches.
    pub used: super::Sum,
    /// Free blocks between the used ones.
    pub free: super::Sum,
    /// Bytes left at the end of the heap.
    pub left_bytes: u64,
}

/// Blocks of one size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct MallocBlockSize {
    /// Size of one block in bytes, with its header.
    pub size: u64,
    /// Number of blocks.
    pub count: u64,
    /// Size of the blocks in bytes.
    pub bytes: u64,
}
