//! Groups strings by value while the heap is walked.

use std::hash::{Hash, Hasher};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rayon::iter::{IndexedParallelIterator, IntoParallelIterator, IntoParallelRefIterator, ParallelIterator};
use rustc_hash::FxHashMap;

use super::hash::hashes;
use crate::analysis::StringTotals;
use crate::base::{Addr, AddrRange, Count};
use crate::gc::{Object, Piece};

/// Identifies the value of a string. The values themselves are not stored: a 10 GB heap may contain 5 GB of them.
///
/// Two different values of equal length get the same key only if two independent hashes, of 64 and 32 bits, both collide. For n values, the
/// probability is at most n² / 2^97: 10^-15 for ten million values, and 10^-10 for four billion, which take 100 GB.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Key {
    a: u64,
    b: u32,
    length: u32,
}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // All keys of a table have the same top bits. This does not cause collisions, because the hasher multiplies.
        state.write_u64(self.a);
    }
}

/// The strings of one value.
#[derive(Clone, Copy, Debug)]
pub(super) struct Group {
    pub(super) count: u64,
    pub(super) first: Addr,
}

/// Groups of strings whose hashes have the same top `PART_BITS` bits.
type Table = FxHashMap<Key, Group>;

/// A string to be counted: the key of its value, and its address.
type Met = (Key, Addr);

/// Number of top bits of the hash that select a table. Strings are added to a table in batches, so that it stays in the core's cache. One large table
/// took twice as long.
const PART_BITS: u32 = 8;
/// Maximum number of strings that wait for each table: under 1 MB per thread for all tables.
const MAX_WAITING: usize = 128;

/// The values of a heap.
#[derive(Debug)]
pub(in crate::analysis) struct Values {
    parts: Vec<Mutex<Table>>,
}

impl Default for Values {
    fn default() -> Values {
        Values { parts: std::iter::repeat_with(Mutex::default).take(1 << PART_BITS).collect() }
    }
}

fn locked(part: &Mutex<Table>) -> MutexGuard<'_, Table> {
    part.lock().unwrap_or_else(PoisonError::into_inner)
}

fn add(table: &mut Table, key: Key, more: Group) {
    let group = table.entry(key).or_insert(Group { count: 0, ..more });
    group.count.grow(more.count);
    group.first = group.first.min(more.first);
}

fn add_met(table: &mut Table, (key, first): Met) {
    add(table, key, Group { count: 1, first });
}

impl Values {
    fn count(&self, part: usize, waiting: &mut Vec<Met>) {
        if let Some(part) = self.parts.get(part) {
            let mut table = locked(part);
            waiting.drain(..).for_each(|met| add_met(&mut table, met));
        }
    }

    /// Calls `f` for each table, in parallel, with the groups and the length of their strings. The thread that reads a table also frees it, because
    /// freeing large tables takes long.
    pub(super) fn each<T: Send>(self, f: impl Fn(&mut dyn Iterator<Item = (u32, Group)>) -> T + Sync) -> Vec<T> {
        let tables = self.parts.into_par_iter().map(|part| part.into_inner().unwrap_or_else(PoisonError::into_inner));
        tables.map(|table| f(&mut table.iter().map(|(key, group)| (key.length, *group)))).collect()
    }

    /// Adds the strings that the visitors of a walk still keep, table by table. Each visitor must have been accepted by the walk.
    pub(in crate::analysis) fn settle(&self, texts: Vec<Texts<'_>>) -> StringTotals {
        self.parts.par_iter().enumerate().for_each(|(part, into)| {
            let mut into = locked(into);
            for texts in &texts {
                let own = texts.own.as_ref().and_then(|own| own.parts.get(part));
                let own = own.map(|own| std::mem::take(&mut *locked(own))).unwrap_or_default();
                if into.is_empty() {
                    *into = own;
                } else {
                    own.into_iter().for_each(|(key, group)| add(&mut into, key, group));
                }
                let waiting = texts.waiting.get(part).into_iter().flatten();
                waiting.for_each(|met| add_met(&mut into, *met));
            }
        });
        let mut totals = StringTotals::default();
        for texts in texts {
            totals.strings.grow(texts.totals.strings);
            totals.bytes.grow(texts.totals.bytes);
            totals.unreadable.grow(texts.totals.unreadable);
        }
        totals
    }

    /// Drops the groups that `keep` rejects.
    pub(super) fn retain(&self, keep: impl Fn(&Group) -> bool + Sync) {
        self.parts.par_iter().for_each(|part| locked(part).retain(|_, group| keep(group)));
    }
}

/// Counts the strings that a visitor of a walk meets.
#[derive(Debug)]
pub(in crate::analysis) struct Texts<'v> {
    values: &'v Values,
    /// Separate values for a piece of a segment, which may turn out to start at a wrong address. `settle` adds them after the walk has accepted the
    /// piece.
    own: Option<Values>,
    /// Offset of the first character in a string.
    first_char: u64,
    /// Strings that wait for each table.
    waiting: Vec<Vec<Met>>,
    totals: StringTotals,
}

impl<'v> Texts<'v> {
    /// Creates a counter that adds to `values`. `first_char`: offset of the first character in a string.
    pub(in crate::analysis) fn new(values: &'v Values, first_char: u64) -> Texts<'v> {
        Texts { values, own: None, first_char, waiting: Vec::new(), totals: StringTotals::default() }
    }

    /// Begins a piece.
    pub(in crate::analysis) fn piece(&mut self, piece: &Piece<'_>) {
        self.waiting.resize_with(1 << PART_BITS, Vec::new);
        if piece.starts != AddrRange::new(piece.segment.start, piece.segment.allocated) {
            self.own.get_or_insert_default();
        }
    }

    /// Counts a string.
    #[inline]
    pub(in crate::analysis) fn count(&mut self, object: &Object<'_>) {
        let t = &mut self.totals;
        t.strings.bump();
        t.bytes.grow(object.size);
        let length = object.length().and_then(|n| u32::try_from(n).ok());
        let content = length.and_then(|n| Some((n, object.part(self.first_char, u64::from(n).wrapping_mul(2))?)));
        let Some((length, content)) = content else {
            t.unreadable.bump();
            return;
        };
        let (a, b) = hashes(&content);
        let key = Key { a, b: u32::try_from(b >> 32).unwrap_or(0), length };
        self.wait((key, object.address));
    }

    /// Keeps a string until `MAX_WAITING` strings wait for its table.
    fn wait(&mut self, met: Met) {
        let part = usize::try_from(met.0.a >> (64 - PART_BITS)).unwrap_or(0);
        let Some(waiting) = self.waiting.get_mut(part) else { return };
        waiting.push(met);
        if waiting.len() >= MAX_WAITING {
            self.own.as_ref().unwrap_or(self.values).count(part, waiting);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::objects::strings::hash::mixed;

    #[test]
    fn groups_do_not_depend_on_who_met_what() {
        let values = Values::default();
        let key = |n: u64| Key { a: mixed(n), b: 0, length: 1 };
        let texts = |own: bool| {
            let mut texts = Texts::new(&values, 12);
            texts.own = own.then(Values::default);
            texts.waiting.resize_with(1 << PART_BITS, Vec::new);
            texts
        };
        let (mut shared, mut own) = (texts(false), texts(true));
        // Each value occurs 13 times, at varying distances.
        let (n, times) = (30_000u64, 13u64);
        for i in 0..n * times {
            let value = (i * 7919 + i / n) % n;
            if i % 3 == 0 { &mut own } else { &mut shared }.wait((key(value), Addr(0x1000 + value * 100 + i % 100)));
        }
        values.settle(vec![shared, own]);
        let groups: Vec<Vec<Group>> = values.each(|groups| groups.map(|(_, group)| group).collect());
        let groups: Vec<Group> = groups.concat();
        assert_eq!(groups.len() as u64, n);
        assert!(groups.iter().all(|g| g.count == times));
    }
}
