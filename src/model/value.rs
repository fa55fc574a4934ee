//! Values of fields and array elements.

use serde::Serialize;

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
        /// `value` is the text, and `object` the address of the string.
        String = "string",
        /// `object` is the address of the referenced object, and `object_type` its type.
        Object = "object",
        /// A null reference, or a `Nullable` without value.
        Null = "null",
        /// `fields` are the fields of the structure.
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
        /// A static field without a value: its class is not initialized, or it is not yet allocated for the thread.
        NotInitialized = "not-initialized",
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
    /// Type name of that object; `null` if it is not in the dump.
    pub object_type: Option<Name>,
    /// The fields of a structure.
    pub fields: Vec<FieldValue>,
}

impl FieldValue {
    /// The value as JSON, without name, type and kind. A reference is an address (`0x0` if null), and a structure is an object with its
    /// fields. An unknown value and a `Nullable` without value are `null`.
    pub fn to_json(&self) -> serde_json::Value {
        match self.kind {
            ValueKind::Object => serde_json::json!(self.object),
            // A null reference, unlike a `Nullable` without value, is an address.
            ValueKind::Null if !self.type_name.starts_with("System.Nullable<") => serde_json::json!(Addr::NULL),
            ValueKind::Struct => self.fields.iter().map(|f| (f.name.clone(), f.to_json())).collect::<serde_json::Map<_, _>>().into(),
            _ => self.value.clone(),
        }
    }

    /// The text of the value; for strings and characters, without the quotes of `text`.
    pub fn unquoted(&self) -> &str {
        match (self.kind, &self.value) {
            (ValueKind::String | ValueKind::Char, serde_json::Value::String(text)) => text,
            _ => &self.text,
        }
    }
}
