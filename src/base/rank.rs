//! Rank of bits: the number of set bits before each one.
//!
//! The crates `fixedbitset` and `sux` are not used: ranks here are `u32`, and the counts are plain arrays, which may be in mapped files.

/// Number of words in a block.
pub(crate) const BLOCK_WORDS: usize = 8;

/// The counts of a block: the number of set bits before it and, in the other two words, the lower half first, the number of set bits of the
/// block before each word but the first, in nine bits each. So ranking a bit takes one popcount: "rank9" of S. Vigna, "Broadword
/// Implementation of Rank/Select Queries" (2008).
pub(crate) type Counted = [u32; 3];

/// The counts of the block with these words, and the number of set bits before the next block.
pub(crate) fn count(before: u32, block: &[u64]) -> (Counted, u32) {
    let (mut within, mut here) = (0u64, 0u32);
    for (n, word) in block.iter().enumerate() {
        here = here.wrapping_add(word.count_ones());
        if n < BLOCK_WORDS - 1 {
            within |= u64::from(here) << (9 * n);
        }
    }
    let half = |bits: u64| u32::try_from(bits & u64::from(u32::MAX)).unwrap_or(0);
    ([before, half(within), half(within >> 32)], before.wrapping_add(here))
}

/// The number of set bits before a word, given the counts of its block.
#[inline(always)]
pub(crate) fn before_word(counted: &Counted, word: usize) -> u32 {
    let [before, low, high] = counted;
    let within = u64::from(*low) | u64::from(*high) << 32;
    // The first word has no count; its shift leads to bit 63, which is never set.
    let place = 9 * ((word + 7) % BLOCK_WORDS);
    before.wrapping_add(u32::try_from(within >> place & 0x1ff).unwrap_or(0))
}
