//! The report of `bridge`.

use serde::Serialize;

use crate::base::{Addr, Name, named_enum};
use crate::model::{HandleKind, RootCoverageModel, Stacks};

named_enum! {
    /// Bridge class kinds, as named by Mono's SGen bridge.
    pub enum BridgeClassKind {
        /// Not bridged; references of its objects are followed.
        Transparent = "transparent",
        /// Not bridged; references of its objects are not followed.
        Opaque = "opaque",
        /// Bridged; references of its objects are followed.
        TransparentBridge = "transparent-bridge",
        /// Bridged; references of its objects are not followed.
        OpaqueBridge = "opaque-bridge",
    }
}

/// `bridge`: the data passed to a bridge to another collector, in the shape of Mono's `cross_references` callback.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct BridgeReport {
    /// Number of bridged objects, live ones included.
    pub bridged: u64,
    /// Number of bridged objects that only the handles of the bridge keep alive.
    pub dead: u64,
    /// Whether live objects are included (`all`).
    pub all: bool,
    /// Strongly connected components with bridged objects, in topological order: referrers first.
    pub sccs: Vec<BridgeScc>,
    /// References between components, directly or through objects that are not bridged, without duplicates. They are sorted by `src`, then
    /// `dst`; `src` is always less than `dst`.
    pub xrefs: Vec<BridgeXref>,
    /// Classes of bridged objects, and classes made opaque by a rule.
    pub classes: Vec<BridgeClass>,
    /// Weak handles to dead bridged objects and to objects that are reachable only from dead bridged objects.
    pub weak_links: Vec<BridgeWeakLink>,
    /// Coverage of each kind of root.
    pub coverage: Vec<RootCoverageModel>,
    /// Stack and register values that are treated as roots.
    pub stacks: Stacks,
}

/// A strongly connected component with bridged objects.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct BridgeScc {
    /// Index in `sccs`.
    pub index: u32,
    /// Whether a root other than the handles of the bridge keeps the component alive.
    pub alive: bool,
    /// Bridged objects, by address.
    pub objects: Vec<BridgeObject>,
    /// Number of objects in the component, bridged or not.
    pub members: u64,
    /// Size of these objects in bytes.
    pub bytes: u64,
}

/// A bridged object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct BridgeObject {
    /// The object.
    pub address: Addr,
    /// Name of its type.
    #[serde(rename = "type")]
    pub type_name: Name,
    /// Method table.
    pub method_table: Addr,
    /// First cross-reference handle in table order; `null` if the object is bridged only because of its type.
    pub handle: Option<Addr>,
    /// The native context of the handle.
    pub context: Option<Addr>,
    /// Further cross-reference handles to the object, in table order.
    pub further_handles: Vec<BridgeHandle>,
    /// Whether the object is registered for finalization, as bridged objects must be, and its finalizer is not suppressed.
    pub registered: bool,
}

/// A cross-reference handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct BridgeHandle {
    /// Address.
    pub handle: Addr,
    /// Native context.
    pub context: Option<Addr>,
}

/// A reference between components.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct BridgeXref {
    /// Index of the referring component.
    pub src: u32,
    /// Index of the referenced component.
    pub dst: u32,
}

/// A weak handle that the bridge does not clear until the other collector has answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct BridgeWeakLink {
    /// The handle.
    pub handle: Addr,
    /// Type of the handle.
    pub kind: HandleKind,
    /// The object.
    pub object: Addr,
    /// Type name of the object.
    #[serde(rename = "type")]
    pub type_name: Name,
    /// Index of its component; `null` for an object outside of all components.
    pub scc: Option<u32>,
    /// Whether the object is bridged.
    pub bridged: bool,
    /// Whether the bridge clears the handle unless the other collector keeps the object alive. `false` for objects that are not bridged.
    pub nulled: bool,
}

/// A class treated specially by the bridge.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct BridgeClass {
    /// Name of the type.
    #[serde(rename = "type")]
    pub type_name: Name,
    /// Method table.
    pub method_table: Addr,
    /// Kind.
    pub kind: BridgeClassKind,
    /// Number of bridged objects of the class.
    pub bridged: u64,
}
