//! Cancellation of work from another thread.
//!
//! Cancelled work unwinds from its next [`check`]. Values under construction are dropped, and the functions between an analysis and its
//! innermost loop do not have to return an error. Every read of the dump's memory and every charge to a [`Budget`](crate::base::Budget)
//! [counts](tick) towards a check, so readers need no checks in their loops. Loops over arrays in memory check every 65,536 steps.
//! Unwinding poisons a lock that is held; all code of gcdump ignores that a lock is poisoned.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

thread_local! {
    /// The handle that cancels the work of this thread.
    static CURRENT: RefCell<Option<Cancel>> = const { RefCell::new(None) };
    /// Number of ticks of this thread before the next check.
    static LEFT: Cell<u32> = const { Cell::new(TICKS) };
}

/// Steps of a loop between two checks; a power of two.
const STEPS: u32 = 1 << 16;
/// Ticks between two checks. The number is smaller than [`STEPS`], because the work between two reads may take long.
const TICKS: u32 = 1 << 10;

/// A handle that cancels work. Clones cancel the same work.
///
/// ```
/// use std::time::Duration;
///
/// let heap = gcdump::open("dumps/net10-wks-basics-heap.dmp.zst")?.runtime()?.heap()?;
/// let stat = gcdump::Cancel::after(Duration::from_secs(60)).run(|| heap.stat());
/// match stat {
///     Ok(stat) => println!("{} objects", stat?.totals.count),
///     Err(gcdump::Cancelled) => println!("it takes more than a minute"),
/// }
/// # Ok::<(), gcdump::Error>(())
/// ```
///
/// In a function that returns [`gcdump::Error`](crate::Error), two question marks return either error:
///
/// ```
/// use std::time::Duration;
///
/// fn reachable(heap: &gcdump::Heap) -> Result<u64, gcdump::Error> {
///     let retained = gcdump::Cancel::after(Duration::from_secs(60)).run(|| heap.retained())??;
///     Ok(retained.totals.reachable_objects)
/// }
/// # let heap = gcdump::open("dumps/net10-wks-basics-heap.dmp.zst")?.runtime()?.heap()?;
/// # assert!(reachable(&heap)? > 1000);
/// # Ok::<(), gcdump::Error>(())
/// ```
#[derive(Clone, Default)]
pub struct Cancel {
    flag: Arc<AtomicBool>,
    /// A function that is called at each check and returns whether to cancel the work. It is for conditions that no thread signals with
    /// the flag, such as a deadline.
    look: Option<Arc<dyn Fn() -> bool + Send + Sync>>,
}

impl fmt::Debug for Cancel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cancel").field("flag", &self.flag).finish_non_exhaustive()
    }
}

/// The error of work that was cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the work was cancelled")]
pub struct Cancelled;

impl Cancel {
    /// A handle for work that any thread can cancel with [`Cancel::cancel`].
    pub fn new() -> Cancel {
        Cancel::default()
    }

    /// A handle that cancels its work once `time` has passed from now.
    pub fn after(time: Duration) -> Cancel {
        let start = Instant::now();
        Cancel::new().watching(move || start.elapsed() >= time)
    }

    /// A handle that cancels its work once `flag` is set.
    pub fn of(flag: Arc<AtomicBool>) -> Cancel {
        Cancel { flag, look: None }
    }

    /// A handle for the same work that also cancels it when `look` returns true. Each check calls `look`.
    pub(crate) fn watching(&self, look: impl Fn() -> bool + Send + Sync + 'static) -> Cancel {
        Cancel { flag: Arc::clone(&self.flag), look: Some(Arc::new(look)) }
    }

    /// Cancels the work, which continues until its next check.
    pub fn cancel(&self) {
        self.flag.store(true, Ordering::Relaxed);
    }

    /// Whether the work was cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.flag.load(Ordering::Relaxed) || self.look.as_ref().is_some_and(|look| look())
    }

    /// Runs `work` and returns its value unless the work is cancelled. Cancelled work unwinds: values under construction are dropped, and caches
    /// keep values that were complete before.
    ///
    /// # Errors
    /// [`Cancelled`] if the work was cancelled.
    pub fn run<T>(&self, work: impl FnOnce() -> T) -> Result<T, Cancelled> {
        caught(|| within(Some(self.clone()), work))
    }
}

/// Runs `work` and returns its value, or the reason of type `R` with which `work` called [`raise`]. Other panics continue to unwind.
pub(in crate::base) fn caught<T, R: 'static>(work: impl FnOnce() -> T) -> Result<T, R> {
    // Unwind safety: caches contain only complete values, because a value is stored after it is computed.
    catch_unwind(AssertUnwindSafe(work)).map_err(|thrown| match thrown.downcast::<R>() {
        Ok(reason) => *reason,
        Err(panic) => resume_unwind(panic),
    })
}

/// Unwinds the work of this thread up to [`caught`] with the same type of reason. The panic hook is not called.
pub(in crate::base) fn raise<R: Send + 'static>(reason: R) -> ! {
    resume_unwind(Box::new(reason))
}

/// The handle that cancels the work of this thread.
pub(crate) fn current() -> Option<Cancel> {
    CURRENT.with_borrow(Clone::clone)
}

/// Runs `work` with `cancel` as the handle of this thread.
pub(crate) fn within<T>(cancel: Option<Cancel>, work: impl FnOnce() -> T) -> T {
    struct Before(Option<Cancel>);
    impl Drop for Before {
        fn drop(&mut self) {
            CURRENT.set(self.0.take());
        }
    }
    let _before = Before(CURRENT.replace(cancel));
    work()
}

/// Unwinds the work of this thread if it was cancelled.
pub(crate) fn check() {
    if CURRENT.with_borrow(|current| current.as_ref().is_some_and(Cancel::is_cancelled)) {
        raise(Cancelled);
    }
}

/// Calls [`check`] if `step`, the number of a loop's iteration, is a multiple of 65,536.
#[inline(always)]
pub(crate) fn check_at(step: u32) {
    if step & (STEPS - 1) == 0 {
        check();
    }
}

/// Counts down, and calls [`check`] after every 1,024 ticks of this thread.
#[inline(always)]
pub(crate) fn tick() {
    match LEFT.get().checked_sub(1) {
        Some(left) => LEFT.set(left),
        None => ticked(),
    }
}

#[cold]
fn ticked() {
    LEFT.set(TICKS);
    check();
}

#[cfg(test)]
mod tests {
    use std::sync::OnceLock;

    use super::*;
    use crate::base::missed::Carried;

    #[test]
    fn cancelled_work_keeps_nothing() {
        let (cancel, kept) = (Cancel::default(), OnceLock::new());
        let make = |cancel: &Cancel, stop: bool| {
            cancel.run(|| {
                *kept.get_or_init(|| {
                    if stop {
                        cancel.cancel();
                    }
                    check();
                    7
                })
            })
        };
        assert_eq!(make(&cancel, true), Err(Cancelled));
        assert_eq!(kept.get(), None);
        assert_eq!(make(&Cancel::default(), false), Ok(7));
        // The thread has no handle any more.
        check();
        assert!(current().is_none());
    }

    #[test]
    fn work_carried_to_other_threads_is_cancelled() {
        let cancel = Cancel::default();
        let seen = cancel.run(|| {
            let carried = Carried::here();
            cancel.cancel();
            std::thread::scope(|s| s.spawn(|| catch_unwind(AssertUnwindSafe(|| carried.run(check))).is_err()).join().unwrap_or(false))
        });
        assert_eq!(seen, Ok(true));
        assert_eq!(
            (0..3).map(|step| step * (STEPS / 2)).map(|step| cancel.run(|| check_at(step)).is_err()).collect::<Vec<_>>(),
            [true, false, true]
        );
    }

    #[test]
    fn ticks_lead_to_a_check() {
        let cancel = Cancel::default();
        cancel.cancel();
        assert_eq!(cancel.run(|| (0..=TICKS).for_each(|_| tick())), Err(Cancelled));
        assert_eq!(Cancel::default().run(|| (0..3 * TICKS).for_each(|_| tick())), Ok(()));
    }

    #[test]
    #[should_panic(expected = "another reason")]
    fn a_panic_is_not_a_cancellation() {
        let _ = Cancel::default().run(|| panic!("another reason"));
    }
}
