//! `locks`: which locks are held, what each thread waits for, and which threads wait for each other.
//!
//! Source: `docs/internals/locks.md`.

mod deadlocks;
mod holders;
mod objects;
mod primitives;
mod report;
mod tasks;
mod waits;

use crate::base::hash::Set;
use crate::base::{Answer, NoteKind};
use crate::clr::blocking::Blocking;
use crate::clr::header::Headers;
use crate::clr::library::Classifier;
use crate::model::LocksReport;
use crate::session::{Error, Heap, Library};
use holders::Holders;
use objects::LockType;
use primitives::Primitives;
use report::Reporter;
use waits::{Waits, blocked, note_stacks};

/// What to list.
#[derive(Clone, Debug, Default)]
pub struct LocksQuery {
    /// Also locks that nobody holds or waits for.
    pub all: bool,
}

/// Lists locks, waits and deadlocks.
///
/// # Errors
/// [`Error::Contract`] if the runtime does not describe its threads, types and fields.
pub fn locks(heap: &Heap, query: &LocksQuery) -> Result<Answer<LocksReport>, Error> {
    let notes = heap.begin();
    let runtime = heap.runtime();
    notes.extend(runtime.thread_reader()?.identity_losses());
    let threads = notes.with(runtime.threads()?);
    let namer = heap.namer();
    let library = Library::bind(runtime, &namer, &notes)?;
    let types = Classifier::<LockType>::bind(library.types());
    let headers = runtime.headers(&notes);
    if headers.is_none() {
        notes.add(NoteKind::Missing, None, "monitors are not told: the runtime does not describe object headers");
    }
    let blocks = headers.as_ref().and_then(Headers::sync_blocks);
    if headers.is_some() && blocks.is_none() {
        notes.add(NoteKind::Missing, None, "contended monitors are not told: the sync table is not in the dump");
    }
    let blocks = blocks.unwrap_or_default();
    let found = objects::find(heap, &types, headers.as_ref(), &notes);
    let primitives = Primitives::read(&library, &types, &found, &notes);
    let stacks = blocked(heap, &namer, threads, &notes);
    note_stacks(&stacks, &notes);
    let mut waits = Waits {
        heap,
        library: &library,
        found: &found,
        primitives: &primitives,
        blocks: blocks.iter().filter_map(|b| Some((b.address?, b.clone()))).collect(),
        blocking: runtime.scoped(&notes, |d| Blocking::bind(heap.memory(), d)),
        thread_objects: threads.iter().filter_map(|t| t.exposed).collect::<Set<_>>(),
    };
    let mut waits = waits.read(&stacks, &notes);
    tasks::lift(heap, &library, &types, &mut waits, &notes);
    let held = Holders::new(&library, &types, &found, &primitives, threads, &notes).read(headers.as_ref(), &blocks);
    let report = Reporter { runtime, namer: &namer, library: &library, threads, stacks: &stacks }.report(&held, &waits, query)?;
    namer.note(&notes);
    Ok(notes.finish(report))
}
