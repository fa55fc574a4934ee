//! Offsets of references in objects: the GCDesc before the method table of a type that contains pointers.
//!
//! A *series* is a run of references. An array of structures has *value series* instead, the pattern of one element.
//!
//! Source: `gcdesc.h`; `docs/internals/gc-structures.md#references`, verified on 100,658 references.

use super::method_table::MethodTableInfo;
use crate::base::cancel::tick;
use crate::base::{Addr, AddrRange, Endian, len64};
use crate::memory::Memory;

/// Maximum number of series of a type. A class has one for each run of reference fields.
const MAX_SERIES: u64 = 1 << 16;
/// Maximum size of an array element in bytes: the component size has 16 bits.
const LARGEST_ELEMENT: u64 = 0xffff;
/// Bytes of an object that are read before the caller's wish to stop is heeded.
const WINDOW: u64 = 1 << 16;

/// Offsets of the references in the objects of a type.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum GcDesc {
    /// The objects have no references.
    #[default]
    None,
    /// The references are in series.
    Series(Vec<Series>),
    /// Each element of an array of structures has references.
    ValueSeries {
        /// Offset of the first series, from the object's start.
        start: u64,
        /// The series of one element.
        items: Vec<ValueSeries>,
        /// Number of bytes by which the size of an array exceeds the end of its last element. The size includes the word before the object or, in
        /// Mono, the bounds after the elements.
        tail: u64,
    },
    /// The type has references, but its GCDesc is not in the dump, is damaged, or exceeds the size of its objects or the budget for types.
    Unknown,
}

/// A run of references (`CGCDescSeries`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Series {
    /// Offset of the first reference from the start of the object.
    pub start: u64,
    /// Size of the run minus the size of the object, in bytes. With this encoding, the series of an array of references grows with the array.
    pub size: i64,
}

impl Series {
    /// Offset of the end of the run in an object of `size` bytes.
    fn end(self, size: u64) -> u64 {
        self.start.saturating_add(size.checked_add_signed(self.size).unwrap_or(0))
    }
}

/// A run of references in an array element (`val_serie_item`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValueSeries {
    /// Number of references in the run.
    pub pointers: u64,
    /// Number of bytes to skip after the run.
    pub skip: u64,
}

impl GcDesc {
    /// Reads the GCDesc before the method table at `mt`.
    pub fn read(memory: &Memory, mt: Addr, base_size: u64) -> GcDesc {
        read(memory, mt, (base_size, LARGEST_ELEMENT), |_| true).unwrap_or(GcDesc::Unknown)
    }

    /// The GCDesc of a type; `Unknown` if `afford` refuses its number of series.
    pub(crate) fn of(memory: &Memory, info: &MethodTableInfo, afford: impl FnOnce(u64) -> bool) -> GcDesc {
        if !info.contains_pointers {
            return GcDesc::None;
        }
        let sizes = (info.base_size.into(), u64::from(info.component_size).min(LARGEST_ELEMENT));
        read(memory, info.address, sizes, afford).unwrap_or(GcDesc::Unknown)
    }

    /// The GCDesc restricted to the first `bytes` of an object, so that later series cost nothing.
    pub(crate) fn near(&self, bytes: u64, word: u64) -> GcDesc {
        let most = bytes.checked_div(word).and_then(|n| usize::try_from(n).ok()).unwrap_or(0);
        match self {
            // Series do not overlap, so no more than `most` of them begin in the first `bytes`.
            GcDesc::Series(list) => GcDesc::Series(list.iter().take_while(|series| series.start < bytes).take(most).copied().collect()),
            // Each item except the first has a reference, so one more than `most` items suffice.
            GcDesc::ValueSeries { start, items, tail } => {
                GcDesc::ValueSeries { start: *start, tail: *tail, items: items.iter().take(most.saturating_add(1)).copied().collect() }
            }
            GcDesc::None | GcDesc::Unknown => self.clone(),
        }
    }

    /// Offsets of the references in the first `bytes` of objects of a type that is not an array, ascending. The limit is for forged types,
    /// which may claim gigabytes of references.
    pub(crate) fn offsets(memory: &Memory, info: &MethodTableInfo, bytes: u64) -> Vec<u64> {
        let mut out = Vec::new();
        if info.contains_pointers {
            let size = u64::from(info.base_size);
            let visit = |at| out.push(at);
            GcDesc::read(memory, info.address, size).places_in(size, memory.ptr_bytes(), (0, size.min(bytes)), visit);
        }
        out.sort_unstable();
        out
    }

    /// Number of series.
    pub(crate) fn items(&self) -> u64 {
        match self {
            GcDesc::None | GcDesc::Unknown => 0,
            GcDesc::Series(list) => len64(list.len()),
            GcDesc::ValueSeries { items, .. } => len64(items.len()),
        }
    }

    /// Whether objects contain no references.
    pub(crate) fn is_empty(&self) -> bool {
        matches!(self, GcDesc::None)
    }

    /// Calls `visit` with the offset of each reference slot in an object of `size` bytes (not rounded).
    #[inline]
    pub fn places(&self, size: u64, word: u64, visit: impl FnMut(u64)) {
        self.places_in(size, word, (0, size), visit);
    }

    /// Calls `visit` like [`GcDesc::places`], but only for slots in the captured part of the object at `address`. A corrupt length may
    /// claim terabytes; the cost is proportional to the captured part. Missing parts are recorded as failed reads.
    pub fn captured(&self, memory: &Memory, address: Addr, size: u64, mut visit: impl FnMut(u64)) {
        self.parts(memory, address, size, |part, _| self.places_in(size, memory.ptr_bytes(), part, &mut visit));
    }

    /// Calls `visit` with the offset and target of each reference that is not null in the [captured](GcDesc::captured) part of an object of
    /// `size` bytes at `address`.
    pub fn references(&self, memory: &Memory, address: Addr, size: u64, mut visit: impl FnMut(u64, Addr)) {
        self.references_while(memory, address, size, |offset, target| {
            visit(offset, target);
            true
        });
    }

    /// Calls `visit` like [`GcDesc::references`] until it returns false. The rest of the object, which may be an array as large as the dump, is not
    /// read then.
    pub(crate) fn references_while(&self, memory: &Memory, address: Addr, size: u64, mut visit: impl FnMut(u64, Addr) -> bool) {
        let (word, shape) = (memory.ptr_bytes(), memory.shape());
        let mut wanted = true;
        self.parts(memory, address, size, |part, bytes| {
            let mut from = part.0;
            while wanted && from < part.1 {
                let to = from.saturating_add(WINDOW).min(part.1);
                self.places_in(size, word, (from, to), |offset| {
                    // An array may be as large as the dump.
                    tick();
                    if !wanted {
                        return;
                    }
                    let here = offset
                        .checked_sub(part.0)
                        .and_then(|at| bytes.get(usize::try_from(at).ok()?..)?.get(..usize::try_from(word).ok()?));
                    // The reference may span two captured parts.
                    let target = here.map(|bytes| shape.number(bytes)).or_else(|| memory.word(address.plus(offset)).ok());
                    if let Some(target) = target.filter(|target| *target != 0) {
                        wanted = visit(offset, Addr(target));
                    }
                });
                from = to;
            }
        });
    }

    /// The captured parts of an object, as ranges of offsets, with their bytes.
    fn parts(&self, memory: &Memory, address: Addr, size: u64, mut visit: impl FnMut((u64, u64), &[u8])) {
        let object = AddrRange::of(address, size);
        if !self.is_empty() {
            memory.need(object);
        }
        for (start, bytes) in memory.stretches(object) {
            tick();
            let from = start.since(address).unwrap_or(0);
            let to = from.saturating_add(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
            visit((from, to), bytes);
        }
    }

    /// Calls `visit` like [`GcDesc::places`], but only for slots in the bytes `from..to` of the object. Slots before `from` cost nothing.
    #[inline]
    pub fn places_in(&self, size: u64, word: u64, (from, to): (u64, u64), mut visit: impl FnMut(u64)) {
        match self {
            GcDesc::None | GcDesc::Unknown => {}
            GcDesc::Series(list) => {
                // The last series that begins before `from` may reach into the range.
                let first = if from == 0 { 0 } else { list.partition_point(|series| series.start <= from).saturating_sub(1) };
                // Each slot is visited once, even if series overlap. In a corrupt list, thousands of series may overlap in a large array, because all
                // series grow with the array.
                let mut next = from;
                for series in list.iter().skip(first).take_while(|series| series.start < to) {
                    // The object bounds both ends: a series beyond it is corrupt.
                    let end = series.end(size).min(size).min(to);
                    let skipped = next.saturating_sub(series.start).checked_next_multiple_of(word).unwrap_or(u64::MAX);
                    let mut at = series.start.saturating_add(skipped);
                    while at < end {
                        visit(at);
                        at = at.saturating_add(word);
                    }
                    next = next.max(at);
                }
            }
            GcDesc::ValueSeries { start, items, tail } => {
                let end = size.saturating_sub(*tail).min(to);
                let past = from.saturating_sub(*start);
                let whole = || items.iter().fold(0u64, |n, i| n.saturating_add(i.pointers.saturating_mul(word)).saturating_add(i.skip));
                // A range that begins before the first series does not need the sum of the items.
                let repeated = if past > 0 { whole() } else { 0 };
                let before = past.checked_div(repeated).unwrap_or(0);
                let mut at = start.saturating_add(before.saturating_mul(repeated));
                while at < end {
                    let before = at;
                    for item in items {
                        for _ in 0..item.pointers {
                            if at >= end {
                                return;
                            }
                            if at >= from {
                                visit(at);
                            }
                            at = at.saturating_add(word);
                        }
                        at = at.saturating_add(item.skip);
                    }
                    if at == before {
                        return;
                    }
                }
            }
        }
    }
}

fn read(memory: &Memory, mt: Addr, (base_size, component_size): (u64, u64), afford: impl FnOnce(u64) -> bool) -> Option<GcDesc> {
    let word = memory.ptr_bytes();
    let before = |words: u64| mt.minus(word.checked_mul(words)?);
    let count = signed(memory, before(1)?)?;
    // Series do not overlap, and each has a reference, so there are at most as many as words in an object or an element.
    let room = if count > 0 { base_size } else { component_size };
    let number = count.unsigned_abs();
    if count == 0 || number > room.checked_div(word)?.min(MAX_SERIES) || !afford(number) {
        return None;
    }
    let capacity = usize::try_from(number).ok()?;
    if count > 0 {
        let mut list = Vec::with_capacity(capacity);
        for k in 0..number {
            // Series are stored at descending addresses, each as two words: size, then start.
            let at = before(k.checked_mul(2)?.checked_add(3)?)?;
            let start = memory.word(at.plus(word)).ok()?;
            list.push(Series { start, size: signed(memory, at)? });
        }
        // Fields are within the fixed part of an object, and elements begin at its end.
        let sane = list.iter().all(|r| r.start >= word && r.start <= base_size);
        // The series are in the order of fields in all types of 135 dumps, but it is not documented whether the runtime guarantees this.
        list.sort_by_key(|series| series.start);
        let apart = list.is_sorted_by(|a, b| a.end(base_size) <= b.start);
        return (sane && apart).then_some(GcDesc::Series(list));
    }
    let start = memory.word(before(2)?).ok()?;
    let mut items: Vec<ValueSeries> = Vec::with_capacity(capacity);
    for k in 0..number {
        let packed = memory.word(before(k.checked_add(3)?)?).ok()?;
        // Each item has two half words: number of references, bytes to skip.
        let half = word.checked_mul(4)?;
        let mask = 1u64.checked_shl(u32::try_from(half).ok()?)?.wrapping_sub(1);
        let (low, high) = (packed & mask, packed >> half & mask);
        // The count is first in memory, so it is the high half on big-endian targets.
        let (pointers, skip) = if memory.shape().endian == Endian::Little { (low, high) } else { (high, low) };
        match items.last_mut() {
            // Items without references occur only in corrupt data. They are merged, because a pattern of such items would take a step for
            // every byte.
            Some(ValueSeries { skip: last, .. }) if pointers == 0 => *last = last.saturating_add(skip),
            _ => items.push(ValueSeries { pointers, skip }),
        }
    }
    (start >= word).then_some(GcDesc::ValueSeries { start, items, tail: word })
}

fn signed(memory: &Memory, at: Addr) -> Option<i64> {
    let value = memory.word(at).ok()?;
    if memory.ptr_bytes() == 4 { u32::try_from(value).ok().map(|v| i64::from(v.cast_signed())) } else { Some(value.cast_signed()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(desc: &GcDesc, size: u64, part: (u64, u64)) -> Vec<u64> {
        let mut out = Vec::new();
        desc.places_in(size, 8, part, |at| out.push(at));
        out
    }

    #[test]
    fn parts_have_the_same_places_as_the_whole() {
        let all = [
            GcDesc::Series(vec![Series { start: 16, size: -24 }]),
            GcDesc::Series(vec![Series { start: 8, size: -990 }, Series { start: 40, size: -900 }]),
            GcDesc::ValueSeries {
                start: 16,
                tail: 8,
                items: vec![ValueSeries { pointers: 2, skip: 8 }, ValueSeries { pointers: 1, skip: 24 }],
            },
        ];
        for desc in all {
            let whole = places(&desc, 1000, (0, 1000));
            assert!(whole.len() > 2, "{desc:?}");
            for cut in [0, 8, 16, 24, 40, 64, 100, 504, 992, 1000] {
                let (mut parts, rest) = (places(&desc, 1000, (0, cut)), places(&desc, 1000, (cut, 1000)));
                parts.extend(rest);
                parts.sort_unstable();
                let mut sorted = whole.clone();
                sorted.sort_unstable();
                assert_eq!(parts, sorted, "{desc:?} at {cut}");
            }
        }
    }

    #[test]
    fn series_are_limited_by_the_words_of_an_object_or_element() {
        let shape = crate::base::Shape::LE64;
        let of = |words: &[u64], sizes: (u64, u64), afford: bool| {
            let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
            let len = bytes.len() as u64;
            let memory = crate::memory::tests::memory_of(bytes, &[(0x1000, len, 0)], shape);
            read(&memory, Addr(0x1000 + len), sizes, |_| afford)
        };
        // Size and start of two series, then their number.
        let two = [(-24i64).cast_unsigned(), 16, (-24i64).cast_unsigned(), 8, 2];
        let both = Some(GcDesc::Series(vec![Series { start: 8, size: -24 }, Series { start: 16, size: -24 }]));
        assert_eq!(of(&two, (24, 0), true), both);
        assert_eq!((of(&two, (15, 0xffff), true), of(&two, (24, 0), false)), (None, None));
        // The series may be in any order, but must not overlap.
        let turned = [two[2], two[3], two[0], two[1], 2];
        assert_eq!(of(&turned, (24, 0), true), both);
        let shared = [(-16i64).cast_unsigned(), 8, (-24i64).cast_unsigned(), 16, 2];
        assert_eq!(of(&shared, (32, 0), true), None);
        // Two items for a structure of two words, their start, and their number.
        let items = [1u64, 1, 8, (-2i64).cast_unsigned()];
        assert!(matches!(of(&items, (24, 16), true), Some(GcDesc::ValueSeries { start: 8, items, .. }) if items.len() == 2));
        assert_eq!((of(&items, (24, 8), true), of(&items, (24, 16), false)), (None, None));
    }

    #[test]
    fn a_restricted_desc_has_the_same_places() {
        let places_near = |desc: &GcDesc| places(&desc.near(256, 8), 4096, (0, 256));
        let list: Vec<Series> = (0..500u64).map(|i| Series { start: 8 + 8 * i, size: 8 - 4096 }).collect();
        let many = GcDesc::Series(list);
        assert!(places_near(&many) == places(&many, 4096, (0, 256)) && places_near(&many).len() == 31);
        let elements = GcDesc::Series(vec![Series { start: 16, size: -24 }]);
        assert_eq!(places_near(&elements), places(&elements, 4096, (0, 256)));
        let pattern = vec![ValueSeries { pointers: 0, skip: 8 }; 1].into_iter().chain(vec![ValueSeries { pointers: 1, skip: 0 }; 5000]);
        let structures = GcDesc::ValueSeries { start: 16, tail: 8, items: pattern.collect() };
        assert_eq!(places_near(&structures), places(&structures, 4096, (0, 256)));
        // The copy of a forged list is limited by the requested size.
        assert!(
            matches!(GcDesc::Series(vec![Series { start: 8, size: 0 }; 60_000]).near(256, 8), GcDesc::Series(list) if list.len() == 32)
        );
    }

    /// Regression test for `trim --redact`: an array claims gigabytes, and only a root refers to the array.
    #[test]
    fn only_captured_parts_are_visited() {
        let memory = crate::memory::tests::memory_of(vec![0; 64], &[(0x1000, 32, 0), (1 << 40, 32, 32)], crate::base::Shape::LE64);
        let array = GcDesc::Series(vec![Series { start: 16, size: -24 }]);
        let mut found = Vec::new();
        array.captured(&memory, Addr(0x1000), 1 << 44, |at| found.push(at));
        let far = (1u64 << 40) - 0x1000;
        assert_eq!(found, [16, 24, far, far + 8, far + 16, far + 24]);
    }

    #[test]
    fn references_are_read_from_captured_parts() {
        for shape in [crate::base::Shape::LE64, crate::base::Shape { ptr: crate::base::PtrSize::Four, endian: crate::base::Endian::Big }] {
            let word = shape.ptr.bytes();
            let bytes: Vec<u8> = (0..64).map(|n| if n / 8 == 3 { 0 } else { n }).collect();
            // The second part begins inside a word, and a part of the object was not captured.
            let parts = [(0x1000, 18, 0), (0x1012, 24, 20), (0x1030, 16, 44)];
            let memory = crate::memory::tests::memory_of(bytes, &parts, shape);
            let array = GcDesc::Series(vec![Series { start: 8, size: -8 - i64::try_from(word).unwrap() }]);
            let (mut found, mut expected) = (Vec::new(), Vec::new());
            array.references(&memory, Addr(0x1000), 72, |at, to| found.push((at, to)));
            array.captured(&memory, Addr(0x1000), 72, |at| {
                let target = memory.ptr(Addr(0x1000 + at)).ok().filter(|to| !to.is_null());
                expected.extend(target.map(|to| (at, to)));
            });
            assert_eq!(found, expected);
            assert!(found.iter().any(|(at, _)| *at == 16) && found.len() > 3, "{found:?}");
        }
    }

    #[test]
    fn damage_costs_no_more_than_the_object() {
        let same = GcDesc::Series(vec![Series { start: 8, size: -16 }; 60_000]);
        assert!(places(&same, 1 << 20, (0, 1 << 20)).len() <= (1 << 17) + 1);
        // The series are separate in the smallest array, but overlap in a larger one.
        let least = 8 + 8 * 60_000i64;
        let grown = GcDesc::Series((1..60_000u64).map(|i| Series { start: 8 * i, size: 8 - least }).collect());
        assert!(places(&grown, 1 << 20, (0, 1 << 20)).len() <= (1 << 17) + 1);
        // Terabytes that were never captured are skipped.
        let huge = GcDesc::Series(vec![Series { start: 16, size: -24 }]);
        assert_eq!(places(&huge, 1 << 44, ((1 << 44) - 24, 1 << 44)), [(1 << 44) - 24, (1 << 44) - 16]);
        let pattern = GcDesc::ValueSeries { start: 16, tail: 8, items: vec![ValueSeries { pointers: 1, skip: 8 }] };
        assert_eq!(places(&pattern, 1 << 44, ((1 << 44) - 40, 1 << 44)), [(1 << 44) - 32, (1 << 44) - 16]);
    }
}
