//! Errors of typed reads. The messages describe what was found instead of the requested value.

use std::fmt;

use crate::base::{Addr, plural};

/// Maximum number of field names listed in an error.
const MAX_LISTED: usize = 20;

/// Why an object or value cannot be read as requested.
///
/// `what` describes the value: `field "_total" of Lab.Order`, `element [3] of System.Int32[]`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ValueError {
    /// The type has no field of that name.
    #[error("no field \"{name}\" in {type_name}; {}", Listed(have))]
    NoField {
        /// The type.
        type_name: String,
        /// The requested name.
        name: String,
        /// The fields of the type, inherited ones first.
        have: Vec<String>,
    },
    /// The value has another type than requested.
    #[error("{what} is {type_name}, not {wanted}")]
    WrongType {
        /// The value.
        what: String,
        /// The type of the value.
        type_name: String,
        /// The requested type.
        wanted: &'static str,
    },
    /// The value was read as an object and is null.
    #[error("{what} is null")]
    Null {
        /// The value.
        what: String,
    },
    /// The memory of the value is not in the dump.
    #[error("{what} is not in the dump: {} at {address} {} not captured", plural(*bytes, "byte"), if *bytes == 1 { "was" } else { "were" })]
    Absent {
        /// The value.
        what: String,
        /// The address of the missing memory.
        address: Addr,
        /// Number of bytes requested.
        bytes: u64,
    },
    /// The value does not refer to an object, or the object's type is not in the dump.
    #[error("{what} refers to {address}, where the dump has no object")]
    NoObject {
        /// The value.
        what: String,
        /// The address that the value refers to.
        address: Addr,
    },
    /// The layout of the type is not in the dump.
    #[error("the {part} of {type_name} are not in the dump")]
    NoLayout {
        /// The type.
        type_name: String,
        /// The part of the layout: `fields`, `elements`.
        part: &'static str,
    },
    /// The elements of a collection form a cycle, or exceed the limit.
    #[error("the elements of {what} cannot be listed: they form a cycle, or exceed the limit for a dump of this size")]
    Endless {
        /// The collection.
        what: String,
    },
    /// The index is beyond the end of the array.
    #[error("there is no element {index} in a {type_name} of {length}")]
    NoElement {
        /// Type of the array.
        type_name: String,
        /// The requested index, from 0 across all dimensions.
        index: u64,
        /// Number of elements of the array.
        length: u64,
    },
    /// The static field has no memory yet: its class is uninitialized, or the thread has never accessed it.
    #[error("{what} is not initialized")]
    NotInitialized {
        /// The static field.
        what: String,
    },
    /// The location of the static field is not in the dump.
    #[error("the location of {what} is not in the dump")]
    NoPlace {
        /// The static field.
        what: String,
    },
}

impl ValueError {
    /// Whether the value does not exist: its name is unknown, its index is beyond the end, or a value on the way to it is null. Otherwise, data is missing
    /// from the dump.
    pub(crate) fn is_known(&self) -> bool {
        match self {
            ValueError::NoField { .. }
            | ValueError::WrongType { .. }
            | ValueError::Null { .. }
            | ValueError::NoElement { .. }
            | ValueError::NotInitialized { .. } => true,
            ValueError::Absent { .. }
            | ValueError::NoObject { .. }
            | ValueError::NoLayout { .. }
            | ValueError::Endless { .. }
            | ValueError::NoPlace { .. } => false,
        }
    }
}

struct Listed<'l>(&'l [String]);

impl fmt::Display for Listed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("it has none");
        }
        for (i, name) in self.0.iter().take(MAX_LISTED).enumerate() {
            f.write_str(if i == 0 { "it has " } else { ", " })?;
            f.write_str(name)?;
        }
        match self.0.len().saturating_sub(MAX_LISTED) {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }
    }
}
