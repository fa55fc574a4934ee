//! Bits that are numbered: how many are set before each.
//!
//! Not a crate's (`fixedbitset`, `sux`): numbers are `u32`, and the counts plain arrays, which may be in mapped files.

/// Words of a block.
pub(crate) const BLOCK_WORDS: usize = 8;

/// What is known of a block: the number of bits before it, and, in the bits of the other two, the lower half first, how many of the block
/// are before each of its words but the first, in nine bits each. So it takes one count to number a bit: "rank9" of S. Vigna,
/// "Broadword Implementation of Rank/Select Queries" (2008).
pub(crate) type Counted = [u32; 3];

/// [`Counted`] of the block with these words, and the number of bits before the next one.
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

/// The number of bits before a word: `counted` is that of its block.
#[inline(always)]
pub(crate) fn before_word(counted: &Counted, word: usize) -> u32 {
    let [before, low, high] = counted;
    let within = u64::from(*low) | u64::from(*high) << 32;
    // For the first word, the one bit that is never set.
    let place = 9 * ((word + 7) % BLOCK_WORDS);
    before.wrapping_add(u32::try_from(within >> place & 0x1ff).unwrap_or(0))
}
