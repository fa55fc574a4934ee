//! `locks`: the held locks, the object that each thread waits for, and the threads that wait for each other.
//!
//! Source: `docs/internals/locks.md`.

mod answer;
mod class_constructors;
mod deadlocks;
mod holders;
mod named_mutexes;
mod needs;
mod objects;
mod primitives;
mod query;
mod queued;
mod report;
mod runs;
mod tasks;
mod timeouts;
mod wait_subsystem;
mod wait_target;
mod waits;

pub use report::*;

use std::collections::BTreeMap;

use crate::base::{Addr, Answer, Collector, Count, Missing};
use crate::bcl::Library;
use crate::clr::blocking::Blocking;
use crate::clr::library::Classifier;
use crate::clr::threads::Thread;
use crate::model::HeaderModel;
use crate::session::{Error, Heap, Namer, Runtime};
use answer::Reporter;
use class_constructors::ClassConstructors;
use holders::{Holders, Locks};
use objects::LockType;
use primitives::Primitives;
pub use query::LocksQuery;
use waits::{Blocked, Wait, Waits, blocked, note_stacks};

/// Lists locks, waits and deadlocks.
///
/// # Errors
/// [`Error::Contract`] if the runtime does not describe its threads, types and fields.
pub fn locks(heap: &Heap, query: &LocksQuery) -> Result<Answer<LocksReport>, Error> {
    let notes = heap.begin();
    let namer = heap.namer();
    let threads = threads(heap, &notes)?;
    let report = report(heap, &namer, threads, Thin::Listed, query, &notes)?;
    namer.note(&notes);
    Ok(notes.finish(report))
}

/// Reads the memory that [`locks`] reads, except for object headers, without a walk of the whole heap. Used for recording.
pub(in crate::analysis) fn touch(heap: &Heap) {
    let notes = Collector::new();
    let Ok(threads) = threads(heap, &notes) else { return };
    let _ = report(heap, &heap.namer(), threads, Thin::LeftOut, &LocksQuery { all: true }, &notes);
}

/// Makes the report.
fn report(heap: &Heap, namer: &Namer, threads: &[Thread], thin: Thin, query: &LocksQuery, notes: &Collector) -> Result<LocksReport, Error> {
    let state = State::read(heap, namer, threads, thin, notes)?;
    let runs = runs::runs(heap, namer, (threads, &state.stacks), (&state.waits, &state.continued), notes)?;
    state.reporter(heap, namer, threads, notes).report(&state.locks, &state.waits, &runs, query)
}

/// Whether thin locks, which any object may have in its header, are listed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Thin {
    Listed,
    LeftOut,
}

/// The waits and held monitors of threads, by index in the runtime's list.
#[derive(Debug, Default)]
pub(in crate::analysis) struct ThreadLocks {
    /// The wait of each blocked thread.
    pub(in crate::analysis) waits: BTreeMap<usize, ThreadWait>,
    /// Number of monitors that each thread holds; `None` if this cannot be determined.
    pub(in crate::analysis) held: Option<BTreeMap<usize, u64>>,
}

/// Reads the waits and held monitors of all threads.
///
/// # Errors
/// See [`locks`].
pub(in crate::analysis) fn thread_locks(runtime: &Runtime, namer: &Namer, notes: &Collector) -> Result<ThreadLocks, Error> {
    let heap = &runtime.heap()?;
    notes.extend(&heap.begin().into_notes());
    let threads = threads(heap, notes)?;
    let state = State::read(heap, namer, threads, Thin::Listed, notes)?;
    let reporter = state.reporter(heap, namer, threads, notes);
    let waits = state.waits.iter().map(|wait| (wait.thread, reporter.brief(wait, &state.locks))).collect();
    let held = state.monitors.then(|| {
        let mut held = BTreeMap::<usize, u64>::new();
        let monitors = state.locks.iter().filter(|((_, kind), _)| *kind == LockKind::Monitor);
        monitors.filter_map(|(_, lock)| lock.owner?.thread).for_each(|thread| held.entry(thread).or_default().bump());
        held
    });
    Ok(ThreadLocks { waits, held })
}

/// Adds the hash code to `header`, the header of the object at `object`. NativeAOT keeps hash codes in its table of monitors.
pub(in crate::analysis) fn with_hash_code(heap: &Heap, namer: &Namer, object: Addr, header: HeaderModel, notes: &Collector) -> HeaderModel {
    let index = header.sync_block.as_ref().map(|block| block.index);
    let Some(index) = index.filter(|_| header.hash_code.is_none() && !heap.runtime().descriptor().has_sync_table()) else { return header };
    let Ok(types) = namer.types() else { return header };
    let library = Library::of(heap.runtime(), types, notes);
    let found = objects::find(heap, &Classifier::<LockType>::bind(types), None, notes);
    HeaderModel { hash_code: wait_subsystem::hash_code(&library, &found, index, object), ..header }
}

fn threads<'h>(heap: &'h Heap, notes: &Collector) -> Result<&'h [Thread], Error> {
    let runtime = heap.runtime();
    // Waits are determined from the states of threads, joins from their managed `Thread` objects.
    notes.extend(runtime.thread_reader()?.losses());
    runtime.note_thread_ids(notes);
    runtime.note_thread_objects(notes);
    Ok(notes.with(runtime.thread_list()?).as_slice())
}

/// The locks and waits of a process.
struct State<'h> {
    library: Library,
    locks: Locks,
    /// Whether `locks` has every monitor.
    monitors: bool,
    waits: Vec<Wait>,
    /// The tasks that have a continuation, if any thread waits for a task.
    continued: Vec<Addr>,
    stacks: Vec<(usize, Blocked<'h>)>,
}

impl<'h> State<'h> {
    fn read(heap: &'h Heap, namer: &Namer, threads: &'h [Thread], thin: Thin, notes: &Collector) -> Result<State<'h>, Error> {
        let runtime = heap.runtime();
        let library = Library::bind(runtime, namer, notes)?;
        let types = Classifier::<LockType>::bind(library.types());
        let headers = runtime.headers(notes).map(|headers| headers.with_locks(library.types()));
        if headers.is_none() {
            notes.add(Missing::Locks, None, "monitors cannot be shown: the runtime does not describe object headers");
        }
        headers.iter().for_each(|h| h.note_sync_end(notes));
        let blocks = headers.as_ref().and_then(|h| h.sync_blocks(notes));
        let has_table = runtime.descriptor().has_sync_table();
        if headers.is_some() && blocks.is_none() && has_table {
            notes.add(Missing::Locks, None, "contended monitors cannot be shown: the sync table is not in the dump");
        }
        let monitors = headers.is_some() && (blocks.is_some() || !has_table);
        let blocks = blocks.unwrap_or_default();
        let found = objects::find(heap, &types, headers.as_ref().filter(|_| thin == Thin::Listed), notes);
        let primitives = Primitives::read(&library, &types, &found, &blocks, notes);
        let stacks = blocked(heap, namer, threads, notes);
        note_stacks(&stacks, notes);
        let mut waits = Waits {
            heap,
            library: &library,
            found: &found,
            primitives: &primitives,
            blocks: blocks.iter().filter_map(|b| Some((b.address?, b.clone()))).collect(),
            blocking: runtime.scoped(notes, |d| Blocking::bind(heap.memory(), d)),
            thread_objects: threads.iter().filter_map(|t| t.exposed).collect(),
            constructors: ClassConstructors::find(namer, &stacks),
        };
        let ((recorded, mut untimed), constructors) = (waits.read(&stacks, notes), waits.constructors);
        timeouts::read(heap, namer, &stacks, &mut untimed, notes);
        let mut waits: Vec<Wait> = recorded.into_iter().chain(untimed).collect();
        waits.sort_by_key(|wait| wait.thread);
        let continued = tasks::lift(heap, &library, &types, (&found, &primitives), &mut waits, notes);
        let reader = runtime.thread_reader()?;
        let (are_all, highest) = (reader.are_all(threads), reader.highest_id());
        let waits_at = |index: usize| waits.binary_search_by_key(&index, |wait| wait.thread).is_ok();
        let entering = stacks.iter().any(|(index, stack)| !waits_at(*index) && stack.is_in_reader_writer());
        let holders = Holders::new(&library, &types, &found, &primitives, (threads, are_all, highest), entering, notes);
        let mut locks = holders.read(headers.as_ref(), &blocks);
        holders.constructors(&waits, &constructors, &mut locks);
        library.note(notes);
        Ok(State { library, locks, monitors, waits, continued, stacks })
    }

    fn reporter<'r>(&'r self, heap: &'r Heap, namer: &'r Namer, threads: &'r [Thread], notes: &'r Collector) -> Reporter<'r> {
        Reporter { runtime: heap.runtime(), namer, library: &self.library, threads, stacks: &self.stacks, notes }
    }
}
