use serde::Serialize;

use super::chains::TaskPart;
use super::collection::ContainerModel;
use super::delegate::DelegateModel;
use super::header::HeaderModel;
use super::place::SegmentPlace;
use crate::base::{Addr, Name, named_enum};

named_enum! {
    /// Kinds of values.
    pub enum ValueKind {
        /// `value` is true or false.
        Bool = "bool",
        /// `value` is a one-character string; a lone surrogate is written as six characters, such as `\ud800`.
        Char = "char",
        /// `value` is an integer.
        Int = "int",
        /// `value` is a number, or one of the strings `NaN`, `Infinity`, `-Infinity`.
        Float = "float",
        /// `value` is a pointer-sized integer in hex.
        Nint = "nint",
        /// `value` is the enum member name, `A | B` for flags, or the number as text.
        Enum = "enum",
        /// `value` is the text, `object` the string.
        String = "string",
        /// `object` is the referenced object, `object_type` its type.
        Object = "object",
        /// A null reference, or a `Nullable` without value.
        Null = "null",
        /// `fields` are its fields.
        Struct = "struct",
        /// `value` is an unmanaged address in hex.
        Pointer = "pointer",
        /// `value` is a `DateTime` in ISO 8601, with `Z` for UTC.
        DateTime = "date-time",
        /// `value` is a `DateTimeOffset` in ISO 8601.
        DateTimeOffset = "date-time-offset",
        /// `value` is a `DateOnly` in ISO 8601.
        Date = "date",
        /// `value` is a `TimeOnly`.
        Time = "time",
        /// `value` is a `TimeSpan` in .NET format.
        TimeSpan = "time-span",
        /// `value` is a `Guid`.
        Guid = "guid",
        /// `value` is a `Decimal` as text.
        Decimal = "decimal",
        /// `value` is a `System.Index`: `3`, or `^3` from the end.
        Index = "index",
        /// `value` is the raw bytes in hex: the layout of the type is unknown.
        Raw = "raw",
        /// The memory of the value is not in the dump.
        Absent = "absent",
        /// The memory does not contain a valid value of the type.
        Invalid = "invalid",
        /// The class is uninitialized and the field still zero, or not yet allocated for the thread.
        NotInitialised = "not-initialised",
    }
}

/// The value of a field or array element.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct FieldValue {
    /// Field name without declaring type, or element index: `[3]`, `[1,2]`.
    pub name: String,
    /// Declared type.
    #[serde(rename = "type")]
    pub type_name: String,
    /// Declaring type of the field; `null` for elements.
    pub declaring_type: Option<Name>,
    /// Offset in bytes from the start of the object or enclosing structure; `null` for statics.
    pub offset: Option<u64>,
    /// Address of the value.
    pub address: Option<Addr>,
    /// Kind of value.
    pub kind: ValueKind,
    /// The value; `null` if `kind` has none.
    pub value: serde_json::Value,
    /// The value as text.
    pub text: String,
    /// Whether the value was truncated.
    pub truncated: bool,
    /// The referenced object.
    pub object: Option<Addr>,
    /// Its type; `null` if the object is not in the dump.
    pub object_type: Option<Name>,
    /// The fields of a structure.
    pub fields: Vec<FieldValue>,
}

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
    /// The object; with `--as`, the value.
    pub address: Addr,
    /// Its type.
    #[serde(rename = "type")]
    pub type_name: Option<Name>,
    /// Its method table.
    pub method_table: Addr,
    /// The queried address, if it is inside the object rather than at its start.
    pub interior: Option<Addr>,
    /// Its location in the heap; `null` if it is in no segment.
    pub segment: Option<SegmentPlace>,
    /// Its header: lock, hash code, sync block; `null` if it is not in the dump.
    pub header: Option<HeaderModel>,
    /// Size in bytes, not rounded up to the heap alignment; at least three words, but for values.
    pub size: u64,
    /// Elements of an array, characters of a string; `null` for other objects.
    pub length: Option<u64>,
    /// Dimensions of an array; empty for other objects.
    pub dimensions: Vec<DimensionModel>,
    /// Text of a string.
    pub string: Option<String>,
    /// The boxed value, for boxed structures, enums and primitives; with `--as`, the value.
    pub boxed: Option<FieldValue>,
    /// What a delegate calls; `null` for other objects.
    pub delegate: Option<DelegateModel>,
    /// The elements of a collection, and how many elements of an array of references are set; `null` for other objects.
    pub collection: Option<ContainerModel>,
    /// Instance fields, inherited ones first. Empty for arrays.
    pub fields: Vec<FieldValue>,
    /// Elements of an array, as requested.
    pub elements: Vec<FieldValue>,
    /// Index of the first element listed.
    pub first_element: u64,
    /// What a task, or the box of an asynchronous method, says; `null` for other objects, and where the types of tasks are not known.
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
