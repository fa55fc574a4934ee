//! The limit on what the GC commits, `heap_hard_limit`.
//!
//! No release publishes it, so it is found by what the GC derives from it. With regions, the GC reserves five times the limit
//! (`regions_range` in `gc_heap::initialize_gc`), and cuts what it has reserved to whole regions. Its variables hold the limit itself more
//! than once: in `gc_heap` and among the settings that it reports. A GC without a limit reserves 256 GiB or twice the physical memory,
//! and has no such number.
//!
//! In a container, the limit is 75 % of what the container may use, unless the program sets another. The GC takes that for its physical
//! memory (`total_physical_mem`): a number of which the limit is 75 % is one of its variables as well.

use std::collections::BTreeMap;

use super::Gc;
use crate::base::{AddrRange, Count, PAGE, total};
use crate::model::{GcLimitModel, HeapSizeModel};

/// How many times the limit the GC reserves.
const RESERVED: u64 = 5;
/// Most bytes by which whole regions are less than what is reserved: one region of the usual size at either end.
const REGIONS: u64 = 8 << 20;
/// Least number of variables with the limit.
const TIMES: u64 = 2;
/// Least limit that the GC sets by itself, and share of the container's memory in percent.
const LEAST: u64 = 20 << 20;
const OF_CONTAINER: u64 = 75;

impl Gc {
    /// The limit, and how much of it is committed. `None` where none is found.
    pub(super) fn find_limit(&self) -> Option<GcLimitModel> {
        let facts = &self.facts;
        let reserved = facts.highest?.since(facts.lowest?).filter(|_| facts.regions)?;
        let words = |wanted: &dyn Fn(u64) -> bool| -> Vec<u64> {
            let all = self.variables.iter().flat_map(|range| self.memory.set_words(*range)).filter(|(_, n)| wanted(*n));
            // A search records addresses only, and these are numbers.
            let word = self.memory.ptr_bytes();
            all.inspect(|(at, _)| self.memory.touch(AddrRange::new(*at, at.plus(word)))).map(|(_, n)| n).collect()
        };
        // What is reserved is whole pages.
        let fits = (reserved.saturating_sub(PAGE) / RESERVED).max(1)..=reserved.saturating_add(REGIONS) / RESERVED;
        let mut found: BTreeMap<u64, u64> = BTreeMap::new();
        words(&|n| fits.contains(&n)).into_iter().for_each(|n| found.entry(n).or_default().bump());
        let mut found = found.into_iter().filter(|(_, times)| *times >= TIMES).map(|(n, _)| n);
        // Of several, none is known to be it.
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

    /// How large the heap is, by the lists of its segments. What these lack is a loss of theirs.
    pub(crate) fn size(&self) -> HeapSizeModel {
        let (segments, regions) = (self.segments().data, self.regions().data);
        HeapSizeModel {
            allocated_bytes: total(segments.iter().map(|s| s.allocated_bytes)),
            committed_bytes: total(segments.iter().map(|s| s.committed_bytes)),
            free_region_bytes: total(regions.iter().filter_map(|r| r.segment.as_ref()?.committed.since(r.range.start))),
        }
    }
}
