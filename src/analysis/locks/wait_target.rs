//! The lock that a part belongs to.

use crate::base::Addr;
use crate::model::{LockKind, WaitKind};

/// The lock that a part belongs to, as the program sees it, and the kind of wait of a thread that waits for the part.
#[derive(Clone, Copy, Debug)]
pub(super) struct WaitTarget {
    pub(super) object: Addr,
    pub(super) kind: LockKind,
    pub(super) wait: WaitKind,
}
