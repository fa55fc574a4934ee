//! Types of which only what was inferred from their objects is known: see `contract/inferred`.

use std::collections::BTreeMap;

use crate::base::Addr;

/// Runs of references in the objects of a type, or in each element of arrays.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct References {
    /// Offset from the start of the object, or of the element, and number of references.
    pub runs: Vec<(u64, u64)>,
}

/// A type of which only the address of its method table is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InferredType {
    /// Base size in bytes, as in method tables.
    pub base_size: u32,
    /// Bytes of an element; 0 for objects of one size.
    pub component_size: u32,
    /// Runs of references in an object or an element.
    pub references: References,
}

/// The types of a process whose method tables are lost.
#[derive(Clone, Debug, Default)]
pub struct InferredTypes {
    pub(super) types: BTreeMap<Addr, InferredType>,
    /// The method table of `System.String`.
    pub string: Option<Addr>,
    /// Number of types with objects that were found while the types were inferred.
    pub seen_types: u64,
    /// Number of these objects.
    pub objects: u64,
    /// Bytes of memory that may have method tables and that is not in the dump.
    pub lost_bytes: u64,
}

impl InferredTypes {
    /// The type whose method table was at `mt`.
    pub fn get(&self, mt: Addr) -> Option<&InferredType> {
        self.types.get(&mt)
    }

    /// The lowest address of a method table, and the end of the highest.
    pub fn bounds(&self) -> Option<(u64, u64)> {
        let (first, last) = (self.types.first_key_value()?.0, self.types.last_key_value()?.0);
        Some((first.0, last.0.saturating_add(1)))
    }
}
