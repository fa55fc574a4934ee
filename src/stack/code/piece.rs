//! A piece of managed code.

use super::super::{FunctionEntry, StackError};
use crate::base::{Addr, AddrRange};

/// The origin of a piece of code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CodeOrigin {
    /// The JIT, in this process.
    Jitted {
        /// The method's code header (`RealCodeHeader`).
        header: Addr,
        /// The method's exception clauses; null without any.
        clauses: Addr,
    },
    /// The AOT compiler, in an image.
    ReadyToRun {
        /// The image's ReadyToRun header.
        header: Addr,
        /// The method's body in the image's table of functions.
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
    /// This piece.
    pub(crate) range: AddrRange,
    /// The origin of the code.
    pub(crate) origin: CodeOrigin,
    /// The address that the numbers of `entry` count from.
    pub(crate) base: Addr,
    /// This piece, and its unwind info.
    pub(crate) entry: FunctionEntry,
    /// Whether it is a funclet: a catch, finally or filter block.
    pub(crate) funclet: bool,
    /// The method's GC info; an error where the way to it is not in the dump.
    pub(crate) gc_info: Result<Addr, StackError>,
    /// Version of the GC info.
    pub(crate) gc_version: u32,
    /// Length of the method's code, which the GC info must agree with: exactly for code of the JIT, at least for an image's.
    pub(crate) code_length: u64,
}

impl Code {
    /// Offset of `ip` in the method, as GC info and exception clauses count.
    pub(crate) fn offset(&self, ip: Addr) -> u64 {
        ip.since(self.start).unwrap_or(0)
    }

    /// Offset of this piece in the method.
    pub(crate) fn piece_offset(&self) -> u64 {
        self.offset(self.range.start)
    }
}
