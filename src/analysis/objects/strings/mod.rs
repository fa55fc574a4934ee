//! Strings by value: duplicates and the memory they waste.

mod hash;
mod report;
mod values;

pub use report::*;

use std::cmp::Reverse;
use std::sync::Arc;

use crate::analysis::select::{Picker, Selection};
use crate::base::{Answer, Collector, Count, Missing, glob, len64, plural};
use crate::clr::strings::Strings;
use crate::gc::{Object, ObjectType, Piece, SegmentIndex, Visitor, Walked, coverage, note_walks};
use crate::model::{Order, SortDirection, WalkModel};
use crate::session::{Error, Heap, Namer};
pub(in crate::analysis) use hash::hashes;
use values::Group;
pub(in crate::analysis) use values::{Texts, Values};

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
    pub sort: Order<StringSort>,
    /// Maximum rows, 0 for all.
    pub top: usize,
    /// Maximum characters (UTF-16 code units) per value.
    pub max_chars: u32,
}

impl Default for StringsQuery {
    /// At most a hundred duplicate values, most wasted bytes first.
    fn default() -> StringsQuery {
        StringsQuery {
            selection: Selection::default(),
            like: None,
            min_count: 2,
            sort: StringSort::Waste.into(),
            top: 100,
            max_chars: 1024,
        }
    }
}

struct Contents<'s> {
    picker: Picker<'s>,
    texts: Texts<'s>,
}

impl Visitor for Contents<'_> {
    fn piece(&mut self, piece: &Piece<'_>) -> bool {
        self.texts.piece(piece);
        self.picker.segment(piece.segment)
    }

    #[inline]
    fn object(&mut self, object: &Object<'_>) {
        if object.ty.is_string && self.picker.wants(object) {
            self.texts.count(object);
        }
    }
}

/// A candidate row.
#[derive(Clone, Copy, Debug)]
struct Row {
    length: u32,
    group: Group,
}

/// Keeps the best rows, sorting occasionally.
struct Best<K, F> {
    rows: Vec<(K, Row)>,
    top: usize,
    order: F,
    /// Key of the worst row kept, once `top` rows are kept. Most new rows sort after it and are rejected at once.
    last: Option<K>,
}

impl<K: Ord + Copy, F: Fn(&Row) -> K> Best<K, F> {
    fn new(top: usize, order: F) -> Best<K, F> {
        Best { rows: Vec::new(), top, order, last: None }
    }

    fn push(&mut self, row: Row) {
        let key = (self.order)(&row);
        if self.last.is_some_and(|last| key > last) {
            return;
        }
        self.rows.push((key, row));
        if self.top > 0 && self.rows.len() >= self.top.saturating_mul(4).max(64) {
            self.cut();
        }
    }

    fn cut(&mut self) {
        self.rows.sort_unstable_by_key(|(key, _)| *key);
        if self.top > 0 {
            self.rows.truncate(self.top);
            self.last = self.top.checked_sub(1).and_then(|last| self.rows.get(last)).map(|(key, _)| *key);
        }
    }

    fn into_rows(mut self) -> Vec<Row> {
        self.cut();
        self.rows.into_iter().map(|(_, row)| row).collect()
    }
}

/// Groups strings by value.
///
/// # Errors
/// [`Error::Contract`] if the descriptor does not have the layout of strings; [`Error::Query`] for a search by content if contents are
/// hidden.
pub fn strings(heap: &Heap, query: &StringsQuery) -> Result<Answer<StringsReport>, Error> {
    query.selection.refuse_hidden(heap)?;
    let (notes, namer) = (heap.begin(), heap.namer());
    let filter = query.selection.filter(heap, &namer, &notes);
    let (values, first_char) = (Values::default(), namer.types()?.strings().content());
    let Walked { segments, visitors } = heap.walker().walk_once(heap.progress(), || Contents {
        picker: Picker::new(heap, &query.selection, &filter, &namer),
        texts: Texts::new(&values, first_char),
    });
    note_walks(heap.walker(), &segments, &notes);
    let totals = values.settle(visitors.into_iter().map(|visitor| visitor.texts).collect());
    let report = grouped(heap, &namer, query, (values, totals), &segments, &notes)?;
    namer.note(&notes);
    Ok(notes.finish(report))
}

/// Creates the report about the strings of a walk.
///
/// # Errors
/// [`Error::Contract`] if the descriptor does not have the layout of strings; [`Error::Query`] for a search by content if contents are
/// hidden.
pub(in crate::analysis) fn grouped(
    heap: &Heap,
    namer: &Namer,
    query: &StringsQuery,
    (values, mut totals): (Values, StringTotals),
    walks: &[(SegmentIndex, WalkModel)],
    notes: &Collector,
) -> Result<StringsReport, Error> {
    let reader = namer.types()?.strings();
    let kinds = heap.walker().types().list();
    let string: Option<&ObjectType> = kinds.iter().find(|k| k.is_string).map(Arc::as_ref);
    let smallest = heap.walker().smallest();
    let size = |length: u32| string.and_then(|s| s.size(|_| Some(length))).unwrap_or(0).max(smallest);
    if let Some(pattern) = &query.like {
        if heap.memory().hides_contents() {
            return Err(Error::Query("texts are hidden here: strings cannot be searched by content".into()));
        }
        values.retain(|g| reader.text(g.first, u32::MAX).is_some_and(|(t, _)| glob(pattern, &t)));
        totals = StringTotals { unreadable: totals.unreadable, ..StringTotals::default() };
    }
    let waste = |r: &Row| size(r.length).saturating_mul(r.group.count.saturating_sub(1));
    let bytes = |r: &Row| size(r.length).saturating_mul(r.group.count);
    let order = |r: &Row| {
        let most = match query.sort.by {
            StringSort::Waste => waste(r),
            StringSort::Count => r.group.count,
            StringSort::Length => u64::from(r.length),
            StringSort::Bytes => bytes(r),
        };
        let first = if query.sort.reverses(SortDirection::Descending) { !most } else { most };
        (Reverse(first), Reverse(bytes(r)), Reverse(r.length), r.group.first)
    };
    let ranked = values.each(|groups| {
        let mut best = Best::new(query.top, order);
        let (mut sums, mut rows) = (StringTotals::default(), 0u64);
        for (length, group) in groups {
            let row = Row { length, group };
            sums.distinct.bump();
            sums.strings.grow(group.count);
            sums.bytes.grow(bytes(&row));
            if group.count > 1 {
                sums.duplicate_groups.bump();
                sums.wasted_bytes.grow(waste(&row));
            }
            if group.count >= query.min_count {
                rows.bump();
                best.push(row);
            }
        }
        (sums, rows, best.into_rows())
    });
    let mut best = Best::new(query.top, order);
    let mut rows = 0u64;
    for (sums, n, part) in ranked {
        totals.distinct.grow(sums.distinct);
        totals.duplicate_groups.grow(sums.duplicate_groups);
        totals.wasted_bytes.grow(sums.wasted_bytes);
        if query.like.is_some() {
            totals.strings.grow(sums.strings);
            totals.bytes.grow(sums.bytes);
        }
        rows.grow(n);
        part.into_iter().for_each(|row| best.push(row));
    }
    let best = best.into_rows();
    if heap.runtime().file().facts.trimmed.is_some_and(|t| t.redacted) {
        let what = "the contents of strings were overwritten when the dump was redacted: values are not those of the process, and strings of \
                    the same length look equal";
        notes.add(Missing::Objects, None, what);
    }
    if totals.unreadable > 0 {
        notes.add(Missing::Objects, None, format!("the content of {} is only partly in the dump", plural(totals.unreadable, "string")));
    }
    let listed = len64(best.len());
    Ok(StringsReport {
        strings: best.iter().map(|r| model(reader, r, query.max_chars, (bytes(r), waste(r)))).collect(),
        coverage: coverage(heap.walker(), walks),
        shown: (listed < rows).then_some(listed),
        totals,
        rows,
        min_count: query.min_count,
    })
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
    use crate::base::Addr;

    #[test]
    fn only_the_best_rows_are_kept() {
        let row = |length| Row { length, group: Group { count: 1, first: Addr(u64::from(length)) } };
        let mut best = Best::new(3, |r: &Row| Reverse(r.length));
        (0..5000).for_each(|i| best.push(row((i * 7919) % 5000)));
        assert_eq!(best.into_rows().iter().map(|r| r.length).collect::<Vec<_>>(), [4999, 4998, 4997]);
    }
}
