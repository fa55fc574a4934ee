//! The report of `types`.

use serde::Serialize;

use crate::base::{Addr, CorElementType, Name, Token, named_enum};
use crate::model::{CodeTier, Generics, StaticModel};

named_enum! {
    /// Categories of types.
    pub enum TypeCategory {
        /// A class.
        Class = "class",
        /// A structure.
        ValueType = "value-type",
        /// An enum.
        Enum = "enum",
        /// A primitive type such as `Int32`.
        Primitive = "primitive",
        /// `Nullable`.
        Nullable = "nullable",
        /// An interface.
        Interface = "interface",
        /// A one-dimensional, zero-based array.
        SzArray = "sz-array",
        /// Any other array.
        Array = "array",
    }
}

/// `type`: the layout of a type, or the types matching a pattern.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct TypesReport {
    /// The query.
    pub pattern: String,
    /// Matching loaded types, by name.
    pub types: Vec<TypeBrief>,
    /// The layout, if exactly one type matches.
    pub layout: Option<TypeLayout>,
}

/// Summary of a type.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct TypeBrief {
    /// Full name.
    pub name: Name,
    /// Method table.
    pub method_table: Addr,
    /// Module.
    pub module: Option<String>,
    /// TypeDef token in hex; `null` for arrays.
    pub token: Option<Token>,
}

/// A type with its layout.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct TypeLayout {
    /// Full name.
    pub name: Name,
    /// Method table.
    pub method_table: Addr,
    /// Canonical method table, with which the type shares code. For most types it is the same as `method_table`.
    pub canonical: Option<Addr>,
    /// Address of the `EEClass`.
    pub class: Option<Addr>,
    /// Address of the `Module`.
    pub module_address: Option<Addr>,
    /// Module.
    pub module: Option<String>,
    /// TypeDef token in hex; `null` for arrays.
    pub token: Option<Token>,
    /// Category.
    pub category: TypeCategory,
    /// Genericity.
    pub generic: Generics,
    /// Names of the base types, nearest first.
    pub bases: Vec<String>,
    /// The base type; `null` for `System.Object` and interfaces.
    pub parent: Option<TypeRef>,
    /// Type arguments of a generic instance, or the element type of an array; empty for others, and if they cannot be read.
    pub arguments: Vec<TypeRef>,
    /// Number of implemented interfaces.
    pub interfaces: Option<u16>,
    /// Base size in bytes: header included, elements excluded.
    pub base_size: u32,
    /// Component size in bytes; 0 for fixed-size objects.
    pub component_size: u32,
    /// Whether the type has a finalizer.
    pub finalizer: bool,
    /// Whether the type is collectible.
    pub collectible: bool,
    /// Whether objects of the type contain references.
    pub contains_pointers: bool,
    /// Instance fields, inherited ones first; `null` if they cannot be read.
    pub fields: Option<Vec<LayoutField>>,
    /// Static fields that the type declares. A thread static is listed once for each managed thread.
    pub statics: Vec<StaticModel>,
    /// Methods that the type declares, by slot; `null` if they were not requested, or cannot be listed.
    pub methods: Option<Vec<MethodModel>>,
    /// Offsets of the references in an object, in bytes from its start. References in nested structures are included.
    pub references: Vec<u64>,
}

named_enum! {
    /// Whether a method has code, and its origin.
    pub enum MethodCode {
        /// No code was found: the method was not called yet, was inlined, or has no body.
        None = "none",
        /// Compiled by the JIT, in the process.
        Jit = "jit",
        /// Compiled ahead of time, in the module's image.
        ReadyToRun = "ready-to-run",
    }
}

/// A method of a type.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct MethodModel {
    /// Address of the `MethodDesc`.
    pub method_desc: Addr,
    /// Slot number. The slot is in the vtable if the number is less than the number of virtual methods.
    pub slot: u16,
    /// Token in hex; `null` if unknown.
    pub token: Option<Token>,
    /// Origin of the code; `null` if it cannot be determined from the dump.
    pub code: Option<MethodCode>,
    /// Optimization tier of the code; `null` for code that the JIT did not compile, and if the tier cannot be
    /// determined.
    pub tier: Option<CodeTier>,
    /// Current entry point of the code; `null` without code.
    pub entry: Option<Addr>,
    /// Name, as the compiler made it: `Lab.Program.Main(System.String[])`; `null` if unknown.
    pub name: Option<Name>,
    /// Form of the method's name for people: `Lab.Program.Main.b__3_0 (lambda)`.
    pub display: Option<Name>,
}

/// A type that another type is composed of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct TypeRef {
    /// Full name.
    pub name: Name,
    /// Method table; `null` for pointers, function pointers and type variables, which do not have one.
    pub method_table: Option<Addr>,
}

/// A field of a layout.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct LayoutField {
    /// Offset in bytes from the start of the object.
    pub offset: u64,
    /// Name.
    pub name: String,
    /// Type.
    #[serde(rename = "type")]
    pub type_name: String,
    /// Declaring type.
    pub declaring_type: String,
    /// Token in hex.
    pub token: Token,
    /// `CorElementType`.
    pub element_type: CorElementType,
    /// Method table of the field's type, for value types.
    pub method_table: Option<Addr>,
}
