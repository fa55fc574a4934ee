//! Which objects are meant: by type, generation, heap, segment and size.

use crate::base::{Addr, IndexVec};
use crate::gc::{Object, ObjectType, TypeIndex};
use crate::model::{Generation, SegmentModel};
use crate::session::{Namer, TypePattern};

/// Which objects are meant. Empty lists mean all.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// Of these types.
    pub types: Vec<TypePattern>,
    /// In these generations.
    pub generations: Vec<Generation>,
    /// In these heaps.
    pub heaps: Vec<u64>,
    /// In the segments whose structure or memory is at these addresses.
    pub segments: Vec<Addr>,
    /// Of at least so many bytes.
    pub min_size: u64,
    /// Of at most so many bytes.
    pub max_size: Option<u64>,
}

impl Selection {
    /// Whether the segment may hold an object that is meant.
    pub fn segment(&self, segment: &SegmentModel) -> bool {
        let generation = |g: &Generation| *g == segment.generation || segment.parts.iter().any(|p| p.generation == *g);
        (self.generations.is_empty() || self.generations.iter().any(generation))
            && (self.heaps.is_empty() || self.heaps.contains(&segment.heap))
            && (self.segments.is_empty()
                || self.segments.iter().any(|a| *a == segment.address || (segment.start <= *a && *a < segment.reserved)))
    }

    /// Whether nothing at all is left out.
    pub fn is_everything(&self) -> bool {
        self.takes_all() && self.heaps.is_empty() && self.segments.is_empty()
    }

    /// Whether it means every object of every segment that it means.
    pub fn takes_all(&self) -> bool {
        self.types.is_empty() && self.generations.is_empty() && self.min_size == 0 && self.max_size.is_none()
    }
}

/// Decides which objects are meant. Each thread has its own, which remembers its decisions about types.
pub struct Picker<'s> {
    selection: &'s Selection,
    namer: &'s Namer,
    all: bool,
    /// Decided once per type.
    types: IndexVec<TypeIndex, Option<bool>>,
}

impl<'s> Picker<'s> {
    /// A picker that names types with `namer`.
    pub fn new(selection: &'s Selection, namer: &'s Namer) -> Picker<'s> {
        Picker { selection, namer, all: selection.takes_all(), types: IndexVec::new() }
    }

    /// Whether the segment may hold an object that is meant.
    pub fn segment(&self, segment: &SegmentModel) -> bool {
        self.selection.segment(segment)
    }

    /// Whether the object is meant. Its segment has been asked for already.
    #[inline]
    pub fn wants(&mut self, object: &Object<'_>) -> bool {
        self.all || self.looks_closer(object)
    }

    fn looks_closer(&mut self, object: &Object<'_>) -> bool {
        let s = self.selection;
        object.size >= s.min_size
            && s.max_size.is_none_or(|most| object.size <= most)
            && (s.generations.is_empty() || s.generations.contains(&object.generation))
            && (s.types.is_empty() || self.wants_type(object.ty))
    }

    /// Names are made once per type, not per object.
    fn wants_type(&mut self, kind: &ObjectType) -> bool {
        if let Some(Some(known)) = self.types.get(kind.index) {
            return *known;
        }
        let matches = |pattern: &TypePattern| pattern.matches(kind.method_table, || self.namer.name_or_address(kind.method_table));
        // Method tables first: a name costs a look into metadata.
        let wanted = self.selection.types.iter().any(|p| matches!(p, TypePattern::MethodTable(_)) && matches(p))
            || self.selection.types.iter().any(|p| matches!(p, TypePattern::Name(_)) && matches(p));
        if let Some(slot) = self.types.slot(kind.index) {
            *slot = Some(wanted);
        }
        wanted
    }
}
