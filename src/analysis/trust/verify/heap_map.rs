//! Classifies addresses that are not the start of an object.

use crate::base::{Addr, Index};
use crate::gc::{MAX_GAPS, ObjectStarts, SegmentIndex, Walker};
use crate::model::{SegmentModel, WalkModel};

/// Number of consecutive valid objects that proves that a range contains objects.
pub(super) const PROOF: u32 = 16;

/// Target of a reference, handle or entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// Not in the dump, or in a part of the heap that could not be read.
    Unknown,
    /// In the corrupt range without objects that starts at this address.
    Gap(Addr),
    /// The start of an object inside the object at this address, which has a wrong size.
    Swallowed(Addr),
    Unaligned,
    Outside,
    /// Inside the object at this address.
    Middle(Addr),
    Free,
    Unused,
}

/// The heap as found by the first walk.
pub(super) struct HeapMap<'h> {
    pub(super) heap: &'h Walker,
    pub(super) starts: &'h ObjectStarts,
    /// The results for all segments, in the order of their indices.
    pub(super) walks: &'h [(SegmentIndex, WalkModel)],
    /// Whether all segments of the process are known.
    pub(super) all_segments: bool,
    /// Whether all allocation contexts are known and valid.
    pub(super) all_contexts: bool,
}

/// Returns the end of the part of a segment in which object starts are certain. After memory that is not in the dump, the walk resumes at the first
/// plausible object, so corruption found there may be spurious.
pub(super) fn certain(walk: &WalkModel) -> Addr {
    walk.stopped_at.unwrap_or(Addr(u64::MAX))
}

impl HeapMap<'_> {
    /// Returns the result of the first walk of a segment.
    pub(super) fn walk(&self, segment: SegmentIndex) -> Option<&WalkModel> {
        self.walks.get(segment.index()).map(|(_, walk)| walk)
    }

    /// Classifies `target`, which is not the start of an object.
    pub(super) fn look(&self, target: Addr) -> Target {
        let memory = self.heap.memory();
        if !target.is_aligned(memory.ptr_bytes()) {
            // If segments are unknown, even an unaligned address may be in one of them.
            return if self.heap.segment_of(target).is_none() && !self.all_segments { Target::Unknown } else { Target::Unaligned };
        }
        let Some((index, segment)) = self.heap.segment_of(target) else {
            return if self.all_segments { Target::Outside } else { Target::Unknown };
        };
        let Some(walk) = self.walk(index).filter(|_| self.starts.of_segment(index).is_some()) else { return Target::Unknown };
        if target >= certain(walk) {
            return Target::Unknown;
        }
        if let Some(gap) = walk.gaps.iter().find(|g| g.range.contains(target)) {
            return Target::Gap(gap.range.start);
        }
        // If the list of gaps is full, the address may be in a gap that is not listed.
        if walk.gaps.len() >= MAX_GAPS {
            return Target::Unknown;
        }
        if let Some((_, object)) = self.starts.containing(self.heap, target) {
            return if self.swallowed(segment, object, target) { Target::Swallowed(object) } else { Target::Middle(object) };
        }
        if self.heap.in_context(target) { Target::Unused } else { Target::Free }
    }

    /// Whether objects begin at `at`, inside `object`, so that the size of `object` is wrong.
    pub(super) fn swallowed(&self, segment: &SegmentModel, object: Addr, at: Addr) -> bool {
        self.heap.object(object).is_some_and(|(_, size)| self.holds_objects(segment, at, object.plus(size)))
    }

    /// Whether consecutive valid objects begin at `at`. `PROOF` objects before `to` suffice. Fewer objects must extend to `to` or beyond, and end at
    /// a known object, free space, or unused memory.
    pub(super) fn holds_objects(&self, segment: &SegmentModel, at: Addr, to: Addr) -> bool {
        if self.heap.padded(at) != Some(true) {
            return false;
        }
        let Some(end) = self.heap.objects_reach(segment, at, to, PROOF) else { return false };
        let free = || self.heap.tables().free.is_some() && self.heap.method_table(end) == self.heap.tables().free;
        end < to
            || end >= segment.allocated
            || self.starts.is_start(end, &mut SegmentIndex::default())
            || self.heap.in_context(end)
            || free()
    }
}
