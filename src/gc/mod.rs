//! The GC contract: heaps, generations, segments, handles, OOM history.
//!
//! Source: contract `GC` (`c1`), with the corrections of `docs/internals/gc-structures.md#errata`, marked where they apply.
//! Names are bound to offsets once, in [`Gc::bind`].

mod audit;
mod cards;
mod carve;
mod collections;
mod coverage;
mod facts;
mod fields;
mod finalizers;
mod handle_memory;
mod handles;
mod heap_id;
mod heaps;
mod index;
mod limit;
mod names;
mod oom;
mod phase;
mod regions;
mod segment_checks;
mod segments;
mod side_tables;
mod sweep;
mod walk;

pub use audit::{HeapClaims, ListEnd, SegmentList};
pub use cards::Cards;
pub use carve::{Carved, LeftOut, Searched};
pub(crate) use carve::{SgenRoots, SgenSource};
pub use collections::Collections;
pub(crate) use coverage::{coverage, note_unknown, note_walks};
pub use facts::Facts;
pub use finalizers::{FinalizerEntry, FinalizerQueue};
pub use handles::HandleFilter;
pub use index::{ObjectId, ObjectStarts, StartsVisitor};
pub(crate) use index::{SegmentObjects, Starts};
pub use names::segment_flags;
pub use side_tables::{SideTable, SideTablePlace};
pub use sweep::Sweep;
pub(crate) use walk::object_alignment;
pub use walk::{
    GcDesc, MAX_GAPS, Object, ObjectType, ObjectTypes, Piece, SegmentIndex, Series, TypeIndex, ValueSeries, Visitor, Walked, Walker,
};

use crate::base::missed::tried;
use crate::base::{Addr, AddrRange, Answer, Collector, Count, Limits, Missing, NoteKind, Notes, Progress, len64, plural};
use crate::clr::objects::Objects;
use crate::clr::threads::{AllocContext, ContextLayout, Thread};
use crate::contract::{Contract, ContractError, Descriptor};
use crate::data::{Bound, Field, GCHeap, Generation, HeapSegment, Kind, Structure, bind};
use crate::memory::{Image, Memory, ReadError};
use crate::model::{
    AllocContextModel, CarvedModel, GcKind, GcLayout, GcLimitModel, HandleMemory, HandleModel, HeapDetail, NamedCount, OomModel,
    RegionModel, SegmentModel,
};
use facts::LimitSetting;
pub(crate) use facts::SetLimit;
use fields::{HandleFields, Places, RecordFields};
pub use heap_id::HeapId;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

/// Reader of the GC contract of one runtime.
///
/// Each method returns its data together with the notes about that data. Repeated calls return equal results.
pub struct Gc {
    memory: Arc<Memory>,
    descriptor: Arc<Descriptor>,
    limits: Arc<Limits>,
    places: Places,
    segment: Bound<HeapSegment>,
    generation: Bound<Generation>,
    generation_size: u64,
    context: Option<ContextLayout>,
    handles: Option<HandleFields>,
    /// Notes about descriptor items of handle tables that cannot be used, and about the reason why `handles` is `None`.
    handle_losses: Notes,
    records: Option<RecordFields>,
    /// Notes about descriptor items that the records of collections and the GC's phase need, and that cannot be used.
    record_losses: Notes,
    collections: Answer<Option<Collections>>,
    limit: OnceLock<Option<GcLimitModel>>,
    limit_setting: Option<LimitSetting>,
    /// The properties of the runtime, as in `AppContext`.
    properties: OnceLock<Vec<(String, String)>>,
    /// Writable memory of the GC's image, which contains the GC's global variables.
    variables: Vec<AddrRange>,
    /// Reads method tables of objects, if their contract is supported.
    objects: Result<Objects, ContractError>,
    facts: Facts,
    /// The carved heap, if the heap was found without the GC's structures.
    carved: Option<Carved>,
}

impl std::fmt::Debug for Gc {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gc").field("facts", &self.facts).finish_non_exhaustive()
    }
}

/// The contracts that this module reads.
pub const CONTRACTS: &[Contract] = &[Gc::CONTRACT];

impl Gc {
    /// The contract that [`Gc`] reads.
    pub const CONTRACT: Contract = Contract::needed("GC", &["1"]);

    /// Binds the contract and reads the [`Facts`]. `image` contains the GC and the records of its collections. The state of `threads` helps
    /// to determine the phase of the GC.
    ///
    /// # Errors
    /// [`ContractError`] if the contract is not advertised in a supported version, or the descriptor does not have an item required to
    /// read any heap.
    pub fn bind(
        memory: &Arc<Memory>,
        descriptor: &Arc<Descriptor>,
        limits: &Arc<Limits>,
        image: Option<&Image>,
        threads: &[Thread],
    ) -> Result<Answer<Gc>, ContractError> {
        let d = descriptor.scope();
        Self::CONTRACT.require(&d)?;
        let notes = Collector::new();
        let mut facts = Facts::read(memory, &d, &notes, limits)?;
        // Separate scopes: items missing from these affect only answers about handles, collections and the phase of the GC.
        let (of_handles, of_records) = (descriptor.scope(), descriptor.scope());
        facts.suspended_by = phase::suspended_by(memory, &of_records);
        let handles = HandleFields::bind(&of_handles);
        let mut handle_losses = of_handles.losses();
        if let Err(e) = &handles {
            handle_losses.add(NoteKind::Missing, None, format!("handle tables cannot be read: {e}"));
        }
        let mut gc = Gc {
            memory: Arc::clone(memory),
            descriptor: Arc::clone(descriptor),
            limits: Arc::clone(limits),
            places: Places::bind(&descriptor.scope(), facts.server),
            segment: bind!(&d, HeapSegment { Allocated, Committed, Reserved, Used?, Mem, Flags, Next, BackgroundAllocated?, Heap? })?,
            generation: bind!(&d, Generation { AllocationContext?, StartSegment, AllocationStart? })?,
            generation_size: Generation::size(&d)?,
            context: ContextLayout::bind(&d).ok(),
            handles: handles.ok(),
            records: RecordFields::bind(&of_records).ok(),
            record_losses: of_records.losses(),
            handle_losses,
            collections: Answer::whole(None),
            limit: OnceLock::new(),
            limit_setting: None,
            properties: OnceLock::new(),
            variables: image.map(|i| i.writable.clone()).unwrap_or_default(),
            objects: Objects::bind(memory, &d),
            facts,
            carved: None,
        };
        notes.extend(&d.losses());
        gc.collections = gc.find_collections(image);
        gc.determine_phase(threads, &notes);
        Ok(notes.finish(gc))
    }

    /// Finds the heap in the memory of `searched` by its objects, without the GC's structures.
    ///
    /// # Errors
    /// [`ContractError`] if the descriptor does not have the layouts of method tables or objects.
    pub fn carve(
        memory: &Arc<Memory>,
        descriptor: &Arc<Descriptor>,
        limits: &Arc<Limits>,
        searched: Searched,
        progress: &dyn Progress,
    ) -> Result<Answer<Gc>, ContractError> {
        let d = descriptor.scope();
        let notes = Collector::new();
        let carved = notes.take(carve::carve(memory, &d, limits, searched, progress)?);
        Gc::of_carved((memory, descriptor, limits), carved, notes)
    }

    /// The heap of Mono, whose runtime is `image`.
    ///
    /// # Errors
    /// [`ContractError`] if the descriptor does not have the layouts.
    pub fn of_mono(
        memory: &Arc<Memory>,
        descriptor: &Arc<Descriptor>,
        limits: &Arc<Limits>,
        image: Option<&Image>,
    ) -> Result<Answer<Gc>, ContractError> {
        let notes = Collector::new();
        let carved = carve::mono::read(memory, &descriptor.scope(), image, &notes)?;
        Gc::of_carved((memory, descriptor, limits), carved, notes)
    }

    fn of_carved(
        (memory, descriptor, limits): (&Arc<Memory>, &Arc<Descriptor>, &Arc<Limits>),
        carved: Carved,
        notes: Collector,
    ) -> Result<Answer<Gc>, ContractError> {
        let d = descriptor.scope();
        carved.note(&notes);
        let gc = Gc {
            memory: Arc::clone(memory),
            descriptor: Arc::clone(descriptor),
            limits: Arc::clone(limits),
            places: Places::bind(&Descriptor::default(), false),
            segment: HeapSegment::bind(&d, &[])?,
            generation: Generation::bind(&d, &[])?,
            generation_size: 0,
            context: ContextLayout::bind(&d).ok(),
            handles: None,
            handle_losses: carved.handle_losses(),
            records: None,
            record_losses: Notes::new(),
            collections: Answer::whole(None),
            limit: OnceLock::from(None),
            limit_setting: None,
            properties: OnceLock::new(),
            variables: Vec::new(),
            objects: Objects::bind(memory, &d),
            facts: Facts::unknown(),
            carved: Some(carved),
        };
        notes.extend(&d.losses());
        Ok(notes.finish(gc))
    }

    /// The carved heap, if the heap was found without the GC's structures.
    pub fn carved(&self) -> Option<&Carved> {
        self.carved.as_ref()
    }

    /// The roots that Mono has registered; `None` for other runtimes, or if they were not found.
    pub(crate) fn sgen_roots(&self) -> Option<&SgenRoots> {
        self.carved.as_ref()?.sgen.as_ref()?.roots.as_ref()
    }

    /// The kind of the collector; `None` if the heap was found without the GC's structures.
    pub(crate) fn kind(&self) -> Option<GcKind> {
        self.carved.is_none().then_some(if self.facts.server { GcKind::Server } else { GcKind::Workstation })
    }

    /// The layout of the heap; `None` if the heap was found without the GC's structures.
    pub(crate) fn layout(&self) -> Option<GcLayout> {
        self.carved.is_none().then_some(if self.facts.regions { GcLayout::Regions } else { GcLayout::Segments })
    }

    /// The carved heap, for answers.
    pub fn carved_model(&self) -> Option<CarvedModel> {
        self.carved.as_ref().map(Carved::model)
    }

    /// Whether a heap has segments on its lists.
    pub fn has_heap(&self) -> bool {
        tried(|| self.facts.heaps.iter().any(|heap| self.has_segments(*heap)))
    }

    /// Kind and state of the GC.
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// The GC's records of its collections. `None` if their layout is unknown, or if they were not found; a note says if they are not in
    /// the dump.
    pub fn collections(&self) -> &Answer<Option<Collections>> {
        &self.collections
    }

    /// The limit on the memory that the GC commits; `None` if no limit was found. Limits in `runtimeconfig.json` are found only if the properties of the
    /// runtime are set.
    pub fn limit(&self) -> Option<GcLimitModel> {
        *self.limit.get_or_init(|| tried(|| self.find_limit()))
    }

    /// Method table of the object at `object`, mark bits cleared. `None` if the object is not in the dump.
    pub fn method_table(&self, object: Addr) -> Option<Addr> {
        self.objects.as_ref().ok()?.method_table(object)
    }

    /// Every segment of every heap, once, ordered by heap and generation.
    pub fn segments(&self) -> Answer<Vec<SegmentModel>> {
        if let Some(carved) = &self.carved {
            return Answer::whole(carved.segments(&self.memory));
        }
        self.read(|r| r.segments())
    }

    /// GC memory outside the segments in use: free and freeable regions, bookkeeping, handle tables.
    pub fn regions(&self) -> Answer<Vec<RegionModel>> {
        if self.carved.is_some() {
            return Answer::whole(Vec::new());
        }
        self.read(|r| r.regions())
    }

    /// Calls `visit` for every selected handle, in table order. Returns the number of tables. The objects are not read, so `visit` receives
    /// handles without method tables.
    pub fn walk_handles(&self, filter: &HandleFilter, visit: impl FnMut(HandleModel)) -> Answer<u64> {
        if let Some(carved) = self.carved.as_ref().filter(|carved| !carved.handles.is_empty() || carved.sgen.is_some()) {
            carved.handles.iter().filter(|handle| filter.wants(handle.kind)).cloned().for_each(visit);
            return Answer::new(1, self.handle_losses.clone());
        }
        self.read(|r| r.walk_handles(filter, visit))
    }

    /// The memory of all handle tables: segments, and their blocks by type.
    pub fn handle_blocks(&self) -> Answer<HandleMemory> {
        self.read(|r| r.handle_blocks_in_use())
    }

    /// The finalization queue of every heap.
    pub fn finalizer_queues(&self) -> Answer<Vec<FinalizerQueue>> {
        if self.carved.is_some() {
            return Answer::new(Vec::new(), carve::lacks(Missing::Finalization, "finalization queues"));
        }
        self.read(|r| r.finalizer_queues())
    }

    /// Out-of-memory history: the last failed allocation of each heap.
    pub fn oom(&self) -> Answer<Vec<OomModel>> {
        if self.carved.is_some() {
            return Answer::new(Vec::new(), carve::lacks(Missing::Heap, "failed allocations"));
        }
        self.read(|r| r.oom())
    }

    /// Every allocation context of a thread or a generation that holds memory or has a nonzero total. The global context is always included
    /// if it is in the dump.
    pub fn contexts(&self, threads: &[Thread]) -> Answer<Vec<AllocContextModel>> {
        if self.carved.is_some() {
            return Answer::whole(Vec::new());
        }
        self.read(|r| r.contexts(threads))
    }

    /// Server GC: index of the heap from which the owner of `context` allocates by preference. `None` if the owner has not allocated
    /// anything, or if the heap is unknown.
    pub fn home_heap(&self, context: &AllocContext) -> Option<u64> {
        self.read(|r| r.heap_of_instance(context.home_heap)).data
    }

    /// The items of a heap that other methods do not return (`GetHeapData`), such as its mark array and card table.
    pub fn detail(&self, heap: HeapId) -> Answer<HeapDetail> {
        if self.carved.is_some() {
            return Answer::whole(HeapDetail::default());
        }
        self.read(|r| r.detail(heap))
    }

    /// Counts of the mechanisms that the process's collections used. `None` except in workstation builds with `GC_CONFIG_DRIVEN`.
    pub fn global_mechanisms(&self) -> Answer<Option<Vec<NamedCount>>> {
        self.read(|r| r.global_mechanisms())
    }

    /// The value of a field of `heap`.
    fn heap_field<T: Kind>(&self, heap: HeapId, field: Field<GCHeap, T>) -> Option<T::Value> {
        T::read(&self.memory, self.places.at(heap, field)?).ok()
    }

    /// Calls `read`, and returns its result with the notes of this read.
    fn read<T>(&self, read: impl FnOnce(&Reading<'_>) -> T) -> Answer<T> {
        let reading = Reading { gc: self, descriptor: self.descriptor.scope(), notes: Collector::new() };
        let data = read(&reading);
        reading.notes.extend(&reading.descriptor.losses());
        reading.notes.finish(data)
    }
}

/// A read in progress, with its notes. `descriptor` is a separate scope: it records which items this read asked for and could not use.
struct Reading<'g> {
    gc: &'g Gc,
    descriptor: Arc<Descriptor>,
    notes: Collector,
}

impl Deref for Reading<'_> {
    type Target = Gc;

    fn deref(&self) -> &Gc {
        self.gc
    }
}

/// Number of damaged heaps that get separate notes; the others share one.
const FEW_HEAPS: usize = 8;

impl Reading<'_> {
    /// Adds a note if the descriptor has `field` in a form that cannot be used.
    fn note_unusable<T>(&self, field: Field<GCHeap, T>) {
        if let Some(e) = self.places.unusable(field) {
            self.notes.add(NoteKind::Invalid, None, e.to_string());
        }
    }

    /// The value of a field of `heap`. Adds a note if the memory of the field cannot be read, but not if this build does not have the
    /// field.
    fn of_heap<T: Kind>(&self, heap: HeapId, field: Field<GCHeap, T>, what: &str) -> Option<T::Value> {
        let value = T::read(&self.memory, self.places.at(heap, field)?);
        self.needed(&format!("heap {}: {what}", heap.index), value)
    }

    /// A read in the same scope, with separate notes.
    fn part(&self) -> Reading<'_> {
        Reading { gc: self.gc, descriptor: Arc::clone(&self.descriptor), notes: Collector::new() }
    }

    /// Calls `read` for each heap; notes name the data `what`. A wrong heap count yields thousands of damaged heaps, so only the first few
    /// get separate notes.
    fn each_heap<T>(&self, what: &str, mut read: impl FnMut(&Reading<'_>, HeapId) -> T) -> Vec<T> {
        let (mut damaged, mut more) = (0usize, 0usize);
        let mut one = |heap: &HeapId| {
            let reading = self.part();
            let data = read(&reading, *heap);
            let notes = reading.notes.into_notes();
            if notes.complete() || damaged < FEW_HEAPS {
                damaged = damaged.saturating_add(usize::from(!notes.complete()));
                self.notes.extend(&notes);
            } else {
                more.bump();
            }
            data
        };
        let out = self.facts.heaps.iter().map(&mut one).collect();
        if more > 0 {
            self.notes.add(
                NoteKind::Invalid,
                None,
                format!("the {what} of {} cannot be read in full either", plural(len64(more), "more heap")),
            );
        }
        out
    }

    /// Limits the number of items to read to `most`. Adds a note about `what` if more items are `declared`.
    fn capped(&self, at: Option<Addr>, what: &str, (declared, most): (u64, u64), items: &str) -> u64 {
        if declared > most {
            self.notes.add(NoteKind::LimitHit, at, format!("{what}: only the first {most} of {declared} {items} are read"));
        }
        declared.min(most)
    }

    /// The value of a required read. Adds a note about `what` if the read failed.
    fn needed<T>(&self, what: &str, value: Result<T, ReadError>) -> Option<T> {
        value.map_err(|e| self.notes.add(NoteKind::Missing, e.address, format!("{what}: {e}"))).ok()
    }
}
