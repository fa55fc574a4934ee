//! The objects themselves, one by one.

use std::io;
use std::ops::ControlFlow;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::select::{Picker, Selection};
use crate::base::{Addr, Answer, Name};
use crate::gc::{Object, ObjectType};
use crate::model::{Generation, ObjectBrief, ObjectsTail, ReferenceModel, SegmentModel};
use crate::session::{Heap, Namer, coverage, note_walks};

/// Which objects, which page of them, and how much of each.
#[derive(Clone, Debug, Default)]
pub struct ObjectsQuery {
    /// Which objects.
    pub selection: Selection,
    /// Objects to leave out at the start.
    pub start: u64,
    /// Most objects to list, 0 for all.
    pub count: u64,
    /// Whether to list the references.
    pub refs: bool,
}

/// Objects of the first batch: whoever wants a few only does not wait for many.
const FIRST_BATCH: usize = 64;
/// Objects of the largest batch.
const FULL_BATCH: usize = 1 << 13;

/// Hands the objects that `query` selects to `sink`, in the order of the heap and in batches, until it fails. `namer` names
/// them, on any thread.
///
/// # Errors
/// What `sink` returns.
pub fn objects<'h>(
    heap: &'h Heap,
    namer: &'h Namer,
    query: &ObjectsQuery,
    mut sink: impl FnMut(ObjectBatch<'h>) -> io::Result<()>,
) -> io::Result<Answer<ObjectsTail>> {
    let notes = heap.begin();
    let ObjectsQuery { selection, start, count, refs } = query;
    let most = if *count == 0 { u64::MAX } else { *count };
    let mut picker = Picker::new(selection, namer);
    let mut names = TypeNames::default();
    let (mut met, mut listed, mut bytes) = (0u64, 0u64, 0u64);
    let mut more = false;
    let mut result = Ok(());
    let new = || ObjectBatch { heap, namer, refs: *refs, types: Vec::new(), slots: Vec::new(), segment: None, objects: Vec::new() };
    let (mut batch, mut size) = (new(), FIRST_BATCH);
    let walks = heap.walker().visit(
        heap.progress(),
        |s| selection.segment(s),
        |object| {
            if !picker.wants(object) {
                return ControlFlow::Continue(());
            }
            met = met.saturating_add(1);
            if met <= *start {
                return ControlFlow::Continue(());
            }
            if listed >= most {
                more = true;
                return ControlFlow::Break(());
            }
            listed = listed.saturating_add(1);
            bytes = bytes.saturating_add(object.size);
            batch.add(object, &mut names);
            if batch.objects.len() >= size {
                size = size.saturating_mul(2).min(FULL_BATCH);
                result = sink(std::mem::replace(&mut batch, new()));
            }
            if result.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        },
    );
    result?;
    sink(batch)?;
    // The segment in which the page ends was not walked to its end on purpose.
    let walked = if more { walks.get(..walks.len().saturating_sub(1)).unwrap_or_default() } else { &walks };
    note_walks(heap.walker(), walked, &notes);
    namer.note(&notes);
    let next_start = more.then(|| start.saturating_add(listed));
    Ok(notes.finish(ObjectsTail { listed, bytes, next_start, coverage: coverage(heap.walker(), walked) }))
}

/// An object of a batch.
struct Met {
    address: Addr,
    size: u64,
    /// Index of its type in the batch.
    index: u32,
    length: Option<u32>,
    generation: Generation,
    heap: u64,
}

/// Objects that follow each other. What is to be told of each is put together by whoever reads the batch, on any thread.
pub struct ObjectBatch<'h> {
    heap: &'h Heap,
    namer: &'h Namer,
    refs: bool,
    /// Types of its objects with names of its own: a name that threads share would keep them waiting for its counter.
    types: Vec<(Arc<ObjectType>, Name)>,
    /// By index of the type in the heap: its index here.
    slots: Vec<Option<u32>>,
    segment: Option<&'h SegmentModel>,
    objects: Vec<Met>,
}

impl std::fmt::Debug for ObjectBatch<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ObjectBatch").field("objects", &self.objects.len()).finish_non_exhaustive()
    }
}

impl ObjectBatch<'_> {
    fn add(&mut self, object: &Object<'_>, names: &mut TypeNames) {
        let Some(index) = self.type_of(object, names) else { return };
        // The walk goes segment by segment.
        if self.segment.is_none_or(|s| object.address < s.start || object.address >= s.allocated) {
            self.segment = self.heap.walker().segment_of(object.address).map(|(_, s)| s);
        }
        let length = if object.ty.is_free { None } else { object.length() };
        self.objects.push(Met {
            address: object.address,
            size: object.size,
            index,
            length: length.and_then(|n| u32::try_from(n).ok()),
            generation: object.generation,
            heap: self.segment.map_or(0, |s| s.heap),
        });
    }

    fn type_of(&mut self, object: &Object<'_>, names: &mut TypeNames) -> Option<u32> {
        let slot = usize::try_from(object.ty.index).ok()?;
        if let Some(Some(index)) = self.slots.get(slot) {
            return Some(*index);
        }
        if self.slots.len() <= slot {
            self.slots.resize(slot.saturating_add(64), None);
        }
        let index = u32::try_from(self.types.len()).ok()?;
        let name = Name::from(&*names.get(self.namer, object.ty));
        self.types.push((Arc::new(object.ty.clone()), name));
        *self.slots.get_mut(slot)? = Some(index);
        Some(index)
    }

    /// Objects in the batch.
    pub fn len(&self) -> usize {
        self.objects.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }

    /// Hands out the objects until `row` fails.
    ///
    /// # Errors
    /// What `row` returns.
    pub fn each(self, row: &mut dyn FnMut(&ObjectBrief) -> io::Result<()>) -> io::Result<()> {
        let mut fields = FieldNames { namer: self.namer, word: self.heap.memory().ptr_bytes(), known: FxHashMap::default() };
        let mut refs = self.refs.then(Vec::new);
        for met in &self.objects {
            let Some((kind, name)) = usize::try_from(met.index).ok().and_then(|i| self.types.get(i)) else { continue };
            if let Some(list) = &mut refs {
                list.clear();
                let object = self.heap.walker().again(met.address, kind, met.size, met.generation);
                object.references(|offset, to| list.push(ReferenceModel { offset, to, field: fields.at(met.index, kind, offset) }));
            }
            let brief = ObjectBrief {
                address: met.address,
                free: kind.is_free,
                type_name: name.clone(),
                method_table: kind.method_table,
                size: met.size,
                generation: met.generation,
                heap: met.heap,
                length: met.length.map(u64::from),
                refs,
            };
            row(&brief)?;
            refs = brief.refs;
        }
        Ok(())
    }
}

/// Names of fields, of one batch: asking the namer for every reference takes longer than all the rest.
struct FieldNames<'h> {
    namer: &'h Namer,
    word: u64,
    /// By type and offset; of arrays, what stands behind the index, by the offset in the element.
    known: FxHashMap<(u32, u64), Option<Name>>,
}

impl FieldNames<'_> {
    fn at(&mut self, index: u32, kind: &ObjectType, offset: u64) -> Option<Name> {
        let mt = kind.method_table;
        if !kind.is_array {
            return self.known.entry((index, offset)).or_insert_with(|| self.namer.path_at(mt, offset).map(Name::from)).clone();
        }
        // The base size counts the header word before the object and everything up to the first element.
        let first = kind.base_size.checked_sub(self.word)?;
        let within = offset.checked_sub(first)?;
        let (element, inner) = (within.checked_div(kind.component_size)?, within.checked_rem(kind.component_size)?);
        let behind = self.known.entry((index, inner)).or_insert_with(|| {
            let path = self.namer.path_at(mt, first.checked_add(inner)?)?;
            path.strip_prefix("[0]").map(Name::from)
        });
        behind.as_ref().map(|behind| Name::from(format!("[{element}]{behind}")))
    }
}

/// Names by index of the type: one question per type, not per object.
#[derive(Default)]
pub(super) struct TypeNames(Vec<Option<Name>>);

impl TypeNames {
    pub(super) fn get(&mut self, namer: &Namer, kind: &ObjectType) -> Name {
        let make = || if kind.is_free { "Free".into() } else { namer.name_or_address(kind.method_table).into() };
        let Ok(index) = usize::try_from(kind.index) else { return make() };
        if self.0.len() <= index {
            self.0.resize(index.saturating_add(64), None);
        }
        self.0.get_mut(index).map_or_else(make, |slot| slot.get_or_insert_with(make).clone())
    }
}

/// An object in brief.
pub(super) fn brief(heap: &Heap, namer: &Namer, object: &Object<'_>) -> ObjectBrief {
    ObjectBrief {
        address: object.address,
        free: object.ty.is_free,
        type_name: TypeNames::default().get(namer, object.ty),
        method_table: object.ty.method_table,
        size: object.size,
        generation: object.generation,
        heap: heap.walker().segment_of(object.address).map_or(0, |(_, s)| s.heap),
        length: if object.ty.is_free { None } else { object.length() },
        refs: None,
    }
}
