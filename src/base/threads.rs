//! Threads of this process. Where the system starts no threads, because of a process limit (`ulimit -u`, `pids.max`), the calling thread
//! does all the work.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Once, OnceLock, mpsc};
use std::thread::{Builder, Scope, ScopedJoinHandle, available_parallelism};

use rayon::{ThreadBuilder, ThreadPool, ThreadPoolBuilder};

/// Whether the threads of the pool could not be started, so that the calling thread does all the work.
static ALONE: AtomicBool = AtomicBool::new(false);

#[cfg(feature = "cli")]
/// A thread per processor, or the number in `RAYON_NUM_THREADS`: rayon's own choice.
fn usual() -> usize {
    let asked = std::env::var("RAYON_NUM_THREADS").ok().and_then(|text| text.parse().ok());
    asked.filter(|n| *n > 0).unwrap_or_else(|| available_parallelism().map_or(1, usize::from))
}

/// Makes rayon's global pool, with `threads` threads or one per processor. If the system does not start all of them, the calling thread is
/// the pool and no other thread is started; rayon itself would panic at the first loop. Only the first call has an effect; an existing pool
/// is kept.
#[cfg(feature = "cli")]
pub(crate) fn make_pool(threads: Option<usize>) {
    static MADE: Once = Once::new();
    MADE.call_once(|| make(threads.unwrap_or_else(usual)));
}

#[cfg(feature = "cli")]
fn make(threads: usize) {
    match waiting(threads, |builder, work| builder.spawn(work).map(drop)) {
        Some(waiting) => {
            let mut waiting = waiting.into_iter();
            let hand = |part| waiting.next().and_then(|to| to.send(part).ok()).ok_or_else(|| io::ErrorKind::WouldBlock.into());
            let _ = ThreadPoolBuilder::new().num_threads(threads).spawn_handler(hand).build_global();
        }
        None => {
            static POOL: OnceLock<Option<ThreadPool>> = OnceLock::new();
            ALONE.store(true, Ordering::Relaxed);
            POOL.get_or_init(|| ThreadPoolBuilder::new().num_threads(1).use_current_thread().build().ok());
        }
    }
}

#[cfg(feature = "cli")]
/// Threads that wait to become a part of a pool; `None` if not all of them start. They are started before rayon is asked, because rayon
/// does not retry.
fn waiting(
    threads: usize,
    start: impl Fn(Builder, Box<dyn FnOnce() + Send>) -> io::Result<()>,
) -> Option<Vec<mpsc::SyncSender<ThreadBuilder>>> {
    let one = |_| {
        let (give, part) = mpsc::sync_channel::<ThreadBuilder>(1);
        let work = move || {
            // Receiving fails if a pool existed already.
            if let Ok(part) = part.recv() {
                part.run();
            }
        };
        start(Builder::new(), Box::new(work)).ok().map(|()| give)
    };
    (0..threads).map(one).collect()
}

/// Starts `work` on a thread of `scope`, with a stack of `stack` bytes.
///
/// # Errors
/// The system does not start a thread; the caller does the work itself, or skips it.
pub(crate) fn start<'s, T: Send + 's>(
    scope: &'s Scope<'s, '_>,
    stack: Option<usize>,
    work: impl FnOnce() -> T + Send + 's,
) -> io::Result<ScopedJoinHandle<'s, T>> {
    allowed()?;
    stack.into_iter().fold(Builder::new(), Builder::stack_size).spawn_scoped(scope, work)
}

/// Starts `work` on a detached thread called `name`.
///
/// # Errors
/// The system does not start a thread.
#[cfg(feature = "cli")]
pub(crate) fn start_apart(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    allowed()?;
    Builder::new().name(name.into()).spawn(work).map(drop)
}

/// Fails if the pool has no threads: further threads would have no pool.
fn allowed() -> io::Result<()> {
    if ALONE.load(Ordering::Relaxed) { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Simulates a process limit before a pool exists. The process of this test has its pool from other tests.
    #[test]
    fn a_pool_has_all_its_threads_or_is_the_calling_thread() {
        let started = std::cell::Cell::new(0);
        let refuse = |_: Builder, _: Box<dyn FnOnce() + Send>| {
            started.set(started.get() + 1);
            if started.get() < 3 { Ok(()) } else { Err(io::ErrorKind::WouldBlock.into()) }
        };
        assert!(waiting(4, refuse).is_none());
        assert_eq!(started.get(), 3);
        assert_eq!(waiting(2, |_, _| Ok(())).map(|threads| threads.len()), Some(2));
    }
}
