//! Numbers of a heap that are unknown, not zero, if parts of the dump are missing: those of the comparison of dumps and of the table `dumps`.

use crate::analysis::TypeStats;
use crate::session::Heap;

/// Returns a number; `None` for zero if what it counts is not `whole`.
pub(crate) fn known(n: u64, whole: bool) -> Option<u64> {
    (whole || n > 0).then_some(n)
}

/// Which numbers of a heap are known.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KnownNumbers {
    /// Whether objects were walked, or the heap is empty.
    walked: bool,
    /// Whether all objects are in the dump.
    whole: bool,
    /// Whether all segments are listed.
    listed: bool,
    /// Whether the heap was carved out of memory, so that the GC's figures are unknown.
    carved: bool,
    free_bytes: u64,
}

impl KnownNumbers {
    /// `walk` has the objects of `heap` by type.
    pub(crate) fn of(heap: &Heap, walk: &TypeStats) -> KnownNumbers {
        let listed = heap.segments_whole() && !heap.segment_models().is_empty();
        KnownNumbers {
            walked: walk.totals.count > 0 || walk.totals.free_count > 0 || walk.coverage.complete && listed,
            whole: walk.coverage.absent_bytes == 0,
            listed,
            carved: heap.gc().carved().is_some(),
            free_bytes: walk.totals.free_bytes,
        }
    }

    /// Whether the GC's figures are known.
    pub(crate) fn has_figures(&self) -> bool {
        !self.carved
    }

    /// Whether the dump has all objects, so that what is not found does not exist.
    pub(crate) fn has_all_objects(&self) -> bool {
        self.walked && self.whole
    }

    /// A number that the walk counted.
    pub(crate) fn of_walk(&self, n: u64) -> Option<u64> {
        self.walked.then_some(n)
    }

    /// Bytes of free space. The method table of free space may be unknown in a carved heap.
    pub(crate) fn free_bytes(&self) -> Option<u64> {
        known(self.free_bytes, self.has_all_objects() && !self.carved)
    }

    /// A sum over the segments.
    pub(crate) fn of_segments(&self, n: u64) -> Option<u64> {
        known(n, self.listed)
    }

    /// The committed bytes of the segments.
    pub(crate) fn committed(&self, n: u64) -> Option<u64> {
        self.of_segments(n).filter(|_| !self.carved)
    }
}
