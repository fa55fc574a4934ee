//! Arrays of 64-bit numbers, most of which are small.
//!
//! The `sux` crate is not used, because these arrays are built in any [`Store`] and read from mapped files. Reading a small number takes
//! one memory access.

use std::fmt;
use std::ops::Range;

use super::array::Array;
use super::store::{Buffer, Store};

/// Number of numbers in a block. To find a large number, the large numbers before it in its block are counted.
const BLOCK: usize = 64;

/// An integer type for small numbers. Its largest value marks a large number, which is stored in a separate array.
pub(crate) trait Small: bytemuck::Pod + Eq + Send + Sync {
    /// Marks a number that is stored separately.
    const APART: Self;

    /// `value` as a small number; [`Small::APART`] if it does not fit.
    fn of(value: u64) -> Self;

    /// The number.
    fn value(self) -> u64;
}

macro_rules! small {
    ($($ty:ty),*) => { $(
        impl Small for $ty {
            const APART: $ty = <$ty>::MAX;

            #[inline(always)]
            fn of(value: u64) -> $ty {
                <$ty>::try_from(value).unwrap_or(Self::APART)
            }

            #[inline(always)]
            fn value(self) -> u64 {
                self.into()
            }
        }
    )* };
}
small!(u8, u16);

/// 64-bit numbers, each stored as a small integer if it fits. The large numbers are in a separate array, in the same order. So the position of a
/// large number in that array is the number of large numbers before it.
#[derive(Clone)]
pub(crate) struct Packed<S: Small> {
    small: Array<S>,
    /// For each block, the number of large numbers before it.
    before: Array<u32>,
    large: Array<u64>,
}

impl<S: Small> Packed<S> {
    /// The array with these parts, as returned by [`Packed::parts`].
    pub(crate) fn of_parts(small: Array<S>, before: Array<u32>, large: Array<u64>) -> Packed<S> {
        Packed { small, before, large }
    }

    /// Whether the sizes of the parts fit an array of this many numbers. Used for parts from a file, which may contain anything.
    pub(crate) fn is_of(&self, numbers: usize) -> bool {
        self.small.len() == numbers && self.before.len() == numbers.div_ceil(BLOCK) && self.large.len() <= numbers
    }

    /// The parts of the array, for writing to a file.
    pub(crate) fn parts(&self) -> (&Array<S>, &Array<u32>, &Array<u64>) {
        (&self.small, &self.before, &self.large)
    }

    /// The number at `index`.
    #[inline(always)]
    pub(crate) fn get(&self, index: usize) -> Option<u64> {
        let small = *self.small.get(index)?;
        if small == S::APART { self.large_at(index) } else { Some(small.value()) }
    }

    fn large_at(&self, index: usize) -> Option<u64> {
        self.large.get(self.apart_before(index)).copied()
    }

    /// The number of large numbers before `index`.
    fn apart_before(&self, index: usize) -> usize {
        let block = index / BLOCK;
        let here = self.small.get(block.saturating_mul(BLOCK)..index).unwrap_or_default();
        let before = self.before.get(block).map_or(0, |before| *before as usize);
        before.saturating_add(here.iter().filter(|s| **s == S::APART).count())
    }

    /// All numbers.
    pub(crate) fn iter(&self) -> impl Iterator<Item = u64> {
        self.iter_from(0)
    }

    /// The numbers from `index` on.
    pub(crate) fn iter_from(&self, index: usize) -> impl Iterator<Item = u64> {
        let mut large = self.large.get(self.apart_before(index)..).unwrap_or_default().iter();
        self.small
            .get(index..)
            .unwrap_or_default()
            .iter()
            .map(move |small| if *small == S::APART { large.next().copied().unwrap_or(0) } else { small.value() })
    }
}

impl<S: Small> fmt::Debug for Packed<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Packed({} numbers, {} large)", self.small.len(), self.large.len())
    }
}

/// A [`Packed`] array under construction. Numbers are appended, or each is written once at any index.
#[derive(Debug)]
pub(crate) struct Packing<S: Small> {
    small: Buffer<S>,
    large: Buffer<Large>,
}

/// A large number: its index, and the lower and upper half of its value.
type Large = [u32; 3];

fn large(index: u32, value: u64) -> Large {
    let half = |half: u64| u32::try_from(half).unwrap_or(0);
    [index, half(value & u64::from(u32::MAX)), half(value >> 32)]
}

impl<S: Small> Packing<S> {
    /// `len` zeros.
    pub(crate) fn zeroed(store: &Store, len: usize) -> Packing<S> {
        Packing { small: Buffer::zeroed(store, len), large: Buffer::new(store) }
    }

    /// Reserves room for `more` numbers.
    pub(crate) fn reserve(&mut self, more: usize) {
        self.small.reserve_exact(more);
    }

    /// Appends a number.
    #[inline(always)]
    pub(crate) fn push(&mut self, value: u64) {
        let small = S::of(value);
        if small == S::APART {
            self.push_large(value);
        }
        self.small.push(small);
    }

    #[cold]
    fn push_large(&mut self, value: u64) {
        self.large.push(large(u32::try_from(self.small.len()).unwrap_or(u32::MAX), value));
    }

    /// Appends all numbers of `more`.
    pub(crate) fn append(&mut self, more: &Packing<S>) {
        self.append_with(&more.small, &more.large, 0);
    }

    /// Appends the numbers of `more` in `range`. `more` must have been filled only by [`Packing::push`]. The cost is proportional to the
    /// length of `range`.
    pub(crate) fn append_part(&mut self, more: &Packing<S>, range: Range<usize>) {
        let before = |end: usize| more.large.partition_point(|[index, ..]| (*index as usize) < end);
        let large = more.large.get(before(range.start)..before(range.end)).unwrap_or_default();
        let first = u32::try_from(range.start).unwrap_or(u32::MAX);
        self.append_with(more.small.get(range).unwrap_or_default(), large, first);
    }

    /// Appends numbers from another packing, in which the first of them had the index `first`.
    fn append_with(&mut self, small: &[S], large: &[Large], first: u32) {
        let to = u32::try_from(self.small.len()).unwrap_or(u32::MAX);
        self.large.extend(large.iter().map(|[index, low, high]| [index.saturating_sub(first).saturating_add(to), *low, *high]));
        self.small.extend_from_slice(small);
    }

    /// A view for writing many numbers.
    pub(crate) fn slots(&mut self) -> Slots<'_, S> {
        Slots { small: &mut self.small, large: &mut self.large }
    }

    /// Writes one number: see [`Slots::put`].
    pub(crate) fn put(&mut self, index: u32, value: u64) {
        self.slots().put(index, value);
    }

    /// Converts to a [`Packed`] array.
    pub(crate) fn finish(mut self) -> Packed<S> {
        if !self.large.is_sorted_by_key(|[index, ..]| *index) {
            self.large.sort_unstable_by_key(|[index, ..]| *index);
        }
        let mut count = 0u32;
        let blocks = self.small.chunks(BLOCK).map(|block| {
            let before = count;
            let apart = block.iter().filter(|s| **s == S::APART).count();
            count = count.saturating_add(u32::try_from(apart).unwrap_or(u32::MAX));
            before
        });
        let before = blocks.collect();
        let values = self.large.iter().map(|[_, low, high]| u64::from(*low) | u64::from(*high) << 32);
        Packed { before, large: Buffer::collected(self.large.store(), values).freeze(), small: self.small.freeze() }
    }
}

/// A view of a [`Packing`] for writing. It holds the slice of small numbers, because obtaining the slice for each write is costly.
pub(crate) struct Slots<'p, S: Small> {
    small: &'p mut [S],
    large: &'p mut Buffer<Large>,
}

impl<S: Small> Slots<'_, S> {
    /// Writes `value` at `index`; does nothing past the end.
    #[inline(always)]
    pub(crate) fn put(&mut self, index: u32, value: u64) {
        if let Some(slot) = self.small.get_mut(index as usize) {
            *slot = S::of(value);
            if *slot == S::APART {
                self.large.push(large(index, value));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::store::tests::stand_in;
    use super::*;

    fn expect<S: Small>(values: &[u64]) {
        [Store::default(), stand_in()].iter().for_each(|store| expect_in::<S>(store, values));
    }

    fn expect_in<S: Small>(store: &Store, values: &[u64]) {
        let (first, second) = values.split_at(values.len() / 3);
        let mut forward: Packing<S> = Packing::zeroed(store, 0);
        first.iter().for_each(|value| forward.push(*value));
        let mut rest: Packing<S> = Packing::zeroed(store, 0);
        second.iter().for_each(|value| rest.push(*value));
        forward.append_part(&rest, 0..1.min(second.len()));
        forward.append_part(&rest, 1.min(second.len())..second.len());
        let mut backward: Packing<S> = Packing::zeroed(store, values.len());
        values.iter().enumerate().rev().for_each(|(i, v)| backward.put(u32::try_from(i).unwrap(), *v));
        let mut joined: Packing<S> = Packing::zeroed(store, 0);
        joined.append(&backward);
        for packed in [forward.finish(), backward.finish(), joined.finish()] {
            assert_eq!(packed.iter().collect::<Vec<_>>(), values);
            assert!(values.iter().enumerate().all(|(i, v)| packed.get(i) == Some(*v)));
            assert_eq!(packed.get(values.len()), None);
            assert!((0..values.len()).step_by(7).all(|i| packed.iter_from(i).eq(values[i..].iter().copied())));
        }
    }

    #[test]
    fn numbers_round_trip() {
        let edges = [0, 1, 254, 255, 256, 65_534, 65_535, 65_536, u64::from(u32::MAX), u64::MAX];
        for len in [0usize, 1, 63, 64, 65, 1000] {
            let values: Vec<u64> = (0..len).map(|i| edges[i * 7 % edges.len()]).collect();
            expect::<u8>(&values);
            expect::<u16>(&values);
            expect::<u8>(&vec![255; len]);
            expect::<u8>(&vec![3; len]);
        }
    }
}
