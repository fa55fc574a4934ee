//! Errors of the session and the analyses.

use super::ValueError;
use crate::base::{Addr, Cancelled, Name, NoRoom, Note, Notes};
use crate::contract::{ContractError, RuntimeError};
use crate::dump::DumpError;
use crate::graph::GraphError;
use crate::heapgraph::MemoryLimit;

/// Why a query has no answer. An answer from which data is missing is not an error: its [`Notes`](crate::base::Notes) report the loss.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file is not a dump, or cannot be read.
    #[error(transparent)]
    Dump(#[from] DumpError),
    /// The dump has no readable runtime.
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
    /// The runtime does not describe required structures.
    #[error(transparent)]
    Contract(#[from] ContractError),
    /// The heap has too many objects or references to index.
    #[error(transparent)]
    Graph(#[from] GraphError),
    /// The answer would exceed [`Limits::max_memory`](crate::base::Limits::max_memory).
    #[error(transparent)]
    Memory(#[from] MemoryLimit),
    /// The graph exceeds the memory limit, and its temporary file does not fit on the disk.
    #[error(transparent)]
    Room(#[from] NoRoom),
    /// The work was cancelled: see [`Cancel::run`](crate::base::Cancel::run).
    #[error(transparent)]
    Cancelled(#[from] Cancelled),
    /// No object is at or around the address.
    #[error("there is no object at {}{}", .0, in_decimal(*.0))]
    NoObject(Addr),
    /// The address is not in the requested range.
    #[error("{0} is not in {1}")]
    NotIn(Addr, &'static str),
    /// The address of a root was required, but this address is in an object.
    #[error("{0} is in an object, not a root")]
    NoRoot(Addr),
    /// A value of this type was requested at this address, but the type is a reference type.
    #[error("{0} is not a value type")]
    NoValueType(Name, Addr),
    /// The object at the address has this type, which is not that of an exception.
    #[error("{0} is an object of type {1}, not an exception")]
    NotAnException(Addr, String),
    /// An object or value has another type than requested, or is not in the dump.
    #[error(transparent)]
    Value(#[from] ValueError),
    /// The dump does not contain the requested item.
    #[error("{0}")]
    Nothing(String),
    /// Nothing was found, but the requested item may be in memory that is missing from the dump.
    #[error("{}, but the dump is incomplete: {}", .0, .1.message)]
    Unknown(Box<Error>, Box<Note>),
    /// The dumps are not of one process, or not in the order in which they were taken.
    #[error("{0}")]
    Unrelated(String),
    /// The query is invalid for this runtime or dump.
    #[error("{0}")]
    Query(String),
}

impl Error {
    /// Wraps this error in [`Error::Unknown`] if missing data can cause such an error and `notes` report a loss of data. Other errors stay
    /// unchanged.
    pub(crate) fn given(self, notes: &Notes) -> Error {
        match (self, notes.first_loss()) {
            (
                error @ (Error::NoObject(_)
                | Error::NotIn(..)
                | Error::NoRoot(_)
                | Error::NoValueType(..)
                | Error::NotAnException(..)
                | Error::Nothing(_)
                | Error::Query(_)),
                Some(loss),
            ) => Error::Unknown(Box::new(error), Box::new(loss.clone())),
            (error, _) => error,
        }
    }
}

/// Returns a remark if `address` is outside of the address space of any process, and its digits are those of a decimal address within it.
fn in_decimal(address: Addr) -> String {
    /// End of the address space of processes, which has 48 bits on arm64 and 47 on x64.
    const END: u64 = 1 << 48;
    /// No heap is below 4 GiB.
    const LOWEST: u64 = 1 << 32;
    let decimal = format!("{:x}", address.0).parse::<u64>().ok().filter(|decimal| address.0 >= END && (LOWEST..END).contains(decimal));
    decimal
        .map(|decimal| format!("; as a decimal number it is {}, which is written 0n{decimal} or in hexadecimal", Addr(decimal)))
        .unwrap_or_default()
}
