//! Why a frame, or the rest of a stack, cannot be told.

use super::UnwindError;
use crate::base::Addr;
use crate::memory::ReadError;

/// What went wrong, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum StackError {
    /// Memory that neither the dump nor a module file has.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// Memory that does not hold what it must.
    #[error("{what} at {at}")]
    Invalid {
        /// Where.
        at: Addr,
        /// What is wrong with it.
        what: &'static str,
    },
    /// Code that this gcdump cannot look up or unwind.
    #[error("{what} at {at}, which this gcdump does not read")]
    Unsupported {
        /// Where.
        at: Addr,
        /// What it is.
        what: &'static str,
    },
}

impl StackError {
    /// Something at `at` that is not as it must be.
    pub(crate) const fn invalid(at: Addr, what: &'static str) -> StackError {
        StackError::Invalid { at, what }
    }

    /// The address that the error is about.
    pub(crate) const fn address(&self) -> Addr {
        match self {
            StackError::Read(e) => e.address,
            StackError::Invalid { at, .. } | StackError::Unsupported { at, .. } => *at,
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
