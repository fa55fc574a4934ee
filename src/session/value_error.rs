//! Why an object or a value cannot be read as asked. The messages say what is there instead.

use std::fmt;

use crate::base::Addr;

/// Names of fields that an error lists.
const MAX_LISTED: usize = 20;

/// Why an object or a value cannot be read as asked.
///
/// `what` is how the value was reached: `field "_total" of Lab.Order`, `element [3] of System.Int32[]`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ValueError {
    /// The type has no field of that name.
    #[error("no field \"{name}\" in {type_name}; {}", Listed(have))]
    NoField {
        /// The type.
        type_name: String,
        /// The name asked for.
        name: String,
        /// The fields that it has, inherited ones first.
        have: Vec<String>,
    },
    /// The value is of another type than it was read as.
    #[error("{what} is {type_name}, not {wanted}")]
    WrongType {
        /// The value.
        what: String,
        /// Its type.
        type_name: String,
        /// What it was read as.
        wanted: &'static str,
    },
    /// The value was read as an object and is null.
    #[error("{what} is null")]
    Null {
        /// The value.
        what: String,
    },
    /// The memory of the value is not in the dump.
    #[error("{what} is not in the dump: {bytes} bytes at {address} were not captured")]
    Absent {
        /// The value.
        what: String,
        /// Where it lies in the process.
        address: Addr,
        /// Bytes that were to be read.
        bytes: u64,
    },
    /// The value refers to something that is no object, or whose type is not in the dump.
    #[error("{what} refers to {address}, where the dump has no object")]
    NoObject {
        /// The value.
        what: String,
        /// What it refers to.
        address: Addr,
    },
    /// What the type looks like is not in the dump.
    #[error("the {part} of {type_name} are not in the dump")]
    NoLayout {
        /// The type.
        type_name: String,
        /// What of it: `fields`, `elements`.
        part: &'static str,
    },
    /// An array has fewer elements.
    #[error("there is no element {index} in a {type_name} of {length}")]
    NoElement {
        /// Type of the array.
        type_name: String,
        /// The number asked for, counted from 0 over all dimensions.
        index: u64,
        /// The elements that it has.
        length: u64,
    },
    /// A static field has no memory yet: its class has not been initialised, or its thread has not touched it.
    #[error("{what} is not initialised")]
    NotInitialised {
        /// The static field.
        what: String,
    },
    /// Where a static field lies cannot be told from the dump.
    #[error("where {what} lies is not in the dump")]
    NoPlace {
        /// The static field.
        what: String,
    },
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
