//! GC info that cannot be used.

use crate::base::{Addr, Arch};
use crate::memory::ReadError;

/// GC info that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum GcInfoError {
    /// The dump does not have all of the GC info.
    #[error("GC info: {0}")]
    Missing(#[from] ReadError),
    /// A version that is not known.
    #[error("GC info of version {version} is not known")]
    Version {
        /// The version.
        version: u32,
    },
    /// An architecture whose stacks are not walked.
    #[error("GC info of {arch} is not known")]
    Arch {
        /// The architecture.
        arch: Arch,
    },
    /// An instruction that is not of the method.
    #[error("offset {offset} is not in a method of {code_length} bytes")]
    Outside {
        /// Distance from the method's start in bytes.
        offset: u32,
        /// The length of the method's code in bytes.
        code_length: u32,
    },
    /// The bytes are not GC info, or of another version.
    #[error("the GC info at {address} is invalid at bit {bit}: {what}")]
    Malformed {
        /// Where the info begins.
        address: Addr,
        /// Distance in bits.
        bit: u64,
        /// The contradiction.
        what: &'static str,
    },
}
