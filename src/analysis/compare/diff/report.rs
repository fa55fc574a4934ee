//! The report of `diff`.

use serde::Serialize;

use crate::base::{Addr, Name, named_enum};
use crate::model::Sum;

named_enum! {
    /// Grouping keys of `diff`.
    #[derive(Default)]
    pub enum DiffBy {
        /// Type, by name and assembly.
        #[default]
        Type = "type",
        /// Namespace of the type; for arrays, of the element type.
        Namespace = "namespace",
        /// Module of the type; for arrays, of the element type.
        Assembly = "assembly",
        /// Generation or segment kind.
        Generation = "generation",
        /// The only root that keeps the objects alive: a static field, or a kind of handle.
        Root = "root",
    }
}

named_enum! {
    /// Sort order of `diff`.
    #[derive(Default)]
    pub enum DiffSort {
        /// Most bytes gained first.
        #[default]
        Bytes = "bytes",
        /// Most objects gained first.
        Count = "count",
        /// By name.
        Name = "name",
    }
}

named_enum! {
    /// The change of a row from the first dump to the last.
    pub enum DiffState {
        /// Not in the first dump.
        New = "new",
        /// Not in the last dump.
        Gone = "gone",
        /// More bytes, or as many bytes and more objects.
        Grown = "grown",
        /// Fewer bytes, or as many bytes and fewer objects.
        Shrunk = "shrunk",
        /// Number of objects and bytes are unchanged.
        Same = "same",
    }
}

named_enum! {
    /// Development of a measure over more than two dumps.
    pub enum Trend {
        /// Larger in each dump than in the one before.
        Grows = "grows",
        /// Smaller in each dump than in the one before.
        Shrinks = "shrinks",
        /// Equal in all dumps.
        Steady = "steady",
        /// Anything else.
        Varies = "varies",
    }
}

/// `diff`: the changes from dump to dump.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct DiffReport {
    /// Grouping key of `rows`.
    pub by: DiffBy,
    /// Whether only objects that roots reach are counted, because one of the files is a `.gcdump` file, which has no others.
    pub live_only: bool,
    /// The compared dumps, in the order of the command line.
    pub dumps: Vec<ComparedDump>,
    /// Totals of the process: heap, handles, threads, finalization queue, out-of-memory records.
    pub summary: Vec<DiffMeasure>,
    /// The containers that grew from the first dump to the last. Containers that gained objects of the application's types come first;
    /// otherwise they are sorted by growth. `null` if they were not searched for, or if objects or roots of a dump are unknown.
    pub holders: Option<Vec<GrowingHolder>>,
    /// Why the holders are unknown, although they were to be searched for. A note says this as well.
    #[serde(skip)]
    pub holders_unknown: Option<String>,
    /// The groups that changed, most bytes gained first; with `all`, every group.
    pub rows: Vec<DiffRow>,
    /// Number of groups left out of `rows` because nothing changed.
    pub unchanged: u64,
    /// Number of rows listed, if cut by `top`; `null` if complete.
    pub shown: Option<u64>,
    /// The `rules` of the query with their results.
    pub rules: Vec<DiffRule>,
}

/// A compared dump.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct ComparedDump {
    /// Path as given.
    pub path: String,
    /// Process id.
    pub process_id: Option<u32>,
    /// Version of the runtime.
    pub runtime: Option<String>,
    /// Time at which the dump was written, in seconds since 1970.
    pub time: Option<u64>,
}

/// A measure of the process. Values are `null` if they are not in the dump.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct DiffMeasure {
    /// Name of the measure, as in rules: `bytes`, `objects`, `handles:strong`.
    pub name: String,
    /// Whether the unit is bytes.
    pub is_bytes: bool,
    /// Value in the first dump.
    pub before: Option<u64>,
    /// Value in the last dump.
    pub after: Option<u64>,
    /// Change from the first dump to the last; `null` also if one of the dumps has only a part of the objects that are measured.
    pub change: Option<i64>,
    /// The change as a fraction of `before`; `null` if that is 0.
    pub growth: Option<f64>,
    /// Value in each dump.
    pub series: Vec<Option<u64>>,
    /// Trend, if more than two dumps are compared.
    pub trend: Option<Trend>,
}

/// A group of objects. Free space does not belong to any group.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct DiffRow {
    /// Name of the type, or another key. Types without names are one group, `(unknown)`.
    pub key: Name,
    /// File name of the type's module, if grouped by type.
    pub module: Option<String>,
    /// Change from the first dump to the last.
    pub state: DiffState,
    /// Objects in the first dump.
    pub before: Sum,
    /// Objects in the last dump.
    pub after: Sum,
    /// Objects gained.
    pub count_change: i64,
    /// Bytes gained.
    pub bytes_change: i64,
    /// `bytes_change` as a fraction of the bytes before; `null` if these are 0.
    pub growth: Option<f64>,
    /// Bytes that the objects of the type retained together in the first dump; `null` if not computed.
    pub retained_before: Option<u64>,
    /// Bytes that the objects retain together in the last dump; `null` if not computed.
    pub retained_after: Option<u64>,
    /// Objects in each dump.
    pub series: Vec<Sum>,
    /// Trend of the bytes, if more than two dumps are compared.
    pub trend: Option<Trend>,
}

/// A container whose retained size grew, and the path to it from a root.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct GrowingHolder {
    /// The root: a static field, or a kind of handle, stack or queue.
    pub root: String,
    /// The objects from the root to the container. Each dominates the next.
    pub path: Vec<HolderStep>,
    /// Bytes that the container retained in the first dump; 0 if it is new.
    pub retained_before: u64,
    /// Bytes that the container retains in the last dump.
    pub retained_after: u64,
    /// Bytes gained.
    pub change: i64,
    /// `change` as a fraction of `retained_before`; `null` if that is 0.
    pub growth: Option<f64>,
    /// Bytes that all objects below the root retained in the first dump.
    pub root_before: u64,
    /// Bytes that all objects below the root retain in the last dump.
    pub root_after: u64,
    /// The type whose objects accumulate in the container; `null` if only existing objects have grown.
    pub element: Option<Name>,
    /// Whether the container accumulates objects of a type outside the framework.
    pub own: bool,
    /// Types of all objects that the container dominates, most bytes gained first; at most 5.
    pub gained: Vec<GainedType>,
    /// Description.
    pub text: String,
}

/// A step of the path from a root to a container.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct HolderStep {
    /// Name of the type.
    #[serde(rename = "type")]
    pub type_name: Name,
    /// Field or element of the previous step that refers to the object; `null` if the step represents several objects of the type.
    pub field: Option<String>,
    /// Address of the object in the last dump; `null` if the step represents several objects.
    pub address: Option<Addr>,
    /// Number of objects in the first dump.
    pub before: u64,
    /// Number of objects in the last dump.
    pub after: u64,
}

/// Objects of a type that a container dominates.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct GainedType {
    /// Name of the type.
    #[serde(rename = "type")]
    pub type_name: Name,
    /// Objects gained.
    pub count: i64,
    /// Bytes gained.
    pub bytes: i64,
}

/// A rule with its result.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct DiffRule {
    /// The rule as given.
    pub rule: String,
    /// Value of the measure in the first dump.
    pub before: Option<u64>,
    /// Value of the measure in the last dump.
    pub after: Option<u64>,
    /// Whether the check failed because the rule's comparison is true; `null` if the value is missing from one of the dumps.
    pub failed: Option<bool>,
    /// Why the check failed or could not be made; `null` if it passed.
    pub reason: Option<String>,
    /// Whether a failed check counts even if the answer is partial.
    #[serde(skip)]
    pub(crate) certain: bool,
}
