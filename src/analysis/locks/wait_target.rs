//! The lock that contains the object on which a thread waits.

use crate::base::Addr;
use crate::model::{LockKind, WaitKind};

/// The lock that the program uses, such as a `SemaphoreSlim`, for an object inside it on which a thread waits, such as its monitor; and the kind of
/// that wait.
#[derive(Clone, Copy, Debug)]
pub(super) struct WaitTarget {
    pub(super) object: Addr,
    pub(super) kind: LockKind,
    pub(super) wait: WaitKind,
}
