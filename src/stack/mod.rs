//! Managed stacks: code lookup, unwinding, explicit frames of the runtime, and the references that a frame holds.
//!
//! Supports x64 and arm64, little-endian, .NET 8 and later. Facts and how they were verified: `docs/internals/stacks.md`.

mod budget;
mod bytes;
pub(crate) mod clauses;
pub(crate) mod code;
pub(crate) mod debug_info;
mod error;
pub(crate) mod frames;
pub(crate) mod gc_info;
mod known;
pub(crate) mod native;
mod registers;
mod unwind;
pub(crate) mod walk;
pub(crate) mod walked;

pub(crate) use budget::{Allowance, WalkBudget};
pub(crate) use bytes::{CodeBytes, LookUps};
pub(crate) use error::StackError;
pub(crate) use known::CostedCache;
pub(crate) use registers::{RegisterNames, Registers, Saved};
pub(crate) use unwind::{FunctionEntry, UnwindError, end_of, gc_info_after, unwind};
#[cfg(feature = "internals")]
pub use {
    debug_info::try_debug_info,
    gc_info::try_gc_info,
    native::{try_eh_frame, try_native},
    unwind::try_unwind,
};

use crate::contract::Contract;

/// Contracts that this module reads.
pub(crate) const CONTRACTS: &[Contract] =
    &[code::CodeMap::CONTRACT, debug_info::DebugInfo::CONTRACT, frames::FrameReader::CONTRACT, gc_info::GcInfo::CONTRACT];
