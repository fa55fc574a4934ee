use serde::Serialize;

use crate::base::named_enum;

/// `trim`: what a smaller copy of a dump holds.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct TrimReport {
    /// Path of the copy.
    pub output: String,
    /// Bytes of the dump, decompressed.
    pub bytes: u64,
    /// Bytes of the copy, decompressed.
    pub kept_bytes: u64,
    /// Bytes of the file that was written: less than the copy's where it is compressed.
    pub file_bytes: u64,
    /// Stretches of memory in the copy.
    pub ranges: u64,
    /// By kind of memory.
    pub parts: Vec<TrimPart>,
    /// What was overwritten; `null` without `--redact`.
    pub redacted: Option<RedactionModel>,
}

named_enum! {
    /// Kinds of memory.
    pub enum TrimKind {
        /// The container: headers, modules, threads, tables of memory.
        Headers = "headers",
        /// Segments and regions of the GC.
        Heap = "heap",
        /// Stacks of threads.
        Stacks = "stacks",
        /// Images of modules: headers, export tables, the runtime's variables, metadata of assemblies.
        Images = "images",
        /// Everything else: structures of the runtime, handle tables, whatever the process had beside them.
        Runtime = "runtime",
    }
}

/// What was kept of one kind of memory.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct TrimPart {
    /// Which.
    pub kind: TrimKind,
    /// Bytes in the dump.
    pub bytes: u64,
    /// Bytes in the copy.
    pub kept_bytes: u64,
}

/// What `--redact` overwrote or left out of the parts that were kept.
#[derive(Clone, Debug, Default, Serialize, schemars::JsonSchema)]
pub struct RedactionModel {
    /// Strings of the heap.
    pub strings: u64,
    /// Bytes of their characters.
    pub string_bytes: u64,
    /// Arrays whose elements hold no references.
    pub arrays: u64,
    /// Bytes of their elements.
    pub array_bytes: u64,
    /// Free blocks.
    pub free_blocks: u64,
    /// Bytes of free blocks, allocation contexts and other places between objects.
    pub free_bytes: u64,
}
