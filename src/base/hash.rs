//! Hash tables for keys that come from a dump: addresses, names.
//!
//! With a fixed hash function, a forged dump can contain keys that all collide: 100,000 such words in 1.6 MB took half a minute. These
//! tables use `foldhash` with seeds that differ for each process and each table. The iteration order differs, too, so use these tables
//! only for look-ups, or sort the items.

use std::collections::{HashMap, HashSet};

use foldhash::fast::RandomState;

/// A map whose keys come from a dump.
pub(crate) type Map<K, V> = HashMap<K, V, RandomState>;
/// A set whose members come from a dump.
pub(crate) type Set<K> = HashSet<K, RandomState>;

#[cfg(test)]
mod tests {
    use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher, Hasher};

    use foldhash::SharedSeed;
    use foldhash::fast::FoldHasher;

    use super::*;

    /// Three sequences of keys. The first consists of addresses. The keys of the other two collide if the hash constants are fixed.
    const CHOSEN: [fn(u64) -> u64; 3] =
        [|i| 0x7f00_0000_0000 + 8 * i, |i| i << 43, |i| (7 << 31 | i << 3).wrapping_mul(0x9e37_79b9_7f4a_7c15)];

    /// Whether the hashes of the first 65,536 keys spread: every bucket and every tag has between half and twice the average number of
    /// keys.
    fn spreads(hash: impl Fn(u64) -> u64, key: fn(u64) -> u64) -> bool {
        let (mut low, mut high) = ([0u32; 256], [0u32; 128]);
        for hash in (0..1u64 << 16).map(|i| hash(key(i))) {
            low[usize::try_from(hash & 0xff).unwrap()] += 1;
            high[usize::try_from(hash >> 57).unwrap()] += 1;
        }
        low.iter().all(|n| (128..512).contains(n)) && high.iter().all(|n| (256..1024).contains(n))
    }

    #[test]
    fn keys_spread_over_the_buckets_and_the_tags() {
        let draw = BuildHasherDefault::<DefaultHasher>::default();
        for (number, key) in CHOSEN.into_iter().enumerate() {
            // For some seeds, addresses spread badly, because the hashes of neighboring keys differ by about the number of buckets
            // (measured: 43 of 2,000 seeds). So this test uses fixed seeds and accepts a few failures.
            let spread = |n: u64| {
                let (shared, seed) = (SharedSeed::from_u64(draw.hash_one(2 * n)), draw.hash_one(2 * n + 1));
                let hash = |word| {
                    let mut hasher = FoldHasher::with_seed(seed, &shared);
                    hasher.write_u64(word);
                    hasher.finish()
                };
                spreads(hash, key)
            };
            let spread = (0..64).filter(|n| spread(*n)).count();
            assert!(spread >= 62, "key {number}: {spread} of 64");
        }
    }

    #[test]
    fn every_table_has_its_own_seeds() {
        let states: [RandomState; 2] = Default::default();
        let [a, b] = states.map(|state| state.hash_one("System.String"));
        assert_ne!(a, b);
    }
}
