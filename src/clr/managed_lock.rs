//! `System.Threading.Lock`, the lock of the managed library. In .NET 11 and in NativeAOT programs, each monitor has such a lock.
//!
//! Source: `Lock.cs`; `docs/internals/locks.md#monitors`.

use super::fields::{CORE, Types};
use super::library::{FieldAt, fields_of};
use crate::base::Addr;
use crate::memory::Memory;

// Bits of `Lock._state`.
const LOCKED: u32 = 1;
const WAITERS_SHIFT: u32 = 7;
const WAITERS_SHIFT_NET8: u32 = 3;

fields_of! {
    /// `System.Threading.Lock` (.NET 9 and later, NativeAOT of .NET 8).
    pub(crate) struct LockFields {
        state: req "_state",
        owner: req "_owningThreadId",
        recursion: req "_recursionCount",
        event: opt "_waitEvent|_waitEventOrCondition|_lazyEvent",
        /// Since .NET 11, the event may be a `Condition`, and the owner is always a managed id.
        condition: opt "_waitEventOrCondition",
        /// NativeAOT of .NET 8, where the state has the number of waiters at another position.
        of_net8: opt "_lazyEvent",
    }
}

/// The state of a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LockState {
    /// Whether a thread holds the lock.
    pub(crate) held: bool,
    /// Id of the owner; stale if the lock is free.
    pub(crate) owner: u32,
    /// Number of times that the owner entered the lock again.
    pub(crate) recursion: u32,
    /// Number of waiting threads.
    pub(crate) waiters: u32,
}

impl LockFields {
    /// Binds to the library's type; `None` if the type is not loaded, or its fields are unknown.
    pub(crate) fn of_library(types: &Types) -> Option<LockFields> {
        let definition = types.definition_named(CORE, "System.Threading.Lock")?;
        LockFields::bind(types, types.loaded(definition)?).ok()
    }

    /// The state of the lock at `lock`; `None` if the lock is not in the dump.
    pub(crate) fn read(&self, memory: &Memory, lock: Addr) -> Option<LockState> {
        let word = |field: FieldAt| memory.u32(field.of_object(lock)).ok();
        let (state, owner, recursion) = (word(self.state)?, word(self.owner)?, word(self.recursion)?);
        let shift = if self.of_net8.is_some() { WAITERS_SHIFT_NET8 } else { WAITERS_SHIFT };
        Some(LockState { held: state & LOCKED != 0, owner, recursion, waiters: state >> shift })
    }
}
