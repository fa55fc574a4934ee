//! Offsets of the rows of a compressed sparse matrix, in one and a half bytes per row.

use std::ops::Range;

use rayon::iter::{IndexedParallelIterator, ParallelIterator};
use rayon::slice::ParallelSlice;

use crate::base::{Array, Buffer, Store};

/// Number of rows in a block.
const ROWS: u32 = 8;
/// Marks a length that is stored separately.
const LONG: u64 = 255;
/// 1 in each byte.
const BYTES: u64 = 0x0101_0101_0101_0101;
/// 1 in each pair of bytes.
const PAIRS: u64 = 0x0001_0001_0001_0001;

/// The offset of the first row of a block, and the length of each row as a byte, with the first row in the lowest byte.
///
/// Both are usually in one cache line. Graphs are accessed at random, so each additional line costs time.
pub(crate) type Block = [u32; 3];

/// Start and end of each row in an array of all items.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Offsets {
    blocks: Array<Block>,
    /// Rows whose length does not fit in a byte: row and length, ascending.
    long: Array<[u32; 2]>,
    rows: u32,
}

/// Converts a sum or length of a block, which fits in 32 bits.
#[inline(always)]
fn low(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

fn lengths(block: &Block) -> u64 {
    let [_, first, second] = *block;
    u64::from(first) | u64::from(second) << 32
}

/// The sum of the lowest `n` bytes, where `n` is below eight, and whether one of them is [`LONG`].
#[inline(always)]
fn sum(lengths: u64, n: u32) -> (u32, bool) {
    let below = lengths & (1u64 << (n * 8)).wrapping_sub(1);
    const EVEN: u64 = 0x00ff_00ff_00ff_00ff;
    let pairs = (below & EVEN) + (below >> 8 & EVEN);
    let sum = pairs.wrapping_mul(PAIRS) >> 48;
    // The usual test for a zero byte in a word.
    let rest = !below;
    let long = rest.wrapping_sub(BYTES) & !rest & BYTES << 7 != 0;
    (low(sum), long)
}

impl Offsets {
    /// The arrays that represent the offsets, and the number of rows.
    pub(crate) fn parts(&self) -> (&Array<Block>, &Array<[u32; 2]>, u32) {
        (&self.blocks, &self.long, self.rows)
    }

    /// Assembles offsets from their [parts](Offsets::parts).
    pub(crate) fn of_parts(blocks: Array<Block>, long: Array<[u32; 2]>, rows: u32) -> Offsets {
        Offsets { blocks, long, rows }
    }

    /// Whether there are `rows` consecutive rows that contain each of `items` items exactly once. Offsets read from a file may be invalid,
    /// and walking overlapping rows could take time proportional to the product of rows and items.
    pub(super) fn is_of(&self, rows: u32, items: u32) -> bool {
        /// Number of blocks that a thread checks at a time.
        const CHUNK: usize = 1 << 15;
        let (blocks, long): (&[Block], &[[u32; 2]]) = (&self.blocks, &self.long);
        let begins = blocks.first().map_or(items, |block| block[0]) == 0;
        let ascend = long.is_sorted_by(|one, next| one[0] < next[0]) && long.iter().all(|[_, length]| u64::from(*length) >= LONG);
        if self.rows != rows || blocks.len() != rows.div_ceil(ROWS) as usize || !begins || !ascend {
            return false;
        }
        // Checks that each block ends where the next one begins. Returns the number of rows whose length is stored separately.
        let chunk = |(n, chunk): (usize, &[Block])| {
            let start = n.saturating_mul(CHUNK);
            let ends = blocks.get(start.saturating_add(1)..).unwrap_or_default().iter().map(|block| block[0]).chain([items]);
            let first = super::len32(start).saturating_mul(ROWS);
            let mut apart = long.get(long.partition_point(|[row, _]| *row < first)..).unwrap_or_default().iter();
            let all = apart.len();
            let mut row = first;
            for (block, end) in chunk.iter().zip(ends) {
                let (bytes, of_block) = (lengths(block), rows.saturating_sub(row).min(ROWS));
                let (before, has_long) = sum(bytes, ROWS - 1);
                let last = bytes >> ((ROWS - 1) * 8);
                let total = if has_long || last == LONG {
                    let length = |n: u32| match bytes >> (n * 8) & 0xff {
                        LONG => apart.next().filter(|[of, _]| *of == row.saturating_add(n)).map(|[_, length]| *length),
                        short => Some(low(short)),
                    };
                    (0..of_block).map(length).try_fold(0u32, |sum, length| sum.checked_add(length?))
                } else {
                    Some(before.saturating_add(low(last)))
                };
                let no_more = of_block == ROWS || bytes >> (of_block * 8) == 0;
                if !no_more || total.and_then(|total| block[0].checked_add(total)) != Some(end) {
                    return None;
                }
                row = row.saturating_add(of_block);
            }
            Some(all.saturating_sub(apart.len()))
        };
        let apart: Option<Vec<usize>> = blocks.par_chunks(CHUNK).enumerate().map(chunk).collect();
        apart.is_some_and(|apart| apart.iter().sum::<usize>() == long.len())
    }

    /// Offsets of at most `rows` rows with these lengths.
    pub(super) fn of(store: &Store, rows: u32, lengths: impl Iterator<Item = u32>) -> Offsets {
        let mut builder = OffsetsBuilder::with_capacity(store, rows);
        lengths.take(rows as usize).for_each(|length| builder.push(length));
        builder.finish()
    }

    /// Joins consecutive parts. All but the last have a multiple of eight rows, and each begins where the one before ends.
    pub(super) fn joined(store: &Store, parts: Vec<OffsetsBuilder>) -> Offsets {
        let blocks = parts.iter().map(|part| part.blocks.len().saturating_add(1)).sum();
        let mut all = OffsetsBuilder { blocks: Buffer::with_capacity(store, blocks), ..OffsetsBuilder::part(0..0, 0) };
        for mut part in parts {
            part.end_block();
            all.blocks.extend_from_slice(&part.blocks);
            all.long.extend_from_slice(&part.long);
            all.rows = part.rows;
        }
        Offsets { blocks: all.blocks.freeze(), long: all.long.freeze(), rows: all.rows }
    }

    /// The number of rows.
    pub(crate) fn rows(&self) -> u32 {
        self.rows
    }

    /// Start and end of a row; an empty range for a row that does not exist.
    #[inline(always)]
    pub(crate) fn span(&self, row: u32) -> (u32, u32) {
        let Some(block) = self.blocks.get((row / ROWS) as usize) else { return (0, 0) };
        let (n, lengths) = (row % ROWS, lengths(block));
        let (before, long) = sum(lengths, n);
        let length = lengths >> (n * 8) & 0xff;
        if long || length == LONG {
            return self.span_among_long(row, block);
        }
        let start = block[0].wrapping_add(before);
        (start, start.saturating_add(low(length)))
    }

    #[cold]
    #[inline(never)]
    fn span_among_long(&self, row: u32, block: &Block) -> (u32, u32) {
        let first = row / ROWS * ROWS;
        let length = |n: u32| match lengths(block) >> (n * 8) & 0xff {
            LONG => self.long_length(first + n),
            short => low(short),
        };
        let start = (0..row % ROWS).fold(block[0], |at, n| at.wrapping_add(length(n)));
        (start, start.saturating_add(length(row % ROWS)))
    }

    fn long_length(&self, row: u32) -> u32 {
        let place = self.long.partition_point(|[at, _]| *at < row);
        self.long.get(place).filter(|[at, _]| *at == row).map_or(0, |[_, length]| *length)
    }
}

/// Builds [`Offsets`].
#[derive(Debug)]
pub(super) struct OffsetsBuilder {
    /// The complete blocks.
    blocks: Buffer<Block>,
    block: Block,
    long: Buffer<[u32; 2]>,
    rows: u32,
    end: u32,
}

impl OffsetsBuilder {
    /// A builder with room for `rows` rows.
    pub(super) fn with_capacity(store: &Store, rows: u32) -> OffsetsBuilder {
        let blocks = Buffer::with_capacity(store, rows.div_ceil(ROWS) as usize);
        OffsetsBuilder { blocks, block: [0; 3], long: Buffer::new(store), rows: 0, end: 0 }
    }

    /// Adds a row with this length.
    #[inline(always)]
    pub(super) fn push(&mut self, length: u32) {
        let n = self.rows % ROWS;
        if n == 0 {
            self.block = [self.end, 0, 0];
        }
        let short = length.min(low(LONG));
        let [_, first, second] = &mut self.block;
        *(if n < 4 { first } else { second }) |= short << (n % 4 * 8);
        if short == low(LONG) {
            self.long.push([self.rows, length]);
        }
        self.rows += 1;
        self.end = self.end.wrapping_add(length);
        if n == ROWS - 1 {
            self.blocks.push(self.block);
        }
    }

    /// A builder for the part with these rows, the first of which begins at `end`: see [`Offsets::joined`].
    pub(super) fn part(rows: Range<u32>, end: u32) -> OffsetsBuilder {
        let builder = OffsetsBuilder::with_capacity(&Store::default(), rows.end.saturating_sub(rows.start));
        OffsetsBuilder { rows: rows.start, end, ..builder }
    }

    fn end_block(&mut self) {
        if !self.rows.is_multiple_of(ROWS) {
            self.blocks.push(self.block);
        }
    }

    pub(super) fn finish(mut self) -> Offsets {
        self.end_block();
        Offsets { blocks: self.blocks.freeze(), long: self.long.freeze(), rows: self.rows }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::len32;
    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn rows_are_consecutive(lengths in prop::collection::vec(prop_oneof![0u32..4, 250u32..260, Just(70_000u32)], 0..100)) {
            let offsets = Offsets::of(&Store::default(), len32(lengths.len()), lengths.iter().copied());
            let mut at = 0;
            for (row, length) in (0u32..).zip(&lengths) {
                prop_assert_eq!(offsets.span(row), (at, at + length));
                at += length;
            }
            prop_assert_eq!(offsets.rows() as usize, lengths.len());
            prop_assert!(offsets.is_of(offsets.rows(), at) && !offsets.is_of(offsets.rows(), at + 1) && !offsets.is_of(offsets.rows() + 1, at));
            let beyond = offsets.span(offsets.rows());
            prop_assert!(beyond.0 == beyond.1 && offsets.span(u32::MAX) == (0, 0));
        }

        /// A changed bit makes rows overlap, leaves items without a row, or changes a part that does not belong to any row.
        #[test]
        fn invalid_offsets_of_a_file_are_detected(
            lengths in prop::collection::vec(prop_oneof![0u32..4, 250u32..260, Just(70_000u32)], 1..60),
            at in any::<prop::sample::Index>(),
            bit in 0u32..32,
        ) {
            let whole = Offsets::of(&Store::default(), len32(lengths.len()), lengths.iter().copied());
            let (blocks, long) = (whole.blocks.len() * 3, whole.long.len() * 2);
            let mut blocks: Vec<u32> = whole.blocks.iter().flatten().copied().take(blocks).collect();
            let mut longs: Vec<u32> = whole.long.iter().flatten().copied().take(long).collect();
            let place = at.index(blocks.len() + longs.len());
            let word = if place < blocks.len() { &mut blocks[place] } else { &mut longs[place - blocks.len()] };
            *word ^= 1 << bit;
            let changed = Offsets::of_parts(blocks.as_chunks().0.to_vec().into(), longs.as_chunks().0.to_vec().into(), whole.rows);
            prop_assert!(!changed.is_of(whole.rows, lengths.iter().sum()));
        }
    }
}
