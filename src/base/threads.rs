//! Threads of this process. If the operating system refuses to start threads, because of a limit (`ulimit -u`, `pids.max`), the calling
//! thread does all the work.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Once, OnceLock, mpsc};
use std::thread::{Builder, Scope, ScopedJoinHandle, available_parallelism};

use rayon::{ThreadBuilder, ThreadPool, ThreadPoolBuilder};

/// Set if the threads of the pool could not be started. Then no further threads are started.
static ALONE: AtomicBool = AtomicBool::new(false);

#[cfg(feature = "cli")]
/// The number of threads that rayon would choose: `RAYON_NUM_THREADS`, or one per processor.
fn usual() -> usize {
    let asked = std::env::var("RAYON_NUM_THREADS").ok().and_then(|text| text.parse().ok());
    asked.filter(|n| *n > 0).unwrap_or_else(|| available_parallelism().map_or(1, usize::from))
}

/// Makes rayon's global pool, with `threads` threads or the usual number. If not all threads start, the pool consists of the calling
/// thread, because rayon's own pool would panic at the first parallel loop. Only the first call has an effect, and an existing pool is kept.
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
/// Starts threads that wait to become threads of a pool; `None` if not all of them start. This happens before the pool is built, because
/// rayon does not recover from a thread that fails to start.
fn waiting(
    threads: usize,
    start: impl Fn(Builder, Box<dyn FnOnce() + Send>) -> io::Result<()>,
) -> Option<Vec<mpsc::SyncSender<ThreadBuilder>>> {
    let one = |_| {
        let (give, part) = mpsc::sync_channel::<ThreadBuilder>(1);
        let work = move || {
            // Receiving fails if a pool exists already, or another thread did not start.
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
/// The thread was not started. The caller has to do the work itself, or skip it.
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
/// The thread was not started.
#[cfg(feature = "cli")]
pub(crate) fn start_apart(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    allowed()?;
    Builder::new().name(name.into()).spawn(work).map(drop)
}

/// Fails if the pool consists of the thread that made it, because other threads could not use such a pool.
fn allowed() -> io::Result<()> {
    if ALONE.load(Ordering::Relaxed) { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tests [`waiting`] instead of [`make_pool`], because other tests of this process may have made the pool already.
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
