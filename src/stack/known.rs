//! A cache of results by address, each with its cost in reads.

use std::sync::{PoisonError, RwLock};

use crate::base::Addr;
use crate::base::hash::Map;
use crate::base::reads;

/// Maximum size of a cache in bytes; another byte is allowed for every [`DUMP_BYTES_OF_ONE`] bytes of the dump.
const BYTES: u64 = 16 << 20;
const DUMP_BYTES_OF_ONE: u64 = 16;
/// Maximum size of a cached result in bytes, so that a few large results do not fill the cache.
const LARGEST: u64 = 256 << 10;

/// A cache of look-ups by address. The threads of a process are in few methods, so most look-ups are repeated.
///
/// The result of a stack walk must not depend on the order of walks, so a walk [pays](CostedCache::paid) the reads of each look-up even if
/// another walk has already done it.
#[derive(Debug)]
pub(crate) struct CostedCache<T> {
    entries: RwLock<Entries<T>>,
    most: u64,
}

#[derive(Debug)]
struct Entries<T> {
    map: Map<Addr, Entry<T>>,
    bytes: u64,
}

/// A result and its cost in reads. If `found` is `None`, a budget of `cost` reads was too small for the look-up.
#[derive(Debug)]
struct Entry<T> {
    found: Option<T>,
    cost: u64,
}

impl<T: Clone> CostedCache<T> {
    /// A cache for a dump of `dump_bytes` bytes.
    pub(crate) fn new(dump_bytes: u64) -> CostedCache<T> {
        let most = BYTES.saturating_add(dump_bytes / DUMP_BYTES_OF_ONE);
        CostedCache { entries: RwLock::new(Entries { map: Map::default(), bytes: 0 }), most }
    }

    /// The result for `at`, which is free if it is cached; `None` if too few reads are left. `find` returns the result with its size in bytes.
    pub(crate) fn free(&self, at: Addr, find: impl FnOnce() -> (T, u64)) -> Option<T> {
        self.get(at, false, find)
    }

    /// The result for `at`, which costs the reads of the look-up even if it is cached; `None` if too few reads are left.
    pub(crate) fn paid(&self, at: Addr, find: impl FnOnce() -> (T, u64)) -> Option<T> {
        self.get(at, true, find)
    }

    fn get(&self, at: Addr, paid: bool, find: impl FnOnce() -> (T, u64)) -> Option<T> {
        if let Some(entry) = self.entries.read().unwrap_or_else(PoisonError::into_inner).map.get(&at) {
            match &entry.found {
                Some(found) => {
                    if paid {
                        reads::take(entry.cost);
                    }
                    return (!paid || !reads::exhausted()).then(|| found.clone());
                }
                None if reads::left().is_some_and(|left| left <= entry.cost) => {
                    reads::take(entry.cost);
                    return None;
                }
                None => {}
            }
        }
        let ((found, bytes), cost) = reads::measured(find);
        let exhausted = reads::exhausted();
        let entry = Entry { found: (!exhausted).then(|| found.clone()), cost };
        let bytes = if exhausted { 0 } else { bytes }.saturating_add(u64::try_from(size_of::<(Addr, Entry<T>)>()).unwrap_or(u64::MAX));
        let mut entries = self.entries.write().unwrap_or_else(PoisonError::into_inner);
        let more = entries.bytes.saturating_add(bytes);
        if bytes <= LARGEST && more <= self.most {
            entries.bytes = more;
            entries.map.insert(at, entry);
        }
        (!exhausted).then_some(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_costs_the_same_whether_or_not_it_is_cached() {
        let known: CostedCache<u32> = CostedCache::new(0);
        let find = || {
            reads::take(10);
            (7, 4)
        };
        let left = |mut reads: u64, paid: bool| {
            let found = reads::taking(&mut reads, || if paid { known.paid(Addr(8), find) } else { known.free(Addr(8), find) });
            (found, reads)
        };
        // With too few reads, the look-up fails. A second call with the same number of reads fails without a look-up.
        assert_eq!((left(10, true), left(9, true), left(10, true)), ((None, 0), (None, 0), (None, 0)));
        assert_eq!((left(11, true), left(11, true), left(10, true)), ((Some(7), 1), (Some(7), 1), (None, 0)));
        assert_eq!((left(11, false), left(10, true)), ((Some(7), 11), (None, 0)));
    }

    #[test]
    fn results_are_cached_up_to_a_number_of_bytes() {
        let known: CostedCache<u64> = CostedCache::new(0);
        let mut made = 0;
        for _ in 0..2 {
            (0..100_000).for_each(|i| {
                known.free(Addr(i), || {
                    made += 1;
                    (i, 1024)
                });
            });
        }
        let kept = 200_000 - made;
        assert!((10_000..=16_384).contains(&kept), "{kept}");
        known.free(Addr(1 << 40), || (1, LARGEST));
        assert_eq!(known.free(Addr(1 << 40), || (2, LARGEST)), Some(2));
    }
}
