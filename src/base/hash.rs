//! Hash tables for keys that a dump chooses: addresses, names.
//!
//! The constants of a fixed hash are known, so a forged dump can choose keys that all collide: 100,000 words of 1.6 MB took half a
//! minute. These tables depend on numbers drawn once per process, and take half a nanosecond more for a word. Their order differs from
//! run to run: look up, or sort.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::LazyLock;

/// A table whose keys a dump chooses.
pub(crate) type Map<K, V> = HashMap<K, V, Keyed>;
/// A set whose members a dump chooses.
pub(crate) type Set<K> = HashSet<K, Keyed>;

/// Two numbers that no dump can know.
static SECRETS: LazyLock<(u64, u64)> = LazyLock::new(|| {
    let state = RandomState::new();
    (state.hash_one(0u8), state.hash_one(1u8) | 1)
});

/// A number that no dump can know: the same in all of this process.
pub(crate) fn secret() -> u64 {
    SECRETS.0
}

/// The two halves of a product, folded: each bit of the result depends on every bit of both.
pub(crate) fn folded(x: u64, y: u64) -> u64 {
    let product = u128::from(x).wrapping_mul(u128::from(y));
    u64::try_from((product >> 64) ^ (product & u128::from(u64::MAX))).unwrap_or(0)
}

/// Hashes with the numbers of this process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Keyed {
    hash: u64,
    factor: u64,
}

impl Default for Keyed {
    fn default() -> Keyed {
        Keyed { hash: SECRETS.0, factor: SECRETS.1 }
    }
}

impl BuildHasher for Keyed {
    type Hasher = Keyed;

    fn build_hasher(&self) -> Keyed {
        *self
    }
}

impl Hasher for Keyed {
    fn finish(&self) -> u64 {
        self.hash
    }

    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        words.iter().for_each(|word| self.write_u64(u64::from_le_bytes(*word)));
        let mut last = [0; 8];
        last.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
        self.write_u64(u64::from_le_bytes(last));
        self.write_usize(bytes.len());
    }

    #[inline]
    fn write_u64(&mut self, word: u64) {
        self.hash = folded(self.hash ^ word, self.factor);
    }

    #[inline]
    fn write_u8(&mut self, n: u8) {
        self.write_u64(n.into());
    }

    #[inline]
    fn write_u16(&mut self, n: u16) {
        self.write_u64(n.into());
    }

    #[inline]
    fn write_u32(&mut self, n: u32) {
        self.write_u64(n.into());
    }

    #[inline]
    fn write_usize(&mut self, n: usize) {
        self.write_u64(u64::try_from(n).unwrap_or(u64::MAX));
    }
}

#[cfg(test)]
mod tests {
    use std::hash::{BuildHasherDefault, DefaultHasher};

    use super::*;

    /// Whether `key` of the first 65,536 numbers fills every bucket and every tag, none twice as much as the average.
    fn spreads(keyed: Keyed, key: fn(u64) -> u64) -> bool {
        let (mut low, mut high) = ([0u32; 256], [0u32; 128]);
        for hash in (0..1u64 << 16).map(|i| keyed.hash_one(key(i))) {
            low[usize::try_from(hash & 0xff).unwrap()] += 1;
            high[usize::try_from(hash >> 57).unwrap()] += 1;
        }
        low.iter().all(|n| (128..512).contains(n)) && high.iter().all(|n| (256..1024).contains(n))
    }

    #[test]
    fn keys_spread_over_the_buckets_and_the_tags() {
        let draw = BuildHasherDefault::<DefaultHasher>::default();
        let drawn = |n: u64| Keyed { hash: draw.hash_one(2 * n), factor: draw.hash_one(2 * n + 1) | 1 };
        // Addresses, and what a multiplication by a known constant would leave in one bucket.
        let keys: [fn(u64) -> u64; 3] =
            [|i| 0x7f00_0000_0000 + 8 * i, |i| i << 43, |i| (7 << 31 | i << 3).wrapping_mul(0x9e37_79b9_7f4a_7c15)];
        for (number, key) in keys.into_iter().enumerate() {
            // What one key adds to the hash of the one before may come close to a whole round of the buckets: measured, in 44 of 2,000
            // draws for addresses. Numbers drawn anew would fail this test as often.
            let spread = (0..64).filter(|n| spreads(drawn(*n), key)).count();
            assert!(spread >= 62, "key {number}: {spread} of 64");
        }
    }

    #[test]
    fn every_byte_and_the_length_count() {
        let keyed = Keyed::default();
        let texts = ["", "\0", "a", "a\0", "abcdefgh", "abcdefgh\0", "abcdefgi", "abcdefghi"];
        let hashes: HashSet<u64> = texts.iter().map(|text| keyed.hash_one(text)).collect();
        assert_eq!(hashes.len(), texts.len());
    }
}
