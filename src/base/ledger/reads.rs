//! Reads that the work of a thread may still take, where they are counted.

use std::cell::Cell;

thread_local! {
    /// `None` where they are not counted.
    static LEFT: Cell<Option<u64>> = const { Cell::new(None) };
}

/// What `f` returns, which takes at most `reads` reads: those beyond fail. Lists and tables of a forged dump may lead anywhere, for as long as
/// they like.
pub(crate) fn bounded<T>(reads: u64, f: impl FnOnce() -> T) -> T {
    let before = LEFT.replace(Some(reads));
    let value = f();
    LEFT.set(before);
    value
}

/// What `f` returns, whose reads are taken from `reads`: those beyond fail.
pub(crate) fn taking<T>(reads: &mut u64, f: impl FnOnce() -> T) -> T {
    let before = LEFT.replace(Some(*reads));
    let value = f();
    *reads = LEFT.replace(before).unwrap_or(0);
    value
}

/// Takes further reads, for work on what was read.
pub(crate) fn take(reads: u64) {
    LEFT.set(LEFT.get().map(|left| left.saturating_sub(reads)));
}

/// Takes one read. Returns whether it was left.
pub(crate) fn take_one() -> bool {
    let Some(left) = LEFT.get() else { return true };
    LEFT.set(Some(left.saturating_sub(1)));
    left > 0
}

/// The reads that are left; `None` where they are not counted.
pub(crate) fn left() -> Option<u64> {
    LEFT.get()
}

/// Whether all reads are taken, so that the latest failure says nothing about the dump.
pub(crate) fn exhausted() -> bool {
    left() == Some(0)
}

/// The result of `f`, and the reads that it took.
pub(crate) fn measured<T>(f: impl FnOnce() -> T) -> (T, u64) {
    let before = LEFT.get();
    let given = before.unwrap_or(u64::MAX);
    LEFT.set(Some(given));
    let value = f();
    let took = given.saturating_sub(LEFT.get().unwrap_or(0));
    LEFT.set(before.map(|left| left.saturating_sub(took)));
    (value, took)
}
