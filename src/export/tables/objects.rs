//! The tables `objects` and `refs`, written in one heap walk.

use std::ops::ControlFlow;

use super::block::Value;
use super::context::Context;
use super::feed::Feed;
use super::fields::Fields;
use crate::base::cancel::check_at;
use crate::base::hash::Map;
use crate::base::{Count, Index, IndexVec, Name, NoteKind, be, plural};
use crate::clr::header::Headers;
use crate::gc::{ObjectId, TypeIndex, note_unknown, note_walks};
use crate::heapgraph::{DominatorTree, Extra, HeapGraph};
use crate::model::{Generation, SegmentModel};
use crate::session::{FieldNames, FieldPlace};

/// Retained sizes, dominators and distances.
pub(super) struct Retention<'h> {
    pub(super) tree: &'h DominatorTree,
    /// For each object: number of references from the nearest root, or [`FAR`].
    distances: IndexVec<ObjectId, u32>,
}

/// Distance of objects that no root reaches.
const FAR: u32 = u32::MAX;

impl<'h> Retention<'h> {
    /// Computes distances from the rooted objects `starts`.
    pub(super) fn new(graph: &HeapGraph, tree: &'h DominatorTree, starts: Vec<ObjectId>) -> Retention<'h> {
        let mut distances: IndexVec<ObjectId, u32> = graph.ids().map(|_| FAR).collect();
        let (mut level, mut next, mut distance) = (starts, Vec::new(), 0u32);
        while !level.is_empty() {
            for id in level.drain(..) {
                check_at(id.as_u32());
                match distances.get_mut(id) {
                    Some(known) if *known == FAR => *known = distance,
                    _ => continue,
                }
                next.extend(graph.edges.successors(id).filter(|to| distances.get(*to) == Some(&FAR)));
            }
            std::mem::swap(&mut level, &mut next);
            distance.bump();
        }
        Retention { tree, distances }
    }

    /// Returns the retained size, dominator and distance, and whether a root reaches the object.
    fn of(&self, id: ObjectId) -> [Value<'static>; 4] {
        if !self.tree.is_reachable(id) {
            return [Value::Null, Value::Null, Value::Null, Value::Flag(false)];
        }
        let dominator = self.tree.dominator(id).map_or(Value::Int(HELD_BY_ROOTS), |above| above.as_u32().into());
        let distance = self.distances.get(id).copied().filter(|d| *d != FAR);
        [self.tree.retained(id).into(), dominator, distance.into(), Value::Flag(true)]
    }
}

/// Dominator number of objects that are dominated only by the roots.
const HELD_BY_ROOTS: i64 = -1;

/// Names of the fields that hold references. All elements of an array share one name; the offset identifies the element.
struct Places<'h> {
    names: FieldNames<'h, TypeIndex>,
    /// `[]` followed by the field within the element.
    elements: Map<Name, Name>,
}

impl Places<'_> {
    fn element(&mut self, behind: Name) -> Name {
        let make = |behind: &Name| Name::from(format!("[]{behind}"));
        self.elements.entry(behind).or_insert_with_key(make).clone()
    }
}

/// Streams the objects, with the values of `fields`, to `objects` and their references to `refs`.
pub(super) fn stream(
    context: &Context<'_>,
    retention: Option<&Retention<'_>>,
    (extra, fields): (&Extra, &mut Fields<'_>),
    mut objects: Option<&mut Feed>,
    mut refs: Option<&mut Feed>,
) {
    let (heap, starts) = (context.heap, context.starts);
    let d = heap.runtime().descriptor().scope();
    let headers = Headers::bind(heap.memory(), &d, heap.limits()).ok().filter(|_| objects.is_some());
    let mut places = Places { names: FieldNames::new(context.namer, heap.memory().ptr_bytes()), elements: Map::default() };
    let (dependent, allocator) = (Name::from("(dependent handle)"), Name::from("(loader allocator)"));
    let generations = Generation::ALL.map(|g| (g, Name::from(g.name())));
    let mut segment: Option<&SegmentModel> = None;
    let (mut dangling, mut unnumbered, mut unknown) = (0u64, 0u64, 0u64);
    let walks = heap.walker().visit(
        heap.progress(),
        |_, _| true,
        |object| {
            if object.ty.is_free {
                return ControlFlow::Continue(());
            }
            let Some(id) = starts.id_of(object.address) else {
                unnumbered.bump();
                return ControlFlow::Continue(());
            };
            if let Some(feed) = &mut objects {
                // Objects arrive in segment order, so the segment is cached.
                if segment.is_none_or(|s| object.address < s.start || object.address >= s.allocated) {
                    segment = heap.walker().segment_of(object.address).map(|(_, s)| s);
                }
                let ty = context.types.get(object.ty.index).and_then(Option::as_ref);
                let generation = generations.iter().find(|(g, _)| *g == object.generation).map(|(_, name)| name);
                let [retained, dominator, distance, reachable] = retention.map_or([Value::Null; 4], |r| r.of(id));
                let own = [
                    id.as_u32().into(),
                    object.address.into(),
                    ty.map(|t| t.id).into(),
                    ty.map(|t| &t.name).into(),
                    object.size.into(),
                    generation.into(),
                    segment.map(|s| s.heap).into(),
                    segment.map(|s| s.address).into(),
                    object.length().into(),
                    retained,
                    dominator,
                    distance,
                    reachable,
                    headers.as_ref().and_then(|h| h.hash_code(object.address)).into(),
                ];
                feed.wider(own, fields.values(object))?;
            }
            let Some(feed) = &mut refs else { return ControlFlow::Continue(()) };
            let from = Value::from(id.as_u32());
            let mut flow = ControlFlow::Continue(());
            if object.ty.loses_references() {
                unknown.bump();
            }
            object.references(|offset, target| {
                let Some(to) = starts.id_of(target) else {
                    dangling.bump();
                    return;
                };
                let field = match places.names.at(object.ty.index, object.ty, offset) {
                    Some(FieldPlace::Field(name)) => Some(name),
                    Some(FieldPlace::Element(_, behind)) => Some(places.element(behind)),
                    None => None,
                };
                if flow.is_continue() {
                    flow = feed.row([from, to.as_u32().into(), offset.into(), field.as_ref().into()]);
                }
            });
            flow?;
            for to in extra.dependents(id) {
                feed.row([from, to.as_u32().into(), Value::Null, (&dependent).into()])?;
            }
            match extra.allocator(object.ty) {
                Some(to) => feed.row([from, to.as_u32().into(), Value::Null, (&allocator).into()]),
                None => ControlFlow::Continue(()),
            }
        },
    );
    note_walks(heap.walker(), &walks, context.notes);
    note_unknown(heap.walker(), unknown, context.notes);
    if dangling > 0 {
        let what = format!("{} {} left out: no object is at the target", plural(dangling, "reference"), be(dangling));
        context.notes.add(NoteKind::Invalid, None, what);
    }
    if unnumbered > 0 {
        context.notes.add(
            NoteKind::LimitHit,
            None,
            format!("{} without a number {} left out", plural(unnumbered, "object"), be(unnumbered)),
        );
    }
}
