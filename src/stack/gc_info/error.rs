//! Errors of decoding GC info.

use crate::base::{Addr, Arch};
use crate::memory::ReadError;

/// Why GC info cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum GcInfoError {
    /// The dump does not have all of the GC info.
    #[error("GC info: {0}")]
    Missing(#[from] ReadError),
    /// The version is not supported.
    #[error("GC info version {version} is not supported")]
    Version {
        /// The version.
        version: u32,
    },
    /// The architecture is not supported.
    #[error("GC info of {arch} is not supported")]
    Arch {
        /// The architecture.
        arch: Arch,
    },
    /// The offset is not in the method.
    #[error("offset {offset} is not in a method of {code_length} bytes")]
    Outside {
        /// Distance from the method's start in bytes.
        offset: u32,
        /// The length of the method's code in bytes.
        code_length: u32,
    },
    /// The bytes are not GC info, or have another version.
    #[error("the GC info at {address} is invalid at bit {bit}: {what}")]
    Malformed {
        /// Address of the info.
        address: Addr,
        /// Offset in bits.
        bit: u64,
        /// The error.
        what: &'static str,
    },
}
