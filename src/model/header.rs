//! The header word of an object, and its sync block.

use serde::Serialize;

use crate::base::{Addr, named_enum};

named_enum! {
    /// Contents of an object's header word.
    #[derive(Default)]
    pub enum HeaderState {
        /// Empty: the object is not locked and does not have a hash code.
        #[default]
        None = "none",
        /// An uncontended lock, with owner and recursion level in the header.
        ThinLock = "thin-lock",
        /// A hash code.
        Hash = "hash",
        /// The index of a sync block, which holds the lock and the hash code.
        SyncBlock = "sync-block",
    }
}

/// The header word of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct HeaderModel {
    /// Contents.
    pub state: HeaderState,
    /// Raw value.
    pub word: u32,
    /// Managed id of the thread that holds the lock; `null` if unlocked or unknown.
    pub owner_managed_id: Option<u32>,
    /// Recursion level: 0 if the lock was entered once.
    pub recursion: Option<u32>,
    /// Hash code returned by `RuntimeHelpers.GetHashCode`.
    pub hash_code: Option<u32>,
    /// The sync block.
    pub sync_block: Option<SyncBlockModel>,
}

/// A sync block. It has the lock and the hash code of an object whose header word has no room for them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct SyncBlockModel {
    /// Index.
    pub index: u32,
    /// Address of the `SyncBlock`; `null` if it is not in the dump.
    pub address: Option<Addr>,
    /// The object that the sync block belongs to.
    pub object: Option<Addr>,
    /// Whether the lock is held.
    pub held: Option<bool>,
    /// Address of the owning `Thread` (.NET 8 and 9).
    pub owner: Option<Addr>,
    /// Managed id of the owning thread.
    pub owner_managed_id: Option<u32>,
    /// Number of times the owner entered the lock: 1 if it entered once.
    pub recursion: Option<u32>,
    /// The `System.Threading.Lock` of the sync block (.NET 11); `null` if it has none.
    pub lock: Option<Addr>,
    /// Number of waiting threads.
    pub waiters: Option<u32>,
    /// Hash code of the object; `null` if none was computed.
    pub hash_code: Option<u32>,
}
