//! The fields of one type, with names and types.

use super::{Definition, Storage};
use crate::base::Addr;

/// A field of a type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Method table of the type that declares it: the exact instance of a generic type.
    pub declaring: Addr,
    /// Its name; `field_0x04000012` after its token where the metadata cannot be read.
    pub name: String,
    /// Its token in the module that declares it.
    pub token: u32,
    /// Kind of storage.
    pub storage: Storage,
    /// Bytes: of instance fields from the start of the object, of others from the base of their kind.
    pub offset: u64,
    /// `CorElementType` as the runtime has it: every reference is `CLASS` (0x12), an enum is its underlying type.
    pub element: u8,
    /// Its type, with the generic parameters of the declaring type replaced by its arguments.
    pub type_name: String,
    /// Method table of its type, for values; `None` for references and where it cannot be found.
    pub method_table: Option<Addr>,
    /// Where its type is defined, for values; known for some types without method table.
    pub(crate) definition: Option<Definition>,
}

impl Field {
    /// Whether its value is a reference to an object.
    pub fn is_reference(&self) -> bool {
        super::is_reference(self.element)
    }

    /// Whether its value is a structure.
    pub fn is_structure(&self) -> bool {
        self.element == super::VALUE_TYPE
    }
}
