//! The report of `stat`.

use serde::Serialize;

use crate::base::{Addr, Name, named_enum, views};
use crate::model::{CarvedModel, CoverageModel, Generation};

named_enum! {
    /// Grouping keys of `stat`.
    #[derive(Default)]
    pub enum StatBy {
        /// Type.
        #[default]
        Type = "type",
        /// Generation or segment kind.
        Generation = "generation" | "gen",
        /// GC heap.
        Heap = "heap",
        /// Segment or region.
        Segment = "segment",
        /// Module of the type; for arrays, of the element type.
        Assembly = "assembly" | "module",
        /// Namespace of the type; for arrays, of the element type.
        Namespace = "namespace" | "ns",
        /// Size of the object, in powers of two.
        Size = "size",
    }
}

named_enum! {
    /// Sort order of `stat`.
    #[derive(Default)]
    pub enum StatSort {
        /// Most bytes first.
        #[default]
        Bytes = "bytes",
        /// Most objects first.
        Count = "count",
        /// By name.
        Name = "name",
    }
}

views! {
    /// The rows that `stat` lists.
    pub enum StatRows as StatFields {
        /// Sums by type.
        Types {
            /// Objects by type, largest first. Free space is in `totals`.
            types: Vec<TypeStat>,
        },
        /// Sums by another key.
        Groups {
            /// Objects by another key.
            groups: Vec<GroupStat>,
        },
    }
}

/// `stat`: heap statistics.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct StatReport {
    /// Grouping key.
    pub by: StatBy,
    /// The types or groups.
    #[serde(flatten)]
    pub rows: StatRows,
    /// Totals of all selected objects and free blocks, listed or not.
    pub totals: StatTotals,
    /// Coverage of the heap walk.
    pub coverage: CoverageModel,
    /// Number of rows listed, if cut by `top`; `null` if complete.
    pub shown: Option<u64>,
    /// Number of groups that are not listed, if any.
    #[serde(skip)]
    pub not_listed: Option<u64>,
    /// How the heap was carved; absent if it was not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub carved: Option<CarvedModel>,
}

impl StatReport {
    /// Returns the answer as one by type; without types if it has another key.
    pub(crate) fn of_types(self) -> TypeStats {
        let types = if let StatRows::Types { types } = self.rows { types } else { Vec::new() };
        TypeStats { types, totals: self.totals, coverage: self.coverage, carved: self.carved }
    }
}

/// The objects of a heap by type: see [`Heap::stat`](crate::Heap::stat).
#[derive(Clone, Debug)]
pub struct TypeStats {
    /// Objects by type, largest first. Free space is in `totals`.
    pub types: Vec<TypeStat>,
    /// Totals of all objects and free blocks.
    pub totals: StatTotals,
    /// Coverage of the heap walk.
    pub coverage: CoverageModel,
    /// How the heap was carved; `None` if it was not.
    pub carved: Option<CarvedModel>,
}

/// Objects of one type.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct TypeStat {
    /// Name of the type. `Module!0x02000123` without metadata; the method table address if the type is unknown.
    #[serde(rename = "type")]
    pub type_name: Name,
    /// Method table.
    pub method_table: Addr,
    /// File name of the type's module; for arrays, of the element type.
    pub module: Option<String>,
    /// Number of objects.
    pub count: u64,
    /// Size of the objects in bytes as counted by SOS and ClrMD: header included, not rounded up.
    pub bytes: u64,
    /// Share of the bytes of all objects of the heap, selected or not; 0 to 1.
    pub share: f64,
}

/// Objects of one group.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct GroupStat {
    /// Key of the group: generation, heap index, segment address, module, namespace, or minimum size.
    pub key: String,
    /// Heap index, if grouped by segment.
    pub heap: Option<u64>,
    /// Generation, if grouped by segment.
    pub generation: Option<Generation>,
    /// Number of objects.
    pub count: u64,
    /// Size of the objects in bytes.
    pub bytes: u64,
    /// Share of the bytes of all objects of the heap, selected or not; 0 to 1.
    pub share: f64,
    /// Number of free blocks; 0 if grouped by assembly or namespace, since a free block does not have these.
    pub free_count: u64,
    /// Size of the free blocks in bytes.
    pub free_bytes: u64,
}

/// Totals of `stat`.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct StatTotals {
    /// Number of objects.
    pub count: u64,
    /// Size of the objects in bytes as counted by SOS and ClrMD. `coverage.walked_bytes` also includes the free blocks, and has rounded
    /// sizes.
    pub bytes: u64,
    /// Number of free blocks.
    pub free_count: u64,
    /// Size of the free blocks in bytes.
    pub free_bytes: u64,
    /// Number of types with objects.
    pub types: u64,
}
