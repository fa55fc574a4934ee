//! Monitors and waits of NativeAOT programs, which keep both in objects.
//!
//! Source: `docs/internals/native-aot.md#locks-and-waits`.

use std::collections::HashSet;

use super::objects::{Found, LockType};
use super::primitives::Whole;
use crate::base::Addr;
use crate::base::hash::Map;
use crate::clr::library::{Classifier, fields_of};
use crate::model::{LockKind, WaitKind};
use crate::session::Library;

/// `ThreadWaitInfo.WaitSignalState.NotWaiting`: those below are of threads that wait, interruptible or not.
const NOT_WAITING: u8 = 2;
/// Maximum threads that wait for one condition.
const MAX_WAITERS: usize = 1 << 16;
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

fields_of! {
    /// `System.Threading.Condition`: what `Monitor.Wait` waits for, by the lock of the monitor.
    struct ConditionFields {
        lock: req "_lock",
        first: req "_waitersHead",
    }
}

fields_of! {
    /// `System.Threading.Condition+Waiter`: a thread that waits has its own event.
    struct WaiterFields {
        next: req "next",
        event: req "ev",
    }
}

/// The events that threads in `Monitor.Wait` wait for, each with what its monitor belongs to.
pub(super) fn pulses(
    library: &Library,
    found: &Found,
    monitors: &Map<Addr, Addr>,
    by_monitor: &Map<Addr, Whole>,
) -> Vec<(Addr, Whole)> {
    let types = library.types();
    if types.names().native_aot().is_none() {
        return Vec::new();
    }
    let mut out = Vec::new();
    for condition in found.of(LockType::Condition) {
        let Some(f) = library.method_table(condition).and_then(|mt| ConditionFields::bind(types, mt).ok()) else { continue };
        let Some(lock) = library.reference(condition, f.lock) else { continue };
        // The lock of a monitor, or one that is a field.
        let object = monitors.get(&lock).copied().unwrap_or(lock);
        let plain = Whole { object, kind: whole_of_lock(lock, monitors).kind, wait: WaitKind::MonitorWait };
        let whole = by_monitor.get(&object).copied().unwrap_or(plain);
        let mut waiter = library.reference(condition, f.first);
        let mut seen = HashSet::new();
        while let Some(at) = waiter.filter(|at| seen.len() < MAX_WAITERS && library.afford(1) && seen.insert(*at)) {
            let Some(f) = library.method_table(at).and_then(|mt| WaiterFields::bind(types, mt).ok()) else { break };
            out.extend(library.reference(at, f.event).map(|event| (event, whole)));
            waiter = library.reference(at, f.next);
        }
    }
    out
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

/// An event within a lock stands for the lock, or for the monitor that it is of.
pub(super) fn whole_of_lock(lock: Addr, monitors: &Map<Addr, Addr>) -> Whole {
    match monitors.get(&lock) {
        Some(object) => Whole { object: *object, kind: LockKind::Monitor, wait: WaitKind::Monitor },
        None => Whole { object: lock, kind: LockKind::Lock, wait: WaitKind::Lock },
    }
}

/// What threads wait for.
#[derive(Debug)]
pub(super) struct WaitInfos {
    thread: ThreadFields,
    info: InfoFields,
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
        let waitable = |safe: &Addr| library.reference(*safe, handle.handle).and_then(|handle| library.reference_at(handle));
        let by_waitable = by_handle.iter().filter_map(|(safe, whole)| Some((waitable(safe)?, *whole))).collect();
        Some(WaitInfos { thread, info, by_waitable })
    }

    /// What the thread with the object at `thread` waits for; `None` if it does not.
    pub(super) fn waited(&self, library: &Library, thread: Addr) -> Option<Vec<Whole>> {
        let info = library.reference(thread, self.thread.info)?;
        (library.u8(info, self.info.state)? < NOT_WAITING).then_some(())?;
        let count = u64::from(library.u32(info, self.info.count)?);
        let array = library.reference(info, self.info.objects)?;
        let objects = library.first_references(array, count, MAX_WAITED).into_iter().map(|(_, object)| object).filter(|o| !o.is_null());
        let plain = |object| Whole { object, kind: LockKind::WaitHandle, wait: WaitKind::WaitHandle };
        Some(objects.map(|object| self.by_waitable.get(&object).copied().unwrap_or_else(|| plain(object))).collect())
    }
}
