//! The report of `handles`.

use serde::Serialize;

use crate::base::{Name, named_enum};
use crate::model::{FeatureSource, HandleKind, HandleMemory, HandleModel, HandleUse};

named_enum! {
    /// Grouping keys of `handles --by`.
    pub enum HandleBy {
        /// Type of the handle.
        Type = "type",
        /// Type of the object.
        ObjectType = "object-type",
        /// Generation or segment kind of the object.
        Generation = "generation",
    }
}

/// Handles of one group.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct HandleGroup {
    /// Handle type, type name of the objects (or their method table address), or generation; `null` if the objects are not in the dump or
    /// not in a segment.
    pub key: Option<Name>,
    /// Number of handles.
    pub count: u64,
    /// Total size of the objects in bytes; an object is counted once for each handle.
    pub bytes: u64,
}

/// Handles of one type.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct HandleStat {
    /// Type of the handles.
    #[serde(rename = "type")]
    pub kind: HandleKind,
    /// Number of handles.
    pub count: u64,
}

/// Handles that the runtime or its library created for itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct HandleUseStat {
    /// The use.
    pub used_for: HandleUse,
    /// Number of handles.
    pub count: u64,
}

/// `handles`: the GC handles of all handle tables.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct HandlesReport {
    /// Number of handles of the requested types.
    pub total: u64,
    /// Number of handles by type.
    pub counts: Vec<HandleStat>,
    /// Strong handles that the runtime or its library created for itself, by use.
    pub uses: Vec<HandleUseStat>,
    /// Handle types that the runtime supports, including those without handles.
    pub supported: Vec<HandleKind>,
    /// Source of the features that determine the supported types.
    pub supported_by: FeatureSource,
    /// Number of listed ref-counted handles whose reference count cannot be read. Whether these keep their objects alive is unknown; `null`
    /// with `stat` and `by`.
    pub ref_counts_unknown: Option<u64>,
    /// Number of handle tables walked: one per processor with server GC.
    pub tables: u64,
    /// The handles, in table order; `null` with `stat` and `by`.
    pub handles: Option<Vec<HandleModel>>,
    /// Number of handles or groups listed, if cut by `top`.
    pub shown: Option<u64>,
    /// With `by`: the grouping key.
    pub by: Option<HandleBy>,
    /// With `by`: the number of groups, listed or not.
    pub group_count: Option<u64>,
    /// With `by`: the groups, largest first.
    pub groups: Option<Vec<HandleGroup>>,
    /// With `memory`: the memory of the tables.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<HandleMemory>,
}
