//! Roots, and entries of the runtime's tables, that point to no object.

use crate::base::hash::Map;
use crate::base::missed::tried;
use crate::base::{Addr, Collector, Count, NoteKind, be, plural};
use crate::gc::ObjectStarts;
use crate::heapgraph::{RootFlags, Roots};
use crate::session::Heap;

/// Adds a note on the roots and dependent handles that the graph cannot use, because no object starts at their address.
/// `notes` has the notes of the walk: if objects may be missing, a further note would say nothing new.
pub(in crate::session) fn note_dangling(heap: &Heap, (roots, index): (&Roots, &ObjectStarts), notes: &Collector) {
    if !knows_objects(heap) || !notes.notes().complete() {
        return;
    }
    let dangles = |object: Addr| !object.is_null() && index.id_of(object).is_none();
    // A word that only looks like a root always points to an object.
    let mut wrong = roots.roots.iter().filter(|r| !r.flags.has(RootFlags::CONSERVATIVE) && dangles(r.object));
    if let Some(first) = wrong.next() {
        let count = wrong.fold(1u64, |n, _| n.saturating_add(1));
        let (label, object) = (roots.label(first), first.object);
        let what =
            format!("{} to an address without an object {} ignored: the first is to {object} ({label})", plural(count, "root"), be(count));
        notes.add(NoteKind::Invalid, first.address, what);
    }
    let mut edges = roots.dependents.iter().filter(|(primary, secondary)| dangles(*primary) || dangles(*secondary));
    if let Some((primary, secondary)) = edges.next() {
        let count = edges.fold(1u64, |n, _| n.saturating_add(1));
        let what = format!(
            "{} to an address without an object {} ignored: the first leads from {primary} to {secondary}",
            plural(count, "dependent handle"),
            be(count)
        );
        notes.add(NoteKind::Invalid, *primary, what);
    }
}

/// Whether all objects of the process can be recognized: all segments are known, and no collection was moving objects.
fn knows_objects(heap: &Heap) -> bool {
    heap.segments_whole()
        && heap.no_heap().is_none()
        && !heap.segment_models().is_empty()
        && heap.parts().gc.notes.iter().all(|n| n.kind != NoteKind::GcMoving)
}

/// Checks the entries of a list that should point to objects, without a walk of the heap.
pub(crate) struct Pointed<'h> {
    /// `None` if objects cannot be recognized.
    heap: Option<&'h Heap>,
    /// Whether an address is that of a method table, by address.
    tables: Map<Addr, bool>,
    wrong: u64,
    first: Option<(Option<Addr>, Addr)>,
}

impl<'h> Pointed<'h> {
    pub(crate) fn new(heap: Option<&'h Heap>) -> Pointed<'h> {
        Pointed { heap: heap.filter(|heap| knows_objects(heap)), tables: Map::default(), wrong: 0, first: None }
    }

    /// Checks the entry at `at`, which points to `object`.
    pub(crate) fn check(&mut self, at: Option<Addr>, object: Addr) {
        if self.is_wrong(object) {
            self.wrong.bump();
            self.first.get_or_insert((at, object));
        }
    }

    /// Whether `object` is neither null nor the address of an object. False if memory that is not in the dump may show an object.
    fn is_wrong(&mut self, object: Addr) -> bool {
        let Some(heap) = self.heap.filter(|_| !object.is_null()) else { return false };
        let walker = heap.walker();
        if walker.segment_of(object).is_none() || !object.is_aligned(heap.memory().ptr_bytes()) {
            return true;
        }
        let Some(table) = tried(|| walker.method_table(object)) else { return false };
        // The method table of free space is the only valid one that no object has.
        let is_table = || tried(|| walker.tables().is_valid(table) != Ok(false) && walker.type_at(table).is_none_or(|ty| !ty.is_free));
        !*self.tables.entry(table).or_insert_with(is_table)
    }

    /// Adds a note on the wrong entries. `what` names one entry.
    pub(crate) fn note(self, what: &str, notes: &Collector) {
        if let Some((at, object)) = self.first {
            let points = if self.wrong == 1 { "points" } else { "point" };
            let what = format!("{} {points} to an address without an object: the first points to {object}", plural(self.wrong, what));
            notes.add(NoteKind::Invalid, at, what);
        }
    }
}
