//! Selects objects by type, generation, heap, segment and size.

use super::condition::{Condition, Evaluator};
use super::field_paths::unknown_name;
use crate::base::missed::{tried, watched};
use crate::base::{Addr, Collector, IndexVec, NoteKind};
use crate::gc::{Object, ObjectType, TypeIndex};
use crate::managed::BoundField;
use crate::model::{Generation, SegmentModel};
use crate::session::{Error, Heap, Namer, TypeFilter, TypePattern};

/// Types of fields whose values are texts of the program.
const HIDDEN_TYPES: [&str; 3] = ["System.String", "System.Char", "System.Object"];

/// An object filter. Empty lists match everything.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// Types.
    pub types: Vec<TypePattern>,
    /// Generations.
    pub generations: Vec<Generation>,
    /// Heap indices.
    pub heaps: Vec<u64>,
    /// Segments. Each is given by the address of its `heap_segment` structure or by any address in its memory.
    pub segments: Vec<Addr>,
    /// Minimum size in bytes.
    pub min_size: u64,
    /// Maximum size in bytes.
    pub max_size: Option<u64>,
    /// Condition that the objects must also meet.
    pub condition: Option<Condition>,
}

impl Selection {
    /// Whether the segment may contain a selected object.
    pub fn segment(&self, segment: &SegmentModel) -> bool {
        let generation = |g: &Generation| *g == segment.generation || segment.parts.iter().any(|p| p.generation == *g);
        (self.generations.is_empty() || self.generations.iter().any(generation))
            && (self.heaps.is_empty() || self.heaps.contains(&segment.heap))
            && (self.segments.is_empty()
                || self.segments.iter().any(|a| *a == segment.address || (segment.start <= *a && *a < segment.reserved)))
    }

    /// Whether every object is selected.
    pub fn is_everything(&self) -> bool {
        self.types.is_empty() && self.is_of_types()
    }

    /// Whether the selection depends only on the type of an object.
    pub fn is_of_types(&self) -> bool {
        let sizes = self.min_size == 0 && self.max_size.is_none();
        let places = self.generations.is_empty() && self.heaps.is_empty() && self.segments.is_empty();
        places && sizes && self.condition.is_none()
    }

    /// Resolves the type patterns among the types on the heap.
    pub(crate) fn filter(&self, heap: &Heap, namer: &Namer, notes: &Collector) -> TypeFilter {
        if self.types.is_empty() { TypeFilter::default() } else { heap.filter(&self.types, namer, notes) }
    }

    /// Refuses a condition that compares texts of the program if these are hidden: the comparison would be neither true nor false, and its answer could reveal
    /// the text.
    ///
    /// # Errors
    /// [`Error::Query`] with the field.
    pub(crate) fn refuse_hidden(&self, heap: &Heap) -> Result<(), Error> {
        let Some(condition) = self.condition.as_ref().filter(|_| heap.memory().hides_contents()) else { return Ok(()) };
        let fields = condition.fields_as_texts();
        if fields.is_empty() {
            return Ok(());
        }
        let namer = heap.namer();
        // The caller reports patterns that match no type.
        let filter = self.filter(heap, &namer, &Collector::new());
        let sums = &heap.type_sums().data.sums;
        let all = heap.walker().types().list();
        let met = all.iter().zip(sums).filter(|(ty, sum)| sum.count > 0 && !ty.is_free).map(|(ty, _)| ty);
        let taken: Vec<Addr> = met.filter(|ty| filter.is_empty() || filter.takes(ty, &namer)).map(|ty| ty.method_table).collect();
        // Through a reference, the type of the value depends on the object.
        let is_text = |declared: Option<String>| declared.is_none_or(|name| HIDDEN_TYPES.contains(&name.as_str()));
        let hidden = |path: &&[String]| {
            taken.iter().any(|table| BoundField::bind(heap, *table, path).is_some_and(|field| is_text(field.declared(heap))))
        };
        match tried(|| fields.into_iter().find(hidden)) {
            Some(path) => Err(Error::Query(format!("texts are hidden here: a condition cannot compare {}", path.join(".")))),
            None => Ok(()),
        }
    }

    /// Adds a note for each field path of the condition that no object of a type that `filter` accepts has: an empty answer may be due to a typo.
    pub(crate) fn note_unknown_fields(&self, heap: &Heap, filter: &TypeFilter, namer: &Namer, notes: &Collector) {
        let fields = self.condition.as_ref().map(Condition::fields).unwrap_or_default();
        if fields.is_empty() {
            return;
        }
        let all = heap.walker().types().list();
        let (unknown, missed) = watched(|| {
            let taken = all.iter().filter(|ty| !ty.is_free && (filter.is_empty() || filter.takes(ty, namer)));
            let taken: Vec<Addr> = taken.map(|ty| ty.method_table).collect();
            fields.into_iter().filter_map(|path| Some((path, unknown_name(heap, &taken, path)?))).collect::<Vec<_>>()
        });
        // If the dump does not contain the field list of a type, that type may have the field. No note is added in this case.
        for (path, name) in unknown.iter().filter(|_| missed.is_empty()) {
            let place = if path.len() > 1 { format!(", in {}", path.join(".")) } else { String::new() };
            notes.add(NoteKind::NoMatch, None, format!("no object has a field '{name}'{place} (gcdump type NAME lists fields)"));
        }
    }

    /// Whether every object of the selected segments is selected.
    pub fn takes_all(&self) -> bool {
        self.types.is_empty() && self.generations.is_empty() && self.min_size == 0 && self.max_size.is_none() && self.condition.is_none()
    }
}

/// Applies a [`Selection`]. Each thread has its own picker, which caches decisions about types.
pub struct Picker<'s> {
    selection: &'s Selection,
    filter: &'s TypeFilter,
    namer: &'s Namer,
    condition: Option<Evaluator<'s>>,
    all: bool,
    /// Decisions by type.
    types: IndexVec<TypeIndex, Option<bool>>,
}

impl<'s> Picker<'s> {
    /// Creates a picker for objects of `heap`. `filter` is from [`Selection::filter`]; `namer` names types.
    pub(crate) fn new(heap: &'s Heap, selection: &'s Selection, filter: &'s TypeFilter, namer: &'s Namer) -> Picker<'s> {
        let condition = selection.condition.as_ref().map(|c| Evaluator::new(c, heap, namer));
        Picker { condition, selection, filter, namer, all: selection.takes_all(), types: IndexVec::new() }
    }

    /// Whether the segment may contain a selected object.
    pub fn segment(&self, segment: &SegmentModel) -> bool {
        self.selection.segment(segment)
    }

    /// Whether the object is selected. Its segment must have been checked with [`Picker::segment`].
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
            && self.condition.as_mut().is_none_or(|c| c.wants(object))
    }

    /// Compares names once per type, not per object.
    fn wants_type(&mut self, kind: &ObjectType) -> bool {
        if let Some(Some(known)) = self.types.get(kind.index) {
            return *known;
        }
        let wanted = self.filter.takes(kind, self.namer);
        if let Some(slot) = self.types.slot(kind.index) {
            *slot = Some(wanted);
        }
        wanted
    }
}
