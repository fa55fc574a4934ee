//! Iterators over the objects of a heap.

use std::fmt;
use std::ops::ControlFlow;
use std::sync::Arc;

use rayon::prelude::*;

use super::Object;
use crate::base::{Addr, Collector, IndexVec, Indices, Notes, glob};
use crate::gc::{ObjectType, SegmentIndex, TypeIndex, note_walks};
use crate::session::{Error, Heap};

/// Size of the first batch: small, so that `take(n)` starts quickly.
const FIRST_BATCH: usize = 64;
/// Size of the largest batch.
const FULL_BATCH: usize = 1 << 12;

/// Iterates over the objects of a heap or one segment, ordered by heap, generation and address, without free space.
///
/// The walk is lazy: if dropped early, the rest of the heap is not read. [`Objects::notes`] reports what could not be
/// walked.
pub struct Objects {
    heap: Heap,
    /// Remaining segments.
    segments: Indices<SegmentIndex>,
    /// The current segment, and the address to resume at.
    at: Option<(SegmentIndex, Option<Addr>)>,
    batch: std::vec::IntoIter<Object>,
    size: usize,
    pattern: Option<String>,
    types: Wanted,
    notes: Notes,
}

/// The types seen so far; `None` for types that are not wanted.
type Wanted = IndexVec<TypeIndex, Option<Option<Arc<ObjectType>>>>;

impl fmt::Debug for Objects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Objects").field("segments", &self.segments).field("pattern", &self.pattern).finish_non_exhaustive()
    }
}

impl Heap {
    /// The objects, ordered by GC heap (server GC has several), generation and address.
    ///
    /// The walk is lazy: `take(10)` reads little more than ten objects. For a parallel walk see [`Heap::par_objects`].
    pub fn objects(&self) -> Objects {
        self.objects_within(self.walker().segment_indices(), None)
    }

    /// The objects of types with a full name that matches `pattern`, where `*` matches any text and `?` one character: `Lab.Order`,
    /// `System.Collections.Generic.Dictionary<*>`. Names have the form of [`Object::type_name`]. Objects of derived types do not match. If no type
    /// matches, the iterator is empty.
    ///
    /// # Errors
    /// [`Error::Contract`] if the runtime does not have the layouts that type names need.
    pub fn objects_of(&self, pattern: &str) -> Result<Objects, Error> {
        self.runtime().type_names()?;
        Ok(self.objects_within(self.walker().segment_indices(), Some(pattern.into())))
    }

    /// The objects of the heap, walked in parallel by segment in rayon's current pool.
    pub fn par_objects(&self) -> impl ParallelIterator<Item = Object> {
        self.segments().into_par_iter().flat_map_iter(|segment| segment.objects())
    }

    pub(super) fn objects_within(&self, segments: Indices<SegmentIndex>, pattern: Option<String>) -> Objects {
        Objects {
            heap: self.clone(),
            segments,
            at: None,
            batch: Vec::new().into_iter(),
            size: FIRST_BATCH,
            pattern,
            types: Wanted::new(),
            notes: self.begin().into_notes(),
        }
    }
}

impl Objects {
    /// Notes on the parts of the heap that the walk could not read so far, where objects may be missing. The notes are complete once the iterator is
    /// exhausted.
    pub fn notes(&self) -> Notes {
        let notes = Collector::new();
        notes.extend(&self.notes);
        if let Ok(readers) = self.heap.runtime().readers() {
            readers.namer.note(&notes);
        }
        notes.into_notes()
    }

    /// Walks until the batch is full or the segment ends.
    fn fill(&mut self) -> Option<()> {
        let (index, from) = match self.at.take() {
            Some(at) => at,
            None => (self.segments.next()?, None),
        };
        let (heap, types, pattern, size) = (&self.heap, &mut self.types, self.pattern.as_deref(), self.size);
        let mut batch = Vec::new();
        let mut next = None;
        let notes = Collector::new();
        let walk = heap.walker().visit_from(index, from, |object| {
            if batch.len() >= size {
                next = Some(object.address);
                return ControlFlow::Break(());
            }
            if let Some(ty) = wanted(heap, types, pattern, object.ty) {
                batch.push(heap.known_object(object.address, object.size, ty));
            }
            ControlFlow::Continue(())
        });
        if let Some(walk) = walk {
            note_walks(heap.walker(), &[(index, walk)], &notes);
        }
        self.notes.extend(&notes.into_notes());
        self.at = next.map(|at| (index, Some(at)));
        self.size = size.saturating_mul(2).min(FULL_BATCH);
        self.batch = batch.into_iter();
        Some(())
    }
}

/// The type of an object, if objects of this type are wanted. Decides once per type, because names are read from metadata.
fn wanted(heap: &Heap, types: &mut Wanted, pattern: Option<&str>, ty: &ObjectType) -> Option<Arc<ObjectType>> {
    let decide = || {
        let named = !ty.is_free && pattern.is_none_or(|p| glob(p, &heap.type_name(ty.method_table)));
        heap.walker().type_at(ty.method_table).filter(|_| named)
    };
    types.slot(ty.index)?.get_or_insert_with(decide).clone()
}

impl Iterator for Objects {
    type Item = Object;

    fn next(&mut self) -> Option<Object> {
        loop {
            if let Some(object) = self.batch.next() {
                return Some(object);
            }
            self.fill()?;
        }
    }
}

impl std::iter::FusedIterator for Objects {}
