//! Strings by value: duplicates and the memory they waste.

use std::cmp::Reverse;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use rayon::iter::{IndexedParallelIterator, IntoParallelIterator, IntoParallelRefMutIterator, ParallelIterator};
use rustc_hash::FxHashMap;

use super::select::{Picker, Selection};
use crate::base::hash::{folded, secret};
use crate::base::{Addr, Answer, Count, NoteKind, glob, len64};
use crate::clr::strings::Strings;
use crate::gc::{Object, ObjectType, Piece, Visitor, min_object_size};
use crate::model::{StringModel, StringSort, StringTotals, StringsReport};
use crate::session::{Error, Heap, coverage, note_walks};

/// Arguments of `strings`.
#[derive(Clone, Debug)]
pub struct StringsQuery {
    /// The strings to count.
    pub selection: Selection,
    /// Only values that match this pattern.
    pub like: Option<String>,
    /// Minimum number of strings per listed value.
    pub min_count: u64,
    /// Order of the rows.
    pub sort: StringSort,
    /// Maximum rows, 0 for all.
    pub top: usize,
    /// Maximum characters (UTF-16 code units) per value.
    pub max_chars: u32,
}

impl Default for StringsQuery {
    /// Duplicate values, most wasted bytes first, at most a hundred.
    fn default() -> StringsQuery {
        StringsQuery { selection: Selection::default(), like: None, min_count: 2, sort: StringSort::Waste, top: 100, max_chars: 1024 }
    }
}

/// Identifies a value. Values themselves are not kept: a 10 GB heap may contain 5 GB of them.
///
/// Different values of equal length are confused only if two independent 64-bit hashes both collide: for n values the
/// probability is at most n² / 2^129, or 10^-19 for four billion (2^32, all that 100 GB can hold) and 10^-25 for ten
/// million.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Key {
    a: u64,
    b: u64,
    length: u32,
}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // The top bits of `a` select the part.
        state.write_u64(self.b);
    }
}

/// The strings of one value.
#[derive(Clone, Copy, Debug)]
struct Group {
    count: u64,
    first: Addr,
}

/// The values of a part, and strings that wait to be counted: looking them up in one go, table by table, overlaps what each waits for
/// memory. A look-up at each string took twice as long.
#[derive(Clone, Debug, Default)]
struct Part {
    groups: FxHashMap<Key, Group>,
    waiting: Vec<(Key, Addr)>,
}

impl Part {
    fn count(&mut self) {
        for (key, first) in self.waiting.drain(..) {
            let group = self.groups.entry(key).or_insert(Group { count: 0, first });
            group.count.bump();
            group.first = group.first.min(first);
        }
    }
}

/// Strings that wait on each thread, at most: 32 MB.
const MAX_WAITING: usize = 1 << 20;

/// Growing a table briefly doubles its memory: many small tables grow one at a time.
const PART_BITS: u32 = 6;

/// The finalizer of splitmix64: every bit of the result depends on every bit of `x`.
fn mixed(x: u64) -> u64 {
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Two independent hashes of `content`: one multiplies modulo 2^64, the other folds the full product.
pub(super) fn hashes(content: &[u8]) -> (u64, u64) {
    let (words, rest) = content.as_chunks::<8>();
    let mut last = [0; 8];
    last.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
    // Contents with equal hashes can be made, but not without knowing where they begin.
    let (mut a, mut b) = (0x243f_6a88_85a3_08d3u64 ^ secret(), 0x1319_8a2e_0370_7344u64 ^ secret());
    for word in words.iter().chain(std::iter::once(&last)) {
        let word = u64::from_le_bytes(*word);
        a = mixed_in(a, word);
        b = folded(b ^ word, 0xa076_1d64_78bd_642f).wrapping_add(0xe703_7ed1_a0b4_28db);
    }
    (mixed(a), mixed(b))
}

fn mixed_in(hash: u64, word: u64) -> u64 {
    // Multiplication carries upwards only: without the shift, a change in a word's top byte would stay there, and the next
    // word could cancel it.
    let product = (hash.rotate_left(23) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    product ^ (product >> 32)
}

struct Contents<'s> {
    picker: Picker<'s>,
    /// Offset of the first character in a string.
    first_char: u64,
    parts: Vec<Part>,
    waiting: usize,
    totals: StringTotals,
}

impl Visitor for Contents<'_> {
    fn piece(&mut self, piece: &Piece<'_>) -> bool {
        self.picker.segment(piece.segment)
    }

    #[inline]
    fn object(&mut self, object: &Object<'_>) {
        if !object.ty.is_string || !self.picker.wants(object) {
            return;
        }
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
        let part = usize::try_from(a >> (64 - PART_BITS)).unwrap_or(0);
        let Some(part) = self.parts.get_mut(part) else { return };
        part.waiting.push((Key { a, b, length }, object.address));
        self.waiting.bump();
        if self.waiting >= MAX_WAITING {
            self.parts.iter_mut().for_each(Part::count);
            self.waiting = 0;
        }
    }
}

fn merge(into: &mut Part, from: Part) {
    for (key, group) in from.groups {
        let known = into.groups.entry(key).or_insert(Group { count: 0, first: group.first });
        known.count.grow(group.count);
        known.first = known.first.min(group.first);
    }
}

/// A candidate row.
#[derive(Clone, Copy, Debug)]
struct Row {
    length: u32,
    group: Group,
}

/// Keeps the best rows, sorting occasionally.
struct Best<F> {
    rows: Vec<Row>,
    top: usize,
    order: F,
}

impl<K: Ord, F: Fn(&Row) -> K> Best<F> {
    fn push(&mut self, row: Row) {
        self.rows.push(row);
        if self.top > 0 && self.rows.len() >= self.top.saturating_mul(2).max(1024) {
            self.cut();
        }
    }

    fn cut(&mut self) {
        self.rows.sort_unstable_by_key(&self.order);
        if self.top > 0 {
            self.rows.truncate(self.top);
        }
    }
}

/// Groups strings by value.
///
/// # Errors
/// [`Error::Contract`] if the descriptor lacks the layout of strings.
pub fn strings(heap: &Heap, query: &StringsQuery) -> Result<Answer<StringsReport>, Error> {
    let (notes, namer) = (heap.begin(), heap.namer());
    let reader = namer.types()?.strings();
    let filter = query.selection.filter(heap, &namer, &notes);
    let walked = heap.walker().walk_once(heap.progress(), || Contents {
        picker: Picker::new(heap, &query.selection, &filter, &namer),
        first_char: reader.content(),
        parts: vec![Part::default(); 1 << PART_BITS],
        waiting: 0,
        totals: StringTotals::default(),
    });
    note_walks(heap.walker(), &walked.segments, &notes);
    let mut totals = StringTotals::default();
    let mut parts: Vec<Part> = vec![Part::default(); 1 << PART_BITS];
    for visitor in walked.visitors {
        totals.strings.grow(visitor.totals.strings);
        totals.bytes.grow(visitor.totals.bytes);
        totals.unreadable.grow(visitor.totals.unreadable);
        parts.par_iter_mut().zip(visitor.parts.into_par_iter()).for_each(|(into, mut from)| {
            from.count();
            from.waiting = Vec::new();
            if from.groups.len() > into.groups.len() {
                std::mem::swap(into, &mut from);
            }
            merge(into, from);
        });
    }
    let kinds = heap.walker().types().list();
    let string: Option<&ObjectType> = kinds.iter().find(|k| k.is_string).map(Arc::as_ref);
    let smallest = min_object_size(heap.memory());
    let size = |length: u32| string.and_then(|s| s.size(|| Some(length))).unwrap_or(0).max(smallest);
    if let Some(pattern) = &query.like {
        if heap.memory().hides_contents() {
            return Err(Error::Query("the contents of strings are hidden here: none can be looked for".into()));
        }
        parts
            .par_iter_mut()
            .for_each(|part| part.groups.retain(|_, g| reader.text(g.first, u32::MAX).is_some_and(|(t, _)| glob(pattern, &t))));
        totals = StringTotals { unreadable: totals.unreadable, ..StringTotals::default() };
        for (key, group) in parts.iter().flat_map(|p| &p.groups) {
            totals.strings.grow(group.count);
            totals.bytes.grow(group.count.saturating_mul(size(key.length)));
        }
    }
    let waste = |r: &Row| size(r.length).saturating_mul(r.group.count.saturating_sub(1));
    let bytes = |r: &Row| size(r.length).saturating_mul(r.group.count);
    let order = |r: &Row| {
        let first = match query.sort {
            StringSort::Waste => waste(r),
            StringSort::Count => r.group.count,
            StringSort::Length => u64::from(r.length),
            StringSort::Bytes => bytes(r),
        };
        (Reverse(first), Reverse(bytes(r)), Reverse(r.length), r.group.first)
    };
    let rank = |part: Part| {
        let mut best = Best { rows: Vec::new(), top: query.top, order };
        let (mut sums, mut rows) = (StringTotals::default(), 0u64);
        for (key, group) in &part.groups {
            let row = Row { length: key.length, group: *group };
            sums.distinct.bump();
            if group.count > 1 {
                sums.duplicate_groups.bump();
                sums.wasted_bytes.grow(waste(&row));
            }
            if group.count >= query.min_count {
                rows.bump();
                best.push(row);
            }
        }
        best.cut();
        (sums, rows, best.rows)
    };
    // A table is freed where it was read: a million strings' tables take a while.
    let ranked: Vec<(StringTotals, u64, Vec<Row>)> = parts.into_par_iter().map(rank).collect();
    let mut best = Best { rows: Vec::new(), top: query.top, order };
    let mut rows = 0u64;
    for (sums, n, part) in ranked {
        totals.distinct.grow(sums.distinct);
        totals.duplicate_groups.grow(sums.duplicate_groups);
        totals.wasted_bytes.grow(sums.wasted_bytes);
        rows.grow(n);
        part.into_iter().for_each(|row| best.push(row));
    }
    best.cut();
    if heap.runtime().file().facts.trimmed.is_some_and(|t| t.redacted) {
        let what = "the contents of strings were overwritten by trim --redact: values are not those of the process, and all of one length are \
                    the same";
        notes.add(NoteKind::Missing, None, what);
    }
    if totals.unreadable > 0 {
        notes.add(NoteKind::Missing, None, format!("the content of {} strings is not wholly in the dump", totals.unreadable));
    }
    let listed = len64(best.rows.len());
    let report = StringsReport {
        strings: best.rows.iter().map(|r| model(reader, r, query.max_chars, (bytes(r), waste(r)))).collect(),
        coverage: coverage(heap.walker(), &walked.segments),
        shown: (listed < rows).then_some(listed),
        totals,
        rows,
    };
    namer.note(&notes);
    Ok(notes.finish(report))
}

fn model(reader: &Strings, row: &Row, max_chars: u32, (bytes, waste): (u64, u64)) -> StringModel {
    let (value, _) = reader.text(row.group.first, max_chars).unwrap_or_default();
    StringModel {
        value,
        length: u64::from(row.length),
        count: row.group.count,
        bytes,
        waste,
        address: row.group.first,
        truncated: row.length > max_chars,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn similar_values_differ_in_both_hashes() {
        let mut seen = [std::collections::HashSet::new(), std::collections::HashSet::new()];
        let mut n = 0;
        for length in [1usize, 2, 7, 8, 9, 16, 40] {
            for at in 0..length {
                for value in 1..=255u8 {
                    let mut content = vec![0; length];
                    content[at] = value;
                    let (a, b) = hashes(&content);
                    // Trailing bytes do not count: a shorter value with the same words differs in length.
                    seen[0].insert((a, length));
                    seen[1].insert((b, length));
                    n += 1;
                }
            }
        }
        assert_eq!((seen[0].len(), seen[1].len()), (n, n));
    }

    #[test]
    fn only_the_best_rows_are_kept() {
        let row = |length| Row { length, group: Group { count: 1, first: Addr(u64::from(length)) } };
        let mut best = Best { rows: Vec::new(), top: 3, order: |r: &Row| Reverse(r.length) };
        (0..5000).for_each(|i| best.push(row((i * 7919) % 5000)));
        best.cut();
        assert_eq!(best.rows.iter().map(|r| r.length).collect::<Vec<_>>(), [4999, 4998, 4997]);
    }
}
