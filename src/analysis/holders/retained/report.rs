//! The report of `retained`.

use serde::Serialize;

use crate::analysis::TypeBytes;
use crate::base::{Addr, Name, is_intermediate_type, named_enum, share, views};
use crate::model::{ReachTotals, RootCoverageModel, RootModel, Stacks};

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
    /// Grouping keys of `retained --by`.
    pub enum RetainedBy {
        /// Namespace of the type; for arrays, of the element type.
        Namespace = "namespace" | "ns",
        /// Module of the type; for arrays, of the element type.
        Assembly = "assembly" | "module",
        /// Static field, thread statics included, for the objects it refers to.
        Static = "static",
        /// Thread, for the objects that its stack, registers and statics refer to.
        Thread = "thread",
        /// Root of any kind, for the objects it refers to.
        Root = "root",
    }
}

/// A group of objects with the size that they retain together.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct RetainedGroup {
    /// Name of the group: a namespace, a file, the description of a root, `thread 1`.
    pub key: String,
    /// Number of reachable objects of these types. If grouped by roots: number of objects that the roots refer to and that no object
    /// dominates.
    pub count: u64,
    /// Own size of these objects in bytes.
    pub bytes: u64,
    /// Bytes that these objects retain together. Objects that dominate each other are not counted twice.
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
    /// Type name of the object.
    #[serde(rename = "type")]
    pub type_name: Name,
    /// Method table.
    pub method_table: Addr,
    /// Own size in bytes.
    pub size: u64,
    /// Retained size in bytes: the size of everything that the object dominates, including itself.
    pub retained: u64,
    /// Retained share of the reachable bytes, 0 to 1.
    pub share: f64,
    /// Number of objects that it dominates, including itself.
    pub dominated: u64,
    /// Immediate dominator; `null` if the object is held by roots, or by several objects without a common dominator.
    pub dominator: Option<Addr>,
}

/// Objects of one type with the size that they retain together.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct RetainedType {
    /// Name of the type.
    #[serde(rename = "type")]
    pub type_name: Name,
    /// Method table.
    pub method_table: Addr,
    /// Number of reachable objects.
    pub count: u64,
    /// Own size of these objects in bytes.
    pub bytes: u64,
    /// Bytes that these objects retain together. Objects that dominate each other are not counted twice.
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
    /// Number of children that are not listed.
    pub hidden: u64,
    /// Position of the row in an icicle diagram, in bytes: the offset of the parent row plus the retained sizes of the siblings that are
    /// listed before.
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
    /// Method table.
    pub method_table: Addr,
    /// Number of objects: 1, or all of the type.
    pub count: u64,
    /// Retained bytes.
    pub retained: u64,
    /// Share of the reachable bytes, 0 to 1.
    pub share: f64,
    /// Roots that hold the object, exact ones first, at most 8.
    pub roots: Vec<RootModel>,
    /// The accumulation point: the deepest dominated object that still retains most of the bytes. In a linked structure, its first object.
    pub accumulation: Option<RetainedObject>,
    /// Children of the accumulation point by type, largest groups first. For a type: the types of which most objects are inside objects of
    /// this type.
    pub below: Vec<BelowType>,
    /// If the bytes accumulate in a linked structure, such as a list or a tree: the objects that the accumulation point dominates, including
    /// itself, by type, with their own sizes. The type of the structure's objects comes first, then the types with the most bytes, at most
    /// 10. Otherwise empty, and left out of JSON.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub by_type: Vec<TypeBytes>,
    /// The elements of the container in which the bytes accumulate; `null` if they do not accumulate in a container.
    pub elements: Option<ElementsModel>,
    /// If several objects hold the object: their types, at most 4.
    pub holders: Vec<HolderType>,
    /// Description of the suspect.
    pub text: String,
}

impl Suspect {
    /// Type and number of the objects that accumulate, and the bytes that they retain: objects of a linked structure, or children of the
    /// accumulation point.
    pub(crate) fn content(&self) -> Option<(&Name, u64, u64)> {
        // The first object of a structure dominates the others.
        let linked = self.by_type.first().map(|t| (&t.type_name, t.count, self.accumulated()));
        linked.or_else(|| self.below.first().map(|b| (&b.type_name, b.count, b.retained)))
    }

    /// The types that describe the linked structure in which the bytes accumulate; empty if they do not accumulate in one.
    pub(crate) fn linked_types(&self) -> Vec<&TypeBytes> {
        named_types(&self.by_type, self.accumulated())
    }

    /// The bytes that the accumulation point retains.
    fn accumulated(&self) -> u64 {
        self.accumulation.as_ref().map_or(self.retained, |point| point.retained)
    }
}

/// Minimum share (0 to 1) of the bytes of a linked structure for a type to be named.
const NAMED: f64 = 0.1;

/// Returns those of `types` that describe a linked structure which retains `bytes`: its own type, which is the first, up to two with many bytes, and one
/// of the program, if there are as many objects of it.
pub(super) fn named_types(types: &[TypeBytes], bytes: u64) -> Vec<&TypeBytes> {
    let Some((link, others)) = types.split_first() else { return Vec::new() };
    let has_many = |t: &&TypeBytes| share(t.bytes, bytes).unwrap_or(1.0) >= NAMED;
    let mut named: Vec<&TypeBytes> = [link].into_iter().chain(others.iter().filter(has_many).take(2)).collect();
    let is_of_program = |t: &&TypeBytes| !is_intermediate_type(&t.type_name);
    if !named.iter().any(is_of_program) {
        let is_common = |t: &&TypeBytes| t.count.saturating_mul(2) >= link.count;
        named.extend(others.iter().filter(is_of_program).find(is_common));
    }
    named
}

/// The elements of a container, shown instead of its nodes and buckets.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct ElementsModel {
    /// The container.
    pub address: Addr,
    /// Type name of the container.
    #[serde(rename = "type")]
    pub type_name: Name,
    /// Number of elements according to the container.
    pub count: u64,
    /// Type of the keys: the one that at least half of the keys read have, or else the declared one; `null` if the container has no keys.
    pub key: Option<Name>,
    /// Type of the values or elements, determined like `key`. For a `MemoryCache`, the type of the cached values.
    pub value: Option<Name>,
    /// How many of the keys have the type `key`; `null` if no type of a key was read.
    pub keys: Option<SampledTypes>,
    /// How many of the values or elements have the type `value`; `null` if no type was read.
    pub values: Option<SampledTypes>,
}

/// The types of the first keys or elements of a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct SampledTypes {
    /// Number of objects whose types were read, at most 64.
    pub read: u64,
    /// Number of those that have the named type; 0 if that is the declared type of objects of several types.
    pub of_type: u64,
    /// Number of different types among those read.
    pub types: u64,
}

impl SampledTypes {
    /// Whether at least half of the objects have the named type.
    pub(super) fn is_most(&self) -> bool {
        self.of_type.saturating_mul(2) >= self.read
    }
}

/// Declared types that say nothing about the elements.
const ANY: [&str; 2] = ["System.Object", "System.__Canon"];

impl ElementsModel {
    /// Text such as `4,000 entries Web.ReportKey → Web.Report`, `11 elements of System.Byte[]`, `45 elements of 30 types`. A type is stated as that of
    /// all only if all objects read have it.
    pub(crate) fn words(&self) -> String {
        let part = |name: &Option<Name>, sampled: Option<SampledTypes>| -> Option<(bool, String)> {
            let name = name.as_deref()?;
            match sampled {
                Some(s) if s.of_type < s.read && s.is_most() => Some((true, format!("mostly {name}"))),
                Some(s) if !s.is_most() && ANY.contains(&name) => {
                    let least = if self.count > s.read { "at least " } else { "" };
                    Some((false, format!("{least}{} types", s.types)))
                }
                _ => Some((false, name.to_owned())),
            }
        };
        let count = crate::base::thousands(self.count);
        let value = part(&self.value, self.values);
        match (part(&self.key, self.keys), value) {
            (Some((_, key)), Some((_, value))) => format!("{count} entries {key} → {value}"),
            (Some((_, key)), None) => format!("{count} entries {key}"),
            (None, Some((true, value))) => format!("{count} elements, {value}"),
            (None, Some((false, value))) => format!("{count} elements of {value}"),
            (None, None) => format!("{count} elements"),
        }
    }
}

/// A type of the objects that refer to an object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct HolderType {
    /// Name of the type.
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
    /// Bytes that these objects retain.
    pub retained: u64,
}

/// `retained --object`: one object in the dominator tree.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct RetainedDetail {
    /// The object.
    #[serde(flatten)]
    pub object: RetainedObject,
    /// Whether the object is reachable from a root.
    pub reachable: bool,
    /// Dominators, nearest first.
    pub chain: Vec<RetainedObject>,
    /// Children in the dominator tree by type, largest first.
    pub below: Vec<BelowType>,
    /// Largest children in the dominator tree.
    pub children: Vec<RetainedObject>,
    /// If the object's bytes accumulate in a linked structure, such as a list or a tree: the objects that the object dominates, including
    /// itself, by type, with their own sizes, most bytes first, at most 10. Otherwise empty, and left out of JSON.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub by_type: Vec<TypeBytes>,
}

views! {
    /// The rows that `retained` lists.
    pub enum RetainedRows as RetainedFields {
        /// The objects and types with the largest retained size.
        Top {
            /// Objects with the largest retained size.
            objects: Vec<RetainedObject>,
            /// Number of reachable objects that `objects` was chosen from.
            object_count: u64,
            /// Types with the largest retained size.
            types: Vec<RetainedType>,
            /// Number of types that `types` was chosen from.
            type_count: u64,
        },
        /// Groups of objects, or roots.
        By {
            /// The groups, largest retained size first.
            groups: Vec<RetainedGroup>,
            /// Number of groups that `groups` was chosen from.
            group_count: u64,
        },
        /// One object.
        Object {
            /// The object.
            object: RetainedDetail,
        },
        /// The dominator tree.
        Tree {
            /// The nodes of the dominator tree.
            tree: Vec<TreeRow>,
        },
        /// Leak suspects.
        Suspects {
            /// The suspects.
            suspects: Vec<Suspect>,
        },
    }
}

/// `retained`: retained sizes.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct RetainedReport {
    /// The rows of the requested view.
    #[serde(flatten)]
    pub rows: RetainedRows,
    /// Totals of the heap.
    pub totals: ReachTotals,
    /// Coverage of each kind of root.
    pub coverage: Vec<RootCoverageModel>,
    /// Stack and register values that are treated as roots.
    pub stacks: Stacks,
}

/// The objects and types with the largest retained size: see [`Heap::retained`](crate::Heap::retained).
#[derive(Clone, Debug)]
pub struct TopRetained {
    /// Objects with the largest retained size, at most 20.
    pub objects: Vec<RetainedObject>,
    /// Types with the largest retained size, at most 20.
    pub types: Vec<RetainedType>,
    /// Totals of the heap.
    pub totals: ReachTotals,
    /// Coverage of each kind of root.
    pub coverage: Vec<RootCoverageModel>,
}

/// `objsize`: closure and retained size of an object.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct ObjSizeReport {
    /// The object.
    pub object: RetainedObject,
    /// Number of objects that are reachable from the object, including itself.
    pub closure_objects: u64,
    /// Size of these objects in bytes, as reported by SOS `objsize`. Other objects may also hold many of them.
    pub closure_bytes: u64,
    /// Bytes of the closure that other roots or objects hold as well: `closure_bytes` minus the retained size.
    pub shared_bytes: u64,
    /// Whether the object is reachable from a root.
    pub reachable: bool,
    /// Coverage of each kind of root.
    pub coverage: Vec<RootCoverageModel>,
    /// Stack and register values that are treated as roots.
    pub stacks: Stacks,
}

/// A step of a path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct PathStep {
    /// The object.
    pub address: Addr,
    /// Type name of the object.
    #[serde(rename = "type")]
    pub type_name: Name,
    /// Size in bytes.
    pub size: u64,
    /// Field of the previous object that refers to this one; `null` for the first step, and for edges that are not
    /// fields (dependent handles, loader allocators).
    pub field: Option<String>,
    /// Key of the dictionary entry whose value refers to this object: text in quotes, a number, or the name of the key's type. `null` for other
    /// fields.
    pub key: Option<String>,
    /// The objects that the step represents, if there are several.
    pub fold: Option<PathFold>,
}

/// Steps of a long chain that are shown as one: objects of the same type, each referred to by the same field of the previous one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct PathFold {
    /// Number of objects, including the object of the step itself.
    pub count: u64,
    /// The last of these objects.
    pub last: Addr,
    /// Size of these objects in bytes.
    pub bytes: u64,
    /// Number of steps in the repeating sequence: 1 if each object refers directly to the next one.
    pub period: u32,
}

/// A path from a root to an object.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct PathModel {
    /// The roots that hold the first object, at most 16: handles, static fields and queues before stacks.
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
    /// Whether the node represents several objects of a path: objects of the type that refer to each other.
    pub fold: bool,
    /// Number of target objects reached through this node.
    pub targets: u64,
    /// Size of these target objects in bytes.
    pub bytes: u64,
    /// Number of distinct objects at this node; 0 for a root.
    pub objects: u64,
    /// One of these objects.
    pub example: Option<Addr>,
}

/// `path`: what keeps objects alive.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct PathsReport {
    /// Number of target objects.
    pub targets: u64,
    /// Number of reachable target objects.
    pub reachable: u64,
    /// Number of roots from which the object of `paths` is reachable, shown or not. For a static field, the field is the root, not the
    /// handle of the array that contains it.
    pub roots: u64,
    /// Shortest paths, up to the requested number for each object. Their order is by the root: handles, static fields and queues, then
    /// frames, then possibly stale words of stacks, then weak handles.
    pub paths: Vec<PathModel>,
    /// With `types`: the shortest paths merged by type. `paths` then has only paths to the first object.
    pub tree: Option<Vec<PathNode>>,
    /// Coverage of each kind of root.
    pub coverage: Vec<RootCoverageModel>,
    /// Stack and register values that are treated as roots.
    pub stacks: Stacks,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_type_of_elements_is_that_of_all_or_of_most() {
        let sampled = |of_type, types| Some(SampledTypes { read: 11, of_type, types });
        let words = |key: Option<&str>, value: &str, values, count| {
            let type_name = "System.Collections.Generic.List<System.Object>".into();
            let (key, value) = (key.map(Into::into), Some(value.into()));
            ElementsModel { address: Addr(1), type_name, count, key, value, keys: None, values }.words()
        };
        assert_eq!(words(None, "A.B", sampled(11, 1), 4000), "4,000 elements of A.B");
        assert_eq!(words(None, "A.B", sampled(6, 2), 11), "11 elements, mostly A.B");
        assert_eq!(words(None, "A.IShape", sampled(0, 9), 11), "11 elements of A.IShape");
        assert_eq!(words(None, "System.Object", sampled(0, 9), 11), "11 elements of 9 types");
        assert_eq!(words(None, "System.Object", sampled(0, 9), 4000), "4,000 elements of at least 9 types");
        assert_eq!(words(Some("K"), "V", sampled(6, 2), 11), "11 entries K → mostly V");
        assert_eq!(words(None, "System.Int32", None, 11), "11 elements of System.Int32");
    }
}
