//! Errors of stack walks.

use super::UnwindError;
use super::gc_info::GcInfoError;
use crate::base::Addr;
use crate::base::missed::may_be_mapped;
use crate::memory::ReadError;

/// Why a frame, or the rest of a stack, is unknown.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum StackError {
    /// Memory is in neither the dump nor a module file.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// Memory has invalid contents.
    #[error("{what} at {at}")]
    Invalid {
        /// Address of the memory.
        at: Addr,
        /// The error.
        what: &'static str,
    },
    /// The stack contradicts itself, so its words may not be those of the process: scanning them does not replace the frames.
    #[error("{what} at {at}")]
    Broken {
        /// Address of the memory.
        at: Addr,
        /// The contradiction.
        what: &'static str,
    },
    /// A structure or code that gcdump does not support.
    #[error("{what} at {at} is not supported")]
    Unsupported {
        /// Address of the structure or code.
        at: Addr,
        /// The unsupported item.
        what: &'static str,
    },
}

impl StackError {
    /// The error for GC info at `at` that cannot be decoded.
    pub(super) fn of_gc_info(at: Addr, error: GcInfoError) -> StackError {
        match error {
            GcInfoError::Missing(e) => StackError::Read(e),
            GcInfoError::Version { .. } => StackError::Unsupported { at, what: "GC info of an unknown version" },
            _ => StackError::invalid(at, "malformed GC info"),
        }
    }

    /// An error about invalid memory at `at`.
    pub(crate) const fn invalid(at: Addr, what: &'static str) -> StackError {
        StackError::Invalid { at, what }
    }

    /// An error about a stack that contradicts itself at `at`.
    pub(crate) const fn broken(at: Addr, what: &'static str) -> StackError {
        StackError::Broken { at, what }
    }

    /// The address and the description of the contradiction, if the stack contradicts itself.
    pub(crate) fn contradiction(&self) -> Option<(Addr, &'static str)> {
        match self {
            StackError::Broken { at, what } => Some((*at, what)),
            // A lost word reads as a null pointer.
            StackError::Read(e) if !may_be_mapped(e.address) => Some((e.address, "a stack leads to an address that no process has")),
            StackError::Read(_) | StackError::Invalid { .. } | StackError::Unsupported { .. } => None,
        }
    }

    /// The address of the invalid, missing or unsupported item.
    pub(crate) const fn address(&self) -> Addr {
        match self {
            StackError::Read(e) => e.address,
            StackError::Invalid { at, .. } | StackError::Broken { at, .. } | StackError::Unsupported { at, .. } => *at,
        }
    }
}

impl From<UnwindError> for StackError {
    fn from(e: UnwindError) -> StackError {
        match e {
            UnwindError::Read(e) => StackError::Read(e),
            UnwindError::Invalid { at, what } => StackError::Invalid { at, what },
        }
    }
}
