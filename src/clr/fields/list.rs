//! A field of a type, with name and type.

use super::Storage;
use super::definition::Definition;
use crate::base::{Addr, CorElementType, Token, len64};

/// A field of a type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Method table of the declaring type: the exact instance of a generic type.
    pub declaring: Addr,
    /// Its name; `field_0x04000012`, by token, if the metadata cannot be read.
    pub name: String,
    /// Whether that is the name that it has in its program, not what stands for a lost one.
    pub(crate) is_named: bool,
    /// Its token in the declaring module; [`Token::NIL`] in NativeAOT programs.
    pub token: Token,
    /// Kind of storage.
    pub storage: Storage,
    /// Offset in bytes: of instance fields from the start of the object, of others from the base of their kind.
    pub offset: u64,
    /// Element type as stored by the runtime: `Class` for all references, the underlying type for enums.
    pub element: CorElementType,
    /// Its type, with generic parameters of the declaring type replaced by the arguments.
    pub type_name: String,
    /// Method table of its type, for values; `None` for references, or if not found.
    pub method_table: Option<Addr>,
    /// Where its type is defined, for values; known for some types without method table.
    pub(crate) definition: Option<Definition>,
}

impl Field {
    /// The memory that it takes, in bytes.
    pub(super) fn bytes(&self) -> u64 {
        len64(self.name.len().saturating_add(self.type_name.len()).saturating_add(size_of::<Field>()))
    }

    /// Whether its value is a reference to an object.
    pub fn is_reference(&self) -> bool {
        self.element.is_reference()
    }

    /// Whether its value is a structure.
    pub fn is_structure(&self) -> bool {
        self.element == CorElementType::ValueType
    }
}
