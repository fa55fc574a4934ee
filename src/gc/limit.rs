//! The limit on the memory that the GC commits, `heap_hard_limit`.
//!
//! No release publishes the limit, so it is found by the values that the GC derives from it. With regions, the GC reserves five times the
//! limit (`regions_range` in `gc_heap::initialize_gc`), and trims the reserved range to whole regions. The limit itself is in more than
//! one of the GC's variables: in `gc_heap` and among the settings that it reports. A GC without a limit reserves 256 GiB or twice the
//! physical memory, and has no such number.
//!
//! If the environment or `runtimeconfig.json` sets the limit, the number is known, and the variables only confirm that the GC uses it. This also works with
//! segments, with `GCRegionRange`, and with limits per kind of heap, where the reserved range does not say what the limit is. If the limit is set as a share of
//! the physical memory, that is one of the variables, too.
//!
//! In a container, the limit is 75 % of the container's memory limit, unless the program sets another. The GC treats the container's
//! limit as its physical memory (`total_physical_mem`), so that number is one of its variables as well. The GC also has the limit rounded
//! up to a power of two (`soh_segment_size`), which is 4/3 of the limit by chance if the limit is 3/4 of a power of two.

use std::collections::{BTreeMap, BTreeSet};

use super::Gc;
use super::facts::{LimitSetting, SetLimit};
use crate::base::{AddrRange, Count, PAGE, total};
use crate::model::{GcLimitModel, HeapSizeModel, RegionModel};

/// Ratio of the reserved range to the limit.
const RESERVED: u64 = 5;
/// Maximum number of bytes lost by trimming to whole regions: one region of the usual size at either end.
const REGIONS: u64 = 8 << 20;
/// Minimum number of variables with the limit.
const TIMES: u64 = 2;
/// Smallest limit that the GC sets by itself, in bytes.
const LEAST: u64 = 20 << 20;
/// Sizes of physical memory, which is a whole number of pages. Greater numbers are addresses.
const PHYSICAL: std::ops::Range<u64> = LEAST..1 << 46;
/// The limit as a percentage of the container's memory.
const OF_CONTAINER: u64 = 75;

/// Selects the limit from the numbers that are found several times and of which `reserved` may be five times. If the range was not trimmed, it is exactly
/// five times the limit, and a limit is usually a whole number of pages. `None` if several numbers are as good.
fn select(found: &[u64], reserved: u64) -> Option<u64> {
    let only = |is: &dyn Fn(u64) -> bool| {
        let mut fits = found.iter().copied().filter(|n| is(*n));
        let first = fits.next();
        (first, fits.next().is_some())
    };
    let exact = |n: u64| n.checked_mul(RESERVED).is_some_and(|n| n.next_multiple_of(PAGE) == reserved);
    let rules: [&dyn Fn(u64) -> bool; 3] = [&exact, &|n| n.is_multiple_of(PAGE), &|_| true];
    match rules.into_iter().map(only).find(|(first, _)| first.is_some())? {
        (first, false) => first,
        (_, true) => None,
    }
}

/// Selects the container's memory from the numbers of which `limit` is 75 %, each with the number of variables that have it. The limit rounded up to a power
/// of two counts only if another variable has the same number.
fn select_container(found: &BTreeMap<u64, u64>, limit: u64) -> Option<u64> {
    let rounded = limit.checked_next_power_of_two();
    let mut fits = found.iter().filter(|(n, times)| Some(**n) != rounded || **times >= TIMES).map(|(n, _)| *n);
    fits.next().filter(|_| fits.next().is_none())
}

impl Gc {
    /// Sets the function that returns the limit that the settings of the process give.
    pub(crate) fn set_limit_setting(&mut self, setting: LimitSetting) {
        self.limit_setting = Some(setting);
    }

    /// Sets the properties of the runtime, which may set the limit, unless they are set already.
    pub(crate) fn give_properties(&self, read: impl FnOnce() -> Vec<(String, String)>) {
        self.properties.get_or_init(read);
    }

    /// The limit, and how much of it is committed. `None` if no limit is found.
    pub(super) fn find_limit(&self) -> Option<GcLimitModel> {
        let properties = self.properties.get().map(Vec::as_slice).unwrap_or_default();
        let set = self.limit_setting.as_ref().and_then(|setting| setting(properties));
        let set = set.and_then(|set| self.limit_of_setting(set));
        let (hard_limit_bytes, container_bytes) = set.map(|n| (n, None)).or_else(|| self.limit_of_reserved())?;
        let size = self.size();
        let whole = size.free_region_bytes.filter(|_| self.segments().complete());
        let committed_bytes = whole.map(|free| size.committed_bytes.saturating_add(free));
        Some(GcLimitModel { hard_limit_bytes, container_bytes, committed_bytes })
    }

    /// The numbers among the GC's variables that are `wanted`, each with the number of variables that have it.
    fn numbers(&self, wanted: &dyn Fn(u64) -> bool) -> BTreeMap<u64, u64> {
        let mut found: BTreeMap<u64, u64> = BTreeMap::new();
        let word = self.memory.ptr_bytes();
        for (at, n) in self.variables.iter().flat_map(|range| self.memory.set_words(*range)).filter(|(_, n)| wanted(*n)) {
            // Scans mark only words that may be addresses as read, and these are numbers.
            self.memory.touch(AddrRange::of(at, word));
            found.entry(n).or_default().bump();
        }
        found
    }

    /// The limit that the settings give. `None` if it is not one of the GC's variables, or if there are several candidates for the physical memory.
    fn limit_of_setting(&self, set: SetLimit) -> Option<u64> {
        let is_used = |limits: &BTreeSet<u64>| -> Vec<u64> {
            let found = self.numbers(&|word| limits.contains(&word)).into_iter().filter(|(_, times)| *times >= TIMES);
            found.map(|(n, _)| n).collect()
        };
        let known = match set {
            SetLimit::Bytes(n) => Some(n),
            SetLimit::Percent { memory, .. } => memory.and_then(|memory| set.of(memory)),
        };
        let limits = match known {
            Some(n) => BTreeSet::from([n]),
            None => {
                let memory = self.numbers(&|n| PHYSICAL.contains(&n) && n.is_multiple_of(PAGE));
                memory.into_keys().filter_map(|memory| set.of(memory)).filter(|n| *n > 0).collect()
            }
        };
        match is_used(&limits).as_slice() {
            [limit] => Some(*limit),
            _ => None,
        }
    }

    /// The limit by the size of the reserved range, and the memory of the container. `None` if no limit is found, or if there are several candidates.
    fn limit_of_reserved(&self) -> Option<(u64, Option<u64>)> {
        let facts = &self.facts;
        let reserved = facts.highest?.since(facts.lowest?).filter(|_| facts.regions)?;
        // The reserved range is a whole number of pages.
        let fits = (reserved.saturating_sub(PAGE) / RESERVED).max(1)..=reserved.saturating_add(REGIONS) / RESERVED;
        let found = self.numbers(&|n| fits.contains(&n)).into_iter().filter(|(_, times)| *times >= TIMES);
        let limit = select(&found.map(|(n, _)| n).collect::<Vec<_>>(), reserved)?;
        let is_of = |all: u64| all.checked_mul(OF_CONTAINER).is_some_and(|n| n / 100 == limit);
        Some((limit, select_container(&self.numbers(&|n| limit > LEAST && is_of(n)), limit)))
    }

    /// Size of the heap from its segment lists. Notes about damaged lists are dropped; the answers that show the lists have them.
    pub(crate) fn size(&self) -> HeapSizeModel {
        let (segments, regions) = (self.segments().data, self.regions());
        let committed = |region: &RegionModel| region.segment.as_ref()?.committed.since(region.range.start);
        HeapSizeModel {
            allocated_bytes: total(segments.iter().map(|s| s.allocated_bytes)),
            committed_bytes: total(segments.iter().map(|s| s.committed_bytes)),
            free_region_bytes: regions.complete().then(|| total(regions.data.iter().filter_map(committed))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_the_number_that_explains_the_reserved_range_best() {
        const MIB: u64 = 1 << 20;
        // Words that are addresses or flags fall into the window as well.
        assert_eq!(select(&[512 * MIB, 512 * MIB + 0xe_5740], 2560 * MIB), Some(512 * MIB));
        assert_eq!(select(&[2048 * MIB, 2048 * MIB + 1, 2048 * MIB + PAGE], 5 * 2048 * MIB), Some(2048 * MIB));
        // The limit of a container need not be a whole number of pages, but the range is.
        assert_eq!(select(&[96 * MIB + 3072, 96 * MIB + 0x404], 480 * MIB + 4 * PAGE), Some(96 * MIB + 3072));
        // A range that was trimmed to whole regions.
        assert_eq!(select(&[97 * MIB, 97 * MIB + 0x404], 484 * MIB), Some(97 * MIB));
        assert_eq!(select(&[97 * MIB, 97 * MIB + PAGE], 484 * MIB), None);
        assert_eq!((select(&[], 484 * MIB), select(&[97 * MIB + 8], 484 * MIB)), (None, Some(97 * MIB + 8)));
    }

    #[test]
    fn a_limit_rounded_up_is_not_a_container() {
        const MIB: u64 = 1 << 20;
        let of = |found: &[(u64, u64)], limit| select_container(&found.iter().copied().collect(), limit);
        assert_eq!(of(&[(128 * MIB, 1)], 96 * MIB), None);
        assert_eq!(of(&[(128 * MIB, 2)], 96 * MIB), Some(128 * MIB));
        assert_eq!(of(&[(200 * MIB, 1)], 150 * MIB), Some(200 * MIB));
        assert_eq!(of(&[(200 * MIB, 1), (200 * MIB + 1, 1)], 150 * MIB), None);
        assert_eq!(of(&[(128 * MIB, 1), (128 * MIB + 1, 1)], 96 * MIB), Some(128 * MIB + 1));
    }
}
