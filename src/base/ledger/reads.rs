//! A limit on the number of reads that a thread's current work may take.

use std::cell::Cell;

thread_local! {
    /// Number of reads left; `None` where reads are not limited.
    static LEFT: Cell<Option<u64>> = const { Cell::new(None) };
}

/// Runs `f` with at most `reads` reads; further reads fail. In a forged dump, lists and tables may lead anywhere and never end.
pub(crate) fn bounded<T>(reads: u64, f: impl FnOnce() -> T) -> T {
    let before = LEFT.replace(Some(reads));
    let value = f();
    LEFT.set(before);
    value
}

/// Runs `f`, whose reads are taken from `reads`; once none are left, reads fail.
pub(crate) fn taking<T>(reads: &mut u64, f: impl FnOnce() -> T) -> T {
    let before = LEFT.replace(Some(*reads));
    let value = f();
    *reads = LEFT.replace(before).unwrap_or(0);
    value
}

/// Takes `reads` additional reads, for work on data that was read.
pub(crate) fn take(reads: u64) {
    LEFT.set(LEFT.get().map(|left| left.saturating_sub(reads)));
}

/// Takes one read. Returns whether one was left.
pub(crate) fn take_one() -> bool {
    let Some(left) = LEFT.get() else { return true };
    LEFT.set(Some(left.saturating_sub(1)));
    left > 0
}

/// The number of reads left; `None` where reads are not limited.
pub(crate) fn left() -> Option<u64> {
    LEFT.get()
}

/// Whether no reads are left, so that the latest failure says nothing about the dump.
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
