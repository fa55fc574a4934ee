use serde::{Deserialize, Serialize};

use super::root::{RootCoverageModel, RootModel, Stacks};
use crate::base::{Addr, Name, named_enum};

named_enum! {
    /// Kinds of suspects.
    pub enum SuspectKind {
        /// One object.
        Object = "object",
        /// All objects of a type.
        Type = "type",
    }
}

named_enum! {
    /// Groups of `retained`.
    pub enum RetainedBy {
        /// Namespace of the type; for arrays, of the element type.
        Namespace = "namespace" | "ns",
        /// Module of the type; for arrays, of the element type.
        Assembly = "assembly" | "module",
        /// Static field, thread statics among them, for what it refers to.
        Static = "static",
        /// Thread, for what its stack, registers and statics refer to.
        Thread = "thread",
        /// Root of any kind, for what it refers to.
        Root = "root",
    }
}

/// A group of objects with their joint retained size.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct RetainedGroup {
    /// The name of the group: a namespace, a file, the description of a root, `thread 1`.
    pub key: String,
    /// Number of reachable objects of these types, or of objects that the roots refer to and no other object dominates.
    pub count: u64,
    /// Their own size in bytes.
    pub bytes: u64,
    /// Bytes they retain; nothing is counted twice if they dominate each other.
    pub retained: u64,
    /// Share of the reachable bytes, 0 to 1.
    pub share: f64,
}

/// An object with its retained size.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct RetainedObject {
    /// The object.
    pub address: Addr,
    /// Name of its type.
    #[serde(rename = "type")]
    pub type_name: Name,
    /// Its method table.
    pub method_table: Addr,
    /// Its own size in bytes.
    pub size: u64,
    /// Retained size in bytes: everything it dominates, including itself.
    pub retained: u64,
    /// Retained share of the reachable bytes, 0 to 1.
    pub share: f64,
    /// Number of objects it dominates, including itself.
    pub dominated: u64,
    /// Its immediate dominator; `null` if it is held by roots, or by several objects without a common dominator.
    pub dominator: Option<Addr>,
}

/// Objects of one type with their joint retained size.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct RetainedType {
    /// Name of the type.
    #[serde(rename = "type")]
    pub type_name: Name,
    /// Its method table.
    pub method_table: Addr,
    /// Number of reachable objects.
    pub count: u64,
    /// Their own size in bytes.
    pub bytes: u64,
    /// Bytes they retain; nothing is counted twice if they dominate each other.
    pub retained: u64,
    /// Share of the reachable bytes, 0 to 1.
    pub share: f64,
}

/// A node of the dominator tree.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct TreeRow {
    /// Depth, from 0.
    pub depth: u32,
    /// The object.
    #[serde(flatten)]
    pub object: RetainedObject,
    /// Number of children not listed.
    pub hidden: u64,
    /// Where its block begins if all reachable bytes are laid out in a row: behind the listed siblings before it, within the block of what
    /// dominates it.
    pub offset: u64,
}

/// A leak suspect: an object or a type with a large retained size.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct Suspect {
    /// Object or type.
    pub kind: SuspectKind,
    /// The object; `null` for a type.
    pub address: Option<Addr>,
    /// Name of the type.
    #[serde(rename = "type")]
    pub type_name: Name,
    /// Its method table.
    pub method_table: Addr,
    /// Number of objects: 1, or all of the type.
    pub count: u64,
    /// Retained bytes.
    pub retained: u64,
    /// Share of the reachable bytes, 0 to 1.
    pub share: f64,
    /// Roots that hold the object, exact ones first, at most 8.
    pub roots: Vec<RootModel>,
    /// Accumulation point: the deepest dominated object that still retains most of the bytes.
    pub accumulation: Option<RetainedObject>,
    /// What accumulates there: the largest groups of children, by type. Of types: those whose objects are mostly within objects of this one.
    pub below: Vec<BelowType>,
    /// The elements of the container in which it accumulates; `null` without one.
    pub elements: Option<ElementsModel>,
    /// Types of the objects that refer to the object, at most 4, where no single root or object holds it.
    pub holders: Vec<HolderType>,
    /// The same as text.
    pub text: String,
}

/// The elements of a container, in place of its nodes and buckets.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct ElementsModel {
    /// The container.
    pub address: Addr,
    /// Name of its type.
    #[serde(rename = "type")]
    pub type_name: Name,
    /// Number of its elements, as it counts them.
    pub count: u64,
    /// The type of its keys: that of most of the first ones, or the declared one; `null` where it has none.
    pub key: Option<Name>,
    /// The same of its values, or elements. Of entries of a `MemoryCache`, that of their values.
    pub value: Option<Name>,
}

impl ElementsModel {
    /// `4,000 entries Web.ReportKey → Web.Report`.
    pub(crate) fn words(&self) -> String {
        let types: Vec<&str> = [&self.key, &self.value].into_iter().flatten().map(|name| &**name).collect();
        let what = if self.key.is_some() { "entries" } else { "elements" };
        format!("{} {what} {}", crate::base::thousands(self.count), types.join(" → "))
    }
}

/// A type of objects that refer to an object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct HolderType {
    /// Its name.
    #[serde(rename = "type")]
    pub type_name: Name,
    /// Number of references.
    pub count: u64,
}

/// Children of one type in the dominator tree.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct BelowType {
    /// Name of the type.
    #[serde(rename = "type")]
    pub type_name: Name,
    /// Objects.
    pub count: u64,
    /// Bytes they retain.
    pub retained: u64,
}

/// `retained --object`: one object in the dominator tree.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct RetainedDetail {
    /// The object.
    #[serde(flatten)]
    pub object: RetainedObject,
    /// Whether it is reachable from a root.
    pub reachable: bool,
    /// Its dominators, nearest first.
    pub chain: Vec<RetainedObject>,
    /// Its children in the dominator tree by type, largest first.
    pub below: Vec<BelowType>,
    /// Its largest children in the dominator tree.
    pub children: Vec<RetainedObject>,
}

/// Totals of the heap.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct ReachTotals {
    /// Number of objects, free space excluded.
    pub objects: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Number of reachable objects.
    pub reachable_objects: u64,
    /// Their bytes.
    pub reachable_bytes: u64,
    /// Number of references between objects.
    pub references: u64,
}

/// `retained`: retained sizes.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct RetainedReport {
    /// Objects with the largest retained size; `null` if another view was requested.
    pub objects: Option<Vec<RetainedObject>>,
    /// Number of reachable objects that `objects` was chosen from; `null` if another view was requested.
    pub object_count: Option<u64>,
    /// Types with the largest retained size; `null` if another view was requested.
    pub types: Option<Vec<RetainedType>>,
    /// Number of types that `types` was chosen from; `null` if another view was requested.
    pub type_count: Option<u64>,
    /// With `--by`: the groups, those that retain most first.
    pub groups: Option<Vec<RetainedGroup>>,
    /// Number of groups that `groups` was chosen from; `null` if another view was requested.
    pub group_count: Option<u64>,
    /// With `--object`.
    pub object: Option<RetainedDetail>,
    /// With `--tree`.
    pub tree: Option<Vec<TreeRow>>,
    /// With `--suspects`.
    pub suspects: Option<Vec<Suspect>>,
    /// Totals of the heap.
    pub totals: ReachTotals,
    /// Coverage of each kind of root.
    pub coverage: Vec<RootCoverageModel>,
    /// Which stack and register values count as roots.
    pub stacks: Stacks,
}

/// `objsize`: closure and retained size of an object.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct ObjSizeReport {
    /// The object.
    pub object: RetainedObject,
    /// Number of objects reachable from it, including itself.
    pub closure_objects: u64,
    /// Their size in bytes, as reported by SOS `objsize`. Much of it may be shared.
    pub closure_bytes: u64,
    /// Bytes of the closure also held by others: closure minus retained.
    pub shared_bytes: u64,
    /// Whether it is reachable from a root.
    pub reachable: bool,
    /// Coverage of each kind of root.
    pub coverage: Vec<RootCoverageModel>,
    /// Which stack and register values count as roots.
    pub stacks: Stacks,
}

/// A step of a path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct PathStep {
    /// The object.
    pub address: Addr,
    /// Name of its type.
    #[serde(rename = "type")]
    pub type_name: Name,
    /// Its bytes.
    pub size: u64,
    /// Field of the previous object that refers to this one; `null` for the first step, and for edges that are not fields
    /// (dependent handles, loader allocators).
    pub field: Option<String>,
    /// Key of the entry of a dictionary whose value refers to this one: text in quotes, a number, or the name of the key's type. `null`
    /// for other fields.
    pub key: Option<String>,
    /// The other objects that the step represents; `null` for a single object.
    pub fold: Option<PathFold>,
}

/// Steps of a long chain that are shown as one: objects of the same type, each in the same field of the one before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct PathFold {
    /// Number of objects, the one of the step included.
    pub count: u64,
    /// The last of them.
    pub last: Addr,
    /// Their bytes.
    pub bytes: u64,
    /// Number of successive steps that repeat together, this one among them: 1 where each object refers to the next one itself.
    pub period: u32,
}

/// A path from a root to an object.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct PathModel {
    /// The roots that hold the first object, exact ones first, at most 16.
    pub roots: Vec<RootModel>,
    /// Number of roots that hold the first object.
    pub root_count: u64,
    /// The objects, from the root to the target.
    pub steps: Vec<PathStep>,
}

/// A node of the merged path tree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct PathNode {
    /// Depth; 0 for the root.
    pub depth: u32,
    /// Label of the root, or type name.
    pub name: Name,
    /// Whether objects of the type refer to each other on the way, and are counted here together.
    pub fold: bool,
    /// Number of target objects reached through this node.
    pub targets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Number of distinct objects at this node; 0 for a root.
    pub objects: u64,
    /// One of them.
    pub example: Option<Addr>,
}

/// `path`: what keeps objects alive.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct PathsReport {
    /// Number of target objects.
    pub targets: u64,
    /// Number of reachable ones.
    pub reachable: u64,
    /// Number of roots from which the object of `paths` is reachable, shown or not. What a static field holds is reached from the field, not
    /// from the handle of the array that the field lies in.
    pub roots: u64,
    /// Shortest paths, up to the requested number per object: first from exact roots, then from stacks, then from weak handles.
    pub paths: Vec<PathModel>,
    /// Whether screens show the objects of the framework that only lead through (`--framework`).
    #[serde(skip)]
    pub framework: bool,
    /// With `--type`: the shortest paths merged by type; `paths` lead to the first object then.
    pub tree: Option<Vec<PathNode>>,
    /// Coverage of each kind of root.
    pub coverage: Vec<RootCoverageModel>,
    /// Which stack and register values count as roots.
    pub stacks: Stacks,
}
