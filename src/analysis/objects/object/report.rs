//! The report of `object`.

use serde::Serialize;

use crate::analysis::{SegmentPlace, TaskPart};
use crate::base::{Addr, Name, named_enum};
use crate::model::{ContainerModel, DelegateModel, FieldValue, HeaderModel};

named_enum! {
    /// Parts of an object that may be truncated.
    pub enum CutShort {
        /// The text of a string.
        String = "string",
        /// The elements of an array.
        Elements = "elements",
    }
}

/// An object with its fields or elements.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct ObjectReport {
    /// The object, or the value that was read from memory.
    pub address: Addr,
    /// Type name of the object.
    #[serde(rename = "type")]
    pub type_name: Option<Name>,
    /// Method table.
    pub method_table: Addr,
    /// The queried address, if it is inside the object and not at its start.
    pub interior: Option<Addr>,
    /// Location in the heap; `null` if the object is not in a segment.
    pub segment: Option<SegmentPlace>,
    /// Header of the object: lock, hash code, sync block; `null` if it is not in the dump.
    pub header: Option<HeaderModel>,
    /// Size in bytes, not rounded up to the heap alignment. Objects, unlike values, have at least three words.
    pub size: u64,
    /// Elements of an array, characters of a string; `null` for other objects.
    pub length: Option<u64>,
    /// Dimensions of an array; empty for other objects.
    pub dimensions: Vec<DimensionModel>,
    /// Text of a string.
    pub string: Option<String>,
    /// The value of a boxed structure, enum or primitive, or the value that was read from memory.
    pub boxed: Option<FieldValue>,
    /// The call target of a delegate; `null` for other objects.
    pub delegate: Option<DelegateModel>,
    /// The elements of a collection, or the number of non-null elements of an array of references; `null` for other
    /// objects.
    pub collection: Option<ContainerModel>,
    /// Instance fields, inherited ones first. Empty for arrays.
    pub fields: Vec<FieldValue>,
    /// Elements of an array, as requested.
    pub elements: Vec<FieldValue>,
    /// Index of the first element listed.
    pub first_element: u64,
    /// State of a task, or of the box of an asynchronous method; `null` for other objects, and if the task types are unknown.
    pub task: Option<TaskPart>,
    /// Truncated parts.
    pub truncated: Vec<CutShort>,
}

/// A dimension of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct DimensionModel {
    /// Number of elements.
    pub length: u32,
    /// Lower bound.
    pub lower_bound: i32,
}
