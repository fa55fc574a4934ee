use serde::Serialize;

use super::header::HeaderModel;
use super::place::SegmentPlace;
use crate::base::{Addr, named_enum};

named_enum! {
    /// What a value is.
    pub enum ValueKind {
        /// `value` is true or false.
        Bool = "bool",
        /// `value` is a string of one character; a lone surrogate comes as `\ud800`.
        Char = "char",
        /// `value` is an integer.
        Int = "int",
        /// `value` is a number, or one of the strings `NaN`, `Infinity`, `-Infinity`.
        Float = "float",
        /// `value` is an integer of the size of a pointer, hexadecimal.
        Nint = "nint",
        /// `value` is the name of the enum's value, `A | B` for several flags, or the number as text.
        Enum = "enum",
        /// `value` is the text, `object` the string.
        String = "string",
        /// `object` is what is referred to, `object_type` its type.
        Object = "object",
        /// A reference to nothing, or a `Nullable` without value.
        Null = "null",
        /// `fields` are its fields.
        Struct = "struct",
        /// `value` is an address that is no reference, hexadecimal.
        Pointer = "pointer",
        /// `value` is a `DateTime` in ISO 8601, with `Z` for UTC.
        DateTime = "date-time",
        /// `value` is a `DateTimeOffset` in ISO 8601.
        DateTimeOffset = "date-time-offset",
        /// `value` is a `DateOnly` in ISO 8601.
        Date = "date",
        /// `value` is a `TimeOnly`.
        Time = "time",
        /// `value` is a `TimeSpan`, as .NET prints it.
        TimeSpan = "time-span",
        /// `value` is a `Guid`.
        Guid = "guid",
        /// `value` is a `Decimal` as text.
        Decimal = "decimal",
        /// `value` is a `System.Index`: `3`, or `^3` from the end.
        Index = "index",
        /// `value` is the bytes as they lie in memory, hexadecimal: the layout of the type is not known.
        Raw = "raw",
        /// The memory of the value is not in the dump.
        Absent = "absent",
        /// What lies there cannot be a value of the type.
        Invalid = "invalid",
        /// The class has not been initialised and the field is still zero, or the thread has no memory for it yet.
        NotInitialised = "not-initialised",
    }
}

/// A value: of a field, or of an array's element.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct FieldValue {
    /// Name of the field, without the type that declares it; of an element, its index: `[3]`, `[1,2]`.
    pub name: String,
    /// Declared type.
    #[serde(rename = "type")]
    pub type_name: String,
    /// Type that declares the field; `null` for elements.
    pub declaring_type: Option<String>,
    /// Bytes from the start of the object, of a structure's fields from the start of the structure; `null` for statics.
    pub offset: Option<u64>,
    /// Where the value lies.
    pub address: Option<Addr>,
    /// What the value is.
    pub kind: ValueKind,
    /// The value; `null` where `kind` says that there is none.
    pub value: serde_json::Value,
    /// The value for people.
    pub text: String,
    /// Whether a limit cut the value short.
    pub truncated: bool,
    /// The object that the value refers to.
    pub object: Option<Addr>,
    /// Its type; `null` where the object is not in the dump.
    pub object_type: Option<String>,
    /// The fields of a structure.
    pub fields: Vec<FieldValue>,
}

named_enum! {
    /// A part of an object that a limit cuts short.
    pub enum CutShort {
        /// The text of a string.
        String = "string",
        /// The elements of an array.
        Elements = "elements",
    }
}

/// An object with its fields or elements.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct ObjectReport {
    /// The object.
    pub address: Addr,
    /// Its type.
    #[serde(rename = "type")]
    pub type_name: Option<String>,
    /// Its method table.
    pub method_table: Addr,
    /// Address that was asked for, where that lies inside of the object and not at its start.
    pub interior: Option<Addr>,
    /// Where in the heap it lies; `null` where the address is in no segment.
    pub segment: Option<SegmentPlace>,
    /// What its header word holds: lock, hash code, sync block; `null` where the word is not in the dump.
    pub header: Option<HeaderModel>,
    /// Bytes that it takes, before rounding up to the heap's alignment; at least three words.
    pub size: u64,
    /// Elements of an array, characters of a string; `null` for other objects.
    pub length: Option<u64>,
    /// Dimensions of an array with their lower bounds; empty for other objects.
    pub dimensions: Vec<DimensionModel>,
    /// Text of a string.
    pub string: Option<String>,
    /// The value in a box: of boxed structures, enums and primitives.
    pub boxed: Option<FieldValue>,
    /// Instance fields, inherited ones first. Empty for arrays.
    pub fields: Vec<FieldValue>,
    /// Elements of an array, as many as were asked for.
    pub elements: Vec<FieldValue>,
    /// Number of the first element listed.
    pub first_element: u64,
    /// What is cut short.
    pub truncated: Vec<CutShort>,
}

/// A dimension of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct DimensionModel {
    /// Elements.
    pub length: u32,
    /// Index of the first element.
    pub lower_bound: i32,
}
