//! The state of the library's locks, and what their parts belong to.

use super::objects::{Found, LockType};
use super::wait_subsystem::{WaitInfos, monitors, pulses, whole_of_lock};
use crate::base::hash::Map;
use crate::base::{Addr, Collector};
use crate::clr::library::{Classifier, NoSuchField, fields_of, noted};
use crate::model::{LockKind, WaitKind};
use crate::session::Library;

fields_of! {
    /// `System.Threading.Lock` (.NET 9 and later, NativeAOT of .NET 8).
    pub(super) struct LockFields {
        state: req "_state",
        owner: req "_owningThreadId",
        recursion: req "_recursionCount",
        event: opt "_waitEvent|_waitEventOrCondition|_lazyEvent",
        // Of .NET 8, where the number of waiters is elsewhere in the state.
        of_net8: opt "_lazyEvent",
    }
}

fields_of! {
    /// `System.Threading.ManualResetEventSlim`.
    struct EventFields {
        lock: req "m_lock",
    }
}

fields_of! {
    /// `System.Threading.SemaphoreSlim`.
    pub(super) struct SemaphoreFields {
        lock: req "m_lockObjAndDisposed",
        count: req "m_currentCount",
        waiting: req "m_waitCount",
    }
}

fields_of! {
    /// `System.Threading.CountdownEvent`.
    pub(super) struct CountdownFields {
        event: req "_event",
        count: req "_currentCount",
    }
}

fields_of! {
    /// `System.Threading.Barrier`.
    pub(super) struct BarrierFields {
        odd: req "_oddEvent",
        even: req "_evenEvent",
        counts: req "_currentTotalCount",
    }
}

fields_of! {
    /// `System.Threading.ReaderWriterLockSlim`.
    pub(super) struct ReaderWriterFields {
        owners: req "_owners",
        id: req "_lockID",
        writer: req "_writeLockOwnerId",
        upgrader: req "_upgradeLockOwnerId",
        write_waiters: req "_numWriteWaiters",
        read_waiters: req "_numReadWaiters",
        upgrade_waiters: req "_numUpgradeWaiters",
        write_upgrade_waiters: req "_numWriteUpgradeWaiters",
        write_event: req "_writeEvent",
        read_event: req "_readEvent",
        upgrade_event: req "_upgradeEvent",
        wait_upgrade_event: req "_waitUpgradeEvent",
    }
}

fields_of! {
    /// An entry of `ReaderWriterLockSlim.t_rwc`: what a thread has entered.
    pub(super) struct ReaderFields {
        lock: req "lockID",
        readers: req "readercount",
        next: req "next",
    }
}

fields_of! {
    /// `System.Threading.WaitHandle`.
    struct HandleFields {
        handle: req "_waitHandle",
    }
}

fields_of! {
    /// `System.Threading.ThreadBlockingInfo`, a structure (.NET 9 and later).
    pub(super) struct BlockingFields {
        object: req "_objectPtr",
        kind: req "_objectKind",
        timeout: req "_timeoutMs",
    }
}

/// What a part belongs to: the object that people know, and what a thread that waits for the part is blocked in.
#[derive(Clone, Copy, Debug)]
pub(super) struct Whole {
    pub(super) object: Addr,
    pub(super) kind: LockKind,
    pub(super) wait: WaitKind,
}

/// The fields of each type, if it is loaded, and what each part belongs to.
#[derive(Debug)]
pub(super) struct Primitives {
    pub(super) lock: Option<LockFields>,
    pub(super) semaphore: Option<SemaphoreFields>,
    pub(super) countdown: Option<CountdownFields>,
    pub(super) barrier: Option<BarrierFields>,
    pub(super) reader_writer: Option<ReaderWriterFields>,
    pub(super) reader: Option<ReaderFields>,
    /// With the type's method table.
    pub(super) blocking: Option<(Addr, BlockingFields)>,
    /// By the object whose monitor it waits on.
    pub(super) by_monitor: Map<Addr, Whole>,
    /// By `SafeWaitHandle`.
    pub(super) by_handle: Map<Addr, Whole>,
    /// NativeAOT: objects whose monitors have a `Lock` of their own, by that lock.
    pub(super) monitors: Map<Addr, Addr>,
    /// NativeAOT on Unix: what threads wait for.
    pub(super) wait_infos: Option<WaitInfos>,
}

impl Primitives {
    /// Binds the fields, and reads what belongs to what. What a runtime lacks is left out, with a note.
    pub(super) fn read(library: &Library, types: &Classifier<LockType>, found: &Found, notes: &Collector) -> Primitives {
        let binder = Binder { library, types, notes };
        let mut out = Primitives {
            lock: binder.bind(LockType::Lock, LockFields::bind, "locks"),
            semaphore: binder.bind(LockType::Semaphore, SemaphoreFields::bind, "semaphores"),
            countdown: binder
                .bind(LockType::Countdown, CountdownFields::bind, "countdowns")
                .or_else(|| binder.bind(LockType::OtherCountdown, CountdownFields::bind, "countdowns")),
            barrier: binder.bind(LockType::Barrier, BarrierFields::bind, "barriers"),
            reader_writer: binder.bind(LockType::ReaderWriter, ReaderWriterFields::bind, "reader-writer locks"),
            reader: binder.bind(LockType::ReaderCount, ReaderFields::bind, "readers of reader-writer locks"),
            blocking: types.table(LockType::BlockingInfo).zip(binder.bind(
                LockType::BlockingInfo,
                BlockingFields::bind,
                "what threads wait for",
            )),
            by_monitor: Map::default(),
            by_handle: Map::default(),
            monitors: monitors(library, found),
            wait_infos: None,
        };
        out.events(library, found, &binder);
        out.handles(library, found, &binder);
        out.wait_infos = WaitInfos::bind(library, types, &out.by_handle);
        out
    }

    /// What waits on monitors of its own.
    fn events(&mut self, library: &Library, found: &Found, binder: &Binder<'_>) {
        let mut events: Map<Addr, Whole> = Map::default();
        if let Some(fields) = self.countdown {
            for object in found.of(LockType::Countdown).chain(found.of(LockType::OtherCountdown)) {
                let whole = Whole { object, kind: LockKind::Countdown, wait: WaitKind::Countdown };
                events.extend(library.reference(object, fields.event).map(|event| (event, whole)));
            }
        }
        if let Some(fields) = self.barrier {
            for object in found.of(LockType::Barrier) {
                let whole = Whole { object, kind: LockKind::Barrier, wait: WaitKind::Barrier };
                let both = [fields.odd, fields.even].into_iter().filter_map(|f| library.reference(object, f));
                events.extend(both.map(|event| (event, whole)));
            }
        }
        if let Some(fields) = binder.bind(LockType::Event, EventFields::bind, "events") {
            for object in found.of(LockType::Event) {
                let kinds = found.kinds.get(&object);
                let of_task = kinds.is_some_and(|k| k.is(LockType::OnInvoke) || k.is(LockType::OnCountdown));
                let plain = match of_task {
                    true => Whole { object, kind: LockKind::Task, wait: WaitKind::Task },
                    false => Whole { object, kind: LockKind::Event, wait: WaitKind::Event },
                };
                let whole = events.get(&object).copied().unwrap_or(plain);
                self.by_monitor.extend(library.reference(object, fields.lock).map(|lock| (lock, whole)));
            }
        }
        if let Some(fields) = self.semaphore {
            for object in found.of(LockType::Semaphore) {
                let whole = Whole { object, kind: LockKind::Semaphore, wait: WaitKind::Semaphore };
                self.by_monitor.extend(library.reference(object, fields.lock).map(|lock| (lock, whole)));
            }
        }
    }

    /// What waits on handles of the operating system.
    fn handles(&mut self, library: &Library, found: &Found, binder: &Binder<'_>) {
        let Some(fields) = binder.bind(LockType::WaitHandle, HandleFields::bind, "wait handles") else { return };
        // An event within a lock stands for the lock.
        let mut events: Map<Addr, Whole> = Map::default();
        if let Some(event) = self.lock.and_then(|f| f.event) {
            for lock in found.of(LockType::Lock) {
                events.extend(library.reference(lock, event).map(|e| (e, whole_of_lock(lock, &self.monitors))));
            }
        }
        events.extend(pulses(library, found, &self.monitors, &self.by_monitor));
        if let Some(f) = self.reader_writer {
            let of = [
                (f.write_event, WaitKind::WriteLock),
                (f.read_event, WaitKind::ReadLock),
                (f.upgrade_event, WaitKind::UpgradeableLock),
                (f.wait_upgrade_event, WaitKind::Upgrade),
            ];
            for object in found.of(LockType::ReaderWriter) {
                for (field, wait) in of {
                    events.extend(library.reference(object, field).map(|e| (e, Whole { object, kind: LockKind::ReaderWriter, wait })));
                }
            }
        }
        for object in found.of(LockType::WaitHandle) {
            let plain = Whole { object, kind: LockKind::WaitHandle, wait: WaitKind::WaitHandle };
            let whole = events.get(&object).copied().unwrap_or(plain);
            self.by_handle.extend(library.reference(object, fields.handle).map(|handle| (handle, whole)));
        }
    }
}

/// Binds fields of the types that are loaded.
struct Binder<'b> {
    library: &'b Library,
    types: &'b Classifier<LockType>,
    notes: &'b Collector,
}

impl Binder<'_> {
    fn bind<F>(&self, kind: LockType, bind: impl Fn(&crate::clr::fields::Types, Addr) -> Result<F, NoSuchField>, what: &str) -> Option<F> {
        noted(bind(self.library.types(), self.types.table(kind)?), what, self.notes)
    }
}
