//! Heaps that are carved: found by their objects in memory, without the structures of the GC.

use serde::Serialize;

use crate::base::named_enum;

named_enum! {
    /// Conditions on which the heap is carved: found by its objects in memory, without the GC's structures.
    #[derive(Default)]
    pub enum Carve {
        /// If the GC's structures cannot be read.
        #[default]
        Auto = "auto",
        /// Always.
        Always = "always",
        /// Never.
        Never = "never",
    }
}

/// A carved heap: it was found by its objects, without the GC's structures. Objects may be missing, and some may be dead.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct CarvedModel {
    /// Why the GC's structures are not used.
    pub because: String,
    /// File of the standalone GC that the process was started with, if any.
    pub collector: Option<String>,
    /// Number of ranges with objects, which are the segments in answers.
    pub ranges: u64,
    /// Number of objects in the ranges, free blocks included.
    pub objects: u64,
    /// Bytes of these.
    pub bytes: u64,
    /// Bytes of the searched memory: writable memory without another known use.
    pub searched_bytes: u64,
    /// Number of non-null references in the objects.
    pub references: u64,
    /// Number of these references that point to the start of an object.
    pub references_to_objects: u64,
    /// Number of runs of objects that are left out because nothing refers to them: remains of compacted regions.
    pub left_out_ranges: u64,
    /// Number of objects in the left-out runs.
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
