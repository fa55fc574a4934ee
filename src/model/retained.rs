use serde::Serialize;

use super::root::{RootCoverageModel, RootModel};
use crate::base::{Addr, named_enum};

named_enum! {
    /// Whether words of stacks and registers count as roots.
    #[derive(Default)]
    pub enum Stacks {
        /// Only for what nothing else reaches. A word of a stack may be a leftover: it shall not hide who really holds a thing.
        #[default]
        Fallback = "fallback",
        /// Like all other roots.
        All = "all",
        /// Not at all.
        None = "none",
    }
}

named_enum! {
    /// What a suspect is.
    pub enum SuspectKind {
        /// One object.
        Object = "object",
        /// All objects of a type together.
        Type = "type",
    }
}

/// An object with what it keeps alive.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct RetainedObject {
    /// The object.
    pub address: Addr,
    /// Name of its type.
    #[serde(rename = "type")]
    pub type_name: String,
    /// Its method table.
    pub method_table: Addr,
    /// Its own bytes.
    pub size: u64,
    /// Bytes that would be freed without it, its own included: everything that it dominates.
    pub retained: u64,
    /// Part of all reachable bytes that it retains, 0 to 1.
    pub share: f64,
    /// Objects that it dominates, itself included.
    pub dominated: u64,
    /// The object that dominates it: without that one, it would not be reached either. `null` for one that only roots, or
    /// several objects together, hold.
    pub dominator: Option<Addr>,
}

/// Objects of one type with what they keep alive together.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct RetainedType {
    /// Name of the type.
    #[serde(rename = "type")]
    pub type_name: String,
    /// Its method table.
    pub method_table: Addr,
    /// Objects that a root reaches.
    pub count: u64,
    /// Their own bytes.
    pub bytes: u64,
    /// Bytes that they retain; an object inside of what another one of the type retains is not counted twice.
    pub retained: u64,
    /// Part of all reachable bytes, 0 to 1.
    pub share: f64,
}

/// A place of the dominator tree.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct TreeRow {
    /// How far below the top, from 0.
    pub depth: u32,
    /// The object.
    #[serde(flatten)]
    pub object: RetainedObject,
    /// Objects directly below that are not listed.
    pub hidden: u64,
}

/// An object or a type that holds more than its share.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct Suspect {
    /// One object, or a type.
    pub kind: SuspectKind,
    /// The object; `null` for a type.
    pub address: Option<Addr>,
    /// Name of the type.
    #[serde(rename = "type")]
    pub type_name: String,
    /// Its method table.
    pub method_table: Addr,
    /// Objects: 1, or all of the type.
    pub count: u64,
    /// Bytes retained.
    pub retained: u64,
    /// Part of all reachable bytes, 0 to 1.
    pub share: f64,
    /// Roots that hold the object, precise ones first, at most 8.
    pub roots: Vec<RootModel>,
    /// Where the bytes accumulate: the last object on the way down that still holds most of them.
    pub accumulation: Option<RetainedObject>,
    /// What accumulates there, by type: the largest groups directly below.
    pub below: Vec<BelowType>,
    /// All that in a sentence.
    pub text: String,
}

/// Objects of one type directly below another object.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct BelowType {
    /// Name of the type.
    #[serde(rename = "type")]
    pub type_name: String,
    /// Objects.
    pub count: u64,
    /// Bytes that they retain.
    pub retained: u64,
}

/// `retained --object`: one object in the dominator tree.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct RetainedDetail {
    /// The object.
    #[serde(flatten)]
    pub object: RetainedObject,
    /// Whether a root reaches it at all.
    pub reachable: bool,
    /// Its dominators, the nearest first.
    pub chain: Vec<RetainedObject>,
    /// What it dominates directly, by type, the largest first.
    pub below: Vec<BelowType>,
    /// The largest objects that it dominates directly.
    pub children: Vec<RetainedObject>,
}

/// Sums over the heap.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct ReachTotals {
    /// Objects, free space left out.
    pub objects: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Objects that a root reaches.
    pub reachable_objects: u64,
    /// Their bytes.
    pub reachable_bytes: u64,
    /// References between objects.
    pub references: u64,
}

/// `retained`: what would be freed without an object.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct RetainedReport {
    /// The objects that retain most; `null` where something else was asked for.
    pub objects: Option<Vec<RetainedObject>>,
    /// The types that retain most; `null` where something else was asked for.
    pub types: Option<Vec<RetainedType>>,
    /// With `--object`.
    pub object: Option<RetainedDetail>,
    /// With `--tree`.
    pub tree: Option<Vec<TreeRow>>,
    /// With `--suspects`.
    pub suspects: Option<Vec<Suspect>>,
    /// Sums over the heap.
    pub totals: ReachTotals,
    /// How well the dump answers for each kind of root.
    pub coverage: Vec<RootCoverageModel>,
    /// Whether words of stacks and registers count.
    pub stacks: Stacks,
}

/// `objsize`: everything that an object leads to.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct ObjSizeReport {
    /// The object.
    pub object: RetainedObject,
    /// Objects that can be reached from it, itself included.
    pub closure_objects: u64,
    /// Their bytes: what SOS calls the object's size. Much of it may be shared.
    pub closure_bytes: u64,
    /// Bytes of the closure that others hold as well: closure less retained.
    pub shared_bytes: u64,
    /// Whether a root reaches it.
    pub reachable: bool,
    /// How well the dump answers for each kind of root.
    pub coverage: Vec<RootCoverageModel>,
}

/// A step of a path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct PathStep {
    /// The object.
    pub address: Addr,
    /// Name of its type.
    #[serde(rename = "type")]
    pub type_name: String,
    /// Its bytes.
    pub size: u64,
    /// Field of the object before that refers to this one; `null` for the first, and for an edge that is no field: a
    /// dependent handle, a loader allocator.
    pub field: Option<String>,
}

/// A path from a root to an object.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct PathModel {
    /// The roots that hold the first object, precise ones first.
    pub roots: Vec<RootModel>,
    /// The objects, that of the root first, the one asked for last.
    pub steps: Vec<PathStep>,
}

/// A node of the tree of all paths to the objects of a type.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct PathNode {
    /// How far from the root, which has 0.
    pub depth: u32,
    /// What it is: a root's label, or the type of objects.
    pub name: String,
    /// Objects asked for that the paths through here lead to.
    pub targets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Different objects here; 0 for a root.
    pub objects: u64,
    /// One of them.
    pub example: Option<Addr>,
}

/// `path`: what keeps objects alive.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct PathsReport {
    /// Objects asked for.
    pub targets: u64,
    /// How many of them a root reaches.
    pub reachable: u64,
    /// Shortest paths, at most as many as were asked for of each object.
    pub paths: Vec<PathModel>,
    /// With `--type`: all shortest paths merged by type.
    pub tree: Option<Vec<PathNode>>,
    /// How well the dump answers for each kind of root.
    pub coverage: Vec<RootCoverageModel>,
}
