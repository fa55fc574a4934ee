//! Hashes of the contents of strings.

use std::hash::{BuildHasher, RandomState};
use std::sync::LazyLock;

/// A random number, the same for all hashes of this process. The author of a forged dump cannot know it.
static SECRET: LazyLock<u64> = LazyLock::new(|| RandomState::new().hash_one(0u8));

/// Multiplies `x` and `y`, and folds the two halves of the product: each bit of the result depends on every bit of both factors.
fn folded(x: u64, y: u64) -> u64 {
    let product = u128::from(x).wrapping_mul(u128::from(y));
    u64::try_from((product >> 64) ^ (product & u128::from(u64::MAX))).unwrap_or(0)
}

/// The finalizer of splitmix64: each bit of the result depends on every bit of `x`.
pub(super) fn mixed(x: u64) -> u64 {
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Returns two independent hashes of `content`: the first folds the full product, the second multiplies modulo 2^64.
pub(in crate::analysis) fn hashes(content: &[u8]) -> (u64, u64) {
    let (words, rest) = content.as_chunks::<8>();
    // The initial values are secret, because knowing them allows constructing contents with equal hashes.
    let (mut a, mut b) = (0x1319_8a2e_0370_7344u64 ^ *SECRET, 0x243f_6a88_85a3_08d3u64 ^ *SECRET);
    for word in words {
        (a, b) = mixed_in((a, b), u64::from_le_bytes(*word));
    }
    if !rest.is_empty() {
        (a, b) = mixed_in((a, b), last_word(content, rest));
    }
    // Contents of different lengths may consist of the same words. The keys of the callers contain the length, which distinguishes them.
    (folded(a, 0xd6e8_feb8_6659_fd93), mixed(b))
}

#[inline]
fn mixed_in((a, b): (u64, u64), word: u64) -> (u64, u64) {
    let folded = folded(a ^ word, 0xa076_1d64_78bd_642f).wrapping_add(0xe703_7ed1_a0b4_28db);
    // Multiplication carries only upward. Without the shift, a change in the top byte of a word would stay in the top byte, and the next word could
    // cancel it.
    let product = (b.rotate_left(23) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (folded, product ^ (product >> 32))
}

/// Returns a word that contains all bytes of `rest`, the incomplete last word of `content`. The reads may overlap, because a loop over single bytes
/// takes longer than the hash.
#[inline]
fn last_word(content: &[u8], rest: &[u8]) -> u64 {
    if let Some(last) = content.last_chunk::<8>() {
        return u64::from_le_bytes(*last);
    }
    if let (Some(first), Some(last)) = (rest.first_chunk::<4>(), rest.last_chunk::<4>()) {
        return u64::from(u32::from_le_bytes(*first)) | u64::from(u32::from_le_bytes(*last)) << 32;
    }
    let middle = rest.get(rest.len() / 2).copied().unwrap_or(0);
    let (first, last) = (rest.first().copied().unwrap_or(0), rest.last().copied().unwrap_or(0));
    u64::from(first) | u64::from(middle) << 8 | u64::from(last) << 16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_word_has_every_byte() {
        for length in 1..24usize {
            let of = |at: usize| {
                let mut content = vec![0u8; length];
                content[at] = 1;
                hashes(&content)
            };
            let all: std::collections::HashSet<(u64, u64)> = (0..length).map(of).collect();
            assert_eq!(all.len(), length);
        }
    }

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
                    // A shorter value with the same words differs in length.
                    seen[0].insert((a, length));
                    seen[1].insert((b, length));
                    n += 1;
                }
            }
        }
        assert_eq!((seen[0].len(), seen[1].len()), (n, n));
    }
}
