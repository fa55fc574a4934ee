//! The GC heap of one runtime: walker, object starts, roots and graph, each built on first use.

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::ops::ControlFlow;
use std::sync::Arc;

use super::heap_parts::HeapParts;
use super::kind::no_heap;
use super::{Error, NamedTypes, Namer, Runtime, TypeFilter, TypePattern};
use crate::base::{Addr, Answer, Collector, IndexVec, Limits, Note, NoteKind, Progress};
use crate::contract::ContractError;
use crate::dump;
use crate::gc::{Gc, Object, ObjectStarts, ObjectType, Piece, SegmentIndex, StartsVisitor, TypeIndex, Visitor, Walked, Walker, note_walks};
use crate::heapgraph::{HeapIndex, IndexError, IndexUse, Sums, TypeSums, add_sums, beside};
use crate::memory::Memory;
use crate::model::{Generation, SegmentModel, Sum, WalkModel};

/// The object starts and type sums from a complete walk. They can be transferred to another `Heap` of the same dump.
#[derive(Clone, Debug)]
pub(crate) struct Survey {
    segments: Vec<SegmentModel>,
    /// Method tables by the type indices of the surveyed heap.
    types: IndexVec<TypeIndex, Addr>,
    starts: Answer<Arc<ObjectStarts>>,
    sums: Answer<TypeSums>,
}

/// Counts objects, and records which segments contain objects of each type.
#[derive(Default)]
struct Counter {
    /// Count and size by type, and the segment that contains the latest object of the type.
    types: IndexVec<TypeIndex, (Sum, Option<SegmentIndex>)>,
    segment: SegmentIndex,
    /// Pairs of a segment and the type of an object in it.
    places: Vec<(SegmentIndex, TypeIndex)>,
}

impl Visitor for Counter {
    fn piece(&mut self, piece: &Piece<'_>) -> bool {
        self.segment = piece.index;
        true
    }

    #[inline]
    fn object(&mut self, object: &Object<'_>) {
        if let Some((sum, last)) = self.types.slot(object.ty.index) {
            sum.add(object.size);
            if *last != Some(self.segment) {
                *last = Some(self.segment);
                self.places.push((self.segment, object.ty.index));
            }
        }
    }
}

/// A visitor that skips all segments except `segments`.
struct Within<'w, V> {
    segments: &'w BTreeSet<SegmentIndex>,
    visitor: V,
}

impl<V: Visitor> Visitor for Within<'_, V> {
    fn piece(&mut self, piece: &Piece<'_>) -> bool {
        self.segments.contains(&piece.index) && self.visitor.piece(piece)
    }

    #[inline]
    fn object(&mut self, object: &Object<'_>) {
        self.visitor.object(object);
    }

    fn follow(&mut self, before: &mut Self) {
        self.visitor.follow(&mut before.visitor);
    }
}

/// The GC heap of one runtime.
#[derive(Clone, Debug)]
pub struct Heap {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    runtime: Runtime,
    parts: Arc<HeapParts>,
}

impl Heap {
    pub(super) fn new(runtime: Runtime, parts: Arc<HeapParts>) -> Heap {
        Heap { inner: Arc::new(Inner { runtime, parts }) }
    }

    /// Whether `self` and `other` are handles to one heap of one opened dump: they share the same cached parts.
    pub(crate) fn is(&self, other: &Heap) -> bool {
        Arc::ptr_eq(&self.inner.parts, &other.inner.parts)
    }

    /// The parts of the heap that are built once.
    pub(super) fn parts(&self) -> &HeapParts {
        &self.inner.parts
    }

    /// The runtime.
    pub fn runtime(&self) -> &Runtime {
        &self.inner.runtime
    }

    /// The process's memory.
    #[doc(hidden)]
    pub fn memory(&self) -> &Arc<Memory> {
        self.inner.runtime.memory()
    }

    /// The limits in force.
    pub fn limits(&self) -> &Limits {
        self.inner.runtime.limits()
    }

    pub(crate) fn progress(&self) -> &dyn Progress {
        self.inner.runtime.progress()
    }

    /// The GC's structures.
    #[doc(hidden)]
    pub fn gc(&self) -> &Gc {
        &self.inner.parts.gc
    }

    /// The segments with all their fields, ordered by heap and generation. [`Heap::segments`] returns handles instead.
    #[doc(hidden)]
    pub fn segment_models(&self) -> &[SegmentModel] {
        self.inner.parts.walker.segments()
    }

    /// The generation at `address`; `None` outside the heap. With segments instead of regions, generations 0 and 1 are in one segment, the
    /// [ephemeral](Generation::Ephemeral) one.
    pub fn generation_of(&self, address: Addr) -> Option<Generation> {
        self.inner.parts.walker.generation_of(address)
    }

    /// The walker.
    pub(crate) fn walker(&self) -> &Walker {
        &self.inner.parts.walker
    }

    /// Begins an answer about the heap, with the notes of opening the dump, the GC and the segments.
    pub(crate) fn begin(&self) -> Collector {
        let notes = self.inner.runtime.begin();
        self.note(&notes);
        notes
    }

    /// Adds the notes on the GC and the segments, for an answer that uses the heap among other things.
    pub(crate) fn note(&self, notes: &Collector) {
        notes.extend(&self.inner.parts.gc.notes);
        notes.extend(&self.inner.parts.walker.notes);
    }

    /// Whether [`Heap::segments`] has all segments of the process.
    pub(crate) fn segments_whole(&self) -> bool {
        self.inner.parts.walker.notes.complete()
    }

    /// The note that the dump was taken without the heap; `None` if the dump was taken with the heap.
    pub(crate) fn no_heap(&self) -> Option<&Note> {
        self.inner.parts.walker.notes.iter().find(|n| n.kind == NoteKind::NoHeap)
    }

    /// Names of at most `most` of the types that walks have found so far, sorted.
    pub(crate) fn type_names(&self, most: usize) -> Vec<String> {
        let namer = self.namer();
        let types = self.walker().types().list();
        let named = types.iter().filter(|t| !t.is_free).take(most).filter_map(|t| namer.name(t.method_table));
        let mut names: Vec<String> = named.map(|name| name.as_str().into()).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// Creates a namer for one answer.
    pub(crate) fn namer(&self) -> Namer {
        self.inner.runtime.namer()
    }

    /// Resolves type patterns against the types on the heap. If a pattern is a name, this requires the type sums, which the first call computes by a
    /// heap walk.
    pub(crate) fn filter(&self, patterns: &[TypePattern], namer: &Namer, notes: &Collector) -> TypeFilter {
        let tables = || {
            let TypeSums { sums, .. } = notes.with(self.type_sums());
            let types = self.walker().types().list();
            let met = types.iter().zip(sums).filter(|(_, sum)| sum.count > 0);
            met.map(|(kind, _)| kind.method_table).collect()
        };
        TypeFilter::of(patterns, &NamedTypes { namer, tables }, notes)
    }

    /// The objects by type, counted by one walk and cached.
    pub(crate) fn type_sums(&self) -> &Answer<TypeSums> {
        self.inner.parts.sums.get_or_init(|| {
            if let Some(index) = self.index() {
                return index.sums(self.walker());
            }
            let walked = self.walker().walk_once(self.progress(), Counter::default);
            self.counted(walked.segments, walked.visitors)
        })
    }

    fn counted(&self, walks: Vec<(SegmentIndex, WalkModel)>, counters: impl IntoIterator<Item = Counter>) -> Answer<TypeSums> {
        let notes = Collector::new();
        note_walks(self.walker(), &walks, &notes);
        let (mut sums, mut places) = (Sums::new(), Vec::new());
        for counter in counters {
            add_sums(&mut sums, counter.types.iter().map(|(sum, _)| *sum).collect());
            places.extend(counter.places);
        }
        places.sort_unstable();
        places.dedup();
        notes.finish(TypeSums::of(sums, places, walks))
    }

    /// Counts the objects by type and finds their starts in one walk, for callers that need both.
    pub(crate) fn survey(&self) {
        if self.knows_starts() || self.inner.parts.sums.get().is_some() {
            return;
        }
        let visitor = || (StartsVisitor::new(self.walker()), Counter::default());
        let Walked { segments, visitors } = self.walker().walk_once(self.progress(), visitor);
        let (starts, counters): (Vec<_>, Vec<_>) = visitors.into_iter().unzip();
        let notes = Collector::new();
        let starts = notes.take(ObjectStarts::new(self.walker(), starts));
        note_walks(self.walker(), &segments, &notes);
        self.keep_starts(notes.finish(Arc::new(starts)));
        let _ = self.inner.parts.sums.set(self.counted(segments, counters));
    }

    /// Returns the survey of the heap if the walk was complete.
    pub(crate) fn surveyed(&self) -> Option<Survey> {
        let found = self.parts();
        let (starts, sums) =
            found.starts.get().zip(found.sums.get()).filter(|(starts, sums)| starts.notes.complete() && sums.notes.complete())?;
        let types = self.walker().types().list().iter().map(|ty| ty.method_table).collect();
        Some(Survey { segments: self.segment_models().to_vec(), types, starts: starts.clone(), sums: sums.clone() })
    }

    /// Reuses the survey of another `Heap` of the same dump, even if the other `Heap` was opened with other module files, because a walk of this heap
    /// would find the same objects. [Surveys](Heap::survey) this heap if the segments or types differ.
    pub(crate) fn survey_like(&self, other: &Survey) {
        let types = || other.types.iter().map(|mt| Some(self.walker().type_at(*mt)?.index)).collect::<Option<IndexVec<_, _>>>();
        let known = (self.segment_models() == other.segments).then(types).flatten();
        match known.and_then(|types| other.sums.data.with_types(&types)) {
            Some(sums) => {
                self.keep_starts(other.starts.clone());
                let _ = self.inner.parts.sums.set(Answer::new(sums, other.sums.notes.clone()));
            }
            None => self.survey(),
        }
    }

    /// Selects the types that have objects and for which `wanted` returns true. Counts the objects first: see [`Heap::type_sums`].
    pub(crate) fn types_where(&self, notes: &Collector, wanted: impl Fn(&ObjectType) -> bool) -> IndexVec<TypeIndex, bool> {
        let TypeSums { sums, .. } = notes.with(self.type_sums());
        let types = self.walker().types().list();
        types.iter().zip(sums).map(|(ty, sum)| sum.count > 0 && wanted(ty)).collect()
    }

    /// Walks the segments that contain objects of the `wanted` types, which [`Heap::types_where`] selected. The visitors also see the other
    /// objects in these segments. The notes of [`Heap::type_sums`] report unreadable objects.
    pub(crate) fn walk_where<V: Visitor>(&self, wanted: &IndexVec<TypeIndex, bool>, visitor: impl Fn() -> V + Sync) -> Vec<V> {
        let places = self.type_sums().data.places();
        let segments: BTreeSet<SegmentIndex> = places.filter(|(_, ty)| wanted.get(*ty) == Some(&true)).map(|(at, _)| at).collect();
        if segments.is_empty() {
            return Vec::new();
        }
        let walked = self.walker().walk_once(self.progress(), || Within { segments: &segments, visitor: visitor() });
        walked.visitors.into_iter().map(|within| within.visitor).collect()
    }

    /// Passes the objects of the segments selected by `picked` to `visit`, in heap order, until `visit` breaks. Returns the walk result of each
    /// segment reached. If the objects are already counted, segments without objects of the `wanted` types are not walked, and the count supplies
    /// their walk results.
    pub(crate) fn visit(
        &self,
        picked: impl Fn(&SegmentModel) -> bool,
        wanted: Option<&impl Fn(&ObjectType) -> bool>,
        mut visit: impl FnMut(&Object<'_>) -> ControlFlow<()>,
    ) -> Vec<(SegmentIndex, WalkModel)> {
        let walker = self.walker();
        if wanted.is_some() && self.index().is_some() {
            self.type_sums();
        }
        let Some((wanted, counted)) = wanted.zip(self.inner.parts.sums.get()) else {
            return walker.visit(self.progress(), |_, s| picked(s), visit);
        };
        let here = walker.segments_enumerated().filter(|(_, s)| picked(s)).flat_map(|(i, _)| counted.data.types_in(i));
        let here: BTreeSet<TypeIndex> = here.collect();
        let types = walker.types().list();
        let wanted: IndexVec<TypeIndex, bool> = types.iter_enumerated().map(|(i, ty)| here.contains(&i) && wanted(ty)).collect();
        let holds = |segment| counted.data.types_in(segment).any(|ty| wanted.get(ty) == Some(&true));
        let mut ended = false;
        let walked = walker.visit(
            self.progress(),
            |i, s| picked(s) && holds(i),
            |object| {
                let flow = visit(object);
                ended = flow.is_break();
                flow
            },
        );
        let last = if ended { walked.last().map(|(i, _)| *i) } else { None };
        let mut walked = walked.into_iter().peekable();
        let reached = counted.data.walks.iter().take_while(|(i, _)| last.is_none_or(|last| *i <= last));
        let reached = reached.filter(|(i, _)| walker.segment(*i).is_some_and(&picked));
        reached.map(|(i, walk)| walked.next_if(|(w, _)| w == i).unwrap_or_else(|| (*i, walk.clone()))).collect()
    }

    /// Size in bytes of the object at `address` with this method table. `None` if the method table is invalid, or if the object is an array
    /// whose length is not in the dump.
    pub(crate) fn size_at(&self, address: Addr, method_table: Addr) -> Option<u64> {
        let memory = self.memory();
        self.walker().type_at(method_table)?.size(|length| memory.u32(address.plus(length)).ok())
    }

    /// The object starts, found by one walk and cached.
    pub(crate) fn starts(&self) -> &Answer<Arc<ObjectStarts>> {
        self.inner.parts.starts.get_or_init(|| {
            if let Some(starts) = self.index().and_then(|index| index.starts(self.walker())) {
                return starts;
            }
            let notes = Collector::new();
            let (starts, walks) = ObjectStarts::build(self.walker(), self.progress());
            let starts = notes.take(starts);
            note_walks(self.walker(), &walks, &notes);
            notes.finish(Arc::new(starts))
        })
    }

    /// Whether the object starts are cached or can probably be read from an index.
    pub(super) fn knows_starts(&self) -> bool {
        self.inner.parts.starts.get().is_some() || self.index().is_some()
    }

    /// Caches object starts that another walk found as a by-product.
    pub(super) fn keep_starts(&self, starts: Answer<Arc<ObjectStarts>>) {
        // If another thread has set the starts already, they are equal to these.
        let _ = self.inner.parts.starts.set(starts);
    }

    /// The index of the heap, if answers may use one and it matches the dump.
    pub(super) fn index(&self) -> Option<&HeapIndex> {
        self.opened_index().as_ref().ok()?.as_ref()
    }

    fn index_in(&self, file: &File) -> Result<HeapIndex, IndexError> {
        HeapIndex::open(file, self.runtime().file(), self.walker())
    }

    pub(super) fn opened_index(&self) -> &Result<Option<HeapIndex>, IndexError> {
        self.inner.parts.index.get_or_init(|| {
            let path = match self.runtime().index_use() {
                IndexUse::None => return Ok(None),
                IndexUse::Auto => beside(&self.runtime().file().facts.path),
                IndexUse::File(path) => path.clone(),
                IndexUse::Open(index) => return self.index_in(&index.0).map(Some),
            };
            match dump::regular(&path) {
                Ok(file) => self.index_in(&file).map(Some),
                Err(e) if e.kind() == io::ErrorKind::NotFound && *self.runtime().index_use() == IndexUse::Auto => Ok(None),
                Err(e) => Err(e.into()),
            }
        })
    }

    /// The reason why the index cannot be used; `None` if the index can be used, or if no index exists. Opens the index.
    #[doc(hidden)]
    pub fn index_problem(&self) -> Option<&IndexError> {
        self.opened_index().as_ref().err()
    }

    /// Reads the whole index in use to check whether it was changed since it was made; `None` if no index is in use.
    #[doc(hidden)]
    pub fn check_index(&self) -> Option<Result<(), IndexError>> {
        self.index().map(HeapIndex::check_all)
    }
}

/// Reads the GC's structures and the segments, and prepares the walker. The walker works without a readable thread list.
fn open(runtime: &Runtime) -> Result<HeapParts, ContractError> {
    let gc = Arc::clone(runtime.gc()?);
    let notes = Collector::new();
    let walker = notes.take(Walker::new(&gc, runtime.threads_if_any(&notes), runtime.has_all_threads())?);
    notes.extend(&runtime.context_losses());
    let Answer { data: walker, notes: rest } = notes.finish(walker);
    let mut notes = no_heap(runtime, walker.segments(), &rest);
    notes.extend(&rest);
    let walker = Answer::new(walker, notes);
    Ok(HeapParts::new(gc, walker))
}

impl Runtime {
    /// The GC heap.
    ///
    /// # Errors
    /// [`Error::Contract`] if the descriptor does not have the layouts of heap structures or objects.
    pub fn heap(&self) -> Result<Heap, Error> {
        let parts = self.heap_parts(|| open(self).map(Arc::new))?;
        Ok(Heap::new(self.clone(), Arc::clone(parts)))
    }

    /// The GC heap with separate caches: object starts, graph and dominators are freed with the last clone of this heap and of its objects.
    /// A server that keeps many dumps open can keep the [`Runtime`] and drop this heap.
    ///
    /// # Errors
    /// See [`Runtime::heap`].
    pub fn detached_heap(&self) -> Result<Heap, Error> {
        Ok(Heap::new(self.clone(), Arc::new(open(self)?)))
    }
}
