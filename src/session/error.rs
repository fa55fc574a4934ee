//! Why a question has no answer.

use super::{MemoryLimit, ValueError};
use crate::base::Addr;
use crate::contract::{ContractError, RuntimeError};
use crate::dump::DumpError;
use crate::graph::GraphError;

/// Why a question has no answer. What an answer merely lacks is in its [`Notes`](crate::base::Notes) instead.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file is no dump, or cannot be read.
    #[error(transparent)]
    Dump(#[from] DumpError),
    /// The dump has no runtime that can be read.
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
    /// The runtime does not describe what the question needs.
    #[error(transparent)]
    Contract(#[from] ContractError),
    /// The heap has more objects or references than can be indexed.
    #[error(transparent)]
    Graph(#[from] GraphError),
    /// The answer would take more memory than [`Limits::max_memory`](crate::base::Limits::max_memory) allows.
    #[error(transparent)]
    Memory(#[from] MemoryLimit),
    /// No object starts at, or lies around, the address.
    #[error("there is no object at {0}; `gcdump where {0}` says what is there")]
    NoObject(Addr),
    /// An object or a value is not what it was read as, or is not in the dump.
    #[error(transparent)]
    Value(#[from] ValueError),
    /// The dump holds nothing of what was asked for.
    #[error("{0}")]
    Nothing(String),
    /// The question makes no sense for this runtime or this dump.
    #[error("{0}")]
    Query(String),
}
