//! The lock that a part belongs to.

use crate::base::Addr;
use crate::model::{LockKind, WaitKind};

/// What a part belongs to: the object that people know, and what a thread that waits for the part is blocked in.
#[derive(Clone, Copy, Debug)]
pub(super) struct Whole {
    pub(super) object: Addr,
    pub(super) kind: LockKind,
    pub(super) wait: WaitKind,
}
