//! A limit on the number of reads that the current work of a thread may take.

use std::cell::Cell;

thread_local! {
    /// Number of reads left; `None` if reads are not limited.
    static LEFT: Cell<Option<u64>> = const { Cell::new(None) };
}

/// Runs `f` with a limit of `reads` reads, after which reads fail. Lists in a forged dump may never end.
pub(crate) fn bounded<T>(reads: u64, f: impl FnOnce() -> T) -> T {
    let before = LEFT.replace(Some(reads));
    let value = f();
    LEFT.set(before);
    value
}

/// Runs `f` with the limit `reads`, and subtracts the reads that it takes from `reads`.
pub(crate) fn taking<T>(reads: &mut u64, f: impl FnOnce() -> T) -> T {
    let before = LEFT.replace(Some(*reads));
    let value = f();
    *reads = LEFT.replace(before).unwrap_or(0);
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
    LEFT.set(Some(given));
    let value = f();
    let took = given.saturating_sub(LEFT.get().unwrap_or(0));
    LEFT.set(before.map(|left| left.saturating_sub(took)));
    (value, took)
}
