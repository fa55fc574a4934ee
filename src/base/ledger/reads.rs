//! A limit on the number of reads that the current work of a thread may take.

use std::cell::Cell;

thread_local! {
    /// Number of reads left; `None` if reads are not limited.
    static LEFT: Cell<Option<u64>> = const { Cell::new(None) };
}

/// Restores the limit when it is dropped. Cancelled work unwinds, and the thread may go on with other work.
struct Restore(Option<u64>);

impl Drop for Restore {
    fn drop(&mut self) {
        LEFT.set(self.0);
    }
}

/// Runs `f` with a limit of `reads` reads, after which reads fail. For code that reads lists, which may never end in a forged dump.
pub(crate) fn bounded<T>(reads: u64, f: impl FnOnce() -> T) -> T {
    let _restore = Restore(LEFT.replace(Some(reads)));
    f()
}

/// Runs `f` with the limit `reads`, and subtracts from `reads` the number of reads that `f` takes.
pub(crate) fn taking<T>(reads: &mut u64, f: impl FnOnce() -> T) -> T {
    let _restore = Restore(LEFT.replace(Some(*reads)));
    let value = f();
    *reads = LEFT.get().unwrap_or(0);
    value
}

/// Charges `reads` reads for work on data that was already read.
pub(crate) fn take(reads: u64) {
    LEFT.set(LEFT.get().map(|left| left.saturating_sub(reads)));
}

/// Charges one read. Returns false if none was left.
pub(crate) fn take_one() -> bool {
    let Some(left) = LEFT.get() else { return true };
    LEFT.set(Some(left.saturating_sub(1)));
    left > 0
}

/// The number of reads left; `None` if reads are not limited.
pub(crate) fn left() -> Option<u64> {
    LEFT.get()
}

/// Whether no reads are left. The latest failure may then be due to the limit, and not to the dump.
pub(crate) fn exhausted() -> bool {
    left() == Some(0)
}

/// Runs `f` and returns its value and the number of reads that it took.
pub(crate) fn measured<T>(f: impl FnOnce() -> T) -> (T, u64) {
    let before = LEFT.get();
    let given = before.unwrap_or(u64::MAX);
    let mut restore = Restore(before);
    LEFT.set(Some(given));
    let value = f();
    let took = given.saturating_sub(LEFT.get().unwrap_or(0));
    restore.0 = before.map(|left| left.saturating_sub(took));
    (value, took)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_of_cancelled_work_does_not_stay() {
        let works: [fn(); 3] = [|| bounded(0, || panic!()), || taking(&mut 0, || panic!()), || measured(|| panic!()).0];
        for work in works {
            assert!(std::panic::catch_unwind(work).is_err());
            assert_eq!(left(), None);
        }
    }
}
