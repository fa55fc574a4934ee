use serde::Serialize;

use super::{CodeTier, StaticModel};
use crate::base::{Addr, CorElementType, Name, Token, named_enum};

named_enum! {
    /// Categories of types.
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
        /// A one-dimensional, zero-based array.
        SzArray = "sz-array",
        /// Any other array.
        Array = "array",
    }
}

named_enum! {
    /// Genericity of a type.
    pub enum Generics {
        /// Not generic.
        None = "none",
        /// Instantiated: `List<string>`.
        Instance = "instance",
        /// Type definition: `List<>`.
        Definition = "definition",
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
    /// Its method table.
    pub method_table: Addr,
    /// Its module.
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
    /// Its method table.
    pub method_table: Addr,
    /// Canonical method table, with which it shares code; itself for most types.
    pub canonical: Option<Addr>,
    /// Address of its `EEClass`.
    pub class: Option<Addr>,
    /// Address of its `Module`.
    pub module_address: Option<Addr>,
    /// Its module.
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
    /// Type arguments of a generic instance, and the element type of an array; empty for others, and if they cannot be read.
    pub arguments: Vec<TypeRef>,
    /// Number of interfaces it implements.
    pub interfaces: Option<u16>,
    /// Base size in bytes: header included, elements excluded.
    pub base_size: u32,
    /// Component size in bytes; 0 for fixed-size objects.
    pub component_size: u32,
    /// Whether it has a finalizer.
    pub finalizer: bool,
    /// Whether it is collectible.
    pub collectible: bool,
    /// Whether its objects contain references.
    pub contains_pointers: bool,
    /// Instance fields, inherited ones first; `null` if they cannot be read.
    pub fields: Option<Vec<LayoutField>>,
    /// Its own static fields; thread statics once per managed thread.
    pub statics: Vec<StaticModel>,
    /// The methods that it declares, by slot; `null` unless asked for (`--methods`), and if they cannot be listed.
    pub methods: Option<Vec<MethodModel>>,
    /// Offsets of the references in an object, in bytes from its start, including those in nested structures.
    pub references: Vec<u64>,
}

named_enum! {
    /// Whether a method has code.
    pub enum MethodCode {
        /// No code was found: the method was not called yet, was inlined, or has no body.
        None = "none",
        /// The JIT has compiled it, in the process.
        Jit = "jit",
        /// Compiled ahead of time, in the module's image.
        ReadyToRun = "ready-to-run",
    }
}

/// A method of a type.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct MethodModel {
    /// Address of its `MethodDesc`.
    pub method_desc: Addr,
    /// Its slot: in the virtual method table, if it is less than the number of virtual methods.
    pub slot: u16,
    /// Token in hex; `null` if unknown.
    pub token: Option<Token>,
    /// What made its code; `null` if what tells is not in the dump.
    pub code: Option<MethodCode>,
    /// How far the JIT optimized that code; `null` for other code, and if it cannot be told.
    pub tier: Option<CodeTier>,
    /// Start of its code, where it is entered at present; `null` without.
    pub entry: Option<Addr>,
    /// Name, as the compiler made it: `Lab.Program.Main(System.String[])`; `null` if unknown.
    pub name: Option<Name>,
    /// Form of the method's name for people: `Lab.Program.Main.b__3_0 (lambda)`.
    pub display: Option<Name>,
}

/// A type that another one is made from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct TypeRef {
    /// Full name.
    pub name: Name,
    /// Its method table; `null` for pointers, function pointers and type variables, which have none.
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
    /// Its type.
    #[serde(rename = "type")]
    pub type_name: String,
    /// Declaring type.
    pub declaring_type: String,
    /// Token in hex.
    pub token: Token,
    /// `CorElementType`.
    pub element_type: CorElementType,
    /// Method table of its type, for value types.
    pub method_table: Option<Addr>,
}
