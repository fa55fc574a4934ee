//! The report of `objects`.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};

use crate::base::{Addr, Name};
use crate::model::{CoverageModel, FieldValue, Generation};

/// Summary of a heap object.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct ObjectBrief {
    /// Address.
    pub address: Addr,
    /// Type name of the object; `Free` for free space.
    #[serde(rename = "type")]
    pub type_name: Name,
    /// Method table.
    pub method_table: Addr,
    /// Size in bytes as counted by SOS and ClrMD: header included, not rounded up.
    pub size: u64,
    /// Generation.
    pub generation: Generation,
    /// Index of the heap.
    pub heap: u64,
    /// Whether the row is free space.
    #[serde(skip)]
    pub free: bool,
    /// Elements of an array, characters of a string; `null` for others.
    pub length: Option<u64>,
    /// With `refs`: non-null references of the object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refs: Option<Vec<ReferenceModel>>,
    /// With `fields`: values by path, in the form of [`FieldValue::to_json`]; `null` if the object does not have the field, or if a
    /// reference on the path is null.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "fields_to_json")]
    #[cfg_attr(feature = "cli", schemars(with = "Option<BTreeMap<String, serde_json::Value>>"))]
    pub fields: Option<BTreeMap<String, Option<FieldValue>>>,
}

fn fields_to_json<S: Serializer>(fields: &Option<BTreeMap<String, Option<FieldValue>>>, to: S) -> Result<S::Ok, S::Error> {
    to.collect_map(fields.iter().flatten().map(|(path, value)| (path, value.as_ref().map(FieldValue::to_json))))
}

/// A reference to another object.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct ReferenceModel {
    /// Offset in bytes from the start of the object.
    pub offset: u64,
    /// The object that is referred to.
    pub to: Addr,
    /// Field: `_items`, `[3]` in an array, `[3].key` in an array of structures; `null` if unknown.
    pub field: Option<Name>,
}

/// `objects`: totals and coverage.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct ObjectsTail {
    /// Number of rows listed.
    pub listed: u64,
    /// Size of the listed rows in bytes.
    pub bytes: u64,
    /// Number of selected objects, listed or not.
    pub total: u64,
    /// Size of the selected objects in bytes.
    pub total_bytes: u64,
    /// Number of selected free blocks, listed or not. Free blocks are also rows.
    pub free_count: u64,
    /// Size of the selected free blocks in bytes.
    pub free_bytes: u64,
    /// `start` of the next page; `null` at the end of the list.
    pub next_start: Option<u64>,
    /// Coverage of the heap walk.
    pub coverage: CoverageModel,
}

/// `objects`: the selected objects of the heap.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct ObjectsReport {
    /// The objects in heap order.
    pub objects: Vec<ObjectBrief>,
    /// Totals and coverage.
    #[serde(flatten)]
    pub tail: ObjectsTail,
}
