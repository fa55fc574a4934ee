use serde::Serialize;

use super::handle::HandleKind;
use super::retained::Stacks;
use super::root::RootCoverageModel;
use super::segment::Generation;
use crate::base::{Addr, named_enum};

/// Objects of one type.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct TypeBytes {
    /// Name of the type, the method table's address where nothing is known.
    #[serde(rename = "type")]
    pub type_name: String,
    /// Its method table.
    pub method_table: Addr,
    /// Objects.
    pub count: u64,
    /// Their bytes as SOS and ClrMD count them.
    pub bytes: u64,
}

/// Objects counted and summed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct ObjectSum {
    /// Objects.
    pub count: u64,
    /// Their bytes as SOS and ClrMD count them.
    pub bytes: u64,
}

impl ObjectSum {
    /// Adds an object of `bytes` bytes.
    pub fn add(&mut self, bytes: u64) {
        self.count = self.count.saturating_add(1);
        self.bytes = self.bytes.saturating_add(bytes);
    }
}

/// Objects counted and summed, by type.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct ObjectsByType {
    /// Objects.
    pub count: u64,
    /// Their bytes as SOS and ClrMD count them.
    pub bytes: u64,
    /// Types, the most bytes first; `--top` cuts the list, not the sums.
    pub types: Vec<TypeBytes>,
}

/// `whatif`: what would live and die if other things were roots.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct WhatifReport {
    /// Objects taken for alive.
    pub alive: Vec<Addr>,
    /// Handles and other roots taken for gone.
    pub dead: Vec<Addr>,
    /// Objects that no root reaches now and that would be reached.
    pub survivors: ObjectsByType,
    /// Objects that roots reach now and that would not be reached.
    pub freed: ObjectsByType,
    /// Of those freed, what a finalizer that is then due keeps for one collection more.
    pub resurrected: ObjectSum,
    /// Cycles and bridged objects among both: strongly connected components of more than one object, or with a target of a
    /// cross-reference handle. The most bytes first.
    pub components: Vec<WhatifComponent>,
    /// Weak handles whose object is not reached, now or then. Others are not affected.
    pub weak_handles: Vec<WhatifWeak>,
    /// Weak handles of the process that have an object.
    pub weak_total: u64,
    /// Of these, those that a full collection would then clear.
    pub weak_cleared: u64,
    /// How well this dump answers for each kind of roots.
    pub coverage: Vec<RootCoverageModel>,
}

/// A strongly connected component whose fate changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct WhatifComponent {
    /// Its first object.
    pub address: Addr,
    /// Name of that object's type.
    #[serde(rename = "type")]
    pub type_name: String,
    /// Objects.
    pub count: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Objects among them that a cross-reference handle leads to.
    pub bridged: u64,
    /// Whether they would survive.
    pub survives: bool,
}

/// A weak handle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct WhatifWeak {
    /// The handle.
    pub address: Addr,
    /// Its type.
    pub kind: HandleKind,
    /// The object.
    pub object: Addr,
    /// Name of the object's type; `null` where the object is not in the dump.
    #[serde(rename = "type")]
    pub type_name: Option<String>,
    /// Whether roots reach the object now.
    pub reached_now: bool,
    /// Whether the handle would keep its object: a full collection would not clear it. A `weak-long` handle also survives
    /// while a finalizer that is due keeps the object.
    pub survives: bool,
}

named_enum! {
    /// Why an object counts as garbage.
    pub enum GarbageClass {
        /// Nothing leads to it that is of any account: the next collection of its generation frees it.
        Unreachable = "unreachable",
        /// A weak handle leads to it, and nothing else.
        WeakOnly = "weak-only",
        /// Only objects that wait for their finalizer lead to it, or it is one: it outlives one collection more.
        FinalizerOnly = "finalizer-only",
        /// Young, and unreachable objects of an older generation lead to it: it lives until those are collected.
        DeadOlder = "dead-older",
    }
}

/// `unreachable`: objects that no root reaches.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct UnreachableReport {
    /// Objects that roots reach, and frozen ones.
    pub reached: ObjectSum,
    /// Objects that no root reaches.
    pub unreachable: ObjectSum,
    /// By class, every class once.
    pub classes: Vec<GarbageTotal>,
    /// By type and class, the most bytes first; `null` with `--objects`.
    pub types: Option<Vec<GarbageType>>,
    /// With `--objects`: the objects, in the order of the heap.
    pub objects: Option<Vec<GarbageObject>>,
    /// Rows listed, where `--top` cut the list; `null` where all are.
    pub shown: Option<u64>,
    /// How well this dump answers for each kind of roots. Where one is not complete, some of this may be reached after all;
    /// where one is conservative, more may be unreachable.
    pub coverage: Vec<RootCoverageModel>,
    /// Whether words of stacks and registers counted as roots: `all` or `none`.
    pub stacks: Stacks,
}

/// Garbage of one class.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct GarbageTotal {
    /// The class.
    pub class: GarbageClass,
    /// Objects.
    pub count: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// Garbage of one type and class.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct GarbageType {
    /// Name of the type, the method table's address where nothing is known.
    #[serde(rename = "type")]
    pub type_name: String,
    /// Its method table.
    pub method_table: Addr,
    /// Objects.
    pub count: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Why they are garbage.
    pub class: GarbageClass,
}

/// An object that is garbage.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct GarbageObject {
    /// The object.
    pub address: Addr,
    /// Name of its type.
    #[serde(rename = "type")]
    pub type_name: String,
    /// Its method table.
    pub method_table: Addr,
    /// Its bytes.
    pub bytes: u64,
    /// Generation or kind of segment that it lies in.
    pub generation: Generation,
    /// Why it is garbage.
    pub class: GarbageClass,
}

/// `simulate collect`: what a collection would free now.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct CollectReport {
    /// The oldest generation that is collected: 0, 1 or 2.
    pub generation: u8,
    /// Objects that would be freed.
    pub freed: ObjectsByType,
    /// Objects that would survive because roots, or objects that are not collected, reach them.
    pub survivors: ObjectSum,
    /// Of these, those of generations 0 and 1: they move on to the next one.
    pub promoted: ObjectSum,
    /// Objects that nothing reaches any more, and that the finalizers that would be due keep for one collection more.
    pub resurrected: ObjectSum,
    /// Objects that are not looked at: of older generations.
    pub untouched: ObjectSum,
    /// By generation that is collected.
    pub generations: Vec<CollectGeneration>,
    /// How well this dump answers for each kind of roots.
    pub coverage: Vec<RootCoverageModel>,
}

/// A generation that is collected.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct CollectGeneration {
    /// The generation or kind of segment.
    pub generation: Generation,
    /// Objects in it.
    pub objects: ObjectSum,
    /// Those that survive.
    pub survivors: ObjectSum,
    /// Those that finalizers keep.
    pub resurrected: ObjectSum,
    /// Those that are freed.
    pub freed: ObjectSum,
}
