//! The report of `roots`.

use serde::Serialize;

use crate::base::{Addr, Name, views};
use crate::model::{RootCoverageModel, RootKind, RootModel, Stacks};

/// Roots of one kind.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct RootCount {
    /// The kind.
    pub kind: RootKind,
    /// Number of roots.
    pub count: u64,
    /// Number of distinct objects.
    pub objects: u64,
}

/// Roots of objects of one type.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct RootType {
    /// Name of the type, or its method table address if unknown; `null` if the objects are not in the dump.
    #[serde(rename = "type")]
    pub type_name: Option<Name>,
    /// Method table; `null` if the objects are not in the dump.
    pub method_table: Option<Addr>,
    /// Number of roots.
    pub count: u64,
    /// Number of distinct objects.
    pub objects: u64,
}

/// A dependent handle. It keeps the secondary object alive while the primary object is alive.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct DependentModel {
    /// The primary object.
    pub primary: Addr,
    /// Type name of the primary object; `null` if the object is not in the dump.
    pub primary_type: Option<Name>,
    /// The secondary object.
    pub secondary: Addr,
    /// Type name of the secondary object; `null` if the object is not in the dump.
    pub secondary_type: Option<Name>,
}

views! {
    /// The rows that `roots` lists.
    pub enum RootsRows as RootsFields {
        /// Each root.
        Roots {
            /// The roots, ordered by kind and address.
            roots: Vec<RootModel>,
        },
        /// With `stat`: sums by object type.
        Types {
            /// Roots by object type, most frequent first.
            types: Vec<RootType>,
        },
    }
}

/// `roots`: the GC roots.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct RootsReport {
    /// Number of roots of the requested kinds and types.
    pub total: u64,
    /// Roots by kind.
    pub counts: Vec<RootCount>,
    /// Coverage of each requested kind.
    pub coverage: Vec<RootCoverageModel>,
    /// The rows of the requested view.
    #[serde(flatten)]
    pub rows: RootsRows,
    /// Stack and register values that are treated as roots.
    pub stacks: Stacks,
    /// Number of rows listed, if cut by `top`; `null` if complete.
    pub shown: Option<u64>,
    /// Dependent handles, which are not roots themselves. `null` with `stat`, or if not requested.
    pub dependents: Option<Vec<DependentModel>>,
}
