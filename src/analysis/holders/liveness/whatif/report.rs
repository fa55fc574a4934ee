//! The report of `whatif`.

use serde::Serialize;

use crate::analysis::ObjectsByType;
use crate::base::{Addr, Name};
use crate::model::{HandleKind, RootCoverageModel, Stacks, Sum};

/// `whatif`: objects that would survive or be freed with other roots.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct WhatifReport {
    /// Objects assumed to be rooted.
    pub alive: Vec<Addr>,
    /// Handles and other roots assumed to be removed.
    pub dead: Vec<Addr>,
    /// Objects that are unreachable now but would be reachable.
    pub survivors: ObjectsByType,
    /// Objects that are reachable now but would be unreachable.
    pub freed: ObjectsByType,
    /// Freed objects that survive one more collection, because finalizers would be ready to run.
    pub resurrected: Sum,
    /// Strongly connected components in `survivors` and `freed` with several objects or with a target of a cross-reference handle, most
    /// bytes first.
    pub components: Vec<WhatifComponent>,
    /// Weak handles whose object is unreachable now or would be. Other weak handles are unaffected.
    pub weak_handles: Vec<WhatifWeak>,
    /// Number of weak handles with an object.
    pub weak_total: u64,
    /// Number of weak handles that a full collection would clear with the assumed roots.
    pub weak_cleared: u64,
    /// Coverage of each kind of root.
    pub coverage: Vec<RootCoverageModel>,
    /// Stack and register values that are treated as roots.
    pub stacks: Stacks,
}

/// A strongly connected component that changes state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct WhatifComponent {
    /// Address of the first object of the component.
    pub address: Addr,
    /// Name of that object's type.
    #[serde(rename = "type")]
    pub type_name: Name,
    /// Number of objects.
    pub count: u64,
    /// Size of the objects in bytes.
    pub bytes: u64,
    /// Number of these objects that are targets of cross-reference handles.
    pub bridged: u64,
    /// Whether the objects would survive.
    pub survives: bool,
}

/// A weak handle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct WhatifWeak {
    /// The handle.
    pub address: Addr,
    /// Type of the handle.
    pub kind: HandleKind,
    /// The object.
    pub object: Addr,
    /// Name of the object's type; `null` if the object is not in the dump.
    #[serde(rename = "type")]
    pub type_name: Option<Name>,
    /// Whether the object is reachable now.
    pub reached_now: bool,
    /// Whether the handle would survive a full collection. A `weak-long` handle also survives while its object is kept for finalization.
    pub survives: bool,
}
