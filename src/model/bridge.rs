use serde::Serialize;

use super::root::RootCoverageModel;
use crate::base::{Addr, named_enum};

named_enum! {
    /// What a class is to the bridge, as Mono's SGen bridge names it.
    pub enum BridgeClassKind {
        /// Not bridged; references are followed through its objects.
        Transparent = "transparent",
        /// Not bridged; its objects are not looked into.
        Opaque = "opaque",
        /// Bridged; references are followed from its objects on.
        TransparentBridge = "transparent-bridge",
        /// Bridged; its objects are not looked into: they refer to nothing.
        OpaqueBridge = "opaque-bridge",
    }
}

/// `bridge`: what a bridge to another collector would be told, in the shape of Mono's `cross_references` callback.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct BridgeReport {
    /// Bridged objects, living ones too.
    pub bridged: u64,
    /// Bridged objects that nothing but the bridge's own handles keeps alive.
    pub dead: u64,
    /// Whether the living ones are looked at as well (`--all`).
    pub all: bool,
    /// Strongly connected components that have bridged objects, those that refer to others before those.
    pub sccs: Vec<BridgeScc>,
    /// References between them, by `src`, then `dst`; each once. Objects that are not bridged are looked through, bridged ones
    /// are not. `src` is always less than `dst`.
    pub xrefs: Vec<BridgeXref>,
    /// Classes of bridged objects, and classes that a rule made opaque.
    pub classes: Vec<BridgeClass>,
    /// How well this dump answers for each kind of roots.
    pub coverage: Vec<RootCoverageModel>,
}

/// A strongly connected component that has bridged objects.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct BridgeScc {
    /// Its number: its place in the list.
    pub index: u32,
    /// Whether something else than the bridge's own handles keeps it alive.
    pub alive: bool,
    /// Its bridged objects, by address.
    pub objects: Vec<BridgeObject>,
    /// All objects of the component, bridged or not.
    pub members: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// A bridged object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct BridgeObject {
    /// The object.
    pub address: Addr,
    /// Name of its type.
    #[serde(rename = "type")]
    pub type_name: String,
    /// Its method table.
    pub method_table: Addr,
    /// Its cross-reference handle; `null` where it has none, and is bridged by its type.
    pub handle: Option<Addr>,
    /// The native context that the handle carries.
    pub context: Option<Addr>,
}

/// A reference from one component to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, schemars::JsonSchema)]
pub struct BridgeXref {
    /// Number of the component that refers.
    pub src: u32,
    /// Number of the component that is referred to.
    pub dst: u32,
}

/// A class that the bridge treats specially.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct BridgeClass {
    /// Name of the type.
    #[serde(rename = "type")]
    pub type_name: String,
    /// Its method table.
    pub method_table: Addr,
    /// What it is to the bridge.
    pub kind: BridgeClassKind,
    /// Its bridged objects.
    pub bridged: u64,
}
