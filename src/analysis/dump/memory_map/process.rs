//! The process whose memory is mapped.

use crate::dump::DumpFile;
use crate::memory::Memory;

/// A process, as recorded by the container.
#[derive(Clone, Copy)]
pub(super) struct Process<'d> {
    pub(super) file: &'d DumpFile,
    pub(super) memory: &'d Memory,
}
