use serde::Serialize;

use super::sum::Sum;
use crate::base::named_enum;

named_enum! {
    /// Formats of `export`.
    pub enum ExportFormat {
        /// A heap snapshot for the DevTools of Chrome and Edge.
        HeapSnapshot = "heapsnapshot",
        /// A heap snapshot for PerfView, Visual Studio and `dotnet-gcdump report`.
        Gcdump = "gcdump",
    }
}

/// `export`: a file for other tools.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct ExportReport {
    /// Format of the file.
    pub format: ExportFormat,
    /// Its path.
    pub output: String,
    /// Its size in bytes.
    pub file_bytes: u64,
    /// Objects in it.
    pub objects: Sum,
    /// References between them.
    pub references: u64,
    /// Nodes in it: the objects, groups of roots, and sums of objects left out.
    pub nodes: u64,
    /// Edges between the nodes.
    pub edges: u64,
    /// Objects that roots reach and that are left out, summed up in nodes; `null` without `--under` and `--min-retained`.
    pub left_out: Option<Sum>,
    /// Objects that no root reaches and that are left out; `null` with `--unreachable`.
    pub unreachable: Option<Sum>,
    /// With `--since`: the objects that have the ids of the dump before.
    pub survivors: Option<u64>,
}
