use serde::Serialize;

use crate::base::{Addr, named_enum};

named_enum! {
    /// What the header word of an object holds.
    #[derive(Default)]
    pub enum HeaderState {
        /// Nothing: not locked, no hash code.
        #[default]
        None = "none",
        /// A lock that nobody waits for: owner and recursion are in the word.
        ThinLock = "thin-lock",
        /// A hash code.
        Hash = "hash",
        /// The number of a sync block, which holds lock and hash code.
        SyncBlock = "sync-block",
    }
}

/// The header word of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct HeaderModel {
    /// What it holds.
    pub state: HeaderState,
    /// The word itself.
    pub word: u32,
    /// Managed id of the thread that holds the lock; `null` where none does or where it is not known.
    pub owner_managed_id: Option<u32>,
    /// How often the owner has entered the lock again: 0 for one that was entered once.
    pub recursion: Option<u32>,
    /// Hash code that `RuntimeHelpers.GetHashCode` has returned for the object.
    pub hash_code: Option<u32>,
    /// The sync block.
    pub sync_block: Option<SyncBlockModel>,
}

/// A sync block: the lock and the hash code of an object that needs more than its header word.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct SyncBlockModel {
    /// Its number.
    pub index: u32,
    /// Address of the runtime's structure; `null` where it is not in the dump.
    pub address: Option<Addr>,
    /// The object that it belongs to.
    pub object: Option<Addr>,
    /// Whether the lock is held.
    pub held: Option<bool>,
    /// Runtime's `Thread` that holds it (.NET 8 and 9).
    pub owner: Option<Addr>,
    /// Managed id of the thread that holds it.
    pub owner_managed_id: Option<u32>,
    /// How often the owner has entered it: 1 for once.
    pub recursion: Option<u32>,
    /// Threads that wait to enter it.
    pub waiters: Option<u32>,
    /// Hash code of the object; `null` where nobody has asked for one.
    pub hash_code: Option<u32>,
}
