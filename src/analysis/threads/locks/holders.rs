//! The locks of a process and their owners.

use std::collections::{BTreeMap, HashSet};

use super::class_constructors::ClassConstructors;
use super::objects::{LockObjects, LockType};
use super::primitives::Primitives;
use super::waits::Wait;
use crate::analysis::{LockKind, WaitKind};
use crate::base::hash::Map;
use crate::base::missed::contradiction;
use crate::base::{Addr, Collector, Missing, NoteKind, be, len64, plural};
use crate::bcl::Library;
use crate::clr::header::{Headers, MAX_RECURSION};
use crate::clr::library::{Classifier, FieldAt};
use crate::clr::statics::StaticPlace;
use crate::clr::threads::Thread;
use crate::model::SyncBlockModel;

/// Maximum entries of a thread's list of reader-writer locks.
const MAX_ENTERED: usize = 1 << 12;

// `ReaderWriterLockSlim._owners`. Each thread that reads counts once, however often it has entered; so does the upgradeable thread.
const READERS: u32 = 0x0fff_ffff;
const WAITING_TO_WRITE: u32 = 0x4000_0000;
const WAITING_TO_UPGRADE: u32 = 0x2000_0000;
// `ReaderWriterLock._state`.
const OLD_READERS: u32 = 0x0000_03ff;
const OLD_WAITING_READERS: u32 = 0x007f_e000;
const OLD_WAITING_READERS_SHIFT: u32 = 13;
const OLD_WAITING_WRITERS_SHIFT: u32 = 23;
// `Barrier._currentTotalCount`.
const BARRIER_SHIFT: u32 = 16;
const BARRIER_COUNT: u32 = 0x7fff;
/// `SemaphoreSlim.NO_MAXIMUM`.
const NO_MAXIMUM: i32 = i32::MAX;

/// A thread that holds a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Owner {
    /// The thread's managed id, or the id that the lock stores if no known thread has it.
    pub(super) id: u32,
    /// Whether `id` is an OS id, since the thread is not known.
    pub(super) is_os: bool,
    /// Index of the thread in the runtime's thread list; `None` if no known thread has the id.
    pub(super) thread: Option<usize>,
    /// Whether no living thread has the id. `None` if an unknown thread may have it, or if no thread ever had it.
    pub(super) orphaned: Option<bool>,
}

/// Reports a negative count, which no semaphore or event can have.
fn check_count(object: Addr, count: Option<i64>) {
    if count.is_some_and(|count| count < 0) {
        contradiction(object, "the count of a semaphore or an event is negative");
    }
}

fn threads_are(n: usize) -> String {
    format!("{} {}", plural(len64(n), "thread"), be(len64(n)))
}

/// The state of a lock.
#[derive(Clone, Debug, Default)]
pub(super) struct HeldLock {
    /// The writer, for a reader-writer lock.
    pub(super) owner: Option<Owner>,
    pub(super) recursion: Option<u32>,
    /// The living threads that hold the lock for reading.
    pub(super) readers: Vec<Owner>,
    /// Number of readers according to the lock, without the upgradeable thread.
    pub(super) reader_count: Option<u64>,
    /// Number of readers that have ended; `None` if that is unknown.
    pub(super) ended_readers: Option<u64>,
    /// The thread that may upgrade from reading to writing.
    pub(super) upgrader: Option<Owner>,
    /// Whether `upgrader` waits for the readers to leave, which makes new readers wait as well.
    pub(super) upgrading: bool,
    /// Whether a writer waits, which makes new readers wait as well.
    pub(super) writers_first: bool,
    pub(super) waiting: Option<u64>,
    pub(super) count: Option<i64>,
    /// The highest count of a semaphore, or the capacity of a blocking collection; `None` without a limit.
    pub(super) capacity: Option<i64>,
    /// The name of a named mutex.
    pub(super) name: Option<String>,
    pub(super) sync_block: Option<u32>,
}

impl HeldLock {
    /// The thread that may upgrade, if it blocks a wait of this kind.
    pub(super) fn upgrader_for(&self, kind: WaitKind) -> Option<Owner> {
        self.upgrader.filter(|_| kind != WaitKind::ReadLock || self.upgrading)
    }

    /// Whether a thread holds the lock or waits for it.
    pub(super) fn in_use(&self) -> bool {
        let some = |n: Option<u64>| n.is_some_and(|n| n > 0);
        self.owner.is_some() || self.upgrader.is_some() || !self.readers.is_empty() || some(self.reader_count) || some(self.waiting)
    }

    /// Whether threads hold the lock for reading, and it is unknown which.
    fn has_lost_readers(&self) -> bool {
        self.ended_readers.is_none() && self.reader_count.is_some_and(|n| n > len64(self.readers.len()))
    }
}

/// The locks of a process by object and kind. An object of a library lock, such as a `SemaphoreSlim`, may have a monitor as well, like any object.
pub(super) type Locks = BTreeMap<(Addr, LockKind), HeldLock>;

/// Reads the state of locks.
pub(super) struct Holders<'h> {
    pub(super) library: &'h Library,
    pub(super) types: &'h Classifier<LockType>,
    pub(super) found: &'h LockObjects,
    pub(super) primitives: &'h Primitives,
    pub(super) threads: &'h [Thread],
    pub(super) notes: &'h Collector,
    /// Living threads by managed and by OS id.
    by_id: (Map<u32, usize>, Map<u32, usize>),
    /// Why `by_id` may miss a living thread.
    unknown: Option<String>,
    /// The highest managed id that the runtime gave to a thread.
    highest: Option<u32>,
    /// Whether a thread is entering or leaving a reader-writer lock, so that the lock and the list of the thread may differ.
    entering: bool,
}

impl<'h> Holders<'h> {
    pub(super) fn new(
        library: &'h Library,
        types: &'h Classifier<LockType>,
        found: &'h LockObjects,
        primitives: &'h Primitives,
        (threads, are_all, highest): (&'h [Thread], bool, Option<u32>),
        entering: bool,
        notes: &'h Collector,
    ) -> Holders<'h> {
        let alive = || threads.iter().enumerate().filter(|(_, t)| t.has_stack());
        let managed = alive().filter_map(|(i, t)| Some((t.id?, i))).collect();
        let os = alive().filter_map(|(i, t)| Some((u32::try_from(t.recorded_id?).ok()?, i))).collect();
        let unidentified = threads.iter().filter(|t| t.os_id.is_none() || t.id.is_none() && t.has_stack()).count();
        let unknown = match (are_all, unidentified) {
            (false, _) => Some("the thread list is incomplete".to_string()),
            (true, 0) => None,
            (true, n) => Some(format!("the {} of {} unknown", if n == 1 { "id" } else { "ids" }, threads_are(n))),
        };
        Holders { library, types, found, primitives, threads, notes, by_id: (managed, os), unknown, highest, entering }
    }

    fn owner(&self, id: u32) -> Owner {
        self.owner_at(id, self.by_id.0.get(&id).copied())
    }

    fn owner_at(&self, id: u32, thread: Option<usize>) -> Owner {
        // An id that no thread ever had is damage, not the id of a thread that has ended.
        let orphaned = if thread.is_some() { Some(false) } else { (self.unknown.is_none() && !self.is_beyond(id)).then_some(true) };
        Owner { id, is_os: false, thread, orphaned }
    }

    /// Whether the id is higher than any that the runtime gave to a thread.
    fn is_beyond(&self, id: u32) -> bool {
        self.highest.is_some_and(|highest| id > highest)
    }

    /// Reads all locks.
    pub(super) fn read(&self, headers: Option<&Headers>, blocks: &[SyncBlockModel]) -> Locks {
        let mut out = Locks::new();
        for object in &self.found.thin {
            let Some(header) = headers.and_then(|h| h.read(*object)) else { continue };
            let owner = header.owner_managed_id.map(|id| self.owner(id));
            out.insert((*object, LockKind::Monitor), HeldLock { owner, recursion: header.recursion, ..HeldLock::default() });
        }
        for block in blocks {
            let Some(object) = block.object else { continue };
            let held = block.held == Some(true);
            let lock = HeldLock {
                owner: block.owner_managed_id.filter(|_| held).map(|id| self.owner(id)),
                recursion: block.recursion.filter(|_| held).map(|n| n.saturating_sub(1)),
                waiting: block.waiters.map(u64::from),
                sync_block: Some(block.index),
                ..HeldLock::default()
            };
            out.insert((object, LockKind::Monitor), lock);
        }
        self.locks(&mut out);
        self.counted(&mut out);
        self.reader_writers(&mut out);
        self.old_reader_writers(&mut out);
        self.mutexes(&mut out);
        self.note_unknown(blocks, &out);
        let owners = out.values().flat_map(|held| held.owner.iter().chain(&held.upgrader));
        let read = out.values().filter(|held| held.has_lost_readers()).count();
        let lost = len64(owners.filter(|o| o.orphaned.is_none()).count()).saturating_add(len64(read));
        if let Some(why) = self.unknown.as_ref().filter(|_| lost > 0) {
            let what = format!("the threads that hold {} were not found: {why}", plural(lost, "lock"));
            self.notes.add(Missing::Locks, None, what);
        }
        out
    }

    /// Notes owners with impossible thread ids, and locks with more waiters than there are threads.
    fn note_unknown(&self, blocks: &[SyncBlockModel], locks: &Locks) {
        if self.unknown.is_some() {
            return;
        }
        let add = |object: Addr, what: String| self.notes.add(NoteKind::Invalid, object, format!("the lock of {object}: {what}"));
        for ((object, kind), lock) in locks {
            let owners = lock.owner.iter().chain(&lock.upgrader).filter(|o| o.thread.is_none() && o.orphaned.is_none());
            for owner in owners.filter(|o| !o.is_os && self.is_beyond(o.id)) {
                add(*object, format!("it is held by thread {}, an id that the runtime gave to no thread", owner.id));
            }
            let counted = matches!(kind, LockKind::Monitor | LockKind::Lock);
            if let Some(n) = lock.waiting.filter(|n| counted && *n > len64(self.threads.len())) {
                add(*object, format!("it has {n} waiters, and there are {} threads", self.threads.len()));
            }
        }
        // When a thread ends, the runtime unlinks its `Thread` before freeing it, so the sync block of a monitor that it held refers to an owner that is
        // not in the list. That is the whole answer if no living thread has the id in that `Thread`.
        let has_ended = |object| locks.get(&(object, LockKind::Monitor)).and_then(|l| l.owner).is_some_and(|o| o.orphaned == Some(true));
        for block in blocks.iter().filter(|b| b.held == Some(true)) {
            if let (Some(object), Some(owner)) = (block.object, block.owner)
                && !self.threads.iter().any(|t| t.address == owner)
                && !has_ended(object)
            {
                add(object, format!("its owner, at {owner}, is not in the thread list"));
            }
        }
    }

    fn locks(&self, out: &mut Locks) {
        let (library, Some(f)) = (self.library, self.primitives.lock) else { return };
        for object in self.found.of(LockType::Lock) {
            let Some(state) = f.read(library.memory(), object) else { continue };
            let at = |field: FieldAt| field.of_object(object);
            // The owner is set after the lock is taken, and cleared before it is released.
            match (state.held, state.owner, state.recursion) {
                (true, 0, _) => contradiction(at(f.owner), "a Lock is locked, and no thread owns it"),
                (false, 1.., _) => contradiction(at(f.owner), "a Lock is not locked, and a thread owns it"),
                (false, _, 1..) => contradiction(at(f.recursion), "a Lock is not locked, and was entered"),
                (_, _, MAX_RECURSION..) => contradiction(at(f.recursion), "a Lock was entered more often than a thread can"),
                _ => {}
            }
            let owner = || if f.condition.is_some() { self.owner(state.owner) } else { self.owner_of_lock(state.owner) };
            let lock = HeldLock {
                owner: (state.held && state.owner != 0).then(owner),
                recursion: state.held.then_some(state.recursion),
                waiting: Some(state.waiters.into()),
                ..HeldLock::default()
            };
            match self.primitives.monitors.get(&object) {
                Some(of) => {
                    let monitor = (*of, LockKind::Monitor);
                    let sync_block = out.get(&monitor).and_then(|known| known.sync_block);
                    out.insert(monitor, HeldLock { sync_block, ..lock })
                }
                None => out.insert((object, LockKind::Lock), lock),
            };
        }
    }

    /// Returns the owner of a `Lock` of a runtime before .NET 11. CoreCLR stores the OS thread id, NativeAOT the managed id.
    fn owner_of_lock(&self, id: u32) -> Owner {
        if self.library.types().names().method_tables().is_native_aot() {
            return self.owner(id);
        }
        // Sources between .NET 10 and 11 store the managed id.
        let thread = self.by_id.1.get(&id).or_else(|| self.by_id.0.get(&id)).copied();
        match thread {
            Some(thread) => self.owner_at(self.threads.get(thread).and_then(|t| t.id).unwrap_or(id), Some(thread)),
            // Any number may have been the OS id of a thread that has ended.
            None => Owner { id, is_os: true, thread: None, orphaned: self.unknown.is_none().then_some(true) },
        }
    }

    /// Reads locks that have a count instead of an owner.
    fn counted(&self, out: &mut Locks) {
        let library = self.library;
        if let Some(f) = self.primitives.semaphore {
            for object in self.found.of(LockType::Semaphore) {
                let count = library.i32(object, f.count).map(i64::from);
                check_count(object, count);
                let waiting = library.i32(object, f.waiting).and_then(|n| u64::try_from(n).ok());
                let Some(of) = self.primitives.collections.get(&object) else {
                    let most = f.most.and_then(|field| library.i32(object, field)).filter(|most| *most != NO_MAXIMUM).map(i64::from);
                    out.insert((object, LockKind::Semaphore), HeldLock { count, capacity: most, waiting, ..HeldLock::default() });
                    continue;
                };
                let whole = out.entry((*of, LockKind::BlockingCollection)).or_default();
                whole.capacity = self.primitives.capacities.get(of).copied();
                whole.waiting = whole.waiting.into_iter().chain(waiting).reduce(u64::saturating_add);
                whole.count = count.filter(|_| self.primitives.occupied.contains(&object)).or(whole.count);
            }
        }
        if let Some(f) = self.primitives.countdown {
            for object in self.found.of(LockType::Countdown).chain(self.found.of(LockType::OtherCountdown)) {
                let count = library.i32(object, f.count).map(i64::from);
                check_count(object, count);
                out.insert((object, LockKind::Countdown), HeldLock { count, ..HeldLock::default() });
            }
        }
        if let Some(f) = self.primitives.barrier {
            for object in self.found.of(LockType::Barrier) {
                let arrived = library.u32(object, f.counts).map(|n| i64::from(n >> BARRIER_SHIFT & BARRIER_COUNT));
                out.insert((object, LockKind::Barrier), HeldLock { count: arrived, ..HeldLock::default() });
            }
        }
    }

    fn reader_writers(&self, out: &mut Locks) {
        let (library, Some(f)) = (self.library, self.primitives.reader_writer) else { return };
        let readers = self.primitives.reader.map(|entry| {
            let entered = Entered { list: "t_rwc", lock: entry.lock, next: entry.next };
            let reads = |at| library.i32(at, entry.readers).map(|n| n > 0);
            self.readers(LockType::ReaderWriter, LockType::ReaderWriter, entered, reads)
        });
        let readers = readers.unwrap_or_default();
        for object in self.found.of(LockType::ReaderWriter) {
            let state = library.u32(object, f.owners);
            let owners = state.unwrap_or(0);
            // -1 means no thread.
            let thread = |field: FieldAt| library.i32(object, field).and_then(|id| u32::try_from(id).ok()).map(|id| self.owner(id));
            let waiters = [f.write_waiters, f.read_waiters, f.upgrade_waiters, f.write_upgrade_waiters];
            let waiting = waiters.into_iter().map(|field| library.u32(object, field).map(u64::from)).sum::<Option<u64>>();
            let upgrader = thread(f.upgrader);
            let counted = state.map(|owners| u64::from(owners & READERS).saturating_sub(upgrader.is_some().into()));
            let lock = HeldLock {
                owner: thread(f.writer),
                upgrader,
                upgrading: owners & WAITING_TO_UPGRADE != 0,
                writers_first: owners & (WAITING_TO_WRITE | WAITING_TO_UPGRADE) != 0,
                waiting,
                ..self.held_by(&readers, object, f.id, counted)
            };
            out.insert((object, LockKind::ReaderWriter), lock);
        }
    }

    /// Reads locks of the type `ReaderWriterLock`, the predecessor of `ReaderWriterLockSlim`.
    fn old_reader_writers(&self, out: &mut Locks) {
        let (library, Some(f)) = (self.library, self.primitives.old_reader_writer) else { return };
        let readers = self.primitives.old_reader.map(|entry| {
            let entered = Entered { list: "t_lockEntryHead", lock: entry.lock, next: entry.next };
            let reads = |at| library.u16(at, entry.readers).map(|n| n > 0);
            self.readers(LockType::OldReaderWriter, LockType::OldReaderCount, entered, reads)
        });
        let readers = readers.unwrap_or_default();
        for object in self.found.of(LockType::OldReaderWriter) {
            let state = library.u32(object, f.state);
            let writers = state.map_or(0, |s| s >> OLD_WAITING_WRITERS_SHIFT);
            let waiting = state.map(|s| writers.saturating_add((s & OLD_WAITING_READERS) >> OLD_WAITING_READERS_SHIFT).into());
            let owner = library.i32(object, f.writer).and_then(|id| u32::try_from(id).ok()).filter(|id| *id != 0);
            let lock = HeldLock {
                owner: owner.map(|id| self.owner(id)),
                recursion: library.u16(object, f.level).filter(|_| owner.is_some()).map(|n| u32::from(n).saturating_sub(1)),
                writers_first: writers > 0,
                waiting,
                ..self.held_by(&readers, object, f.id, state.map(|s| u64::from(s & OLD_READERS)))
            };
            out.insert((object, LockKind::ReaderWriter), lock);
        }
    }

    /// Adds the class constructors that threads wait for.
    pub(super) fn constructors(&self, waits: &[Wait], constructors: &ClassConstructors, out: &mut Locks) {
        let classes = waits.iter().filter(|w| w.kind == WaitKind::ClassConstructor).filter_map(|w| Some(w.object?.0));
        for class in classes {
            let owner =
                constructors.runs(class).next().map(|i| self.owner_at(self.threads.get(i).and_then(|t| t.id).unwrap_or(0), Some(i)));
            out.insert((class, LockKind::ClassConstructor), HeldLock { owner, ..HeldLock::default() });
        }
    }

    /// Reads mutexes of the managed wait subsystem and named mutexes, which refer to the `Thread` object of their owner.
    fn mutexes(&self, out: &mut Locks) {
        let by_object: Map<Addr, usize> = self.threads.iter().enumerate().filter_map(|(i, t)| Some((t.exposed?, i))).collect();
        let owner = |object: Addr| {
            let thread = by_object.get(&object).copied()?;
            Some(self.owner_at(self.threads.get(thread).and_then(|t| t.id).unwrap_or(0), Some(thread)))
        };
        for (mutex, by, recursion) in self.primitives.wait_infos.iter().flat_map(|infos| infos.owned(self.library)) {
            // A mutex is abandoned when its thread ends.
            let Some(owner) = owner(by) else { continue };
            let lock = HeldLock { owner: Some(owner), recursion: Some(recursion), ..HeldLock::default() };
            out.insert((mutex, LockKind::WaitHandle), lock);
        }
        for mutex in &self.primitives.named_mutexes {
            let owner = mutex.owner.and_then(owner);
            let recursion = mutex.recursion.filter(|_| owner.is_some());
            let lock = HeldLock { owner, recursion, name: mutex.name.clone(), ..HeldLock::default() };
            out.insert((mutex.object, LockKind::WaitHandle), lock);
        }
    }

    /// Returns the readers of the lock at `object`, which has counted `counted` of them. A reader that is not a living thread has ended: the runtime
    /// frees the thread statics of a thread, and the lock still counts it.
    fn held_by(&self, readers: &Readers, object: Addr, id: FieldAt, counted: Option<u64>) -> HeldLock {
        let of_lock = self.library.u64(object, id).map(|id| readers.by_lock.get(&id).map_or(&[][..], Vec::as_slice));
        let of_lock = of_lock.filter(|list| self.library.afford(len64(list.len())));
        let are_all = readers.are_all && self.unknown.is_none() && !self.entering;
        let ended = counted.zip(of_lock).and_then(|(counted, living)| ended(counted, len64(living.len()), are_all));
        HeldLock { readers: of_lock.unwrap_or_default().to_vec(), reader_count: counted, ended_readers: ended, ..HeldLock::default() }
    }

    /// Returns the readers of locks of the type `lock`. A thread static of the type `keeper` has a list of the locks that the thread has entered.
    fn readers(&self, lock: LockType, keeper: LockType, f: Entered, reads: impl Fn(Addr) -> Option<bool>) -> Readers {
        let mut out = Readers::default();
        let Some(table) = self.types.table(keeper) else { return out };
        if self.found.of(lock).next().is_none() {
            return out;
        }
        let mut are_all = true;
        for (i, thread) in self.threads.iter().enumerate().filter(|(_, t)| t.has_stack()) {
            let first = match self.library.thread_static(table, f.list, thread.address) {
                Ok(StaticPlace::At(at)) => self.library.memory().ptr(at).ok(),
                Ok(StaticPlace::NotInitialized) => continue,
                Ok(StaticPlace::Unknown) => None,
                Err(missing) => {
                    let reason = Missing::Locks.supplied_by(missing.remedy());
                    self.notes.add(reason, None, format!("readers of reader-writer locks cannot be shown: {missing}"));
                    return out;
                }
            };
            let mut next = first;
            let mut seen = HashSet::new();
            while let Some(at) = next.filter(|at| !at.is_null() && self.library.afford(1)) {
                if !seen.insert(at) || seen.len() > MAX_ENTERED {
                    let what = format!("the reader-writer locks of thread {} have a cycle or exceed the limit", thread.address);
                    self.notes.add(NoteKind::LimitHit, at, what);
                    break;
                }
                let entered = reads(at).and_then(|reads| Some((reads, self.library.u64(at, f.lock)?)));
                if let Some((true, lock)) = entered {
                    out.by_lock.entry(lock).or_default().push(self.owner_at(thread.id.unwrap_or(0), Some(i)));
                }
                are_all &= entered.is_some();
                next = self.library.word(at, f.next).map(Addr);
            }
            // The list was not read to its end.
            are_all &= next == Some(Addr::NULL);
        }
        Readers { are_all, ..out }
    }
}

/// Returns how many of the `counted` readers of a lock have ended, if `living` were found; `None` if `are_all` says that others may live.
fn ended(counted: u64, living: u64, are_all: bool) -> Option<u64> {
    let more = counted.saturating_sub(living);
    (are_all || more == 0).then_some(more)
}

/// The living threads that hold reader-writer locks for reading.
#[derive(Debug, Default)]
struct Readers {
    /// By the id of the lock.
    by_lock: Map<u64, Vec<Owner>>,
    /// Whether the list of every thread was read.
    are_all: bool,
}

/// A list of the reader-writer locks that a thread has entered: the thread static with its first entry, and fields of entries.
#[derive(Clone, Copy)]
struct Entered {
    list: &'static str,
    lock: FieldAt,
    next: FieldAt,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readers_that_no_living_thread_is_have_ended() {
        assert_eq!(ended(1, 0, true), Some(1));
        assert_eq!(ended(3, 1, true), Some(2));
        assert_eq!(ended(1, 1, false), Some(0));
        // Not all lists of threads could be read.
        assert_eq!(ended(3, 1, false), None);
        // A thread may have left the lock, and not its own list.
        assert_eq!(ended(0, 1, true), Some(0));
    }

    #[test]
    fn a_lock_with_readers_that_were_not_found_is_in_use() {
        let held = HeldLock { reader_count: Some(1), ..HeldLock::default() };
        assert!(held.in_use() && held.has_lost_readers());
        let free = HeldLock { reader_count: Some(0), ended_readers: Some(0), ..HeldLock::default() };
        assert!(!free.in_use() && !free.has_lost_readers());
    }
}
