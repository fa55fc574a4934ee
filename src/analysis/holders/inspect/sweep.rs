//! The walk that all inspections share. It reads the contents of strings and arrays, boxed values and collection counts, and collects the objects
//! of inspected types.

use std::collections::BTreeSet;

use crate::analysis::objects::strings::{Texts, Values, hashes};
use crate::analysis::{InspectionId, StringTotals};
use crate::base::hash::Map;
use crate::base::{Addr, Collector, Count, IndexVec};
use crate::bcl::Library;
use crate::bcl::collections::{Collections, Storage};
use crate::clr::library::{Classifier, Kinds, library_types};
use crate::clr::method_table::Category;
use crate::clr::type_names::TypeNames;
use crate::gc::{Object, ObjectType, Piece, SegmentIndex, TypeIndex, Visitor, note_walks};
use crate::model::{ContainerKind, Generation, WalkModel};
use crate::session::Heap;

/// Fewest bytes of content of an array that is reported because all of it, or more than half at the end, is zeros.
const ZEROS: u64 = 1 << 10;
/// Fewest elements of an array that may be reported as sparse.
const SPARSE: u64 = 100;

library_types! {
    /// Types whose objects are inspected.
    pub(super) enum Inspected {
        in "System.Private.CoreLib" {
            MulticastDelegate = "System.MulticastDelegate",
            SafeHandle = "System.Runtime.InteropServices.SafeHandle",
            LoadContext = "System.Runtime.Loader.AssemblyLoadContext",
            CancellationSource = "System.Threading.CancellationTokenSource",
            Task = "System.Threading.Tasks.Task",
        }
    }
}

/// Identifies the contents of an array, as two independent hashes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct ContentKey {
    pub(super) method_table: Addr,
    hashes: (u64, u64),
    pub(super) length: u64,
}

/// Arrays with the same contents.
#[derive(Clone, Copy, Debug)]
pub(super) struct Same {
    pub(super) count: u64,
    pub(super) first: Addr,
    /// Size of each.
    pub(super) size: u64,
}

/// An array with a finding about its elements.
#[derive(Clone, Copy, Debug)]
pub(super) struct Array {
    pub(super) object: Addr,
    pub(super) size: u64,
    pub(super) length: u64,
    /// Bytes of zeros at the end, or references that are set.
    pub(super) part: u64,
}

/// A collection with the number of its elements.
#[derive(Clone, Copy, Debug)]
pub(super) struct Counted {
    pub(super) object: Addr,
    pub(super) method_table: Addr,
    /// Bytes of the collection object itself.
    pub(super) size: u64,
    /// Number of elements; `None` if it was not requested, or cannot be read.
    pub(super) count: Option<u64>,
    pub(super) capacity: Option<u64>,
}

impl Counted {
    /// Smallest capacity of a collection that may be reported as oversized.
    const ROOM: u64 = 100;

    pub(super) fn is_empty(&self) -> bool {
        self.count == Some(0)
    }

    /// Whether the collection has elements, but uses less than a quarter of its capacity.
    pub(super) fn is_oversized(&self) -> bool {
        let (Some(count), Some(room)) = (self.count, self.capacity) else { return false };
        room >= Counted::ROOM && count > 0 && count.saturating_mul(4) < room
    }
}

/// Results of the walk.
#[derive(Debug, Default)]
pub(super) struct Swept {
    /// Strings by value, if they were requested.
    pub(super) texts: Option<(Values, StringTotals)>,
    pub(super) walks: Vec<(SegmentIndex, WalkModel)>,
    pub(super) same: Map<ContentKey, Same>,
    pub(super) zeros: Vec<Array>,
    pub(super) tails: Vec<Array>,
    pub(super) sparse: Vec<Array>,
    /// Number, bytes and first box, by method table.
    pub(super) boxes: Map<Addr, (u64, u64, Addr)>,
    /// Objects of inspected types, in heap order.
    pub(super) objects: Vec<(Addr, Kinds<Inspected>)>,
    /// Collections, by address.
    pub(super) collections: Vec<Counted>,
    /// The arrays of collections that are empty or have much more capacity than elements, by collection.
    pub(super) storage: Map<Addr, Storage>,
    /// Expected fields that the collections of this runtime do not have.
    pub(super) lacking: BTreeSet<String>,
    /// Number and first object of collectible types, by method table.
    pub(super) collectible: Map<Addr, (u64, Addr)>,
}

impl Swept {
    /// The objects of a type.
    pub(super) fn of(&self, kind: Inspected) -> impl Iterator<Item = Addr> {
        self.objects.iter().filter(move |(_, kinds)| kinds.is(kind)).map(|(object, _)| *object)
    }
}

/// The parts of the walk that the requested inspections need.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Needs {
    texts: bool,
    /// Contents of arrays of plain values.
    plain: bool,
    /// References in arrays.
    references: bool,
    boxes: bool,
    inspected: bool,
    collections: bool,
    /// Number of elements of collections.
    counts: bool,
    /// Number of objects of collectible types.
    collectible: bool,
}

impl Needs {
    pub(super) fn of(ids: impl Iterator<Item = InspectionId>) -> Needs {
        ids.fold(Needs::default(), |needs, id| match id {
            InspectionId::EqualArrays | InspectionId::ZeroArrays | InspectionId::ZeroTails => Needs { plain: true, ..needs },
            // Arrays inside collections are reported with the collections, and not as sparse arrays.
            InspectionId::SparseArrays => Needs { references: true, collections: true, ..needs },
            InspectionId::EmptyCollections | InspectionId::OversizedCollections => Needs { collections: true, counts: true, ..needs },
            InspectionId::BoxedValues => Needs { boxes: true, ..needs },
            InspectionId::LoadContexts => Needs { inspected: true, collectible: true, ..needs },
            InspectionId::EventLeaks | InspectionId::OpenHandles | InspectionId::UnobservedExceptions | InspectionId::Registrations => {
                Needs { inspected: true, ..needs }
            }
            InspectionId::EqualStrings => Needs { texts: true, ..needs },
            InspectionId::Undisposed => needs,
        })
    }

    /// Whether only few objects are needed: no strings, arrays or boxes, which are on nearly every segment.
    fn few(self) -> bool {
        !(self.texts || self.plain || self.references || self.boxes)
    }
}

/// The handling of the objects of a type.
#[derive(Clone, Copy)]
enum Use {
    Nothing,
    /// An array of plain values.
    Plain,
    /// An array of references.
    References,
    Box,
    Inspected(Kinds<Inspected>),
    Collection,
}

/// Determines the handling of the objects of a type.
struct Uses<'s> {
    library: &'s Library,
    classifier: Classifier<Inspected>,
    collections: &'s Collections<'s>,
    needs: Needs,
}

impl Uses<'_> {
    fn of(&self, ty: &ObjectType) -> Use {
        let used = self.possible(ty);
        let needed = match used {
            Use::Nothing => false,
            Use::Plain => self.needs.plain,
            Use::References => self.needs.references,
            Use::Box => self.needs.boxes,
            Use::Inspected(_) => self.needs.inspected,
            Use::Collection => self.needs.collections,
        };
        if needed { used } else { Use::Nothing }
    }

    fn possible(&self, ty: &ObjectType) -> Use {
        let mt = ty.method_table;
        if ty.is_free || ty.is_string {
            return Use::Nothing;
        }
        let tables = self.library.types().names().method_tables();
        if ty.is_array {
            let element = tables.element_type(mt).ok().and_then(TypeNames::method_table_of).and_then(|e| tables.read(e).ok());
            return match element {
                _ if ty.gc_desc.is_empty() => Use::Plain,
                Some(element) if element.category != Category::ValueType => Use::References,
                _ => Use::Nothing,
            };
        }
        let kinds = self.classifier.of(mt);
        if !kinds.is_empty() {
            return Use::Inspected(kinds);
        }
        if tables.read(mt).is_ok_and(|info| info.category == Category::ValueType) {
            return Use::Box;
        }
        match self.collections.kind(mt) {
            Some(ContainerKind::Lazy | ContainerKind::Array) | None => Use::Nothing,
            Some(_) => Use::Collection,
        }
    }

    /// Whether any requested inspection needs objects of the type.
    fn any(&self, ty: &ObjectType) -> bool {
        !matches!(self.of(ty), Use::Nothing) || self.needs.collectible && ty.is_collectible
    }
}

struct Sweeper<'s> {
    decide: &'s Uses<'s>,
    texts: Option<Texts<'s>>,
    uses: IndexVec<TypeIndex, Option<Use>>,
    segment: SegmentIndex,
    found: Swept,
    objects: Vec<(SegmentIndex, Addr, Kinds<Inspected>)>,
}

impl Sweeper<'_> {
    fn plain(&mut self, object: &Object<'_>) {
        let Some(length) = object.length().filter(|n| *n > 0) else { return };
        let bytes = length.saturating_mul(object.ty.component_size);
        let at = object.size.saturating_sub(bytes).saturating_sub(self.decide.library.types().pointer_bytes());
        let Some(content) = object.part(at, bytes) else { return };
        let array = |part| Array { object: object.address, size: object.size, length, part };
        let used = used(&content);
        if used == 0 {
            if bytes >= ZEROS {
                self.found.zeros.push(array(bytes));
            }
            return;
        }
        let tail = bytes.saturating_sub(used);
        if bytes >= ZEROS && tail > bytes / 2 {
            self.found.tails.push(array(tail));
        }
        let key = ContentKey { method_table: object.ty.method_table, hashes: hashes(&content), length };
        let same = self.found.same.entry(key).or_insert(Same { count: 0, first: object.address, size: object.size });
        same.count.bump();
        same.first = same.first.min(object.address);
    }

    /// Reads a collection while its memory is mapped. Reading it later would map all of the dump again.
    fn collection(&mut self, object: &Object<'_>) {
        let contents = if self.decide.needs.counts {
            self.decide.collections.counted(object.address).unwrap_or_else(|lacking| {
                self.found.lacking.insert(lacking.to_string());
                None
            })
        } else {
            None
        };
        let (count, capacity) = (contents.as_ref().map(|c| c.count), contents.and_then(|c| c.capacity));
        let counted = Counted { object: object.address, method_table: object.ty.method_table, size: object.size, count, capacity };
        if counted.is_empty() && capacity != Some(0) || counted.is_oversized() {
            match self.decide.collections.storage(object.address) {
                Ok(Some(storage)) if storage.array.is_some() => drop(self.found.storage.insert(object.address, storage)),
                Ok(_) => {}
                Err(lacking) => drop(self.found.lacking.insert(lacking.to_string())),
            }
        }
        self.found.collections.push(counted);
    }

    fn references(&mut self, object: &Object<'_>) {
        // Arrays of references on the POH belong to the runtime: statics and interned strings.
        let Some(length) = object.length().filter(|n| *n >= SPARSE && object.generation != Generation::Poh) else { return };
        let mut set = 0u64;
        object.references(|_, _| set.bump());
        if set.saturating_mul(4) < length {
            let array = Array { object: object.address, size: object.size, length, part: set };
            self.found.sparse.push(array);
        }
    }
}

/// Number of bytes up to the last one that is not zero.
fn used(content: &[u8]) -> u64 {
    let (rest, words) = content.as_rchunks::<8>();
    let of = |bytes: &[u8]| bytes.iter().rposition(|b| *b != 0).map_or(0, |last| last.saturating_add(1));
    let used = match words.iter().enumerate().rfind(|(_, word)| **word != [0; 8]) {
        Some((before, word)) => rest.len().saturating_add(before.saturating_mul(8)).saturating_add(of(word)),
        None => of(rest),
    };
    u64::try_from(used).unwrap_or(u64::MAX)
}

impl Visitor for Sweeper<'_> {
    fn piece(&mut self, piece: &Piece<'_>) -> bool {
        self.segment = piece.index;
        if let Some(texts) = &mut self.texts {
            texts.piece(piece);
        }
        true
    }

    #[inline]
    fn object(&mut self, object: &Object<'_>) {
        if object.ty.is_string {
            if let Some(texts) = &mut self.texts {
                texts.count(object);
            }
            return;
        }
        let used = match self.uses.get(object.ty.index) {
            Some(Some(used)) => *used,
            _ => {
                let used = self.decide.of(object.ty);
                if let Some(slot) = self.uses.slot(object.ty.index) {
                    *slot = Some(used);
                }
                used
            }
        };
        if object.ty.is_collectible && self.decide.needs.collectible {
            let of_type = self.found.collectible.entry(object.ty.method_table).or_insert((0, object.address));
            of_type.0.bump();
            of_type.1 = of_type.1.min(object.address);
        }
        match used {
            Use::Nothing => {}
            Use::Plain => self.plain(object),
            Use::References => self.references(object),
            Use::Box => {
                let boxes = self.found.boxes.entry(object.ty.method_table).or_insert((0, 0, object.address));
                boxes.0.bump();
                boxes.1.grow(object.size);
                boxes.2 = boxes.2.min(object.address);
            }
            Use::Inspected(kinds) => self.objects.push((self.segment, object.address, kinds)),
            Use::Collection => self.collection(object),
        }
    }
}

/// Walks the heap for the parts in `needs`.
pub(super) fn sweep(heap: &Heap, library: &Library, collections: &Collections<'_>, needs: Needs, notes: &Collector) -> Swept {
    let decide = Uses { library, classifier: Classifier::bind(library.types()), collections, needs };
    let values = Values::default();
    let visitor = || Sweeper {
        decide: &decide,
        texts: needs.texts.then(|| Texts::new(&values, library.types().strings().content())),
        uses: IndexVec::new(),
        segment: SegmentIndex::default(),
        found: Swept::default(),
        objects: Vec::new(),
    };
    let (mut out, mut objects, mut texts) = (Swept::default(), Vec::new(), Vec::new());
    let sweepers = if needs == Needs::default() {
        Vec::new()
    } else if needs.few() {
        let wanted = heap.types_where(notes, |ty| decide.any(ty));
        heap.walk_where(&wanted, visitor)
    } else {
        let walked = heap.walker().walk_once(heap.progress(), visitor);
        note_walks(heap.walker(), &walked.segments, notes);
        out.walks = walked.segments;
        walked.visitors
    };
    for sweeper in sweepers {
        for (key, same) in sweeper.found.same {
            let into = out.same.entry(key).or_insert(Same { count: 0, ..same });
            into.count.grow(same.count);
            into.first = into.first.min(same.first);
        }
        for (mt, (count, bytes, first)) in sweeper.found.boxes {
            let into = out.boxes.entry(mt).or_insert((0, 0, first));
            *into = (into.0.saturating_add(count), into.1.saturating_add(bytes), into.2.min(first));
        }
        for (mt, (count, first)) in sweeper.found.collectible {
            let into = out.collectible.entry(mt).or_insert((0, first));
            *into = (into.0.saturating_add(count), into.1.min(first));
        }
        out.zeros.extend(sweeper.found.zeros);
        out.tails.extend(sweeper.found.tails);
        out.sparse.extend(sweeper.found.sparse);
        out.collections.extend(sweeper.found.collections);
        out.storage.extend(sweeper.found.storage);
        out.lacking.extend(sweeper.found.lacking);
        objects.extend(sweeper.objects);
        texts.extend(sweeper.texts);
    }
    let sums = values.settle(texts);
    out.texts = needs.texts.then_some((values, sums));
    objects.sort_unstable_by_key(|(segment, object, _)| (*segment, *object));
    out.collections.sort_unstable_by_key(|c| c.object);
    out.objects = objects.into_iter().map(|(_, object, kinds)| (object, kinds)).collect();
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeros_at_the_end_are_not_used() {
        for length in 0..40usize {
            let mut content = vec![0u8; length];
            assert_eq!(used(&content), 0);
            for last in 0..length {
                content[last] = 1;
                assert_eq!(used(&content), last as u64 + 1, "{length}");
            }
        }
    }
}
