//! Models of locks, waits and deadlocks.

use std::collections::BTreeMap;

use super::deadlocks::{Edge, MAX_EDGES, WaitGraph};
use super::holders::{HeldLock, Locks, Owner};
use super::query::LocksQuery;
use super::waits::{Blocked, Wait};
use crate::analysis::threads::stack_words::holders;
use crate::analysis::{
    LockKind, LockModel, LockOwner, LocksReport, ThreadWait, WaitChain, WaitEdgeKind, WaitEvidence, WaitKind, WaitModel, WaiterModel,
};
use crate::base::hash::{Map, Set};
use crate::base::{Addr, Collector, Missing, Name, NoteKind, len64, plural};
use crate::bcl::Library;
use crate::clr::threads::Thread;
use crate::dump::ThreadStacks;
use crate::session::{Error, Namer, Runtime, SourceLines};

/// Steps charged for an owner of a lock, for each thread that waits.
const STEPS_OF_AN_OWNER: u64 = 4;
/// Longest chain of waiting threads.
const MAX_CHAIN: usize = 64;

/// Makes the report.
pub(super) struct Reporter<'r> {
    pub(super) runtime: &'r Runtime,
    pub(super) namer: &'r Namer,
    pub(super) library: &'r Library,
    pub(super) threads: &'r [Thread],
    pub(super) stacks: &'r [(usize, Blocked<'r>)],
    pub(super) notes: &'r Collector,
}

impl Reporter<'_> {
    pub(super) fn report(&self, locks: &Locks, waits: &[Wait], runs: &[Edge], query: &LocksQuery) -> Result<LocksReport, Error> {
        let graph = WaitGraph::new(u32::try_from(self.threads.len()).unwrap_or(u32::MAX), self.edges(locks, waits, runs))?;
        let cycles = graph.cycles();
        let deadlocks =
            cycles.iter().map(|c| graph.model(c, |t| self.id(t), |object, class| self.type_of(object, class), self.stacks)).collect();
        let frames: Map<usize, &Blocked<'_>> = self.stacks.iter().map(|(i, t)| (*i, t)).collect();
        let native = ThreadStacks::new(self.runtime.file());
        let name = |thread: &Thread| self.namer.thread_name(thread.exposed, thread.os_id.and_then(|id| native.thread(id)));
        let lines = SourceLines::new(self.runtime, self.namer);
        let wait = |w: &Wait| {
            let thread = self.threads.get(w.thread)?;
            let frame = match frames.get(&w.thread).map_or(Ok(None), |t| t.own()) {
                Ok(frame) => frame,
                Err(method) => {
                    self.notes.add(Missing::Metadata, method, format!("the method at {method} has no name in the dump"));
                    None
                }
            };
            let line = frame.and_then(|f| lines.at(&f.method, f.at?));
            Some(WaitModel {
                managed_id: thread.id,
                os_id: thread.os_id,
                name: name(thread),
                kind: w.kind,
                object: w.object.map(|(object, _)| object),
                type_name: self.type_of_wait(w),
                others: w.others.clone(),
                evidence: w.evidence,
                timeout_ms: w.timeout,
                method: frame.map(|f| f.name.clone()),
                display: frame.map(|f| f.name.display()),
                method_desc: frame.map(|f| f.desc),
                file: line.as_ref().map(|l| l.file.to_string()),
                line: line.map(|l| l.line),
            })
        };
        let waiting = waits.iter().filter_map(wait).collect();
        lines.note(self.notes);
        Ok(LocksReport {
            locks: self.locks(locks, waits, query),
            not_listed: None,
            waits: waiting,
            deadlocks,
            chains: self.chains(locks, waits, (&graph, &graph.first()?), &cycles),
        })
    }

    /// Returns a summary of a wait, with the owners of the lock.
    pub(super) fn brief(&self, wait: &Wait, locks: &Locks) -> ThreadWait {
        let held = wait.object.and_then(|lock| locks.get(&lock));
        // A reader blocks writers, but not other readers.
        let writes = matches!(wait.kind, WaitKind::WriteLock | WaitKind::Upgrade);
        let owner = held.and_then(|h| h.owner.or(h.upgrader_for(wait.kind)));
        // Thousands of threads may wait for one lock that thousands hold.
        let readers = held.filter(|_| writes).map_or(&[][..], |h| h.readers.as_slice());
        let all = self.library.afford(len64(readers.len()).saturating_mul(STEPS_OF_AN_OWNER));
        if !all {
            self.notes.add(NoteKind::LimitHit, None, "some locks that threads wait for have too many readers to list them for each thread");
        }
        let owners = owner.iter().chain(readers.iter().filter(|_| all));
        ThreadWait {
            kind: wait.kind,
            object: wait.object.map(|(object, _)| object),
            type_name: self.type_of_wait(wait),
            evidence: wait.evidence,
            timeout_ms: wait.timeout,
            owners: owners.map(|o| self.owner(*o)).collect(),
        }
    }

    /// Returns the edges of the wait graph: waits for owners of locks, joins, and `runs`.
    fn edges(&self, locks: &Locks, waits: &[Wait], runs: &[Edge]) -> Vec<Edge> {
        let objects = self.threads.iter().enumerate().filter_map(|(i, t)| Some((t.exposed?, i))).collect();
        let mut out = edges(locks, waits);
        if out.len() >= MAX_EDGES {
            self.notes.add(
                NoteKind::LimitHit,
                None,
                format!("threads wait for each other more than {MAX_EDGES} times: some deadlocks may be missing"),
            );
        }
        out.extend(joins(waits, &objects));
        out.extend(runs.iter().copied());
        out
    }

    /// The managed id of a thread.
    fn id(&self, thread: u32) -> u32 {
        usize::try_from(thread).ok().and_then(|i| self.threads.get(i)?.id).unwrap_or(0)
    }

    /// Returns the type name of `object`. If `class` is set, `object` is itself the method table of the type.
    fn type_of(&self, object: Addr, class: bool) -> Option<Name> {
        self.namer.name(if class { object } else { self.library.method_table(object)? })
    }

    fn type_of_wait(&self, wait: &Wait) -> Option<Name> {
        self.type_of(wait.object?.0, wait.kind == WaitKind::ClassConstructor)
    }

    fn owner(&self, owner: Owner) -> LockOwner {
        let thread = owner.thread.and_then(|i| self.threads.get(i));
        let managed_id = thread.map_or((!owner.is_os).then_some(owner.id), |t| t.id);
        let os_id = thread.map_or(owner.is_os.then_some(owner.id.into()), |t| t.os_id);
        LockOwner { managed_id, os_id, orphaned: owner.orphaned }
    }

    /// Returns the owner that a thread in a wait of this kind waits for; without a managed id if it is a reader that has ended.
    fn owner_of(&self, kind: WaitKind, held: &HeldLock) -> Option<LockOwner> {
        // A thread in `Monitor.Wait` waits for a pulse. The other kinds have no owner.
        let enters = [
            WaitKind::Monitor,
            WaitKind::Lock,
            WaitKind::ReadLock,
            WaitKind::WriteLock,
            WaitKind::UpgradeableLock,
            WaitKind::Upgrade,
            WaitKind::WaitHandle,
            WaitKind::WaitHandles,
        ];
        let owner = held.owner.or_else(|| held.upgrader_for(kind)).map(|owner| self.owner(owner));
        let ended = LockOwner { managed_id: None, os_id: None, orphaned: Some(true) };
        owner.or_else(|| held.ended_readers.filter(|n| *n > 0).map(|_| ended)).filter(|_| enters.contains(&kind))
    }

    fn locks(&self, locks: &Locks, waits: &[Wait], query: &LocksQuery) -> Vec<LockModel> {
        let mut waiters: BTreeMap<(Addr, LockKind), Vec<WaiterModel>> = BTreeMap::new();
        // A thread that waits for several handles of one lock is one waiter.
        let mut known: Set<(Addr, LockKind, usize)> = Set::default();
        for w in waits {
            let waiter = WaiterModel { managed_id: self.threads.get(w.thread).and_then(|t| t.id), evidence: w.evidence };
            for lock in w.object.into_iter().chain(w.others.iter().filter_map(|o| Some((*o, w.object?.1)))) {
                if known.insert((lock.0, lock.1, w.thread)) {
                    waiters.entry(lock).or_default().push(waiter.clone());
                }
            }
        }
        let shown = locks.iter().filter(|(lock, held)| query.all || held.in_use() || waiters.contains_key(lock));
        let mut all: Vec<((Addr, LockKind), HeldLock)> = shown.map(|(lock, held)| (*lock, held.clone())).collect();
        all.extend(waiters.keys().filter(|lock| !locks.contains_key(lock)).map(|lock| (*lock, HeldLock::default())));
        let model = |((object, kind), held): ((Addr, LockKind), HeldLock)| LockModel {
            object,
            type_name: self.type_of(object, kind == LockKind::ClassConstructor),
            kind,
            owner: held.owner.or(held.upgrader).map(|o| self.owner(o)),
            recursion: held.recursion,
            readers: held.readers.iter().map(|o| self.owner(*o)).collect(),
            reader_count: held.reader_count,
            ended_readers: held.ended_readers,
            waiters: waiters.get(&(object, kind)).cloned().unwrap_or_default(),
            waiting: held.waiting,
            count: held.count,
            capacity: held.capacity,
            name: held.name,
            sync_block: held.sync_block,
        };
        let mut out: Vec<LockModel> = all.into_iter().map(model).collect();
        out.sort_by_key(|l| (std::cmp::Reverse(len64(l.waiters.len())), l.kind, l.object));
        out
    }

    /// Chains of waiting threads outside the cycles: each thread waits for the next one, the last one for an object without an owner.
    fn chains(&self, locks: &Locks, waits: &[Wait], (all, graph): (&WaitGraph, &WaitGraph), cycles: &[Vec<u32>]) -> Vec<WaitChain> {
        let by_thread: Map<u32, &Wait> = waits.iter().filter_map(|w| Some((u32::try_from(w.thread).ok()?, w))).collect();
        let in_cycle = all.with_waiters(cycles.concat());
        let mut ends: Vec<(Vec<u32>, &Wait)> = Vec::new();
        for (last, wait) in &by_thread {
            // Only a thread that others wait for, and that waits for no thread itself, ends a chain.
            if !graph.owners(*last).is_empty() || in_cycle.contains(last) || graph.waiters(*last).is_empty() {
                continue;
            }
            let mut threads = vec![*last];
            while let Some(before) = threads.last().and_then(|t| graph.waiters(*t).iter().copied().find(|w| !threads.contains(w)))
                && threads.len() < MAX_CHAIN
            {
                threads.push(before);
            }
            ends.push((threads, *wait));
        }
        // Threads that may hold a lock without a known owner: the lock is on their stack, and they do not wait for it.
        let unowned = |lock: &(Addr, LockKind)| locks.get(lock).is_none_or(|held| held.owner.is_none());
        let wanted: Set<Addr> = ends.iter().filter_map(|(_, wait)| wait.object).filter(unowned).map(|(object, _)| object).collect();
        let is_lost = |t: &Blocked<'_>| t.stack.is_none_or(|stack| self.runtime.memory().captured(stack) == 0);
        let lost = self.stacks.iter().filter(|(_, t)| is_lost(t)).count();
        if lost > 0 && !wanted.is_empty() {
            let what = format!("which locks {} may hold is unknown: no stack in the dump", plural(len64(lost), "thread"));
            self.notes.add(Missing::Stacks, None, what);
        }
        let stacks = self.stacks.iter().filter_map(|(_, t)| Some((t.thread.id?, t.stack?)));
        let holders = holders(self.runtime.memory(), stacks, &wanted);
        let mut waiters: Map<Addr, Set<u32>> = Map::default();
        for wait in waits {
            let id = self.threads.get(wait.thread).and_then(|t| t.id);
            if let Some(((object, _), id)) = wait.object.zip(id) {
                waiters.entry(object).or_default().insert(id);
            }
        }
        let chain = |(threads, wait): (Vec<u32>, &Wait)| {
            let object = wait.object.map(|(object, _)| object);
            let mut candidates = object.and_then(|o| holders.get(&o)).cloned().unwrap_or_default();
            candidates.retain(|id| !object.and_then(|o| waiters.get(&o)).is_some_and(|waiting| waiting.contains(id)));
            WaitChain {
                threads: threads.into_iter().rev().map(|t| self.id(t)).collect(),
                kind: wait.kind,
                object,
                one_of: (wait.kind == WaitKind::WaitHandles && wait.any).then(|| len64(wait.others.len()).saturating_add(1)),
                owner: wait.object.and_then(|lock| self.owner_of(wait.kind, locks.get(&lock)?)),
                type_name: self.type_of_wait(wait),
                candidates,
            }
        };
        let mut out: Vec<WaitChain> = ends.into_iter().map(chain).collect();
        out.sort_by(|a, b| a.threads.cmp(&b.threads));
        out
    }
}

/// The edges from waiting threads to the threads that they wait for.
fn edges(locks: &Locks, waits: &[Wait]) -> Vec<Edge> {
    let mut out = Vec::new();
    let mut writers: Map<Addr, Vec<usize>> = Map::default();
    for w in waits.iter().filter(|w| w.kind == WaitKind::WriteLock) {
        writers.entry(w.object.map_or(Addr::NULL, |(at, _)| at)).or_default().push(w.thread);
    }
    for w in waits {
        if out.len() >= MAX_EDGES {
            break;
        }
        let Some(lock) = w.object else { continue };
        if w.kind == WaitKind::WaitHandles {
            out.extend(of_handles(locks, w));
            continue;
        }
        let object = lock.0;
        let certain = w.evidence == WaitEvidence::Exact && w.endless;
        let from = w.thread;
        let kind = if w.kind == WaitKind::ClassConstructor { WaitEdgeKind::ClassConstructor } else { WaitEdgeKind::Holds };
        let mut add = |to: Option<usize>, certain: bool, later: bool| {
            let ids = u32::try_from(from).ok().zip(to.and_then(|t| u32::try_from(t).ok()));
            if let Some((from, to)) = ids.filter(|_| out.len() < MAX_EDGES) {
                out.push(Edge { from, to, object, certain, kind, later, context: None, any: None });
            }
        };
        let Some(held) = locks.get(&lock) else { continue };
        let owner = held.owner.and_then(|o| o.thread);
        let upgrader = held.upgrader_for(w.kind).and_then(|o| o.thread);
        let readers = held.readers.iter().map(|o| o.thread);
        // A lock found by its event is as certain as one from a record: no other lock has the event.
        let of_event = w.endless;
        match w.kind {
            WaitKind::Monitor | WaitKind::Lock => add(owner, certain || w.kind == WaitKind::Lock && of_event, false),
            // Mutexes have an owner; events and semaphores do not.
            WaitKind::WaitHandle => add(owner, certain, false),
            // The runtime's entry of a running class constructor belongs to only one class.
            WaitKind::ClassConstructor => add(owner, true, false),
            WaitKind::WriteLock => {
                add(owner, of_event, false);
                add(upgrader, of_event, false);
                readers.for_each(|reader| add(reader, of_event, false));
            }
            // An upgrading thread does not wait for itself.
            WaitKind::Upgrade => readers.filter(|reader| *reader != Some(from)).for_each(|reader| add(reader, of_event, false)),
            WaitKind::ReadLock | WaitKind::UpgradeableLock => {
                add(owner, of_event, false);
                add(upgrader, of_event, false);
                if held.writers_first {
                    let later = owner.or(upgrader).is_some();
                    writers.get(&object).into_iter().flatten().for_each(|writer| add(Some(*writer), of_event, later));
                }
            }
            _ => {}
        }
    }
    out
}

/// The edges from a thread that waits for several handles to the owners of those that are mutexes.
fn of_handles(locks: &Locks, wait: &Wait) -> Vec<Edge> {
    // Without a record, it is unknown whether the thread waits for all handles.
    let Some((first, _)) = wait.object.filter(|_| wait.evidence == WaitEvidence::Exact) else { return Vec::new() };
    let owner = |handle| locks.get(&(handle, LockKind::WaitHandle)).and_then(|held| held.owner?.thread);
    let owned: Vec<(Addr, Option<usize>)> = [first].iter().chain(&wait.others).map(|handle| (*handle, owner(*handle))).collect();
    // Any thread can signal an event, which ends a wait for one of several. So does a mutex that the thread has itself.
    if wait.any && owned.iter().any(|(_, owner)| owner.is_none_or(|owner| owner == wait.thread)) {
        return Vec::new();
    }
    let edge = |(object, owner): (Addr, Option<usize>)| {
        let (from, to) = (u32::try_from(wait.thread).ok()?, u32::try_from(owner?).ok()?);
        Some(Edge {
            from,
            to,
            object,
            certain: wait.endless,
            kind: WaitEdgeKind::Holds,
            later: false,
            context: None,
            any: wait.any.then_some(0),
        })
    };
    owned.into_iter().filter_map(edge).collect()
}

/// The edges from threads in `Thread.Join` to the threads that they join.
fn joins(waits: &[Wait], by_object: &Map<Addr, usize>) -> Vec<Edge> {
    let joined = waits.iter().filter(|w| w.kind == WaitKind::Join);
    let edge = |w: &Wait| {
        let (object, _) = w.object?;
        let to = by_object.get(&object)?;
        let (from, to) = (u32::try_from(w.thread).ok()?, u32::try_from(*to).ok()?);
        Some(Edge { from, to, object, certain: w.endless, kind: WaitEdgeKind::Joined, later: false, context: None, any: None })
    };
    joined.filter_map(edge).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const RW: Addr = Addr(0x1000);
    const MONITOR: Addr = Addr(0x2000);

    fn owner(thread: usize) -> Owner {
        Owner { id: 0, is_os: false, thread: Some(thread), orphaned: Some(false) }
    }

    fn wait(thread: usize, kind: WaitKind, object: (Addr, LockKind)) -> Wait {
        Wait {
            thread,
            kind,
            object: Some(object),
            others: Vec::new(),
            any: false,
            evidence: WaitEvidence::Stack,
            timeout: None,
            endless: true,
        }
    }

    fn cycles(edges: Vec<Edge>) -> Vec<Vec<u32>> {
        WaitGraph::new(4, edges).unwrap().cycles()
    }

    /// Thread 0 waits to upgrade, thread 1 reads and waits for the monitor of thread 2.
    fn upgrade(upgrading: bool) -> (Locks, Vec<Wait>) {
        let (rw, monitor) = ((RW, LockKind::ReaderWriter), (MONITOR, LockKind::Monitor));
        let held =
            HeldLock { upgrader: Some(owner(0)), readers: vec![owner(1)], upgrading, writers_first: upgrading, ..HeldLock::default() };
        let locks = Locks::from([(rw, held), (monitor, HeldLock { owner: Some(owner(2)), ..HeldLock::default() })]);
        (locks, vec![wait(0, WaitKind::Upgrade, rw), wait(1, WaitKind::Monitor, monitor), wait(2, WaitKind::ReadLock, rw)])
    }

    #[test]
    fn a_reader_waits_for_the_thread_that_waits_to_upgrade() {
        let (locks, waits) = upgrade(true);
        assert_eq!(cycles(edges(&locks, &waits)), [[0, 1, 2]]);
        let (locks, waits) = upgrade(false);
        assert!(cycles(edges(&locks, &waits)).is_empty());
    }

    #[test]
    fn an_edge_is_certain_only_if_the_wait_is_known_to_have_no_timeout() {
        let (locks, mut waits) = upgrade(true);
        waits[0].endless = false;
        let certain = |edges: Vec<Edge>| edges.into_iter().map(|e| (e.from, e.certain)).collect::<Vec<_>>();
        // Only a record shows that a thread waits for a monitor.
        assert_eq!(certain(edges(&locks, &waits)), [(0, false), (1, false), (2, true)]);
        let joined = [true, false].map(|endless| Wait { endless, ..wait(0, WaitKind::Join, (RW, LockKind::Thread)) });
        let threads = Map::from_iter([(RW, 3)]);
        assert_eq!(certain(joins(&joined, &threads)), [(0, true), (0, false)]);
    }

    /// Thread 0 holds the mutex at `RW` and waits for the one of thread 1, which waits for the first mutex and for an event, or for one of them.
    fn handles(any: bool, evidence: WaitEvidence) -> Vec<Edge> {
        let (a, b, event) = (RW, MONITOR, Addr(0x3000));
        let of = |thread| HeldLock { owner: Some(owner(thread)), ..HeldLock::default() };
        let locks = Locks::from([((a, LockKind::WaitHandle), of(0)), ((b, LockKind::WaitHandle), of(1))]);
        let one = Wait { evidence: WaitEvidence::Exact, ..wait(0, WaitKind::WaitHandle, (b, LockKind::WaitHandle)) };
        let several = wait(1, WaitKind::WaitHandles, (event, LockKind::WaitHandle));
        edges(&locks, &[one, Wait { others: vec![a], any, evidence, ..several }])
    }

    #[test]
    fn a_wait_for_all_handles_is_a_wait_for_the_owner_of_each_mutex() {
        assert_eq!(cycles(handles(false, WaitEvidence::Exact)), [[0, 1]]);
        assert!(handles(false, WaitEvidence::Exact).iter().all(|e| e.certain));
        // Any thread can signal the event.
        assert!(cycles(handles(true, WaitEvidence::Exact)).is_empty());
        assert!(cycles(handles(false, WaitEvidence::Stack)).is_empty());
    }

    #[test]
    fn a_wait_for_one_of_several_mutexes_is_a_deadlock_if_no_owner_can_continue() {
        let mutexes = [RW, MONITOR, Addr(0x3000)];
        let held = |thread: usize, at: Addr| ((at, LockKind::WaitHandle), HeldLock { owner: Some(owner(thread)), ..HeldLock::default() });
        let locks = Locks::from([held(0, mutexes[0]), held(1, mutexes[1]), held(2, mutexes[2])]);
        let exact = |thread, kind, at| Wait { evidence: WaitEvidence::Exact, ..wait(thread, kind, (at, LockKind::WaitHandle)) };
        let any = Wait { others: vec![mutexes[2]], any: true, ..exact(0, WaitKind::WaitHandles, mutexes[1]) };
        let one = exact(1, WaitKind::WaitHandle, mutexes[0]);
        assert!(cycles(edges(&locks, &[any.clone(), one.clone()])).is_empty(), "thread 2 can continue");
        assert_eq!(cycles(edges(&locks, &[any, one, exact(2, WaitKind::WaitHandle, mutexes[0])])), [[0, 1, 2]]);
    }
}
