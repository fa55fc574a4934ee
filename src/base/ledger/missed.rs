//! Attributes failed memory reads to the answer being computed.
//!
//! A reader may continue without data that it could not read: a type shows its token instead of a name, or a list ends early. The answer
//! must report that, but returning such errors through all readers would take hundreds of changes. So `Memory` reports each failed read to
//! the innermost [`Scope`] of its thread. Each [`Collector`](crate::base::Collector) holds a scope, and adds a note if reads failed that no
//! other note explains. A value that is [kept](Kept) for later answers keeps its failed reads as well, and reports them to each answer that
//! uses it.
//!
//! Use [`tried`] to read through a word that may not be an address. Failed reads at addresses that no process can map are always ignored.
//! Report a runtime pointer that is neither null nor a valid address with [`stray`], a type whose names are not in the dump with
//! [`unnamed`], and a word that contradicts another one with [`contradiction`].

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::cancel::{self, Cancel};
use crate::base::Addr;

/// Maximum number of failures of each kind that a scope keeps: those at the lowest addresses, so that the result does not depend on the
/// order of reads.
const MOST: usize = 4096;
/// The lowest address at which a process has memory. Lower values are null pointers plus an offset.
const LOWEST: u64 = 1 << 16;

thread_local! {
    /// Open scopes of this thread, innermost last, by ID. `None` if the scope ignores failures.
    static SCOPES: RefCell<Vec<(u64, Option<Shared>)>> = const { RefCell::new(Vec::new()) };
}

type Shared = Arc<Mutex<ScopeLosses>>;

/// Failed reads, and other reasons why an answer may be incomplete.
#[derive(Clone, Debug, Default)]
pub(crate) struct Missed {
    /// Failed reads: address and length in bytes.
    reads: BTreeMap<Addr, u64>,
    /// Invalid pointers, by the address at which each is stored.
    strays: BTreeMap<Addr, Addr>,
    /// Method tables of types for which a name or a field was requested that is not in the dump.
    unnamed: BTreeSet<Addr>,
    /// Contradictory words by address, each with a description.
    wrong: BTreeMap<Addr, &'static str>,
    /// ID of this set, so that a scope adds it only once; 0 if the set is empty.
    id: u64,
}

/// The failures reported to a scope.
#[derive(Debug, Default)]
struct ScopeLosses {
    missed: Missed,
    /// IDs of the sets added so far. A set that is already added is skipped, because a kept value with failed reads may be used for each of
    /// a million objects.
    of: BTreeSet<u64>,
}

impl ScopeLosses {
    /// Adds the failures of `other`.
    fn extend(&mut self, other: &Missed) {
        if self.of.insert(other.id) {
            other.reads.iter().for_each(|(at, len)| self.missed.add(*at, *len));
            other.strays.iter().for_each(|(at, to)| self.missed.add_stray(*at, *to));
            other.unnamed.iter().for_each(|mt| self.missed.add_unnamed(*mt));
            other.wrong.iter().for_each(|(at, what)| self.missed.add_wrong(*at, what));
        }
    }
}

impl Missed {
    fn add(&mut self, address: Addr, len: u64) {
        // A damaged list may cause millions of failed reads.
        if self.reads.len() >= MOST && self.reads.last_key_value().is_some_and(|(last, _)| *last < address) {
            return;
        }
        let longest = self.reads.entry(address).or_default();
        *longest = len.max(*longest);
        if self.reads.len() > MOST {
            self.reads.pop_last();
        }
    }

    fn add_stray(&mut self, at: Addr, to: Addr) {
        self.strays.insert(at, to);
        if self.strays.len() > MOST {
            self.strays.pop_last();
        }
    }

    fn add_unnamed(&mut self, method_table: Addr) {
        self.unnamed.insert(method_table);
        if self.unnamed.len() > MOST {
            self.unnamed.pop_last();
        }
    }

    fn add_wrong(&mut self, at: Addr, what: &'static str) {
        self.wrong.entry(at).or_insert(what);
        if self.wrong.len() > MOST {
            self.wrong.pop_last();
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.reads.is_empty() && self.strays.is_empty() && self.unnamed.is_empty() && self.wrong.is_empty()
    }

    /// The contradictory words by description: the lowest address, and the number of words.
    pub(crate) fn contradictions(&self) -> BTreeMap<&'static str, (Addr, u64)> {
        let mut out = BTreeMap::new();
        for (at, what) in &self.wrong {
            let (_, count) = out.entry(*what).or_insert((*at, 0u64));
            *count = count.saturating_add(1);
        }
        out
    }

    /// The invalid pointer that is stored at the lowest address: the address, and the pointer.
    pub(crate) fn first_stray(&self) -> Option<(Addr, Addr)> {
        self.strays.first_key_value().map(|(at, to)| (*at, *to))
    }

    /// The lowest of the method tables of types without names, and the number of such types.
    pub(crate) fn first_unnamed(&self) -> Option<(Addr, usize)> {
        self.unnamed.first().map(|mt| (*mt, self.unnamed.len()))
    }

    /// The failed read at the lowest address, its length, and the number of failed reads.
    pub(crate) fn first(&self) -> Option<(Addr, u64, usize)> {
        self.reads.first_key_value().map(|(at, len)| (*at, *len, self.reads.len()))
    }

    /// The failed read at the lowest address for which `picked` returns true, with its length.
    pub(crate) fn find(&self, mut picked: impl FnMut(Addr, u64) -> bool) -> Option<(Addr, u64)> {
        self.reads.iter().map(|(at, len)| (*at, *len)).find(|(at, len)| picked(*at, *len))
    }

    /// Reports the failures to the innermost scope of this thread.
    pub(crate) fn tell(&self) {
        if !self.is_empty() {
            innermost(|scope| scope.extend(self));
        }
    }
}

fn innermost(f: impl FnOnce(&mut ScopeLosses)) {
    let scope = SCOPES.with_borrow(|scopes| scopes.last().and_then(|(_, scope)| scope.clone()));
    // The failures of work on a pool thread without `Carried` would be lost.
    #[cfg(all(debug_assertions, feature = "internals"))]
    assert!(SCOPES.with_borrow(|scopes| !scopes.is_empty()) || rayon::current_thread_index().is_none(), "work without a ledger");
    if let Some(scope) = scope {
        f(&mut scope.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

/// Reports a failed read of `len` bytes at `address` to the innermost scope of this thread.
#[cold]
pub(crate) fn missed(address: Addr, len: u64) {
    if may_be_mapped(address) {
        innermost(|scope| scope.missed.add(address, len));
    }
}

/// Whether a process may have memory at `address`. User addresses have 47 or 48 bits, or 52 bits on arm64 with large addresses.
pub(crate) fn may_be_mapped(address: Addr) -> bool {
    address.0 >= LOWEST && address.0 >> 52 == 0
}

/// Reports a runtime pointer, stored at `at`, that is neither null nor a valid address.
#[cold]
pub(crate) fn stray(at: Addr, to: Addr) {
    innermost(|scope| scope.missed.add_stray(at, to));
}

/// Reports that the answer needs the name or fields of the type at `method_table`, and that their metadata is not in the dump.
#[cold]
pub(crate) fn unnamed(method_table: Addr) {
    innermost(|scope| scope.missed.add_unnamed(method_table));
}

/// Reports that the word at `at` contradicts another word of the dump. `what` is a clause without a final period, and becomes a part of the
/// note.
#[cold]
pub(crate) fn contradiction(at: Addr, what: &'static str) {
    innermost(|scope| scope.missed.add_wrong(at, what));
}

/// A scope of this thread. Failed reads are reported to the innermost scope that is open.
#[derive(Debug)]
pub(crate) struct Scope {
    id: u64,
    losses: Option<Shared>,
    /// Not `Send`: a scope belongs to its thread.
    here: PhantomData<MutexGuard<'static, ()>>,
}

impl Scope {
    /// Opens a scope.
    pub(crate) fn open() -> Scope {
        Scope::enter(Some(Shared::default()))
    }

    fn enter(losses: Option<Shared>) -> Scope {
        let id = SCOPES.with_borrow_mut(|scopes| {
            let id = scopes.iter().map(|s| s.0).max().unwrap_or(0).saturating_add(1);
            scopes.push((id, losses.clone()));
            id
        });
        Scope { id, losses, here: PhantomData }
    }

    /// The failures reported so far.
    pub(crate) fn missed(&self) -> Missed {
        static IDS: AtomicU64 = AtomicU64::new(1);
        let losses = self.losses.as_ref().map(|losses| losses.lock().unwrap_or_else(PoisonError::into_inner).missed.clone());
        match losses {
            Some(missed) if !missed.is_empty() => Missed { id: IDS.fetch_add(1, Ordering::Relaxed), ..missed },
            _ => Missed::default(),
        }
    }
}

impl Drop for Scope {
    fn drop(&mut self) {
        // Scopes may be dropped in any order.
        SCOPES.with_borrow_mut(|scopes| scopes.retain(|s| s.0 != self.id));
    }
}

/// Runs `f` and returns its value and the failures during the call. These failures are not reported to any outer scope.
pub(crate) fn watched<T>(f: impl FnOnce() -> T) -> (T, Missed) {
    let scope = Scope::open();
    let value = f();
    (value, scope.missed())
}

/// A value that is kept for later answers, or for later parts of one answer, with the reads that failed while it was computed.
#[derive(Clone, Debug)]
pub(crate) struct Kept<T> {
    value: T,
    /// Boxed, because there are many values and few have failed reads.
    missed: Option<Box<Missed>>,
}

impl<T> Kept<T> {
    /// Computes the value with `make`, and keeps it with its failed reads. [`Kept::get`] reports these reads.
    pub(crate) fn of(make: impl FnOnce() -> T) -> Kept<T> {
        let (value, missed) = watched(make);
        Kept { value, missed: (!missed.is_empty()).then(|| Box::new(missed)) }
    }

    /// Like [`Kept::of`], but drops failed reads at addresses for which `explains` returns true, because the value itself represents the
    /// loss.
    pub(crate) fn explaining(make: impl FnOnce() -> T, explains: impl Fn(&T, Addr) -> bool) -> Kept<T> {
        let (value, mut missed) = watched(make);
        missed.reads.retain(|at, _| !explains(&value, *at));
        Kept { value, missed: (!missed.is_empty()).then(|| Box::new(missed)) }
    }

    /// Returns the value, and reports its failed reads to the innermost scope of this thread.
    pub(crate) fn get(&self) -> &T {
        self.missed.iter().for_each(|missed| missed.tell());
        &self.value
    }
}

/// Runs `f` and ignores its failures. For code that reads through words that may not be addresses.
pub(crate) fn tried<T>(f: impl FnOnce() -> T) -> T {
    let _scope = Scope::enter(None);
    f()
}

/// The innermost scope and the cancellation handle of a thread, to be used for work on other threads.
#[derive(Clone, Debug)]
pub(crate) struct Carried {
    scope: Option<Shared>,
    cancel: Option<Cancel>,
}

impl Carried {
    /// Captures the scope and the handle of this thread.
    pub(crate) fn here() -> Carried {
        let scope = SCOPES.with_borrow(|scopes| scopes.last().and_then(|(_, scope)| scope.clone()));
        Carried { scope, cancel: cancel::current() }
    }

    /// Runs `f` on the current thread such that its failures are reported to the captured scope and the captured handle cancels it.
    pub(crate) fn run<T>(&self, f: impl FnOnce() -> T) -> T {
        let _scope = Scope::enter(self.scope.clone());
        cancel::within(self.cancel.clone(), f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(missed: &Missed) -> usize {
        missed.first().map_or(0, |f| f.2)
    }

    #[test]
    fn failures_go_to_the_innermost_scope() {
        missed(Addr(0x10_0000), 8);
        let outer = Scope::open();
        missed(Addr(0x10_0000), 8);
        let ((), inner) = watched(|| missed(Addr(0x20_0000), 4));
        tried(|| missed(Addr(0x30_0000), 4));
        assert_eq!((outer.missed().first(), inner.first()), (Some((Addr(0x10_0000), 8, 1)), Some((Addr(0x20_0000), 4, 1))));
        inner.tell();
        inner.tell();
        assert_eq!(count(&outer.missed()), 2);
        // Scopes are not dropped in the reverse order of their opening.
        let last = Scope::open();
        drop(outer);
        missed(Addr(0x40_0000), 4);
        assert_eq!(count(&last.missed()), 1);
    }

    #[test]
    fn a_kept_value_reports_to_each_scope() {
        let kept = Kept::of(|| missed(Addr(0x10_0000), 8));
        for _ in 0..2 {
            let scope = Scope::open();
            assert_eq!(count(&scope.missed()), 0);
            kept.get();
            tried(|| kept.get());
            let outer = Kept::of(|| *kept.get());
            assert_eq!(count(&scope.missed()), 1);
            drop(scope);
            let scope = Scope::open();
            outer.get();
            assert_eq!(scope.missed().first(), Some((Addr(0x10_0000), 8, 1)));
        }
    }

    #[test]
    fn other_threads_report_to_the_scope_carried_to_them() {
        let scope = Scope::open();
        let carried = Carried::here();
        std::thread::scope(|s| {
            s.spawn(|| missed(Addr(0x10_0000), 8));
            s.spawn(|| carried.run(|| missed(Addr(0x20_0000), 8)));
        });
        assert_eq!(scope.missed().first(), Some((Addr(0x20_0000), 8, 1)));
    }

    #[test]
    fn invalid_pointers_are_kept_and_reported() {
        let kept = Kept::of(|| stray(Addr(0x10_0000), Addr(u64::MAX)));
        let scope = Scope::open();
        tried(|| kept.get());
        assert_eq!(scope.missed().first_stray(), None);
        kept.get();
        assert_eq!((scope.missed().first_stray(), scope.missed().first()), (Some((Addr(0x10_0000), Addr(u64::MAX))), None));
    }

    #[test]
    fn types_without_names_are_reported_once() {
        let kept = Kept::of(|| (1..=3).for_each(|i| unnamed(Addr(0x10_0000 * i))));
        let scope = Scope::open();
        tried(|| kept.get());
        assert_eq!(scope.missed().first_unnamed(), None);
        kept.get();
        unnamed(Addr(0x20_0000));
        assert_eq!(scope.missed().first_unnamed(), Some((Addr(0x10_0000), 3)));
    }

    #[test]
    fn contradictions_are_kept_and_counted_by_kind() {
        let kept = Kept::of(|| (1..=3).for_each(|i| contradiction(Addr(0x10_0000 * i), if i == 2 { "b" } else { "a" })));
        let scope = Scope::open();
        tried(|| kept.get());
        assert!(scope.missed().contradictions().is_empty());
        kept.get();
        kept.get();
        assert_eq!(scope.missed().contradictions(), BTreeMap::from([("a", (Addr(0x10_0000), 2)), ("b", (Addr(0x20_0000), 1))]));
        (0..10_000u64).for_each(|i| contradiction(Addr(8 * i), "c"));
        assert_eq!(scope.missed().wrong.len(), MOST);
    }

    #[test]
    fn reads_outside_of_user_memory_are_ignored_and_many_are_bounded() {
        let scope = Scope::open();
        [0, 8, 0xffff, 1 << 52, u64::MAX].into_iter().for_each(|at| missed(Addr(at), 8));
        assert_eq!(scope.missed().first(), None);
        (0..10_000u64).rev().for_each(|i| missed(Addr(0x10_0000 + 8 * i), 8));
        assert_eq!(scope.missed().first(), Some((Addr(0x10_0000), 8, MOST)));
    }
}
