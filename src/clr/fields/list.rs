//! A field of a type, with its name and its type.

use super::Storage;
use super::definition::Definition;
use crate::base::{Addr, CorElementType, Token, len64};

/// A field of a type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Method table of the declaring type: the exact instance of a generic type.
    pub declaring: Addr,
    /// Name; `field_0x04000012`, from the token, if the metadata cannot be read.
    pub name: String,
    /// Whether `name` is the name in the program, and not a placeholder.
    pub(crate) is_named: bool,
    /// Token in the declaring module; [`Token::NIL`] in NativeAOT programs.
    pub token: Token,
    /// Kind of storage.
    pub storage: Storage,
    /// Offset in bytes. For an instance field, it is relative to the start of the object; for other fields, it is relative to the base of their
    /// storage. In NativeAOT programs and in Mono, the offset of a static field is its address.
    pub offset: u64,
    /// Element type as stored by the runtime: `Class` for all references, the underlying type for enums.
    pub element: CorElementType,
    /// Name of the field's type. Generic parameters of the declaring type are replaced with the arguments.
    pub type_name: String,
    /// Method table of the field's type, for value types; `None` for references, or if the method table was not found.
    pub method_table: Option<Addr>,
    /// Definition of the field's type, for value types; known for some types without a method table.
    pub(crate) definition: Option<Definition>,
}

impl Field {
    /// Size of this structure in memory, in bytes.
    pub(super) fn bytes(&self) -> u64 {
        len64(self.name.len().saturating_add(self.type_name.len()).saturating_add(size_of::<Field>()))
    }

    /// Whether the field is a reference to an object.
    pub fn is_reference(&self) -> bool {
        self.element.is_reference()
    }

    /// Whether the field is a structure.
    pub fn is_structure(&self) -> bool {
        self.element == CorElementType::ValueType
    }
}
