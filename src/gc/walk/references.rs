//! The GCDesc: describes the references of a type's objects; stored before the method table of types that contain pointers.
//!
//! Source: `gcdesc.h`; `docs/internals/gc-structures.md#references`, verified on 100,658 references.

use crate::base::{Addr, AddrRange, Endian};
use crate::memory::Memory;

/// Limit on the series of one type. A class has one per run of reference fields; even a thousand is beyond any compiler.
const MAX_SERIES: u64 = 1 << 16;

/// Location of the references in the objects of a type.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum GcDesc {
    /// No references.
    #[default]
    None,
    /// Ordinary series.
    Series(Vec<Series>),
    /// Arrays of value types: a value series repeated for each element.
    ValueSeries {
        /// Offset of the first element, in bytes from the start of the object.
        start: u64,
        /// The value series of one element.
        items: Vec<ValueSeriesItem>,
    },
    /// The type contains references, but its GCDesc is corrupt or not in the dump.
    Unknown,
}

/// A series of consecutive references.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Series {
    /// Offset of the first reference, in bytes from the start of the object.
    pub start: u64,
    /// Length of the series minus the size of the object, in bytes: the one series of a reference array grows with the array.
    pub size_delta: i64,
}

/// An item of a value series: consecutive references, then a gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValueSeriesItem {
    /// Number of references.
    pub references: u64,
    /// Bytes to skip after them.
    pub skip: u64,
}

impl GcDesc {
    /// Reads the GCDesc before the method table at `mt`.
    pub fn read(memory: &Memory, mt: Addr, base_size: u64) -> GcDesc {
        read(memory, mt, base_size).unwrap_or(GcDesc::Unknown)
    }

    /// Calls `visit` with the offset of every reference in an object of `size` bytes (not rounded).
    #[inline]
    pub fn places(&self, size: u64, word: u64, visit: impl FnMut(u64)) {
        self.places_in(size, word, (0, size), visit);
    }

    /// Like [`GcDesc::places`] for the object at `address`, restricted to captured memory: a corrupt length may claim
    /// terabytes, and the cost must stay proportional to what is there.
    pub fn captured(&self, memory: &Memory, address: Addr, size: u64, mut visit: impl FnMut(u64)) {
        for (start, bytes) in memory.stretches(AddrRange::new(address, address.plus(size))) {
            let from = start.since(address).unwrap_or(0);
            let to = from.saturating_add(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
            self.places_in(size, memory.ptr_bytes(), (from, to), &mut visit);
        }
    }

    /// Like [`GcDesc::places`], restricted to the byte range `from..to` of the object; does not iterate over what precedes it.
    #[inline]
    pub fn places_in(&self, size: u64, word: u64, (from, to): (u64, u64), mut visit: impl FnMut(u64)) {
        match self {
            GcDesc::None | GcDesc::Unknown => {}
            GcDesc::Series(list) => {
                // Series do not overlap. A corrupt list may repeat one a thousand times.
                let mut left = to.saturating_sub(from).checked_div(word).unwrap_or(0).saturating_add(1);
                for series in list {
                    // Clamped to the object: a series beyond it is corruption.
                    let bytes = size.checked_add_signed(series.size_delta).unwrap_or(0);
                    let end = series.start.saturating_add(bytes).min(size).min(to);
                    let skipped = from.saturating_sub(series.start).checked_next_multiple_of(word).unwrap_or(u64::MAX);
                    let mut at = series.start.saturating_add(skipped);
                    while at < end {
                        if left == 0 {
                            return;
                        }
                        left = left.wrapping_sub(1);
                        visit(at);
                        at = at.saturating_add(word);
                    }
                }
            }
            GcDesc::ValueSeries { start, items } => {
                // The header counts towards the size but precedes the object.
                let end = size.saturating_sub(word).min(to);
                let whole = items.iter().fold(0u64, |n, i| n.saturating_add(i.references.saturating_mul(word)).saturating_add(i.skip));
                let before = from.saturating_sub(*start).checked_div(whole).unwrap_or(0);
                let mut at = start.saturating_add(before.saturating_mul(whole));
                while at < end {
                    let before = at;
                    for item in items {
                        for _ in 0..item.references {
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

fn read(memory: &Memory, mt: Addr, base_size: u64) -> Option<GcDesc> {
    let word = memory.ptr_bytes();
    let before = |words: u64| mt.minus(word.checked_mul(words)?);
    let count = signed(memory, before(1)?)?;
    if count.unsigned_abs() > MAX_SERIES || count == 0 {
        return None;
    }
    if count > 0 {
        let mut list = Vec::new();
        for k in 0..count.unsigned_abs() {
            // Series are stored downwards: size, then start; two words each.
            let at = before(k.checked_mul(2)?.checked_add(3)?)?;
            let start = memory.word(at.plus(word)).ok()?;
            list.push(Series { start, size_delta: signed(memory, at)? });
        }
        // Fields lie within the fixed part of the object; array elements start at its end.
        let sane = list.iter().all(|r| r.start >= word && r.start <= base_size);
        return sane.then_some(GcDesc::Series(list));
    }
    let start = memory.word(before(2)?).ok()?;
    let mut items: Vec<ValueSeriesItem> = Vec::new();
    for k in 0..count.unsigned_abs() {
        let packed = memory.word(before(k.checked_add(3)?)?).ok()?;
        // Half a word each: reference count, bytes to skip.
        let half = word.checked_mul(4)?;
        let mask = 1u64.checked_shl(u32::try_from(half).ok()?)?.wrapping_sub(1);
        let (low, high) = (packed & mask, packed >> half & mask);
        // The count is stored first: the high half on big-endian targets.
        let (references, skip) = if memory.shape().endian == Endian::Little { (low, high) } else { (high, low) };
        match items.last_mut() {
            // Items without references occur only in corrupt data; unmerged, they would cost a step per byte.
            Some(ValueSeriesItem { skip: behind, .. }) if references == 0 => *behind = behind.saturating_add(skip),
            _ => items.push(ValueSeriesItem { references, skip }),
        }
    }
    (start >= word).then_some(GcDesc::ValueSeries { start, items })
}

fn signed(memory: &Memory, at: Addr) -> Option<i64> {
    let value = memory.word(at).ok()?;
    if memory.ptr_bytes() == 4 { u32::try_from(value).ok().map(|v| i64::from(v.cast_signed())) } else { Some(value.cast_signed()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(references: &GcDesc, size: u64, part: (u64, u64)) -> Vec<u64> {
        let mut out = Vec::new();
        references.places_in(size, 8, part, |at| out.push(at));
        out
    }

    #[test]
    fn a_part_has_the_places_of_the_whole() {
        let all = [
            GcDesc::Series(vec![Series { start: 16, size_delta: -24 }]),
            GcDesc::Series(vec![Series { start: 40, size_delta: -900 }, Series { start: 8, size_delta: -990 }]),
            GcDesc::ValueSeries {
                start: 16,
                items: vec![ValueSeriesItem { references: 2, skip: 8 }, ValueSeriesItem { references: 1, skip: 24 }],
            },
        ];
        for references in all {
            let whole = places(&references, 1000, (0, 1000));
            assert!(whole.len() > 2, "{references:?}");
            for cut in [0, 8, 16, 24, 40, 64, 100, 504, 992, 1000] {
                let (mut parts, behind) = (places(&references, 1000, (0, cut)), places(&references, 1000, (cut, 1000)));
                parts.extend(behind);
                parts.sort_unstable();
                let mut sorted = whole.clone();
                sorted.sort_unstable();
                assert_eq!(parts, sorted, "{references:?} at {cut}");
            }
        }
    }

    /// Regression: `trim --redact` of a dump in which an array reachable only from a root claims gigabytes.
    #[test]
    fn only_what_was_captured_is_looked_at() {
        let memory = crate::memory::tests::memory_of(vec![0; 64], &[(0x1000, 32, 0), (1 << 40, 32, 32)], crate::base::Shape::LE64);
        let array = GcDesc::Series(vec![Series { start: 16, size_delta: -24 }]);
        let mut found = Vec::new();
        array.captured(&memory, Addr(0x1000), 1 << 44, |at| found.push(at));
        let far = (1u64 << 40) - 0x1000;
        assert_eq!(found, [16, 24, far, far + 8, far + 16, far + 24]);
    }

    #[test]
    fn damage_costs_no_more_than_the_object() {
        let same = GcDesc::Series(vec![Series { start: 8, size_delta: -16 }; 60_000]);
        assert!(places(&same, 1 << 20, (0, 1 << 20)).len() <= (1 << 17) + 1);
        // Terabytes that were never captured are skipped.
        let huge = GcDesc::Series(vec![Series { start: 16, size_delta: -24 }]);
        assert_eq!(places(&huge, 1 << 44, ((1 << 44) - 24, 1 << 44)), [(1 << 44) - 24, (1 << 44) - 16]);
        let pattern = GcDesc::ValueSeries { start: 16, items: vec![ValueSeriesItem { references: 1, skip: 8 }] };
        assert_eq!(places(&pattern, 1 << 44, ((1 << 44) - 40, 1 << 44)), [(1 << 44) - 32, (1 << 44) - 16]);
    }
}
