//! The walk of all segments by several threads.
//!
//! A segment can only be walked in sequence: the start of an object is known once the one before it has been read. A large segment is cut
//! into pieces nevertheless. A piece begins where an object [seems to start](Walker::likely_start), and is accepted if the walk of the
//! previous piece ends there. Otherwise it is walked again from its true start, so the result is the same as with a single thread. The GC's
//! brick table also has object starts, but heap dumps do not always contain it, and its entries would need the same check.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use super::segment::{MAX_GAPS, Meter, SEARCHED, SegmentWalk};
use super::types::Cache;
use super::{SegmentIndex, Visitor, Walked, Walker};
use crate::base::missed::{Carried, Missed, watched};
use crate::base::{Addr, AddrRange, Count, Progress, total};
use crate::model::{SegmentModel, WalkModel};

/// Parameters for cutting large segments.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cutting {
    /// Minimum bytes of a piece: in a smaller one, the search for its start and its visitor cost more than they save.
    least: u64,
    /// Maximum number of pieces per thread if the heap were one segment. There are several because pieces take unequal time.
    per_thread: u64,
    /// Bytes that justify another thread: waking one takes as long as walking a few hundred kilobytes.
    worth: u64,
}

impl Cutting {
    #[cfg(not(test))]
    pub(super) const USUAL: Cutting = Cutting { least: 16 << 20, per_thread: 16, worth: 256 << 10 };
    /// Heaps of tests are small.
    #[cfg(test)]
    pub(super) const USUAL: Cutting = Cutting { least: 16 << 10, per_thread: u64::MAX, worth: 1 };
}

/// Consecutive objects passed to one visitor: those of a segment, or of a part of a large one.
#[derive(Clone, Copy, Debug)]
pub struct Piece<'s> {
    /// The segment's index.
    pub index: SegmentIndex,
    /// The segment.
    pub segment: &'s SegmentModel,
    /// Range of object starts: from the first object to the first one of the next piece, or to the end of the segment.
    pub starts: AddrRange,
}

/// The walk of one piece of a segment that was cut.
struct Cut<V> {
    walk: SegmentWalk,
    visitor: V,
    /// Failed reads; reported if the piece is accepted.
    missed: Missed,
}

/// Pieces of walked segments, by segment and start.
type Done<V> = Vec<(SegmentIndex, Addr, Option<Cut<V>>)>;

impl Walker {
    /// Makes later walks cut pieces of at least `least` bytes.
    #[cfg(test)]
    pub(crate) fn cut_finely(&mut self, least: u64) {
        self.cutting = Cutting { least, per_thread: u64::MAX, worth: 1 };
    }

    pub(super) fn walk_pieces<V: Visitor>(&self, progress: &dyn Progress, once: bool, visitor: impl Fn() -> V + Sync) -> Walked<V> {
        let bytes = total(self.segments.iter().map(|s| s.allocated_bytes));
        progress.start("walking the heap", Some(bytes));
        let pieces: Vec<Piece<'_>> = self.segments.iter_enumerated().flat_map(|(i, s)| self.cut(i, s, bytes)).collect();
        let next = AtomicUsize::new(0);
        let (whole, visitors, cuts) = (Mutex::new(Vec::new()), Mutex::new(Vec::new()), Mutex::new(Done::new()));
        let meter = Meter::new(progress, once);
        let work = || {
            let mut own = visitor();
            let mut cache = Cache::new(&self.types, &self.memory, &self.tables);
            let (mut segments, mut mine) = (Vec::new(), Done::new());
            while let Some(piece) = pieces.get(next.fetch_add(1, Ordering::Relaxed)) {
                let segment = piece.segment;
                if piece.starts != AddrRange::new(segment.start, segment.allocated) {
                    mine.push((piece.index, piece.starts.start, self.walk_cut(piece, &meter, &visitor)));
                } else if own.piece(piece) {
                    let walk = || self.walk_piece(piece, &mut cache, &meter, &mut own).model;
                    segments.push((piece.index, self.refused(piece.index, segment).unwrap_or_else(walk)));
                }
            }
            whole.lock().unwrap_or_else(PoisonError::into_inner).extend(segments);
            cuts.lock().unwrap_or_else(PoisonError::into_inner).extend(mine);
            visitors.lock().unwrap_or_else(PoisonError::into_inner).push(own);
        };
        let carried = Carried::here();
        let busy = usize::try_from(bytes / self.cutting.worth.max(1)).unwrap_or(usize::MAX).min(pieces.len());
        if busy < 2 {
            work();
        } else {
            rayon::scope(|scope| {
                for _ in 0..rayon::current_num_threads().min(busy) {
                    scope.spawn(|_| carried.run(work));
                }
            });
        }
        let mut walked = Walked {
            segments: whole.into_inner().unwrap_or_else(PoisonError::into_inner),
            visitors: visitors.into_inner().unwrap_or_else(PoisonError::into_inner),
        };
        let mut cuts = cuts.into_inner().unwrap_or_else(PoisonError::into_inner);
        cuts.sort_by_key(|(segment, start, _)| (*segment, *start));
        self.join(cuts, &meter, &visitor, &mut walked);
        progress.finish();
        walked.segments.sort_by_key(|(i, _): &(SegmentIndex, WalkModel)| *i);
        walked
    }

    /// The pieces of a segment. `all` is the size of the heap in bytes.
    fn cut<'s>(&self, index: SegmentIndex, segment: &'s SegmentModel, all: u64) -> Vec<Piece<'s>> {
        let bytes = segment.allocated_bytes.min(segment.captured_bytes);
        let small = bytes / 2 < self.cutting.least;
        // Asking for the number of threads starts rayon's pool, which a small heap does not need.
        let threads = if small { 1 } else { u64::try_from(rayon::current_num_threads()).unwrap_or(u64::MAX) };
        let size = all.checked_div(threads.saturating_mul(self.cutting.per_thread)).unwrap_or(0).max(self.cutting.least);
        let pieces = if threads < 2 || self.refused.contains_key(&index) { 1 } else { bytes.checked_div(size).unwrap_or(1) };
        let (mut starts, mut searched) = (vec![segment.start], segment.start);
        for n in 1..pieces {
            // The last search already went past this address, within a large object.
            let near = segment.start.plus(size.saturating_mul(n));
            if near <= searched {
                continue;
            }
            let found = self.likely_start(segment, near);
            searched = found.unwrap_or(near.plus(SEARCHED));
            starts.extend(found);
        }
        let ends = starts.iter().skip(1).copied().chain([segment.allocated]);
        starts.iter().zip(ends).map(|(start, end)| Piece { index, segment, starts: AddrRange::new(*start, end) }).collect()
    }

    fn walk_piece(&self, piece: &Piece<'_>, cache: &mut Cache<'_>, meter: &Meter<'_>, visitor: &mut impl Visitor) -> SegmentWalk {
        self.walk_segment(piece.segment, piece.starts, cache, meter, |o| {
            visitor.object(o);
            ControlFlow::Continue(())
        })
    }

    /// Walks a piece that may be rejected later. It gets a separate visitor, and a separate cache because a cache reports failed reads only
    /// once.
    fn walk_cut<V: Visitor>(&self, piece: &Piece<'_>, meter: &Meter<'_>, visitor: &(impl Fn() -> V + Sync)) -> Option<Cut<V>> {
        let (found, missed) = watched(|| {
            let mut visitor = visitor();
            let mut cache = Cache::new(&self.types, &self.memory, &self.tables);
            visitor.piece(piece).then(|| (self.walk_piece(piece, &mut cache, meter, &mut visitor), visitor))
        });
        found.map(|(walk, visitor)| Cut { walk, visitor, missed })
    }

    /// Accepts the pieces that begin where the one before them ends, and walks the others again.
    fn join<V: Visitor>(&self, cuts: Done<V>, meter: &Meter<'_>, visitor: &(impl Fn() -> V + Sync), walked: &mut Walked<V>) {
        let mut cuts = cuts.into_iter().peekable();
        while let Some((index, first)) = cuts.peek().map(|(index, start, _)| (*index, *start)) {
            let Some(segment) = self.segments.get(index) else { return };
            let mut model = None;
            // The required start of the next piece.
            let mut at = Some(first);
            while let Some((_, start, cut)) = cuts.next_if(|(i, ..)| *i == index) {
                let end = cuts.peek().filter(|(i, ..)| *i == index).map_or(segment.allocated, |(_, next, _)| *next);
                let Some(here) = at.filter(|here| *here < end) else { continue };
                let again = || self.walk_cut(&Piece { index, segment, starts: AddrRange::new(here, end) }, meter, visitor);
                let Some(mut cut) = (if here == start { cut } else { again() }) else { continue };
                cut.missed.tell();
                if let Some(before) = walked.visitors.last_mut().filter(|_| model.is_some()) {
                    cut.visitor.follow(before);
                }
                at = cut.walk.next;
                match &mut model {
                    None => model = Some(cut.walk.model),
                    Some(model) => merge(model, cut.walk.model),
                }
                walked.visitors.push(cut.visitor);
            }
            if let Some(mut model) = model {
                model.complete = model.stopped_at.is_none() && at.is_some_and(|at| self.is_end(segment, at));
                walked.segments.push((index, model));
            }
        }
    }
}

/// Adds the walk of the next piece to `model`.
fn merge(model: &mut WalkModel, next: WalkModel) {
    let WalkModel { segment: _, complete: _, objects, bytes, free_objects, free_bytes, .. } = next;
    let WalkModel { context_bytes, in_allocation_bytes, skipped_bytes, absent_bytes, stopped_at, stopped_because, gaps, .. } = next;
    model.objects.grow(objects);
    model.bytes.grow(bytes);
    model.free_objects.grow(free_objects);
    model.free_bytes.grow(free_bytes);
    model.context_bytes.grow(context_bytes);
    model.in_allocation_bytes.grow(in_allocation_bytes);
    model.skipped_bytes.grow(skipped_bytes);
    model.absent_bytes.grow(absent_bytes);
    if model.stopped_at.is_none() {
        (model.stopped_at, model.stopped_because) = (stopped_at, stopped_because);
    }
    let room = MAX_GAPS.saturating_sub(model.gaps.len());
    model.gaps.extend(gaps.into_iter().take(room));
}
