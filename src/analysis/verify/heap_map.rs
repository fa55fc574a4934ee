//! What lies at an address that is no start of an object.

use crate::base::Addr;
use crate::gc::{ObjectStarts, Walker};
use crate::model::{SegmentModel, WalkModel};

/// Objects in a row that prove that a stretch holds objects.
pub(super) const PROOF: u32 = 16;
/// Gaps that a walk lists; what lies in others is not known.
pub(super) const MAX_GAPS: usize = 64;

/// What a reference, a handle or an entry leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// Not in the dump, or in a part of the heap that could not be read.
    Unknown,
    /// A stretch without objects, where something is damaged: where it begins.
    Gap(Addr),
    /// An object inside of another one: the other one's size is wrong.
    Swallowed(Addr),
    Unaligned,
    Outside,
    /// Into the object that begins there.
    Middle(Addr),
    Free,
    Unused,
}

/// The heap as the first walk has found it.
pub(super) struct HeapMap<'h> {
    pub(super) heap: &'h Walker,
    pub(super) starts: &'h ObjectStarts,
    /// By number of the segment.
    pub(super) walks: &'h [(usize, WalkModel)],
    /// Whether all segments of the process are known.
    pub(super) all_segments: bool,
    /// Whether all allocation contexts are known, and make sense.
    pub(super) all_contexts: bool,
}

/// Up to where it is certain where the objects of a segment begin. Behind memory that is not in the dump a walk goes on with
/// the first thing that looks like an object, and what looks wrong from there on need not be.
pub(super) fn certain(walk: &WalkModel) -> Addr {
    walk.stopped_at.unwrap_or(Addr(u64::MAX))
}

impl HeapMap<'_> {
    /// What lies at `target`, where no object begins.
    pub(super) fn look(&self, target: Addr) -> Target {
        let memory = self.heap.memory();
        if !target.is_aligned(memory.ptr_bytes()) {
            // Also an unaligned one may lead to where nothing is known.
            return if self.heap.segment_of(target).is_none() && !self.all_segments { Target::Unknown } else { Target::Unaligned };
        }
        let Some((index, segment)) = self.heap.segment_of(target) else {
            return if self.all_segments { Target::Outside } else { Target::Unknown };
        };
        let Some((_, walk)) = self.walks.get(index).filter(|_| self.starts.of_segment(index).is_some()) else { return Target::Unknown };
        if target >= certain(walk) {
            return Target::Unknown;
        }
        if let Some(gap) = walk.gaps.iter().find(|g| g.range.contains(target)) {
            return Target::Gap(gap.range.start);
        }
        if walk.gaps.len() >= MAX_GAPS {
            return Target::Unknown;
        }
        if let Some((_, object)) = self.starts.containing(self.heap, target) {
            return if self.swallowed(segment, object, target) { Target::Swallowed(object) } else { Target::Middle(object) };
        }
        if self.heap.in_context(target) { Target::Unused } else { Target::Free }
    }

    /// Whether objects that lie inside of `object` begin at `at`: then its size is wrong.
    pub(super) fn swallowed(&self, segment: &SegmentModel, object: Addr, at: Addr) -> bool {
        self.heap.object(object).is_some_and(|(_, size)| self.holds_objects(segment, at, object.plus(size)))
    }

    /// Whether objects begin at `at` that lead to `to` or beyond, and there to what the walk knows to be an object: a pointer
    /// to a method table alone may be anything.
    pub(super) fn holds_objects(&self, segment: &SegmentModel, at: Addr, to: Addr) -> bool {
        if self.heap.padded(at) != Some(true) {
            return false;
        }
        let Some(end) = self.heap.objects_reach(segment, at, to, PROOF) else { return false };
        let free = || self.heap.tables().free.is_some() && self.heap.method_table(end) == self.heap.tables().free;
        end < to || end >= segment.allocated || self.starts.is_start(end, &mut 0) || self.heap.in_context(end) || free()
    }
}
