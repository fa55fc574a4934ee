//! The lock that contains the object on which a thread waits.

use crate::analysis::{LockKind, WaitKind};
use crate::base::Addr;

/// The lock that the program uses, such as a `SemaphoreSlim`. A thread that waits for the lock is blocked on an object inside it, such as a monitor.
#[derive(Clone, Copy, Debug)]
pub(super) struct WaitTarget {
    pub(super) object: Addr,
    pub(super) kind: LockKind,
    pub(super) wait: WaitKind,
}
