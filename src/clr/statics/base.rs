//! The base of a type's statics, common to all releases.

use crate::base::Addr;
use crate::memory::Memory;

/// The base of a type's statics.
#[derive(Clone, Copy, Debug)]
pub(super) struct Base {
    /// Address; null if the base is not allocated yet.
    pub(super) address: Addr,
    /// Whether the class constructor has run.
    pub(super) initialized: bool,
}

/// The object of the handle that is stored at `at`; null if the handle is null.
pub(super) fn object_of_handle(memory: &Memory, at: Addr) -> Option<Addr> {
    let handle = memory.link_or_null(at)?;
    if handle.is_null() { Some(Addr::NULL) } else { memory.link_or_null(handle) }
}
