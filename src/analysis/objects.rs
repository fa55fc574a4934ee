//! The objects themselves, one by one.

use std::io;
use std::ops::ControlFlow;

use super::Namer;
use super::select::{Picker, Selection};
use super::walk::{coverage, note};
use crate::contract::Process;
use crate::gc::{Heap, Object};
use crate::model::{ObjectBrief, ObjectsTail, ReferenceModel};

/// Which page of the objects, and how much of each.
#[derive(Clone, Copy, Debug)]
pub struct ObjectsPage {
    /// Objects to leave out at the start.
    pub start: u64,
    /// Most objects to list.
    pub count: u64,
    /// Whether to list the references.
    pub refs: bool,
}

/// Hands the objects that `selection` means to `row`, in the order of the heap, until it fails.
///
/// # Errors
/// What `row` returns.
pub fn objects(
    process: &Process,
    heap: &Heap,
    namer: &Namer,
    selection: &Selection,
    page: ObjectsPage,
    mut row: impl FnMut(&ObjectBrief) -> io::Result<()>,
) -> io::Result<ObjectsTail> {
    let mut picker = Picker::new(selection, namer);
    let mut names = TypeNames::default();
    let (mut met, mut listed, mut bytes) = (0u64, 0u64, 0u64);
    let mut more = false;
    let mut result = Ok(());
    // The walk hands out objects segment by segment; where it is tells their heap.
    let walks = heap.visit(
        &*process.progress,
        |s| selection.segment(s),
        |object| {
            if !picker.wants(object) {
                return ControlFlow::Continue(());
            }
            met = met.saturating_add(1);
            if met <= page.start {
                return ControlFlow::Continue(());
            }
            if listed >= page.count {
                more = true;
                return ControlFlow::Break(());
            }
            let brief = brief(heap, namer, &mut names, object, page.refs);
            listed = listed.saturating_add(1);
            bytes = bytes.saturating_add(object.size);
            result = row(&brief);
            if result.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        },
    );
    result?;
    // The segment in which the page ends was not walked to its end on purpose.
    let walked = if more { walks.get(..walks.len().saturating_sub(1)).unwrap_or_default() } else { &walks };
    note(process, heap, walked);
    Ok(ObjectsTail {
        complete: true,
        listed,
        bytes,
        next_start: more.then(|| page.start.saturating_add(listed)),
        coverage: coverage(heap, walked),
    })
}

/// Names by number of the type: one question per type, not per object.
#[derive(Default)]
pub(super) struct TypeNames(Vec<Option<String>>);

impl TypeNames {
    pub(super) fn get(&mut self, namer: &Namer, object: &Object<'_>) -> String {
        let make = || if object.kind.is_free { "Free".into() } else { namer.name_or_address(object.kind.method_table) };
        let Ok(index) = usize::try_from(object.kind.index) else { return make() };
        if self.0.len() <= index {
            self.0.resize(index.saturating_add(64), None);
        }
        self.0.get_mut(index).map_or_else(make, |slot| slot.get_or_insert_with(make).clone())
    }
}

/// An object in brief.
pub(super) fn brief(heap: &Heap, namer: &Namer, names: &mut TypeNames, object: &Object<'_>, refs: bool) -> ObjectBrief {
    let references = || {
        let mut list = Vec::new();
        object.references(|offset, to| list.push(ReferenceModel { offset, to, field: namer.field_at(object, offset) }));
        list
    };
    ObjectBrief {
        address: object.address,
        free: object.kind.is_free,
        type_name: names.get(namer, object),
        method_table: object.kind.method_table,
        size: object.size,
        generation: object.generation,
        heap: heap.segment_of(object.address).map_or(0, |(_, s)| s.heap),
        length: if object.kind.is_free { None } else { object.length() },
        refs: refs.then(references),
    }
}
