use serde::Serialize;

use super::StaticModel;
use crate::base::{Addr, named_enum};

named_enum! {
    /// What a type is.
    pub enum TypeCategory {
        /// A class.
        Class = "class",
        /// A structure.
        ValueType = "value-type",
        /// An enum.
        Enum = "enum",
        /// A primitive: `Int32` and the like.
        Primitive = "primitive",
        /// `Nullable`.
        Nullable = "nullable",
        /// An interface.
        Interface = "interface",
        /// A one-dimensional array that starts at 0.
        SzArray = "sz-array",
        /// Any other array.
        Array = "array",
    }
}

named_enum! {
    /// Whether a type is generic.
    pub enum Generics {
        /// It is not.
        None = "none",
        /// With arguments: `List<string>`.
        Instance = "instance",
        /// Without: `List<>`.
        Definition = "definition",
    }
}

/// `type`: the layout of a type, or the types that fit a pattern.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct TypesReport {
    /// What was asked for.
    pub pattern: String,
    /// Loaded types that fit, by name.
    pub types: Vec<TypeBrief>,
    /// The layout, where one type fits.
    pub layout: Option<TypeLayout>,
}

/// A type in short.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct TypeBrief {
    /// Full name.
    pub name: String,
    /// Its method table.
    pub method_table: Addr,
    /// Module that defines it.
    pub module: Option<String>,
    /// TypeDef token, hexadecimal; `null` for arrays.
    pub token: Option<String>,
}

/// A type in full.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct TypeLayout {
    /// Full name.
    pub name: String,
    /// Its method table.
    pub method_table: Addr,
    /// The method table that it shares its code with; itself for most types.
    pub canonical: Option<Addr>,
    /// Its `EEClass`.
    pub class: Option<Addr>,
    /// The runtime's `Module`.
    pub module_address: Option<Addr>,
    /// Module that defines it.
    pub module: Option<String>,
    /// TypeDef token, hexadecimal; `null` for arrays.
    pub token: Option<String>,
    /// What it is.
    pub category: TypeCategory,
    /// Whether it is generic.
    pub generic: Generics,
    /// Names of the base types, nearest first.
    pub bases: Vec<String>,
    /// Interfaces that it implements.
    pub interfaces: Option<u16>,
    /// Bytes of an object without elements, header included.
    pub base_size: u32,
    /// Bytes of an element; 0 for objects of fixed size.
    pub component_size: u32,
    /// Whether it has a finalizer.
    pub finalizer: bool,
    /// Whether it can be unloaded.
    pub collectible: bool,
    /// Whether its objects hold references.
    pub contains_pointers: bool,
    /// Instance fields, inherited ones first; `null` where they cannot be read.
    pub fields: Option<Vec<LayoutField>>,
    /// Static fields of its own; thread statics once for each managed thread.
    pub statics: Vec<StaticModel>,
    /// Offsets of the references in an object, from its start; those of nested structures included.
    pub references: Vec<u64>,
}

/// A field of a layout.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct LayoutField {
    /// Bytes from the start of the object.
    pub offset: u64,
    /// Name.
    pub name: String,
    /// Its type.
    #[serde(rename = "type")]
    pub type_name: String,
    /// Type that declares it.
    pub declaring_type: String,
    /// Token, hexadecimal.
    pub token: String,
    /// `CorElementType` as the runtime has it.
    pub element_type: u8,
    /// Method table of its type, for values.
    pub method_table: Option<Addr>,
}
