//! Monitors of NativeAOT programs, which keep them in objects, and the waits of these and of .NET 11 on Unix.
//!
//! Source: `docs/internals/native-aot.md#locks-and-waits`, `docs/internals/locks.md`.

use super::objects::{Found, LockType};
use super::primitives::Whole;
use crate::base::Addr;
use crate::base::hash::Map;
use crate::clr::library::{Classifier, fields_of};
use crate::model::{LockKind, WaitKind};
use crate::session::Library;

/// `ThreadWaitInfo.WaitSignalState.Waiting_Interruptible`; `Waiting` is below it, all others above.
const WAITING: u8 = 1;
/// Maximum objects that a thread waits for at once.
const MAX_WAITED: u64 = 64;
/// Maximum entries of the table of monitors.
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
    /// `System.Runtime.InteropServices.SafeHandle`: here the GC handle of a `WaitableObject`.
    struct SafeHandleFields {
        handle: req "handle",
    }
}

fields_of! {
    /// `System.Threading.SyncTable+Entry`: the lock of a monitor, and a dependent handle to its object.
    struct EntryFields {
        lock: req "Lock",
        owner: req "Owner",
    }
}

/// The objects whose monitors have a lock of their own, by that lock.
pub(super) fn monitors(library: &Library, found: &Found) -> Map<Addr, Addr> {
    let mut out = Map::default();
    let (types, word) = (library.types(), library.types().pointer_bytes());
    let tables = types.names().method_tables();
    for (array, end) in &found.sync_tables {
        let mt = library.method_table(*array);
        let element = mt.and_then(|mt| Some((tables.element_type(mt).ok()?, u64::from(tables.read(mt).ok()?.component_size))));
        let Some((Ok(f), size)) = element.map(|(element, size)| (EntryFields::bind(types, element), size)) else { continue };
        let Some(first) = types.objects().array_bytes().map(|n| array.plus(n)).filter(|_| size > 0) else { continue };
        let room = end.since(first).and_then(|n| n.checked_div(size)).unwrap_or(0).min(MAX_ENTRIES);
        for i in 0..room {
            // Offsets of a structure are those of its box.
            let Some(entry) = first.element(i, size).minus(word) else { break };
            let Some(lock) = library.reference(entry, f.lock) else { continue };
            let handle = library.word(entry, f.owner).map(Addr).filter(|h| !h.is_null());
            out.extend(handle.and_then(|h| library.reference_at(h)).map(|object| (lock, object)));
        }
    }
    out
}

/// What threads wait for.
#[derive(Debug)]
pub(super) struct WaitInfos {
    thread: ThreadFields,
    info: InfoFields,
    mutex: Option<(WaitableFields, OwnershipFields)>,
    /// By `WaitableObject`.
    by_waitable: Map<Addr, Whole>,
}

impl WaitInfos {
    /// Binds to the types of a program that has them: on Unix. `by_handle`: what each `SafeWaitHandle` belongs to.
    pub(super) fn bind(library: &Library, types: &Classifier<LockType>, by_handle: &Map<Addr, Whole>) -> Option<WaitInfos> {
        let of = library.types();
        let thread = ThreadFields::bind(of, types.table(LockType::Thread)?).ok()?;
        let info = InfoFields::bind(of, types.table(LockType::WaitInfo)?).ok()?;
        let handle = SafeHandleFields::bind(of, types.table(LockType::SafeWaitHandle)?).ok()?;
        let waitable = types.table(LockType::Waitable).and_then(|mt| WaitableFields::bind(of, mt).ok());
        let ownership = types.table(LockType::Ownership).and_then(|mt| OwnershipFields::bind(of, mt).ok());
        let mutex = waitable.zip(ownership);
        let waitable = |safe: &Addr| library.reference(*safe, handle.handle).and_then(|handle| library.reference_at(handle));
        let by_waitable = by_handle.iter().filter_map(|(safe, whole)| Some((waitable(safe)?, *whole))).collect();
        Some(WaitInfos { thread, info, mutex, by_waitable })
    }

    /// The mutexes that are held: the wait handle, the `Thread` object of the thread that holds it, and how often that entered it again.
    pub(super) fn owned<'i>(&'i self, library: &'i Library) -> impl Iterator<Item = (Addr, Addr, u32)> + 'i {
        self.by_waitable.iter().filter_map(move |(waitable, whole)| {
            let (of_waitable, of_ownership) = self.mutex?;
            let ownership = library.reference(*waitable, of_waitable.ownership).filter(|_| whole.kind == LockKind::WaitHandle)?;
            let owner = library.reference(ownership, of_ownership.thread)?;
            Some((whole.object, owner, library.u32(ownership, of_ownership.entered)?.saturating_sub(1)))
        })
    }

    /// What the thread with the object at `thread` waits for; `None` if it does not.
    pub(super) fn waited(&self, library: &Library, thread: Addr) -> Option<Vec<Whole>> {
        let info = library.reference(thread, self.thread.info)?;
        (library.u8(info, self.info.state)? <= WAITING).then_some(())?;
        let count = u64::from(library.u32(info, self.info.count)?);
        let array = library.reference(info, self.info.objects)?;
        let objects = library.first_references(array, count, MAX_WAITED).into_iter().map(|(_, object)| object).filter(|o| !o.is_null());
        let plain = |object| Whole { object, kind: LockKind::WaitHandle, wait: WaitKind::WaitHandle };
        Some(objects.map(|object| self.by_waitable.get(&object).copied().unwrap_or_else(|| plain(object))).collect())
    }
}
