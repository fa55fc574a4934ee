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
        /// Tables in Parquet files, for DuckDB, Spark, Polars, pandas.
        Parquet = "parquet",
        /// Tables in CSV files.
        Csv = "csv",
        /// Tables in files of one JSON object a line.
        Ndjson = "ndjson",
    }
}

impl ExportFormat {
    /// Whether it is a folder of tables.
    pub const fn is_tables(self) -> bool {
        matches!(self, ExportFormat::Parquet | ExportFormat::Csv | ExportFormat::Ndjson)
    }
}

named_enum! {
    /// Tables of `export parquet`.
    pub enum ExportTable {
        /// The dump: one row.
        Dumps = "dumps",
        /// Types with objects on the heap, and free space.
        Types = "types",
        /// Objects, without free space.
        Objects = "objects",
        /// References between objects.
        Refs = "refs",
        /// GC roots.
        Roots = "roots",
        /// Segments or regions.
        Segments = "segments",
        /// GC handles.
        Handles = "handles",
        /// Leak suspects.
        Suspects = "suspects",
        /// Values of strings.
        Strings = "strings",
        /// Static fields, those of threads among them.
        Statics = "statics",
        /// Managed threads.
        Threads = "threads",
        /// Frames of their stacks.
        Frames = "frames",
        /// Exceptions.
        Exceptions = "exceptions",
        /// Tasks.
        Tasks = "tasks",
        /// HTTP requests in flight.
        Requests = "requests",
        /// Locks, free ones included.
        Locks = "locks",
        /// Modules.
        Modules = "modules",
    }
}

impl ExportTable {
    /// Whether it is about objects and the heap. The others are written when they are asked for: each takes a separate analysis.
    pub const fn is_of_heap(self) -> bool {
        !matches!(
            self,
            ExportTable::Statics
                | ExportTable::Threads
                | ExportTable::Frames
                | ExportTable::Exceptions
                | ExportTable::Tasks
                | ExportTable::Requests
                | ExportTable::Locks
                | ExportTable::Modules
        )
    }
}

/// A file with a table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct TableFile {
    /// The table.
    pub table: ExportTable,
    /// Path of the file.
    pub file: String,
    /// Its rows.
    pub rows: u64,
    /// Its size in bytes.
    pub bytes: u64,
}

/// `export`: a file for other tools.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct ExportReport {
    /// Format of the file, or of the files.
    pub format: ExportFormat,
    /// Its path; of tables, that of the folder.
    pub output: String,
    /// Its size in bytes, or that of all files.
    pub file_bytes: u64,
    /// Objects in it; of tables, those of the heap.
    pub objects: Sum,
    /// References between them; `null` without the table `refs`.
    pub references: Option<u64>,
    /// Nodes in it: the objects, groups of roots, and sums of objects left out. `null` for tables.
    pub nodes: Option<u64>,
    /// Edges between the nodes; `null` for tables.
    pub edges: Option<u64>,
    /// Objects that roots reach and that are left out, summed up in nodes; `null` without `--under` and `--min-retained`.
    pub left_out: Option<Sum>,
    /// Objects that no root reaches and that are left out; `null` with `--unreachable`.
    pub unreachable: Option<Sum>,
    /// With `--since`: the objects that have the ids of the dump before.
    pub survivors: Option<u64>,
    /// The files of tables; `null` for other formats.
    pub tables: Option<Vec<TableFile>>,
    /// The dump's id, which is the first half of a hash of its file: the name of its partition. `null` without `--partition`.
    pub dump_id: Option<String>,
}

named_enum! {
    /// What became of a dump of a fleet.
    pub enum FleetState {
        /// Its tables are written.
        Written = "written",
        /// Its tables are written; the dump lacks something that they should tell.
        Partial = "partial",
        /// The lake had it already.
        Known = "known",
        /// It cannot be read; its row in `dumps` says why.
        Failed = "failed",
    }
}

/// A dump of a fleet.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct FleetDump {
    /// Its id: the name of its partition. `null` if the file cannot be read at all.
    pub id: Option<String>,
    /// Path of the file.
    pub path: String,
    /// What became of it.
    pub state: FleetState,
    /// Version of its runtime.
    pub runtime: Option<String>,
    /// Objects on its heap; `null` where the lake had it already.
    pub objects: Option<u64>,
    /// Their bytes.
    pub bytes: Option<u64>,
    /// Why it failed.
    pub error: Option<String>,
}

/// Dumps by state.
#[derive(Clone, Copy, Debug, Default, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct FleetTotals {
    /// All.
    pub dumps: u64,
    /// Written now, whole or in part.
    pub written: u64,
    /// In the lake already.
    pub known: u64,
    /// Failed.
    pub failed: u64,
}

/// `fleet`: many dumps as tables.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct FleetReport {
    /// Path of the lake.
    pub lake: String,
    /// The dumps, by path.
    pub dumps: Vec<FleetDump>,
    /// Their number by state.
    pub totals: FleetTotals,
}
