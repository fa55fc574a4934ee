//! Formats and results of `export` and `fleet`.

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
        /// Tables in files with one JSON object per line.
        Ndjson = "ndjson",
    }
}

impl ExportFormat {
    /// Whether the format is a directory of tables.
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
        /// Static fields, including thread statics.
        Statics = "statics",
        /// Managed threads.
        Threads = "threads",
        /// Frames of the stacks of managed threads.
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
    /// Whether the table is about objects and the heap. Other tables are written only on request, since each takes a separate analysis.
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
    /// Number of rows.
    pub rows: u64,
    /// Size in bytes.
    pub bytes: u64,
}

/// `export`: a file for other tools.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct ExportReport {
    /// Format of the file, or of the files.
    pub format: ExportFormat,
    /// Path of the file; for tables, of the directory.
    pub output: String,
    /// Size of the file in bytes; for tables, of all files.
    pub file_bytes: u64,
    /// Exported objects; for tables, the objects of the heap.
    pub objects: Sum,
    /// References between these objects; `null` without the table `refs`.
    pub references: Option<u64>,
    /// Exported nodes: the objects, groups of roots, and sums of omitted objects. `null` for tables.
    pub nodes: Option<u64>,
    /// Edges between the nodes; `null` for tables.
    pub edges: Option<u64>,
    /// Reachable objects that were omitted, with sums in some of the nodes; `null` without `--under` and `--min-retained`.
    pub left_out: Option<Sum>,
    /// Unreachable objects that were omitted; `null` with `--unreachable`.
    pub unreachable: Option<Sum>,
    /// With `--since`: number of objects that have the same ids as in the earlier dump.
    pub survivors: Option<u64>,
    /// The table files; `null` for other formats.
    pub tables: Option<Vec<TableFile>>,
    /// Id of the dump: the first half of a hash of its file, and the name of its partition. `null` without `--partition`.
    pub dump_id: Option<String>,
}

named_enum! {
    /// Results for a dump of a fleet.
    pub enum FleetState {
        /// The tables are written.
        Written = "written",
        /// The tables are written but incomplete, because data is missing from the dump.
        Partial = "partial",
        /// The lake already had the dump.
        Known = "known",
        /// The dump cannot be read; its row in `dumps` says why.
        Failed = "failed",
    }
}

/// A dump of a fleet.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct FleetDump {
    /// Id of the dump, and the name of its partition. `null` if the file cannot be read at all.
    pub id: Option<String>,
    /// Path of the file.
    pub path: String,
    /// Result.
    pub state: FleetState,
    /// Version of the runtime.
    pub runtime: Option<String>,
    /// Objects on the heap; `null` if the lake already had the dump.
    pub objects: Option<u64>,
    /// Bytes of these objects.
    pub bytes: Option<u64>,
    /// Why the dump failed.
    pub error: Option<String>,
}

/// Number of dumps by result.
#[derive(Clone, Copy, Debug, Default, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct FleetTotals {
    /// All dumps.
    pub dumps: u64,
    /// Dumps written now, completely or partially.
    pub written: u64,
    /// Dumps that the lake already had.
    pub known: u64,
    /// Dumps that failed.
    pub failed: u64,
}

/// `fleet`: tables of many dumps.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct FleetReport {
    /// Path of the lake.
    pub lake: String,
    /// The dumps, by path.
    pub dumps: Vec<FleetDump>,
    /// Number of dumps by result.
    pub totals: FleetTotals,
}
