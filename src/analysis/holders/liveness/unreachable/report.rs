//! The report of `unreachable`.

use serde::Serialize;

use crate::base::{Addr, Name, named_enum, views};
use crate::model::{Generation, RootCoverageModel, Stacks, Sum};

named_enum! {
    /// Classes of garbage.
    pub enum GarbageClass {
        /// Freed by the next collection of its generation.
        Unreachable = "unreachable",
        /// Referenced only by a weak handle.
        WeakOnly = "weak-only",
        /// Has a finalizer that has yet to run, or is referenced only by such objects. It survives one more collection.
        FinalizerOnly = "finalizer-only",
        /// Young, and referenced by unreachable objects of an older generation. It survives until these are collected.
        DeadOlder = "dead-older",
    }
}

views! {
    /// The rows that `unreachable` lists.
    pub enum UnreachableRows as UnreachableFields {
        /// Sums by type and class.
        Types {
            /// Garbage by type and class, most bytes first.
            types: Vec<GarbageType>,
        },
        /// With `objects`: each object.
        Objects {
            /// The objects, in heap order.
            objects: Vec<GarbageObject>,
        },
    }
}

/// `unreachable`: objects that no root reaches.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct UnreachableReport {
    /// Reachable objects, including frozen ones.
    pub reached: Sum,
    /// Unreachable objects.
    pub unreachable: Sum,
    /// Garbage by class.
    pub classes: Vec<GarbageTotal>,
    /// The rows of the requested view.
    #[serde(flatten)]
    pub rows: UnreachableRows,
    /// Number of rows listed, if cut by `top`; `null` if complete.
    pub shown: Option<u64>,
    /// Coverage of each kind of root. With incomplete coverage, some listed objects may be reachable; with conservative coverage, more
    /// objects may be unreachable.
    pub coverage: Vec<RootCoverageModel>,
    /// Stack and register values that are treated as roots.
    pub stacks: Stacks,
}

/// Garbage of one class.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct GarbageTotal {
    /// The class.
    pub class: GarbageClass,
    /// Number of objects.
    pub count: u64,
    /// Size of the objects in bytes.
    pub bytes: u64,
}

/// Garbage of one type and class.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct GarbageType {
    /// Name of the type, or its method table address if unknown.
    #[serde(rename = "type")]
    pub type_name: Name,
    /// Method table.
    pub method_table: Addr,
    /// Number of objects.
    pub count: u64,
    /// Size of the objects in bytes.
    pub bytes: u64,
    /// Class of garbage.
    pub class: GarbageClass,
}

/// An unreachable object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct GarbageObject {
    /// The object.
    pub address: Addr,
    /// Type name of the object.
    #[serde(rename = "type")]
    pub type_name: Name,
    /// Method table.
    pub method_table: Addr,
    /// Size in bytes.
    pub bytes: u64,
    /// Generation or segment kind.
    pub generation: Generation,
    /// Class of garbage.
    pub class: GarbageClass,
}
