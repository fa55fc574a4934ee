use serde::Serialize;

use super::handle::HandleKind;
use super::root::{RootCoverageModel, Stacks};
use super::segment::Generation;
use super::sum::Sum;
use crate::base::{Addr, Name, named_enum};

/// Objects of one type.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct TypeBytes {
    /// Name of the type, or its method table address if unknown.
    #[serde(rename = "type")]
    pub type_name: Name,
    /// Its method table.
    pub method_table: Addr,
    /// Number of objects.
    pub count: u64,
    /// Their size in bytes as counted by SOS and ClrMD.
    pub bytes: u64,
}

/// Object count and bytes, in total and by type.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct ObjectsByType {
    /// Number of objects.
    pub count: u64,
    /// Their size in bytes as counted by SOS and ClrMD.
    pub bytes: u64,
    /// By type, most bytes first; `--top` cuts this list, not the totals.
    pub types: Vec<TypeBytes>,
}

/// `whatif`: what would survive or be freed with other roots.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct WhatifReport {
    /// Objects assumed to be rooted.
    pub alive: Vec<Addr>,
    /// Handles and other roots assumed to be gone.
    pub dead: Vec<Addr>,
    /// Objects that are unreachable now and would be reachable.
    pub survivors: ObjectsByType,
    /// Objects that are reachable now and would be unreachable.
    pub freed: ObjectsByType,
    /// Of those freed, objects kept for one more collection by finalizers then ready to run.
    pub resurrected: Sum,
    /// Cycles and bridged objects among both: strongly connected components of several objects, or with a target of a
    /// cross-reference handle; most bytes first.
    pub components: Vec<WhatifComponent>,
    /// Weak handles whose object is unreachable now or then. Others are unaffected.
    pub weak_handles: Vec<WhatifWeak>,
    /// Number of weak handles with an object.
    pub weak_total: u64,
    /// Number of weak handles a full collection would then clear.
    pub weak_cleared: u64,
    /// Coverage of each kind of root.
    pub coverage: Vec<RootCoverageModel>,
    /// Which stack and register values count as roots.
    pub stacks: Stacks,
}

/// A strongly connected component that changes state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct WhatifComponent {
    /// Address of its first object.
    pub address: Addr,
    /// Name of that object's type.
    #[serde(rename = "type")]
    pub type_name: Name,
    /// Number of objects.
    pub count: u64,
    /// Their size in bytes.
    pub bytes: u64,
    /// Number of targets of cross-reference handles among them.
    pub bridged: u64,
    /// Whether they would survive.
    pub survives: bool,
}

/// A weak handle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct WhatifWeak {
    /// The handle.
    pub address: Addr,
    /// Its type.
    pub kind: HandleKind,
    /// The object.
    pub object: Addr,
    /// Name of the object's type; `null` if the object is not in the dump.
    #[serde(rename = "type")]
    pub type_name: Option<Name>,
    /// Whether the object is reachable now.
    pub reached_now: bool,
    /// Whether a full collection would not clear the handle. A `weak-long` handle also survives while its object is kept for
    /// finalization.
    pub survives: bool,
}

named_enum! {
    /// Classes of garbage.
    pub enum GarbageClass {
        /// Freed by the next collection of its generation.
        Unreachable = "unreachable",
        /// Referenced only by a weak handle.
        WeakOnly = "weak-only",
        /// Awaiting finalization, or referenced only by such objects: survives one more collection.
        FinalizerOnly = "finalizer-only",
        /// Young, and referenced by unreachable objects of an older generation: survives until those are collected.
        DeadOlder = "dead-older",
    }
}

/// `unreachable`: objects not reachable from any root.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct UnreachableReport {
    /// Reachable objects, including frozen ones.
    pub reached: Sum,
    /// Unreachable objects.
    pub unreachable: Sum,
    /// By class.
    pub classes: Vec<GarbageTotal>,
    /// By type and class, most bytes first; `null` with `--objects`.
    pub types: Option<Vec<GarbageType>>,
    /// With `--objects`: the objects, in heap order.
    pub objects: Option<Vec<GarbageObject>>,
    /// Number of rows listed, if cut by `--top`; `null` if complete.
    pub shown: Option<u64>,
    /// Coverage of each kind of root. If one is incomplete, some of the listed objects may be reachable; if one is
    /// conservative, more objects may be unreachable.
    pub coverage: Vec<RootCoverageModel>,
    /// Which stack and register values count as roots.
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
    /// Their size in bytes.
    pub bytes: u64,
}

/// Garbage of one type and class.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct GarbageType {
    /// Name of the type, or its method table address if unknown.
    #[serde(rename = "type")]
    pub type_name: Name,
    /// Its method table.
    pub method_table: Addr,
    /// Number of objects.
    pub count: u64,
    /// Their size in bytes.
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
    /// Name of its type.
    #[serde(rename = "type")]
    pub type_name: Name,
    /// Its method table.
    pub method_table: Addr,
    /// Its size in bytes.
    pub bytes: u64,
    /// Its generation or segment kind.
    pub generation: Generation,
    /// Class of garbage.
    pub class: GarbageClass,
}

/// `simulate collect`: what a collection would free now.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct CollectReport {
    /// Oldest generation collected: 0, 1 or 2.
    pub generation: u8,
    /// Objects that would be freed.
    pub freed: ObjectsByType,
    /// Objects that would survive: reachable from roots or from objects not collected.
    pub survivors: Sum,
    /// Of these, objects of generations 0 and 1, which are promoted.
    pub promoted: Sum,
    /// Unreachable objects kept for one more collection by finalizers that would be ready to run.
    pub resurrected: Sum,
    /// Objects of older generations, which are not collected.
    pub untouched: Sum,
    /// By collected generation.
    pub generations: Vec<CollectGeneration>,
    /// Coverage of each kind of root.
    pub coverage: Vec<RootCoverageModel>,
    /// Which stack and register values count as roots.
    pub stacks: Stacks,
}

/// A collected generation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct CollectGeneration {
    /// Generation or segment kind.
    pub generation: Generation,
    /// Its objects.
    pub objects: Sum,
    /// Survivors.
    pub survivors: Sum,
    /// Objects kept by finalizers.
    pub resurrected: Sum,
    /// Freed objects.
    pub freed: Sum,
}
