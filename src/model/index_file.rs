//! The result of `index`.

use serde::Serialize;

/// `index`: the index file, with which later commands answer faster.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct IndexReport {
    /// Path of the index.
    pub path: String,
    /// Size in bytes.
    pub file_bytes: u64,
    /// Size of the (decompressed) dump in bytes.
    pub dump_bytes: u64,
    /// Number of objects in the index, free space excluded.
    pub objects: u64,
    /// Number of references between them.
    pub references: u64,
    /// Whether the index was written. With `--check`, whether it was read.
    pub written: bool,
    /// With `--check`: why the index cannot be used; `null` if it can be used.
    pub problem: Option<String>,
}
