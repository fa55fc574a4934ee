use serde::Serialize;

use crate::base::named_enum;

named_enum! {
    /// When the heap is carved out of memory, by the objects in it, rather than read from the GC's structures.
    #[derive(Default)]
    pub enum Carve {
        /// Where the GC's structures cannot be read.
        #[default]
        Auto = "auto",
        /// Whatever the GC's structures say.
        Always = "always",
        /// Not at all.
        Never = "never",
    }
}

/// A heap that was carved: found by its objects, without the GC's structures. Objects of it may be missing, and some may be dead.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct CarvedModel {
    /// Why the GC's structures are not used.
    pub because: String,
    /// File of the standalone GC that the process was started with, if any.
    pub collector: Option<String>,
    /// Number of ranges with objects: the segments of the answers.
    pub ranges: u64,
    /// Number of their objects, free blocks included.
    pub objects: u64,
    /// Bytes of these.
    pub bytes: u64,
    /// Bytes of memory that were searched: writable memory of no other known use.
    pub searched_bytes: u64,
    /// Number of references of the objects, null ones excluded.
    pub references: u64,
    /// Number of those that lead to the start of an object.
    pub references_to_objects: u64,
    /// Number of runs of objects that nothing leads to, which are left out: remains of compacted regions.
    pub left_out_ranges: u64,
    /// Number of their objects.
    pub left_out_objects: u64,
    /// Bytes of these.
    pub left_out_bytes: u64,
}

/// A standalone GC: a library that the runtime loads instead of the built-in GC.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct StandaloneGc {
    /// File name of the library.
    pub file: String,
    /// Its path in the process.
    pub path: String,
    /// File version, in minidumps.
    pub version: Option<String>,
    /// Build ID, if the dump has it.
    pub build_id: Option<String>,
    /// Version of the interface to the runtime, as the library stated it when it was loaded.
    pub interface_version: String,
    /// Name that the library gave, if the dump has it.
    pub name: Option<String>,
}
