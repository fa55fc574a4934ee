use serde::Serialize;

use super::segment::Generation;
use super::walk::CoverageModel;
use crate::base::{Addr, Name};

/// An object of the heap in brief.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct ObjectBrief {
    /// Where it lies.
    pub address: Addr,
    /// Name of its type; `Free` for free space.
    #[serde(rename = "type")]
    pub type_name: Name,
    /// Its method table.
    pub method_table: Addr,
    /// Its size in bytes as SOS and ClrMD count it: header word included, not rounded up.
    pub size: u64,
    /// Its generation.
    pub generation: Generation,
    /// Number of its heap.
    pub heap: u64,
    /// Whether it is free space, no object.
    #[serde(skip)]
    pub free: bool,
    /// Elements of an array, characters of a string; `null` for others.
    pub length: Option<u64>,
    /// With `--refs`: the references that it holds, null ones left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refs: Option<Vec<ReferenceModel>>,
}

/// A reference from an object to another.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct ReferenceModel {
    /// Where in the object it is, in bytes from its start.
    pub offset: u64,
    /// What it refers to.
    pub to: Addr,
    /// The field: `_items`, `[3]` in an array, `[3].key` in an array of structures; `null` where it cannot be told.
    pub field: Option<Name>,
}

/// `objects`: what stands beside the list of objects.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct ObjectsTail {
    /// Objects listed.
    pub listed: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Where the next page starts; `null` where the list is at its end.
    pub next_start: Option<u64>,
    /// How much of the heap was walked.
    pub coverage: CoverageModel,
}

/// `objects`.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct ObjectsReport {
    /// The objects in the order of the heap.
    pub objects: Vec<ObjectBrief>,
    /// The rest.
    #[serde(flatten)]
    pub tail: ObjectsTail,
}
