//! Hash tables for keys that a dump chooses: addresses, names.
//!
//! The constants of a fixed hash are known, so a forged dump can choose keys that all collide: 100,000 words of 1.6 MB took half a
//! minute. These tables are those of `foldhash` with seeds drawn for each process and each table. Their order differs from table to table:
//! look up, or sort.

use std::collections::{HashMap, HashSet};

use foldhash::fast::RandomState;

/// A table whose keys a dump chooses.
pub(crate) type Map<K, V> = HashMap<K, V, RandomState>;
/// A set whose members a dump chooses.
pub(crate) type Set<K> = HashSet<K, RandomState>;

#[cfg(test)]
mod tests {
    use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher, Hasher};

    use foldhash::SharedSeed;
    use foldhash::fast::FoldHasher;

    use super::*;

    /// Keys that collide in hashes with known constants, and addresses.
    const CHOSEN: [fn(u64) -> u64; 3] =
        [|i| 0x7f00_0000_0000 + 8 * i, |i| i << 43, |i| (7 << 31 | i << 3).wrapping_mul(0x9e37_79b9_7f4a_7c15)];

    /// Whether `hash` of the first 65,536 keys fills every bucket and every tag, none twice as much as the average.
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
            // What one key adds to the hash of the one before may come close to a whole round of the buckets: measured, in 43 of 2,000
            // draws for addresses. Seeds drawn anew would fail this test as often.
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
