//! A decoded method table; for Mono, a decoded vtable or class.

use crate::base::Addr;
use crate::model::Generics;

/// Category of a type (`enum_flag_Category_…`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Category {
    /// A class.
    Class,
    /// A structure, an enum, `Nullable` or a primitive.
    ValueType,
    /// An interface.
    Interface,
    /// A one-dimensional, zero-based array.
    SzArray,
    /// Any other array.
    Array,
}

/// A decoded method table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MethodTableInfo {
    /// Address of the method table.
    pub address: Addr,
    /// Raw `MTFlags`; for Mono, the element type and flags that `Mono` defines.
    pub flags: u32,
    /// Base size in bytes, which includes the header word but not the elements.
    pub base_size: u32,
    /// Component size in bytes; 0 for fixed-size objects.
    pub component_size: u32,
    /// Whether objects contain references, so that a CGCDesc precedes the method table.
    pub contains_pointers: bool,
    /// Whether the type is collectible.
    pub is_collectible: bool,
    /// Whether the type has a finalizer.
    pub has_finalizer: bool,
    /// Category of the type.
    pub category: Category,
    /// Whether the type is generic.
    pub generics: Generics,
    /// Whether the type is an array of any kind.
    pub is_array: bool,
    /// Whether the type is `System.String`.
    pub is_string: bool,
    /// Whether this is the method table of free objects.
    pub is_free: bool,
    /// Raw `EEClassOrCanonMT`: bit 0 marks a pointer to the canonical method table. Null in NativeAOT; the `MonoClass` in Mono.
    pub class_or_canonical: Addr,
    /// Method table of the base type.
    pub parent: Addr,
}

/// Method tables that the runtime's globals point to.
#[derive(Clone, Copy, Debug)]
pub(super) struct WellKnown {
    pub(super) string: Option<Addr>,
    pub(super) free: Option<Addr>,
}
