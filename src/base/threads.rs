//! Threads of this process, and what is done where the system starts none: at a limit of processes (`ulimit -u`, `pids.max`), all work is
//! the calling thread's.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Once, OnceLock, mpsc};
use std::thread::{Builder, Scope, ScopedJoinHandle, available_parallelism};

use rayon::{ThreadBuilder, ThreadPool, ThreadPoolBuilder};

/// Whether the threads of the pool could not be started, so that the thread that asked for them does everything.
static ALONE: AtomicBool = AtomicBool::new(false);

#[cfg(feature = "cli")]
/// A thread for each processor, or as `RAYON_NUM_THREADS` says: rayon's own choice.
fn usual() -> usize {
    let asked = std::env::var("RAYON_NUM_THREADS").ok().and_then(|text| text.parse().ok());
    asked.filter(|n| *n > 0).unwrap_or_else(|| available_parallelism().map_or(1, usize::from))
}

/// Makes rayon's global pool, of `threads` threads or as many as there are processors. Where the system does not start them all, the calling
/// thread is the pool, and no other is started. rayon itself would panic at the first loop. The first call counts; a pool that exists is kept.
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
/// Threads that wait for their part of a pool; `None` where not all of them start. rayon does not try twice, so that they are started before it
/// is asked.
fn waiting(
    threads: usize,
    start: impl Fn(Builder, Box<dyn FnOnce() + Send>) -> io::Result<()>,
) -> Option<Vec<mpsc::SyncSender<ThreadBuilder>>> {
    let one = |_| {
        let (give, part) = mpsc::sync_channel::<ThreadBuilder>(1);
        let work = move || {
            // Without a part, there is a pool already.
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
/// The system starts no thread: the caller does the work, or does without.
pub(crate) fn start<'s, T: Send + 's>(
    scope: &'s Scope<'s, '_>,
    stack: Option<usize>,
    work: impl FnOnce() -> T + Send + 's,
) -> io::Result<ScopedJoinHandle<'s, T>> {
    allowed()?;
    stack.into_iter().fold(Builder::new(), Builder::stack_size).spawn_scoped(scope, work)
}

/// Starts `work` on a thread called `name` that is not waited for.
///
/// # Errors
/// The system starts no thread.
#[cfg(feature = "cli")]
pub(crate) fn start_apart(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    allowed()?;
    Builder::new().name(name.into()).spawn(work).map(drop)
}

/// Another thread would have no pool.
fn allowed() -> io::Result<()> {
    if ALONE.load(Ordering::Relaxed) { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Before there is a pool: as at a limit of processes. The process of this test has its pool from others.
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
