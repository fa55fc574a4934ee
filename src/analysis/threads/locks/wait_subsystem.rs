//! Monitors of NativeAOT programs, which are managed `Lock` objects. Wait records of NativeAOT and .NET 11 on Unix.
//!
//! Source: `docs/internals/native-aot.md#locks-and-waits`, `docs/internals/locks.md`.

use super::objects::{LockObjects, LockType};
use super::wait_target::WaitTarget;
use crate::analysis::{LockKind, WaitKind};
use crate::base::Addr;
use crate::base::hash::Map;
use crate::bcl::Library;
use crate::clr::library::{Classifier, fields_of};

/// `ThreadWaitInfo.WaitSignalState.NotWaiting`. Lower values mean that the thread waits.
const NOT_WAITING: u8 = 2;
/// Maximum number of objects that a thread waits for at once.
const MAX_WAITED: u64 = 64;
/// Maximum number of entries in the table of monitors.
const MAX_ENTRIES: u64 = 1 << 26;

fields_of! {
    /// `System.Threading.Thread`.
    struct ThreadFields {
        info: req "_waitInfo",
    }
}

fields_of! {
    /// `System.Threading.WaitSubsystem+ThreadWaitInfo`.
    struct InfoFields {
        state: req "_waitSignalState",
        count: req "_waitedCount",
        objects: req "_waitedObjects",
        all: opt "_isWaitForAll",
    }
}

fields_of! {
    /// `System.Threading.WaitSubsystem+WaitableObject`.
    struct WaitableFields {
        ownership: req "_ownershipInfo",
    }
}

fields_of! {
    /// `System.Threading.WaitSubsystem+WaitableObject+OwnershipInfo`, of mutexes.
    struct OwnershipFields {
        thread: req "_thread",
        entered: req "_reacquireCount",
    }
}

fields_of! {
    /// `System.Runtime.InteropServices.SafeHandle`: here the GC handle of a `WaitableObject` or `NamedMutex`.
    pub(super) struct SafeHandleFields {
        handle: req "handle",
        state: opt "_state",
    }
}

fields_of! {
    /// `System.Threading.SyncTable+Entry`: the lock of a monitor, the hash code, and a dependent handle to the object.
    struct EntryFields {
        lock: req "Lock",
        hash: opt "_hashOrNext",
        owner: req "Owner",
    }
}

/// An entry in use of the table of monitors.
struct Entry {
    /// The address of the entry minus one word, because field offsets of a structure count from its box.
    at: Addr,
    fields: EntryFields,
    object: Addr,
}

/// Maps each `Lock` in the table of monitors to the object that it locks.
pub(super) fn monitors(library: &Library, found: &LockObjects) -> Map<Addr, Addr> {
    let entries = found.sync_tables.iter().flat_map(|table| entries(library, *table, None));
    entries.filter_map(|e| Some((library.reference(e.at, e.fields.lock)?, e.object))).collect()
}

/// Returns the hash code of `object` from entry `index`, which its header refers to. `None` if the code is 0, which means that it was not computed.
pub(super) fn hash_code(library: &Library, found: &LockObjects, index: u32, object: Addr) -> Option<u32> {
    // The heap may still have the array that the table used before it last grew.
    let mut entries = found.sync_tables.iter().flat_map(|table| entries(library, *table, Some(index.into())));
    let entry = entries.find(|e| e.object == object)?;
    library.u32(entry.at, entry.fields.hash?).filter(|hash| *hash != 0)
}

/// Returns the entries in use of the table in `array`, whose memory ends at `end`. With `only`, reads just the entry at that index.
fn entries(library: &Library, (array, end): (Addr, Addr), only: Option<u64>) -> impl Iterator<Item = Entry> {
    let (types, word) = (library.types(), library.types().pointer_bytes());
    let tables = types.names().method_tables();
    let bound = || {
        let mt = library.method_table(array)?;
        let (element, size) = (tables.element_type(mt).ok()?, u64::from(tables.read(mt).ok()?.component_size));
        let first = array.plus(types.objects().array_bytes()?);
        let room = end.since(first)?.checked_div(size)?.min(MAX_ENTRIES);
        Some((EntryFields::bind(types, element).ok()?, first, size, room))
    };
    bound().into_iter().flat_map(move |(fields, first, size, room)| {
        let indices = only.map_or(0..room, |i| i..room.min(i.saturating_add(1)));
        indices.filter_map(move |i| {
            // Field offsets of a structure count from its box, which starts one word before the fields.
            let at = first.element(i, size).minus(word)?;
            let handle = library.word(at, fields.owner).map(Addr).filter(|h| !h.is_null())?;
            Some(Entry { at, fields, object: library.reference_at(handle)? })
        })
    })
}

/// The objects that a thread waits for.
#[derive(Debug)]
pub(super) struct Waited {
    pub(super) objects: Vec<WaitTarget>,
    /// Whether it waits for all of them. Otherwise it waits for one, or that is unknown.
    pub(super) all: bool,
}

/// Reads wait records.
#[derive(Debug)]
pub(super) struct WaitInfos {
    thread: ThreadFields,
    info: InfoFields,
    /// Method table and fields of `WaitableObject`, and fields of the owner.
    mutex: Option<(Addr, WaitableFields, OwnershipFields)>,
    /// Locks by `WaitableObject`.
    by_waitable: Map<Addr, WaitTarget>,
}

impl WaitInfos {
    /// Binds the fields; `None` if the program does not have these types, as on Windows. `by_handle` has the lock of each `SafeWaitHandle`.
    pub(super) fn bind(library: &Library, types: &Classifier<LockType>, by_handle: &Map<Addr, WaitTarget>) -> Option<WaitInfos> {
        let of = library.types();
        let thread = ThreadFields::bind(of, types.table(LockType::Thread)?).ok()?;
        let info = InfoFields::bind(of, types.table(LockType::WaitInfo)?).ok()?;
        let handle = SafeHandleFields::bind(of, types.table(LockType::SafeWaitHandle)?).ok()?;
        let waitable = types.table(LockType::Waitable).and_then(|mt| Some((mt, WaitableFields::bind(of, mt).ok()?)));
        let ownership = types.table(LockType::Ownership).and_then(|mt| OwnershipFields::bind(of, mt).ok());
        let mutex = waitable.zip(ownership).map(|((mt, waitable), ownership)| (mt, waitable, ownership));
        let waitable = |safe: &Addr| library.reference(*safe, handle.handle).and_then(|handle| library.reference_at(handle));
        let by_waitable = by_handle.iter().filter_map(|(safe, whole)| Some((waitable(safe)?, *whole))).collect();
        Some(WaitInfos { thread, info, mutex, by_waitable })
    }

    /// Returns the held mutexes, each as wait handle, `Thread` object of the owner, and number of recursive entries.
    pub(super) fn owned<'i>(&'i self, library: &'i Library) -> impl Iterator<Item = (Addr, Addr, u32)> + 'i {
        self.by_waitable.iter().filter_map(move |(waitable, whole)| {
            let (table, of_waitable, of_ownership) = self.mutex?;
            // A named mutex is of another type, and may have any reference at this offset.
            let is_plain = whole.kind == LockKind::WaitHandle && library.method_table(*waitable) == Some(table);
            let ownership = library.reference(*waitable, of_waitable.ownership).filter(|_| is_plain)?;
            let owner = library.reference(ownership, of_ownership.thread)?;
            Some((whole.object, owner, library.u32(ownership, of_ownership.entered)?.saturating_sub(1)))
        })
    }

    /// Returns the objects that a thread waits for; `None` if it does not wait. `thread` is its `Thread` object.
    pub(super) fn waited(&self, library: &Library, thread: Addr) -> Option<Waited> {
        let info = library.reference(thread, self.thread.info)?;
        (library.u8(info, self.info.state)? < NOT_WAITING).then_some(())?;
        let count = u64::from(library.u32(info, self.info.count)?);
        let array = library.reference(info, self.info.objects)?;
        let objects = library.first_references(array, count, MAX_WAITED).into_iter().map(|(_, object)| object).filter(|o| !o.is_null());
        let plain = |object| WaitTarget { object, kind: LockKind::WaitHandle, wait: WaitKind::WaitHandle };
        let objects = objects.map(|object| self.by_waitable.get(&object).copied().unwrap_or_else(|| plain(object))).collect();
        let all = self.info.all.and_then(|field| library.u8(info, field)).is_some_and(|all| all != 0);
        Some(Waited { objects, all })
    }
}
