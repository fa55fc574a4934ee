//! Bases of statics, wherever a release keeps them.

use crate::base::Addr;
use crate::memory::Memory;

/// The base of a type's statics.
#[derive(Clone, Copy, Debug)]
pub(super) struct Base {
    /// Null if not yet allocated.
    pub(super) address: Addr,
    /// Whether the class constructor has run.
    pub(super) initialized: bool,
}

impl Base {
    pub(super) const NONE: Base = Base { address: Addr::NULL, initialized: false };
}

/// The object of the handle stored at `at`; null without a handle.
pub(super) fn behind_handle(memory: &Memory, at: Addr) -> Option<Addr> {
    let handle = memory.link_or_null(at)?;
    if handle.is_null() { Some(Addr::NULL) } else { memory.link_or_null(handle) }
}
