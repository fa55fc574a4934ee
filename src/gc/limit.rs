//! The limit on the memory that the GC commits, `heap_hard_limit`.
//!
//! No release publishes the limit, so it is found by the values that the GC derives from it. With regions, the GC reserves five times the
//! limit (`regions_range` in `gc_heap::initialize_gc`), and trims the reserved range to whole regions. The limit itself is in more than
//! one of the GC's variables: in `gc_heap` and among the settings that it reports. A GC without a limit reserves 256 GiB or twice the
//! physical memory, and has no such number.
//!
//! In a container, the limit is 75 % of the container's memory limit, unless the program sets another. The GC treats the container's
//! limit as its physical memory (`total_physical_mem`), so that number is one of its variables as well.

use std::collections::BTreeMap;

use super::Gc;
use crate::base::{AddrRange, Count, PAGE, total};
use crate::model::{GcLimitModel, HeapSizeModel};

/// Ratio of the reserved range to the limit.
const RESERVED: u64 = 5;
/// Maximum number of bytes lost by trimming to whole regions: one region of the usual size at either end.
const REGIONS: u64 = 8 << 20;
/// Minimum number of variables with the limit.
const TIMES: u64 = 2;
/// Smallest limit that the GC sets by itself, in bytes.
const LEAST: u64 = 20 << 20;
/// The limit as a percentage of the container's memory.
const OF_CONTAINER: u64 = 75;

impl Gc {
    /// The limit, and how much of it is committed. `None` if no limit is found.
    pub(super) fn find_limit(&self) -> Option<GcLimitModel> {
        let facts = &self.facts;
        let reserved = facts.highest?.since(facts.lowest?).filter(|_| facts.regions)?;
        let words = |wanted: &dyn Fn(u64) -> bool| -> Vec<u64> {
            let all = self.variables.iter().flat_map(|range| self.memory.set_words(*range)).filter(|(_, n)| wanted(*n));
            // Scans mark only words that may be addresses as read, and these are numbers.
            let word = self.memory.ptr_bytes();
            all.inspect(|(at, _)| self.memory.touch(AddrRange::new(*at, at.plus(word)))).map(|(_, n)| n).collect()
        };
        // The reserved range is a whole number of pages.
        let fits = (reserved.saturating_sub(PAGE) / RESERVED).max(1)..=reserved.saturating_add(REGIONS) / RESERVED;
        let mut found: BTreeMap<u64, u64> = BTreeMap::new();
        words(&|n| fits.contains(&n)).into_iter().for_each(|n| found.entry(n).or_default().bump());
        let mut found = found.into_iter().filter(|(_, times)| *times >= TIMES).map(|(n, _)| n);
        // With several candidates, the limit is unknown.
        let (hard_limit_bytes, None) = (found.next()?, found.next()) else { return None };
        let is_of = |all: u64| all.checked_mul(OF_CONTAINER).is_some_and(|n| n / 100 == hard_limit_bytes);
        let mut containers = words(&|n| hard_limit_bytes > LEAST && is_of(n));
        containers.sort_unstable();
        containers.dedup();
        let container_bytes = if let [only] = containers.as_slice() { Some(*only) } else { None };
        let size = self.size();
        let committed_bytes = size.committed_bytes.saturating_add(size.free_region_bytes);
        Some(GcLimitModel { hard_limit_bytes, container_bytes, committed_bytes })
    }

    /// Size of the heap from its segment lists. Notes about damaged lists are dropped; the answers that show the lists have them.
    pub(crate) fn size(&self) -> HeapSizeModel {
        let (segments, regions) = (self.segments().data, self.regions().data);
        HeapSizeModel {
            allocated_bytes: total(segments.iter().map(|s| s.allocated_bytes)),
            committed_bytes: total(segments.iter().map(|s| s.committed_bytes)),
            free_region_bytes: total(regions.iter().filter_map(|r| r.segment.as_ref()?.committed.since(r.range.start))),
        }
    }
}
