//! The report of `trim`.

use serde::Serialize;

use crate::base::named_enum;

/// `trim`: the smaller copy of a dump.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct TrimReport {
    /// Path of the copy.
    pub output: String,
    /// Size of the decompressed dump in bytes.
    pub bytes: u64,
    /// Size of the decompressed copy in bytes.
    pub kept_bytes: u64,
    /// Size of the written file in bytes; smaller than the copy if the file is compressed.
    pub file_bytes: u64,
    /// Number of memory ranges in the copy.
    pub ranges: u64,
    /// Bytes by kind of memory.
    pub parts: Vec<TrimPart>,
    /// Bytes of the copy that were read from module files; `null` without `--with-modules`.
    pub module_bytes: Option<u64>,
    /// Redacted data; `null` without `--redact`.
    pub redacted: Option<RedactionModel>,
}

named_enum! {
    /// Kinds of memory.
    pub enum TrimKind {
        /// The container: headers, modules, threads, memory tables.
        Headers = "headers",
        /// GC segments and regions.
        Heap = "heap",
        /// Thread stacks.
        Stacks = "stacks",
        /// Module images: headers, export tables, runtime variables, assembly metadata.
        Images = "images",
        /// Everything else: runtime structures, handle tables, native heaps.
        Runtime = "runtime",
    }
}

/// Memory of one kind.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct TrimPart {
    /// Kind of memory.
    pub kind: TrimKind,
    /// Bytes in the dump.
    pub bytes: u64,
    /// Bytes in the copy.
    pub kept_bytes: u64,
}

/// Data that `--redact` overwrote or dropped.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct RedactionModel {
    /// Number of strings.
    pub strings: u64,
    /// Size of the characters in bytes.
    pub string_bytes: u64,
    /// Number of arrays without references.
    pub arrays: u64,
    /// Size of the elements in bytes.
    pub array_bytes: u64,
    /// Number of free blocks.
    pub free_blocks: u64,
    /// Size in bytes of free blocks, allocation contexts and other gaps between objects.
    pub free_bytes: u64,
}
