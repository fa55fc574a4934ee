//! Managed threads, joined with the OS threads of the container.

mod report;

pub use report::*;

use crate::analysis::ExceptionReader;
use crate::analysis::sort::{self, Key};
use crate::analysis::threads::locks::{ThreadLocks, thread_locks};
use crate::analysis::threads::suspension::suspension;
use crate::base::missed::tried;
use crate::base::{Addr, Answer, len64};
use crate::clr::threads::AllocContext;
use crate::dump::ThreadStacks;
use crate::model::{Order, ThreadSort};
use crate::session::{Error, Runtime};

/// Options of [`threads`].
#[derive(Clone, Copy, Debug, Default)]
pub struct ThreadsQuery {
    /// Whether to list the wait of each thread and its number of held monitors, which requires a walk of the heap.
    pub waits: bool,
    /// Order of the threads; `None` for the runtime's order.
    pub sort: Option<Order<ThreadSort>>,
}

/// Lists the managed threads, joined with the OS threads.
///
/// # Errors
/// [`Error::Contract`] if the runtime does not describe its threads or the thread list, [`Error::Query`] for a column that the list does not have.
pub fn threads(runtime: &Runtime, query: &ThreadsQuery) -> Result<Answer<ThreadsReport>, Error> {
    use ThreadSort::{Allocated, ExceptionType, ManagedId, Name, OsId};
    if !query.waits {
        sort::check(query.sort.as_ref(), &[ManagedId, OsId, Name, ExceptionType, Allocated], "threads without `waits`")?;
    }
    let notes = runtime.begin();
    let threads = runtime.managed_threads(&notes)?;
    let file = runtime.file();
    [file.facts.lost.of_threads(), file.facts.lost.of_crash()].iter().for_each(|lost| notes.extend(lost));
    let crashed = file.crash.as_ref().and_then(|c| c.thread);
    let namer = runtime.namer();
    let exceptions = ExceptionReader::new(runtime, &namer, &notes);
    let exception = |address: Addr, current: bool| exceptions.of_thread(address, current);
    let stacks = ThreadStacks::new(file);
    let mut locks = if query.waits { thread_locks(runtime, &namer, &notes)? } else { ThreadLocks::default() };
    // Threads are listed even if the GC's structures cannot be read. Other answers add the note about that.
    let gc = tried(|| runtime.gc().ok());
    let home_heap = |context: AllocContext| gc.as_ref().and_then(|gc| gc.data.home_heap(&context));
    let mut list: Vec<ThreadModel> = threads
        .iter()
        .enumerate()
        .map(|(i, t)| {
            let (os_id, context, data) = (t.os_id(), t.allocation_context(), t.data());
            ThreadModel {
                managed_id: t.managed_id(),
                os_id,
                address: t.address(),
                name: t.named(&namer, os_id.and_then(|id| stacks.thread(id))),
                state: t.states(),
                state_value: data.state,
                gc_mode: t.is_cooperative().map(|c| if c { GcMode::Cooperative } else { GcMode::Preemptive }),
                crashed: os_id.is_some() && os_id == crashed.map(u64::from),
                finalizer: t.is_finalizer(),
                alloc_pointer: context.map(|c| c.pointer),
                alloc_limit: context.map(|c| c.limit),
                allocated_bytes: context.and_then(|c| c.bytes),
                allocated_bytes_uoh: context.and_then(|c| c.bytes_uoh),
                home_heap: context.and_then(&home_heap),
                object: data.exposed,
                exception: data.exception.map(|a| exception(a, true)).or_else(|| data.last_thrown.map(|a| exception(a, false))),
                waits_for: locks.waits.remove(&i).map(Box::new),
                locks_held: locks.held.as_ref().map(|held| held.get(&i).copied().unwrap_or(0)),
                nested_exceptions: data.nested.clone(),
            }
        })
        .collect();
    if let Some(order) = query.sort {
        sort::sort(&mut list, order.direction, |t| key(t, order.by));
    }
    exceptions.note_lines();
    namer.note(&notes);
    let crashed_unmanaged = crashed.filter(|_| !list.iter().any(|t| t.crashed));
    let os_threads = len64(file.threads.len());
    let fault = runtime.fault();
    // Native frames name their images.
    if fault.is_some() {
        notes.extend(&file.facts.lost.of_modules());
    }
    let suspension = suspension(runtime, &notes);
    Ok(notes.finish(ThreadsReport {
        os_threads,
        threads: list,
        not_listed: None,
        crashed_not_listed: None,
        by_allocated: query.sort.is_some_and(|order| order.by == ThreadSort::Allocated),
        crashed_unmanaged,
        fault,
        suspension,
    }))
}

fn key(t: &ThreadModel, by: ThreadSort) -> Option<Key<'_>> {
    match by {
        ThreadSort::ManagedId => Key::least(t.managed_id),
        ThreadSort::OsId => Key::least(t.os_id),
        ThreadSort::Name => Key::text(t.name.as_deref()),
        ThreadSort::ExceptionType => Key::text(t.exception.as_ref().and_then(|e| e.type_name.as_deref())),
        ThreadSort::LocksHeld => Key::most(t.locks_held),
        ThreadSort::Allocated => Key::most(t.allocated()),
    }
}
