//! Binds the fields of the class library's locks, and finds the lock that a part, such as an event, belongs to.

use super::named_mutexes::{self, NamedMutex};
use super::objects::{LockObjects, LockType};
use super::wait_subsystem::{WaitInfos, monitors};
use super::wait_target::WaitTarget;
use crate::analysis::{LockKind, WaitKind};
use crate::base::hash::{Map, Set};
use crate::base::{Addr, Collector};
use crate::bcl::Library;
use crate::clr::library::{Classifier, NoSuchField, fields_of, noted};
use crate::clr::managed_lock::LockFields;
use crate::model::SyncBlockModel;

/// Maximum waiters of a condition.
const MAX_WAITERS: usize = 1 << 16;

fields_of! {
    /// `System.Threading.Condition`, on which `Monitor.Wait` blocks where monitors are implemented by `Lock` objects.
    pub(super) struct ConditionFields {
        lock: req "_lock",
        head: req "_waitersHead",
        /// Since .NET 11: the event of the lock.
        event: opt "_waitEvent",
    }
}

fields_of! {
    /// `System.Threading.Condition+Waiter`.
    struct WaiterFields {
        event: req "ev",
        next: req "next",
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
        most: opt "m_maxCount",
        waiting: req "m_waitCount",
        /// The first task of `WaitAsync`.
        first: opt "m_asyncHead",
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
    /// An entry of `ReaderWriterLockSlim.t_rwc`: a lock that a thread has entered.
    pub(super) struct ReaderFields {
        lock: req "lockID",
        readers: req "readercount",
        next: req "next",
    }
}

fields_of! {
    /// `System.Threading.ReaderWriterLock`.
    pub(super) struct OldReaderWriterFields {
        id: req "_lockID",
        state: req "_state",
        writer: req "_writerID",
        level: req "_writerLevel",
        read_event: req "_readerEvent",
        write_event: req "_writerEvent",
    }
}

fields_of! {
    /// An entry of `ReaderWriterLock+ThreadLocalLockEntry.t_lockEntryHead`: a lock that a thread has entered.
    pub(super) struct OldReaderFields {
        lock: req "_lockID",
        readers: req "_readerLevel",
        next: req "_next",
    }
}

fields_of! {
    /// `BlockingCollection<T>`.
    struct CollectionFields {
        free: req "_freeNodes",
        occupied: req "_occupiedNodes",
        capacity: opt "_boundedCapacity",
    }
}

fields_of! {
    /// `System.Threading.Thread`.
    struct JoinedFields {
        ended: req "_joinEvent",
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

/// The fields of each loaded type, and the lock that each part belongs to.
#[derive(Debug)]
pub(super) struct Primitives {
    pub(super) lock: Option<LockFields>,
    pub(super) semaphore: Option<SemaphoreFields>,
    pub(super) countdown: Option<CountdownFields>,
    pub(super) barrier: Option<BarrierFields>,
    pub(super) reader_writer: Option<ReaderWriterFields>,
    pub(super) reader: Option<ReaderFields>,
    pub(super) old_reader_writer: Option<OldReaderWriterFields>,
    pub(super) old_reader: Option<OldReaderFields>,
    pub(super) condition: Option<ConditionFields>,
    /// Method table and fields of `ThreadBlockingInfo`.
    pub(super) blocking: Option<(Addr, BlockingFields)>,
    /// Locks by their inner object, on whose monitor the lock's waiters block. Since .NET 11 the inner object of some locks is a `Lock`.
    pub(super) by_monitor: Map<Addr, WaitTarget>,
    /// Blocking collections by each of their two semaphores. `occupied` has the semaphores that count elements, not free places.
    pub(super) collections: Map<Addr, Addr>,
    pub(super) occupied: Set<Addr>,
    /// Capacities of the blocking collections that have one.
    pub(super) capacities: Map<Addr, i64>,
    /// Locks by the address of a `SafeWaitHandle` that their waiters block on.
    pub(super) by_handle: Map<Addr, WaitTarget>,
    /// NativeAOT, .NET 11: objects whose monitors have a separate `Lock`, by that lock.
    pub(super) monitors: Map<Addr, Addr>,
    /// NativeAOT and .NET 11 on Unix: the waits that the managed wait subsystem has recorded.
    pub(super) wait_infos: Option<WaitInfos>,
    /// .NET 11 on Unix: named mutexes.
    pub(super) named_mutexes: Vec<NamedMutex>,
}

impl Primitives {
    /// Binds the fields, and finds the locks that parts belong to. A type whose fields cannot be bound is left out, with a note.
    pub(super) fn read(
        library: &Library,
        types: &Classifier<LockType>,
        found: &LockObjects,
        blocks: &[SyncBlockModel],
        notes: &Collector,
    ) -> Primitives {
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
            old_reader_writer: binder.bind(LockType::OldReaderWriter, OldReaderWriterFields::bind, "reader-writer locks"),
            old_reader: binder.bind(LockType::OldReaderCount, OldReaderFields::bind, "readers of reader-writer locks"),
            condition: binder.bind(LockType::Condition, ConditionFields::bind, "conditions"),
            blocking: types.table(LockType::BlockingInfo).zip(binder.bind(
                LockType::BlockingInfo,
                BlockingFields::bind,
                "what threads wait for",
            )),
            by_monitor: Map::default(),
            by_handle: Map::default(),
            collections: Map::default(),
            occupied: Set::default(),
            capacities: Map::default(),
            monitors: monitors(library, found),
            wait_infos: None,
            named_mutexes: Vec::new(),
        };
        out.monitors.extend(blocks.iter().filter_map(|block| Some((block.lock?, block.object?))));
        out.collections(library, found);
        out.events(library, found, &binder);
        out.handles(library, found, &binder);
        out.named_mutexes = named_mutexes::read(library, types, &mut out.by_handle, notes);
        out.wait_infos = WaitInfos::bind(library, types, &out.by_handle);
        out
    }

    /// Finds the semaphores of blocking collections.
    fn collections(&mut self, library: &Library, found: &LockObjects) {
        let mut known: Map<Addr, Option<CollectionFields>> = Map::default();
        for object in found.of(LockType::BlockingCollection) {
            let Some(mt) = library.method_table(object) else { continue };
            let Some(f) = *known.entry(mt).or_insert_with(|| CollectionFields::bind(library.types(), mt).ok()) else { continue };
            let occupied = library.reference(object, f.occupied);
            self.occupied.extend(occupied);
            let capacity = f.capacity.and_then(|field| library.i32(object, field)).map(i64::from);
            // A collection without a capacity has -1.
            self.capacities.extend(capacity.filter(|n| *n > 0).map(|n| (object, n)));
            self.collections.extend(occupied.into_iter().chain(library.reference(object, f.free)).map(|part| (part, object)));
        }
    }

    /// Returns the target of a thread that waits to enter `lock`: the monitor that `lock` implements, or else the `Lock` itself.
    pub(super) fn entered(&self, lock: Addr) -> WaitTarget {
        match self.monitors.get(&lock) {
            Some(object) => WaitTarget { object: *object, kind: LockKind::Monitor, wait: WaitKind::Monitor },
            None => WaitTarget { object: lock, kind: LockKind::Lock, wait: WaitKind::Lock },
        }
    }

    /// Returns the target of a `Monitor.Wait` on `object`: the lock that `object` is a part of, or else its monitor.
    pub(super) fn waited(&self, object: Addr) -> WaitTarget {
        let plain = WaitTarget { object, kind: LockKind::Monitor, wait: WaitKind::MonitorWait };
        self.by_monitor.get(&object).copied().unwrap_or(plain)
    }

    /// Returns the target of a wait on the condition at `condition`.
    pub(super) fn conditional(&self, library: &Library, condition: Addr) -> Option<WaitTarget> {
        let lock = library.reference(condition, self.condition?.lock)?;
        let of_lock = || Some(self.waited(*self.monitors.get(&lock)?));
        self.by_monitor.get(&lock).copied().or_else(of_lock)
    }

    /// Returns the target of a thread that waits for `semaphore`: the blocking collection that it is a part of, or else the semaphore itself.
    pub(super) fn counted(&self, semaphore: Addr) -> WaitTarget {
        match self.collections.get(&semaphore) {
            Some(of) => WaitTarget { object: *of, kind: LockKind::BlockingCollection, wait: WaitKind::BlockingCollection },
            None => WaitTarget { object: semaphore, kind: LockKind::Semaphore, wait: WaitKind::Semaphore },
        }
    }

    /// Finds the locks whose waiters block on the monitor of an inner object.
    fn events(&mut self, library: &Library, found: &LockObjects, binder: &Binder<'_>) {
        let mut events: Map<Addr, WaitTarget> = Map::default();
        if let Some(fields) = self.countdown {
            for object in found.of(LockType::Countdown).chain(found.of(LockType::OtherCountdown)) {
                let whole = WaitTarget { object, kind: LockKind::Countdown, wait: WaitKind::Countdown };
                events.extend(library.reference(object, fields.event).map(|event| (event, whole)));
            }
        }
        if let Some(fields) = self.barrier {
            for object in found.of(LockType::Barrier) {
                let whole = WaitTarget { object, kind: LockKind::Barrier, wait: WaitKind::Barrier };
                let both = [fields.odd, fields.even].into_iter().filter_map(|f| library.reference(object, f));
                events.extend(both.map(|event| (event, whole)));
            }
        }
        if let Some(fields) = self.old_reader_writer {
            for object in found.of(LockType::OldReaderWriter) {
                let whole = WaitTarget { object, kind: LockKind::ReaderWriter, wait: WaitKind::ReadLock };
                events.extend(library.reference(object, fields.read_event).map(|event| (event, whole)));
            }
        }
        if let Some(fields) = binder.bind(LockType::Event, EventFields::bind, "events") {
            for object in found.of(LockType::Event) {
                let kinds = found.kinds.get(&object);
                let of_task = kinds.is_some_and(|k| k.is(LockType::OnInvoke) || k.is(LockType::OnCountdown));
                let plain = match of_task {
                    true => WaitTarget { object, kind: LockKind::Task, wait: WaitKind::Task },
                    false => WaitTarget { object, kind: LockKind::Event, wait: WaitKind::Event },
                };
                let whole = events.get(&object).copied().unwrap_or(plain);
                self.by_monitor.extend(library.reference(object, fields.lock).map(|lock| (lock, whole)));
            }
        }
        if let Some(fields) = self.semaphore {
            for object in found.of(LockType::Semaphore) {
                let whole = self.counted(object);
                self.by_monitor.extend(library.reference(object, fields.lock).map(|lock| (lock, whole)));
            }
        }
    }

    /// Finds the locks whose waiters block on a wait handle.
    fn handles(&mut self, library: &Library, found: &LockObjects, binder: &Binder<'_>) {
        let Some(fields) = binder.bind(LockType::WaitHandle, HandleFields::bind, "wait handles") else { return };
        // An event inside a lock represents the lock.
        let mut events: Map<Addr, WaitTarget> = Map::default();
        if let Some(event) = self.lock.and_then(|f| f.event) {
            for lock in found.of(LockType::Lock) {
                events.extend(library.reference(lock, event).map(|e| (e, self.entered(lock))));
            }
        }
        self.conditions(library, found, binder, &mut events);
        if let Some(f) = self.old_reader_writer {
            for object in found.of(LockType::OldReaderWriter) {
                let whole = WaitTarget { object, kind: LockKind::ReaderWriter, wait: WaitKind::WriteLock };
                events.extend(library.reference(object, f.write_event).map(|e| (e, whole)));
            }
        }
        if let Some(f) = binder.of_some(LockType::Thread, JoinedFields::bind) {
            for object in found.of(LockType::Thread) {
                let whole = WaitTarget { object, kind: LockKind::Thread, wait: WaitKind::Join };
                events.extend(library.reference(object, f.ended).map(|e| (e, whole)));
            }
        }
        if let Some(f) = self.reader_writer {
            let of = [
                (f.write_event, WaitKind::WriteLock),
                (f.read_event, WaitKind::ReadLock),
                (f.upgrade_event, WaitKind::UpgradeableLock),
                (f.wait_upgrade_event, WaitKind::Upgrade),
            ];
            for object in found.of(LockType::ReaderWriter) {
                for (field, wait) in of {
                    events.extend(library.reference(object, field).map(|e| (e, WaitTarget { object, kind: LockKind::ReaderWriter, wait })));
                }
            }
        }
        for object in found.of(LockType::WaitHandle) {
            let plain = WaitTarget { object, kind: LockKind::WaitHandle, wait: WaitKind::WaitHandle };
            let whole = events.get(&object).copied().unwrap_or(plain);
            self.by_handle.extend(library.reference(object, fields.handle).map(|handle| (handle, whole)));
        }
    }

    /// Adds the events of conditions: one of the lock that a condition belongs to, and one of each waiter.
    fn conditions(&self, library: &Library, found: &LockObjects, binder: &Binder<'_>, events: &mut Map<Addr, WaitTarget>) {
        let Some(f) = self.condition else { return };
        let waiter = binder.of_some(LockType::ConditionWaiter, WaiterFields::bind);
        for condition in found.of(LockType::Condition) {
            let lock = library.reference(condition, f.lock);
            let event = f.event.and_then(|event| library.reference(condition, event));
            events.extend(event.zip(lock).map(|(event, lock)| (event, self.entered(lock))));
            let Some((whole, w)) = self.conditional(library, condition).zip(waiter) else { continue };
            let mut next = library.reference(condition, f.head);
            for _ in 0..MAX_WAITERS {
                let Some(at) = next.filter(|_| library.afford(1)) else { break };
                events.extend(library.reference(at, w.event).map(|event| (event, whole)));
                next = library.reference(at, w.next);
            }
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
    /// Binds fields that only some runtimes have, without a note if they are missing.
    fn of_some<F>(&self, kind: LockType, bind: impl Fn(&crate::clr::fields::Types, Addr) -> Result<F, NoSuchField>) -> Option<F> {
        bind(self.library.types(), self.types.table(kind)?).ok()
    }

    fn bind<F>(&self, kind: LockType, bind: impl Fn(&crate::clr::fields::Types, Addr) -> Result<F, NoSuchField>, what: &str) -> Option<F> {
        noted(bind(self.library.types(), self.types.table(kind)?), what, self.notes)
    }
}
