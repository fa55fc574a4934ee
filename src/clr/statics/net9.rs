//! Statics of .NET 9 and later. The pointers to a type's statics directly precede the auxiliary data (`MethodTableAuxiliaryData`) of its
//! method table. A thread static has an index into arrays of each thread.
//!
//! Source: contracts `RuntimeTypeSystem` and `Thread` of .NET 10; every rule was verified on dumps (`docs/internals/types.md#statics`).

use std::collections::HashSet;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::base::{Base, object_of_handle};
use crate::base::hash::Map;
use crate::base::missed::{contradiction, tried};
use crate::base::{Addr, AddrRange, Collector, NoteKind};
use crate::clr::fields::Types;
use crate::clr::method_table::MethodTableInfo;
use crate::clr::threads::is_running;
use crate::contract::Descriptor;
use crate::data::{Bound, DynamicStaticsInfo, InFlightTLSData, Structure, Thread, ThreadLocalData, ThreadStaticsInfo, bind};
use crate::memory::Memory;

/// Flag in a base pointer: the class constructor has not completed.
const NOT_INITIALIZED: u64 = 1;
/// Index of thread statics that no thread has used yet.
const NO_INDEX: u32 = u32::MAX;
// Kinds of storage of thread statics, in the high byte of an index.
const IN_ARRAY: u32 = 0;
const COLLECTIBLE: u32 = 1;
const DIRECT: u32 = 2;
const INDEX_MASK: u32 = 0x00ff_ffff;
/// Maximum number of entries of a thread's list of in-flight thread statics. In-flight thread statics are not in the thread's array yet.
const MAX_IN_FLIGHT: usize = 65_536;

/// Layouts of thread statics.
#[derive(Clone, Debug)]
struct ThreadStatics {
    info: Bound<ThreadStaticsInfo>,
    info_bytes: u64,
    thread: Option<Bound<Thread>>,
    locals: Bound<ThreadLocalData>,
    in_flight: Option<Bound<InFlightTLSData>>,
    locals_bytes: u64,
    /// Number of indices that have no element in the array. These are the lowest indices.
    skipped: u64,
}

impl ThreadStatics {
    fn bind(d: &Descriptor) -> Option<ThreadStatics> {
        Some(ThreadStatics {
            info: bind!(d, ThreadStaticsInfo { NonGCTlsIndex, GCTlsIndex }).ok()?,
            info_bytes: ThreadStaticsInfo::size(d).ok()?,
            thread: bind!(d, Thread { ThreadLocalDataPtr, State? }).ok(),
            locals: bind!(d, ThreadLocalData {
                NonCollectibleTlsArrayData, NonCollectibleTlsDataCount, CollectibleTlsArrayData, CollectibleTlsDataCount, InFlightData?
            })
            .ok()?,
            in_flight: bind!(d, InFlightTLSData { Next, TlsIndex, TLSData }).ok(),
            locals_bytes: ThreadLocalData::size(d).unwrap_or(64),
            skipped: d.number("NumberOfTlsOffsetsNotUsedInNoncollectibleArray").unwrap_or(2),
        })
    }
}

/// Locator of the bases of statics.
#[derive(Clone, Debug)]
pub(super) struct Net9 {
    memory: Arc<Memory>,
    statics: Bound<DynamicStaticsInfo>,
    statics_bytes: u64,
    mask: u64,
    threads: Option<ThreadStatics>,
    array_data: Option<u64>,
    /// Address of the head of the first in-flight list that was not read completely.
    unended: Arc<OnceLock<Addr>>,
    /// The thread that owns each block of thread statics read so far. A second owner is a contradiction.
    owners: Arc<Mutex<Map<Addr, Addr>>>,
}

impl Net9 {
    /// Binds to a runtime. `threads` enables thread statics.
    pub(super) fn bind(memory: &Arc<Memory>, d: &Descriptor, threads: bool, array_data: Option<u64>) -> Option<Net9> {
        Some(Net9 {
            memory: Arc::clone(memory),
            statics: bind!(d, DynamicStaticsInfo { GCStatics, NonGCStatics }).ok()?,
            statics_bytes: DynamicStaticsInfo::size(d).ok()?,
            mask: d.number("StaticsPointerMask").unwrap_or(!NOT_INITIALIZED),
            threads: if threads { ThreadStatics::bind(d) } else { None },
            array_data,
            unended: Arc::default(),
            owners: Arc::default(),
        })
    }

    /// Adds a note if an in-flight list was not read completely, because the list may contain thread statics that were not found.
    pub(super) fn note(&self, notes: &Collector) {
        if let Some(at) = self.unended.get() {
            notes.add(NoteKind::LimitHit, *at, format!("the list of thread statics in flight at {at} has a cycle or exceeds its limit"));
        }
    }

    /// The base of the statics of a type that has a static field of this kind. If `gc`, this is the base for references, otherwise the base for
    /// other fields.
    pub(super) fn base(&self, types: &Types, info: &MethodTableInfo, gc: bool) -> Option<Base> {
        let statics = self.end(types, info)?.minus(self.statics_bytes)?;
        let field = if gc { DynamicStaticsInfo::GCStatics } else { DynamicStaticsInfo::NonGCStatics };
        let at = self.statics.place(statics, field)?;
        let word = self.memory.word(at).ok()?;
        let base = Base { address: self.memory.followed(at, Addr(word & self.mask))?, initialized: word & NOT_INITIALIZED == 0 };
        // The class is marked as initialized after its statics are allocated (`MethodTable::SetClassInited`).
        if base.initialized && base.address.is_null() {
            contradiction(at, "an initialized class has no memory for its static fields");
            return None;
        }
        Some(base)
    }

    /// The end of the structures of a type that has static fields.
    fn end(&self, types: &Types, info: &MethodTableInfo) -> Option<Addr> {
        let end = types.names().method_tables().statics_end(info.address);
        if end.is_none() {
            contradiction(info.address, "a type with static fields has no structures for them");
        }
        end
    }

    /// The index of a type's thread statics, which is the same in all threads. `None` if the index is unknown; `Some(None)` if no thread has
    /// thread statics of the type yet.
    pub(super) fn thread_index(&self, types: &Types, info: &MethodTableInfo, gc: bool) -> Option<Option<u32>> {
        let t = self.threads.as_ref()?;
        let end = self.end(types, info)?;
        let field = if gc { ThreadStaticsInfo::GCTlsIndex } else { ThreadStaticsInfo::NonGCTlsIndex };
        let index = t.info.get(&self.memory, end.minus(t.info_bytes)?, field)?;
        Some((index != NO_INDEX).then_some(index))
    }

    /// The block of thread statics of `thread`. Null for threads that are dead, have not started, or have never accessed a thread static.
    pub(super) fn block(&self, thread: Addr) -> Option<Addr> {
        let t = self.threads.as_ref()?;
        let data = self.locals(t, thread)?;
        if !data.is_null() {
            // The block is in the thread-local storage of the OS thread.
            self.memory.spare(AddrRange::new(data, data.plus(t.locals_bytes)));
        }
        Some(data)
    }

    /// The base at `index` in the block at `data`; null if not allocated yet. `afford` charges steps for reading lists.
    pub(super) fn in_block(&self, data: Addr, index: u32, afford: &dyn Fn(u64) -> bool) -> Option<Addr> {
        let t = self.threads.as_ref()?;
        let base = self.indexed(t, data, index)?;
        if base.is_null() { self.in_flight(t, data, index, afford) } else { Some(base) }
    }

    /// The array of thread statics of `thread`: the address of the reference to the array, and the address of the array.
    pub(super) fn thread_array(&self, thread: Addr) -> Option<(Addr, Addr)> {
        let t = self.threads.as_ref()?;
        let data = self.locals(t, thread).filter(|data| !data.is_null())?;
        let at = t.locals.place(data, ThreadLocalData::NonCollectibleTlsArrayData)?;
        self.memory.link(at).map(|array| (at, array))
    }

    /// The block of thread statics of `thread`; null for threads that have not started or are ending.
    fn locals(&self, t: &ThreadStatics, thread: Addr) -> Option<Addr> {
        let fields = t.thread.as_ref()?;
        let at = fields.place(thread, Thread::ThreadLocalDataPtr)?;
        let data = self.memory.link_or_null(at)?;
        if data.is_null() {
            let state = tried(|| fields.get(&self.memory, thread, Thread::State));
            if state.is_some_and(is_running) {
                contradiction(at, "a thread that has started has no thread statics");
            }
            return Some(data);
        }
        let owner = *self.owners.lock().unwrap_or_else(PoisonError::into_inner).entry(data).or_insert(thread);
        if owner != thread {
            contradiction(at, "two threads have the same thread statics");
        }
        Some(data)
    }

    /// The base at `index`, without the in-flight list; null if not allocated yet.
    fn indexed(&self, t: &ThreadStatics, data: Addr, index: u32) -> Option<Addr> {
        let (kind, n) = (index >> 24, index & INDEX_MASK);
        let word = self.memory.ptr_bytes();
        let within = |count| t.locals.get(&self.memory, data, count).map(|c| n < c);
        match kind {
            DIRECT => Some(data.plus(u64::from(n))),
            IN_ARRAY => {
                let array = t.locals.link_or_null(&self.memory, data, ThreadLocalData::NonCollectibleTlsArrayData)?;
                if array.is_null() || !within(ThreadLocalData::NonCollectibleTlsDataCount)? {
                    return Some(Addr::NULL);
                }
                let n = u64::from(n).checked_sub(t.skipped)?;
                self.memory.link_or_null(array.plus(self.array_data?).element(n, word))
            }
            COLLECTIBLE => {
                let handles = t.locals.link_or_null(&self.memory, data, ThreadLocalData::CollectibleTlsArrayData)?;
                if handles.is_null() || !within(ThreadLocalData::CollectibleTlsDataCount)? {
                    return Some(Addr::NULL);
                }
                object_of_handle(&self.memory, handles.element(u64::from(n), word))
            }
            _ => None,
        }
    }

    /// Looks `index` up in the thread's list of in-flight thread statics. An object is in this list while a class constructor runs. The object
    /// stays in the list if a class constructor ran when the array was created (the result agrees with ClrMD).
    fn in_flight(&self, t: &ThreadStatics, data: Addr, index: u32, afford: &dyn Fn(u64) -> bool) -> Option<Addr> {
        let head = t.locals.place(data, ThreadLocalData::InFlightData);
        let (Some(entry), Some(first)) = (&t.in_flight, head) else { return Some(Addr::NULL) };
        let mut at = self.memory.link_or_null(first)?;
        let mut seen = HashSet::new();
        while !at.is_null() {
            if seen.len() >= MAX_IN_FLIGHT || !seen.insert(at) {
                let _ = self.unended.set(first);
                return None;
            }
            if !afford(1) {
                return None;
            }
            if entry.get(&self.memory, at, InFlightTLSData::TlsIndex)? == index {
                return object_of_handle(&self.memory, entry.place(at, InFlightTLSData::TLSData)?);
            }
            at = entry.link_or_null(&self.memory, at, InFlightTLSData::Next)?;
        }
        Some(Addr::NULL)
    }
}
