use serde::Serialize;

use super::segment::Generation;
use super::walk::CoverageModel;
use crate::base::{Addr, named_enum};

named_enum! {
    /// What `stat` groups by.
    #[derive(Default)]
    pub enum StatBy {
        /// Type.
        #[default]
        Type = "type",
        /// Generation or kind of segment.
        Generation = "generation",
        /// GC heap.
        Heap = "heap",
        /// Segment or region.
        Segment = "segment",
        /// Module that defines the type; of arrays, the element's.
        Assembly = "assembly",
        /// Namespace of the type; of arrays, the element's.
        Namespace = "namespace",
        /// Size of the object, by powers of two.
        Size = "size",
    }
}

named_enum! {
    /// Order of the rows of `stat`.
    #[derive(Default)]
    pub enum StatSort {
        /// The most bytes first.
        #[default]
        Bytes = "bytes",
        /// The most objects first.
        Count = "count",
        /// By name.
        Name = "name",
    }
}

/// `stat`: objects counted and summed.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct StatReport {
    /// What the rows stand for.
    pub by: StatBy,
    /// By type, the largest first; free space has a row of its own (`free`). `null` when grouped by something else.
    pub types: Option<Vec<TypeStat>>,
    /// By something else than type; `null` when grouped by type.
    pub groups: Option<Vec<GroupStat>>,
    /// Sums over everything that was asked for, whatever is listed.
    pub totals: StatTotals,
    /// How much of the heap was walked.
    pub coverage: CoverageModel,
    /// Rows listed, where `--top` cut the list; `null` where all are.
    pub shown: Option<u64>,
}

/// Objects of one type.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct TypeStat {
    /// Name of the type; `Module!0x02000123` without metadata, the method table's address where nothing is known.
    #[serde(rename = "type")]
    pub type_name: String,
    /// Its method table.
    pub method_table: Addr,
    /// File name of the module that defines it; of arrays, the element's.
    pub module: Option<String>,
    /// Objects.
    pub count: u64,
    /// Their bytes as SOS and ClrMD count them: header word included, not rounded up.
    pub bytes: u64,
    /// Their part of all bytes asked for, 0 to 1.
    pub share: f64,
    /// Whether this is free space, not objects.
    pub free: bool,
}

/// Objects of one group.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct GroupStat {
    /// Name of the group: generation, number of the heap, address of the segment, module, namespace, smallest size.
    pub key: String,
    /// Heap, by segment.
    pub heap: Option<u64>,
    /// Generation, by segment.
    pub generation: Option<Generation>,
    /// Objects, free space included.
    pub count: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Their part of all bytes asked for, 0 to 1.
    pub share: f64,
    /// Stretches of free space.
    pub free_count: u64,
    /// Their bytes.
    pub free_bytes: u64,
}

/// Sums of `stat`.
#[derive(Clone, Debug, Default, Serialize, schemars::JsonSchema)]
pub struct StatTotals {
    /// Objects, free space included.
    pub count: u64,
    /// Their bytes as SOS and ClrMD count them. `coverage.walked_bytes` are the same objects rounded up to their alignment.
    pub bytes: u64,
    /// Stretches of free space.
    pub free_count: u64,
    /// Their bytes.
    pub free_bytes: u64,
    /// Types that have objects.
    pub types: u64,
}
