//! A piece of managed code.

use super::super::{FunctionEntry, StackError};
use crate::base::{Addr, AddrRange};

/// The origin of a piece of code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CodeOrigin {
    /// Compiled by the JIT in this process.
    Jitted {
        /// The method's code header (`RealCodeHeader`).
        header: Addr,
        /// The method's exception clauses; null if it has none.
        clauses: Addr,
    },
    /// Compiled ahead of time, in an image.
    ReadyToRun {
        /// The image's ReadyToRun header.
        header: Addr,
        /// Index of the method's body in the image's function table.
        index: u64,
    },
}

/// A piece of managed code: the body of a method, or one of its funclets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Code {
    /// The method.
    pub(crate) method_desc: Addr,
    /// Start of the method's body.
    pub(crate) start: Addr,
    /// Address range of this piece.
    pub(crate) range: AddrRange,
    /// The origin of the code.
    pub(crate) origin: CodeOrigin,
    /// The address that the offsets in `entry` are relative to.
    pub(crate) base: Addr,
    /// The function table entry of this piece, with its unwind info.
    pub(crate) entry: FunctionEntry,
    /// Whether this piece is a funclet: a catch, finally or filter block.
    pub(crate) funclet: bool,
    /// The method's GC info; an error if the memory that leads to it is not in the dump.
    pub(crate) gc_info: Result<Addr, StackError>,
    /// Version of the GC info.
    pub(crate) gc_version: u32,
    /// Length of the method's code in bytes according to the unwind entries. For JIT-compiled code, GC info must have the same length; on arm64,
    /// where entries have no end, the value is 0. For ReadyToRun code, the code is counted up to the end of this piece, and GC info may have a
    /// greater length.
    pub(crate) code_length: u64,
}

impl Code {
    /// Offset of `ip` in the method, as in GC info and exception clauses.
    pub(crate) fn offset(&self, ip: Addr) -> u64 {
        ip.since(self.start).unwrap_or(0)
    }

    /// Offset of this piece in the method.
    pub(crate) fn piece_offset(&self) -> u64 {
        self.offset(self.range.start)
    }
}
