//! The header word before each object: thin lock, hash code or sync block index.
//!
//! Source: `syncblk.h`, contracts `Object` and `SyncBlock`; offsets of `SyncBlock` measured on .NET 8, 9 and 10
//! (`docs/internals/types.md#locks`). Since .NET 11, a sync block has a handle to a `System.Threading.Lock` instead of a lock.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use super::fields::Types;
use super::managed_lock::LockFields;
use super::objects::Objects;
use super::threads::Threads;
use crate::base::missed::{contradiction, tried};
use crate::base::{Addr, Collector, Disjoint, Limits, NoteKind};
use crate::contract::{Contract, ContractError, Descriptor};
use crate::data::{Bound, ObjectHeader, Structure, SyncBlock, SyncBlockCache, SyncTableEntry, Thread, bind};
use crate::memory::Memory;
use crate::model::{HeaderModel, HeaderState, SyncBlockModel};

// Bits of the header word.
/// `BIT_SBLK_FINALIZER_RUN`.
const FINALIZER_RUN: u32 = 0x4000_0000;
const HASH_OR_INDEX: u32 = 0x0800_0000;
const IS_HASH: u32 = 0x0400_0000;
const HASH_OR_INDEX_MASK: u32 = 0x03ff_ffff;
const THIN_OWNER: u32 = 0xffff;
const THIN_RECURSION_SHIFT: u32 = 16;
const THIN_RECURSION: u32 = 0x3f;

// Bits of `SyncBlock.LockState`.
const LOCKED: u32 = 1;
const WAITERS_SHIFT: u32 = 6;
/// Recursion count that no thread reaches.
pub(crate) const MAX_RECURSION: u32 = 1 << 20;

#[derive(Clone, Debug)]
struct Table {
    at: Addr,
    entry: Bound<SyncTableEntry>,
    entry_bytes: u64,
    block: Option<Bound<SyncBlock>>,
}

/// Whether the object with this header word had its finalizer suppressed or run.
pub(crate) fn finalizer_suppressed(word: u32) -> bool {
    word & FINALIZER_RUN != 0
}

/// Use of an object's header word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeaderUse {
    /// Unused, or flags only.
    None,
    /// An uncontended lock: managed id of the owning thread.
    ThinLock(u32),
    /// A hash code.
    Hash,
    /// The index of a sync block.
    SyncBlock(u32),
}

impl HeaderUse {
    /// Whether a header word without a lock, hash code or sync block is valid: its recursion count must be 0.
    #[inline]
    pub fn is_possible(word: u32) -> bool {
        word >> THIN_RECURSION_SHIFT & THIN_RECURSION == 0
    }

    /// Decodes `word`.
    #[inline]
    pub fn of(word: u32) -> HeaderUse {
        match (word & HASH_OR_INDEX != 0, word & IS_HASH != 0) {
            (false, _) if word & THIN_OWNER == 0 => HeaderUse::None,
            (false, _) => HeaderUse::ThinLock(word & THIN_OWNER),
            (true, true) => HeaderUse::Hash,
            (true, false) => HeaderUse::SyncBlock(word & HASH_OR_INDEX_MASK),
        }
    }
}

/// Reader of object headers.
#[derive(Clone, Debug)]
pub struct Headers {
    memory: Arc<Memory>,
    /// Distance from the header word to the object in bytes.
    before: u64,
    table: Option<Table>,
    cache: Option<(Addr, Bound<SyncBlockCache>)>,
    thread: Option<Bound<Thread>>,
    /// The types of the library, and the fields of `Lock`.
    locks: Option<(Arc<Types>, OnceLock<Option<LockFields>>)>,
    limit: u64,
    /// Whether a collection may have moved objects, so that references may be stale.
    moving: bool,
}

/// Bytes from the header word to the object. Newer runtimes describe the header as a type, which ends where the object begins.
///
/// # Errors
/// [`ContractError`] if the descriptor does not have the offset of the header word.
pub(crate) fn header_distance(d: &Descriptor) -> Result<u64, ContractError> {
    let published = d.number("SyncBlockValueToObjectOffset");
    let described = || ObjectHeader::size(d).ok()?.checked_sub(ObjectHeader::SyncBlockValue.bind(d).ok()?.bytes());
    published.or_else(|e| described().ok_or(e))
}

impl Headers {
    /// The contract of the sync table, advertised since .NET 11.
    pub const SYNC_BLOCK: Contract = Contract::optional("SyncBlock", &["1"]);

    /// Binds to a runtime. Without a readable sync table, sync blocks only have an index.
    ///
    /// # Errors
    /// [`ContractError`] if no supported version of contract `Object` is advertised, or the descriptor does not have the offset of the
    /// header word.
    pub fn bind(memory: &Arc<Memory>, d: &Descriptor, limits: &Limits) -> Result<Headers, ContractError> {
        Objects::CONTRACT.require(d)?;
        let sync_block = Self::SYNC_BLOCK.permit(d).is_ok();
        let table = || {
            sync_block.then_some(())?;
            Some(Table {
                // The global is the address of a variable that contains the address of the table.
                at: memory.link(d.pointer("SyncTableEntries").ok()?)?,
                entry: bind!(d, SyncTableEntry { SyncBlock, Object? }).ok()?,
                entry_bytes: SyncTableEntry::size(d).ok()?,
                block: bind!(d, SyncBlock {
                    LockState?, Recursion?, OwnerThread?, OwnerThreadId?, Lock?, ThinLock?, HashCode?, Index?
                })
                .ok(),
            })
        };
        let cache = || {
            let at = memory.ptr(d.pointer("SyncBlockCache").ok()?).ok().filter(|a| !a.is_null())?;
            Some((at, bind!(d, SyncBlockCache { FirstFreeIndex, Capacity? }).ok()?))
        };
        Ok(Headers {
            memory: Arc::clone(memory),
            before: header_distance(d)?,
            table: table(),
            cache: cache(),
            thread: Threads::CONTRACT.permit(d).and_then(|()| bind!(d, Thread { Id })).ok(),
            locks: None,
            limit: limits.sync_blocks,
            moving: false,
        })
    }

    /// Adds support for locks that are managed objects (.NET 11).
    #[must_use]
    pub fn with_locks(self, types: &Arc<Types>) -> Headers {
        Headers { locks: Some((Arc::clone(types), OnceLock::new())), ..self }
    }

    /// The handles from sync blocks to their locks (.NET 11).
    pub(crate) fn lock_handles(&self, notes: &Collector) -> Vec<Addr> {
        let layout = self.table.as_ref().and_then(|table| table.block.as_ref()).filter(|block| block.has(SyncBlock::Lock));
        let blocks = layout.and_then(|layout| Some((layout, self.sync_blocks(notes)?)));
        let handle = |layout: &Bound<SyncBlock>, block: &SyncBlockModel| layout.link(&self.memory, block.address?, SyncBlock::Lock);
        blocks.into_iter().flat_map(|(layout, blocks)| blocks.into_iter().filter_map(move |b| handle(layout, &b))).collect()
    }

    /// Disables consistency checks if `moving`: while a collection moves objects, contradictions prove nothing.
    pub(crate) fn while_moving(self, moving: bool) -> Headers {
        Headers { moving, ..self }
    }

    /// Distance from the header word to the object in bytes.
    pub fn before(&self) -> u64 {
        self.before
    }

    /// The first unused index of the sync table; `None` if the table is not in the dump.
    pub fn sync_end(&self) -> Option<u32> {
        self.table.as_ref().filter(|table| table.entry.has(SyncTableEntry::Object))?;
        self.stored_end().map(|(_, n)| n.min(HASH_OR_INDEX_MASK))
    }

    /// The first unused index of the sync table, with the address where the runtime stores this index.
    fn stored_end(&self) -> Option<(Addr, u32)> {
        let (cache, fields) = self.cache.as_ref()?;
        self.table.as_ref()?;
        let at = fields.place(*cache, SyncBlockCache::FirstFreeIndex)?;
        Some((at, self.memory.u32(at).ok()?))
    }

    /// Adds a note if the end of the sync table is impossible. Entry 0 is never used, so the first unused index is at least 1. At the
    /// table's capacity, the runtime allocates a larger table before it uses an index (`SyncBlockCache::NewSyncBlockSlot` in
    /// `syncblk.cpp`).
    pub(crate) fn note_sync_end(&self, notes: &Collector) {
        let Some((at, end)) = self.stored_end() else { return };
        let capacity = self.cache.as_ref().and_then(|(at, cache)| cache.get(&self.memory, *at, SyncBlockCache::Capacity));
        if end == 0 || capacity.is_some_and(|n| end > n) {
            let of = capacity.map_or(String::new(), |n| format!(", but the table has {n} entries"));
            notes.add(NoteKind::Invalid, at, format!("the first unused index of the sync table is {end}{of}"));
        }
    }

    /// Address and object of the entry of the sync table at `index`; the object is null if the entry is free. `None` if the entry is not in the
    /// dump.
    pub fn sync_entry(&self, index: u32) -> Option<(Addr, Addr)> {
        let table = self.table.as_ref()?;
        let entry = table.at.element(u64::from(index), table.entry_bytes);
        let object = table.entry.get(&self.memory, entry, SyncTableEntry::Object)?;
        // A free entry contains the index of the next free entry, with bit 0 set.
        Some((entry, if object.0 & 1 == 0 { object } else { Addr::NULL }))
    }

    /// The range of indices in use, up to `Limits::sync_blocks`; a note reports entries beyond. `None` if the table is not in the dump.
    pub fn sync_indices(&self, notes: &Collector) -> Option<Range<u32>> {
        let table = self.table.as_ref()?;
        let end = self.stored_end()?.1;
        let limit = self.sync_limit();
        if end > limit {
            notes.add(NoteKind::LimitHit, table.at, format!("only {limit} of {end} entries of the sync table are read"));
        }
        Some(1..end.min(limit))
    }

    /// The budget for entries of the sync table.
    pub fn sync_room(&self) -> Disjoint {
        Disjoint::new(self.memory.dump_bytes(), self.table.as_ref().map_or(1, |table| table.entry_bytes))
    }

    /// Maximum number of entries of the sync table that are read.
    pub fn sync_limit(&self) -> u32 {
        u32::try_from(self.limit).unwrap_or(u32::MAX).min(HASH_OR_INDEX_MASK)
    }

    /// The header of the object at `object`; `None` if the header is not in the dump.
    pub fn read(&self, object: Addr) -> Option<HeaderModel> {
        let word = self.memory.u32(object.minus(self.before)?).ok()?;
        let none = HeaderModel { state: HeaderState::None, word, ..HeaderModel::default() };
        Some(if word & HASH_OR_INDEX == 0 {
            match word & THIN_OWNER {
                0 => none,
                owner => HeaderModel {
                    state: HeaderState::ThinLock,
                    owner_managed_id: Some(owner),
                    recursion: Some(word >> THIN_RECURSION_SHIFT & THIN_RECURSION),
                    ..none
                },
            }
        } else if word & IS_HASH != 0 {
            HeaderModel { state: HeaderState::Hash, hash_code: Some(word & HASH_OR_INDEX_MASK), ..none }
        } else {
            let block = self.block(word & HASH_OR_INDEX_MASK);
            self.check_entry(&block, Some(object));
            self.check_block(&block);
            let held = block.held == Some(true);
            HeaderModel {
                state: HeaderState::SyncBlock,
                owner_managed_id: block.owner_managed_id,
                recursion: block.recursion.filter(|_| held).map(|n| n.saturating_sub(1)),
                hash_code: block.hash_code,
                sync_block: Some(block),
                ..none
            }
        })
    }

    /// The hash code of the object at `object`, if it was ever computed.
    #[inline]
    pub fn hash_code(&self, object: Addr) -> Option<u32> {
        let word = self.memory.u32(object.minus(self.before)?).ok()?;
        if word & HASH_OR_INDEX == 0 {
            return None;
        }
        if word & IS_HASH != 0 { Some(word & HASH_OR_INDEX_MASK) } else { self.block(word & HASH_OR_INDEX_MASK).hash_code }
    }

    /// The sync block at `index` of the sync table.
    fn block(&self, index: u32) -> SyncBlockModel {
        let mut out = SyncBlockModel { index, ..SyncBlockModel::default() };
        let Some(table) = &self.table else { return out };
        let entry = table.at.element(u64::from(index), table.entry_bytes);
        let used = |at: &Addr| self.memory.ptr(*at).is_ok_and(|object| object.0 & 1 == 0);
        out.object = table.entry.place(entry, SyncTableEntry::Object).filter(used).and_then(|at| self.memory.link(at));
        out.address = table.entry.link(&self.memory, entry, SyncTableEntry::SyncBlock);
        let (Some(at), Some(l)) = (out.address, &table.block) else { return out };
        let field = |field| l.get(&self.memory, at, field);
        // 0 means that the hash code was never computed.
        out.hash_code = field(SyncBlock::HashCode).filter(|h| *h != 0).map(|h| h & HASH_OR_INDEX_MASK);
        if let (false, Some(lock)) = (l.has(SyncBlock::LockState), l.place(at, SyncBlock::Lock)) {
            self.lock_object(lock, field(SyncBlock::ThinLock), &mut out);
            return out;
        }
        let state = field(SyncBlock::LockState);
        out.held = state.map(|s| s & LOCKED != 0);
        out.waiters = state.map(|s| s >> WAITERS_SHIFT);
        out.recursion = field(SyncBlock::Recursion);
        out.owner = l.link(&self.memory, at, SyncBlock::OwnerThread);
        let by_thread = || self.thread.as_ref()?.get(&self.memory, out.owner?, Thread::Id);
        // Some runtimes do not clear the owner when the lock is released.
        if out.held == Some(true) {
            out.owner_managed_id = field(SyncBlock::OwnerThreadId).filter(|id| *id != 0).or_else(by_thread);
        } else {
            out.owner = None;
        }
        out
    }

    /// Reads the lock of a sync block of .NET 11: the object of the handle in the slot at `slot`. Before the first contention, the lock has
    /// no object, and `thin` is a thin lock as in a header.
    fn lock_object(&self, slot: Addr, thin: Option<u32>, out: &mut SyncBlockModel) {
        let Ok(handle) = self.memory.ptr(slot) else { return };
        if handle.is_null() {
            let owner = thin.map(|word| word & THIN_OWNER);
            out.held = owner.map(|id| id != 0);
            out.waiters = owner.map(|_| 0);
            out.owner_managed_id = owner.filter(|id| *id != 0);
            out.recursion =
                thin.map(|word| if word & THIN_OWNER == 0 { 0 } else { (word >> THIN_RECURSION_SHIFT & THIN_RECURSION).saturating_add(1) });
            return;
        }
        out.lock = self.memory.link(handle);
        let fields = self.locks.as_ref().and_then(|(types, fields)| *fields.get_or_init(|| LockFields::of_library(types)));
        let Some(state) = fields.zip(out.lock).and_then(|(fields, lock)| fields.read(&self.memory, lock)) else { return };
        out.held = Some(state.held);
        out.waiters = Some(state.waiters);
        out.owner_managed_id = Some(state.owner).filter(|id| state.held && *id != 0);
        out.recursion = Some(if state.held { state.recursion.saturating_add(1) } else { 0 });
    }

    /// The header of `object` refers to the entry of the sync table at `index`. Reports a contradiction if the entry does not belong to the
    /// object.
    pub(crate) fn check_named(&self, index: u32, object: Addr) {
        self.check_entry(&SyncBlockModel { index, ..SyncBlockModel::default() }, Some(object));
    }

    /// Reports contradictions between an entry of the sync table and its object, or between the entry and `object`, whose header refers to
    /// it. The runtime allocates an entry, then its block, and then updates the header.
    fn check_entry(&self, block: &SyncBlockModel, object: Option<Addr>) {
        let Some(table) = self.table.as_ref().filter(|_| !self.moving) else { return };
        let at = table.at.element(u64::from(block.index), table.entry_bytes);
        let word = |at: Addr| tried(|| self.memory.ptr(at)).ok();
        let word = |field| table.entry.place(at, field).and_then(word);
        let (Some(stored), Some(of_block)) = (word(SyncTableEntry::Object), word(SyncTableEntry::SyncBlock)) else { return };
        let free = stored.is_null() || stored.0 & 1 != 0;
        let header = object.and_then(|o| o.minus(self.before)).and_then(|at| tried(|| self.memory.u32(at)).ok());
        let named = header.map(|word| HeaderUse::of(word) == HeaderUse::SyncBlock(block.index));
        match (free, of_block.is_null(), named) {
            (true, false, _) => contradiction(at, "an entry of the sync table without an object has a sync block"),
            (true, _, Some(true)) => contradiction(at, "the header of an object refers to a free entry of the sync table"),
            (false, true, Some(true)) => {
                contradiction(at, "the header of an object refers to an entry of the sync table without a sync block")
            }
            (false, false, Some(false)) => contradiction(at, "the header of the object of a sync table entry does not refer to that entry"),
            (false, ..) if object.is_some_and(|object| object != stored) => {
                contradiction(at, "the header of an object refers to the sync table entry of another object");
            }
            _ => {}
        }
    }

    /// Reports contradictions between the words of a sync block. The runtime sets the owner and the recursion count after it takes the lock, and
    /// clears both before it releases the lock.
    fn check_block(&self, block: &SyncBlockModel) {
        let (Some(at), Some(l)) = (block.address, self.table.as_ref().and_then(|t| t.block.as_ref())) else { return };
        let field = |field| tried(|| l.get(&self.memory, at, field));
        let pointer = || tried(|| l.get(&self.memory, at, SyncBlock::OwnerThread)).map(|owner| !owner.is_null());
        let owned = field(SyncBlock::OwnerThreadId).map(|id| id != 0).or_else(pointer);
        match (block.held, owned) {
            (Some(true), Some(false)) => contradiction(at, "a monitor is locked, and no thread owns it"),
            (Some(false), Some(true)) => contradiction(at, "a monitor is not locked, and a thread owns it"),
            _ => {}
        }
        match (block.held, block.recursion) {
            (_, Some(MAX_RECURSION..)) => contradiction(at, "a monitor was entered more often than is possible"),
            (Some(true), Some(0)) => contradiction(at, "a monitor is locked, and was not entered"),
            (Some(false), Some(1..)) => contradiction(at, "a monitor is not locked, and was entered"),
            _ => {}
        }
        if field(SyncBlock::Index).is_some_and(|index| index & HASH_OR_INDEX_MASK != block.index) {
            contradiction(at, "a sync block has the index of another entry of the sync table");
        }
    }

    /// All sync blocks of objects, by index. `None` if the table is not in the dump.
    pub fn sync_blocks(&self, notes: &Collector) -> Option<Vec<SyncBlockModel>> {
        let (indices, room) = (self.sync_indices(notes)?, self.sync_room());
        let mut out = Vec::new();
        for index in indices {
            let block = self.block(index);
            self.check_entry(&block, block.object);
            self.check_block(&block);
            // The runtime allocates an entry before its block, so an entry without a block is skipped.
            if block.address.is_none() || block.object.is_none() {
                continue;
            }
            if !room.take(1) {
                break;
            }
            out.push(block);
        }
        room.note("reading the sync table", notes);
        Some(out)
    }
}
