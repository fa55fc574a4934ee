//! The process that is mapped.

use crate::dump::DumpFile;
use crate::memory::Memory;

/// A process, as the container has it.
#[derive(Clone, Copy)]
pub(super) struct Process<'d> {
    pub(super) file: &'d DumpFile,
    pub(super) memory: &'d Memory,
}
