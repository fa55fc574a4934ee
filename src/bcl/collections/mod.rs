//! Collections of .NET's base class library: the number and the locations of their elements.
//!
//! `docs/internals/collections.md` describes the layouts. If a dump is taken during an operation on a lock-free collection, its count may
//! differ from the number of its elements by one or two.

mod concurrent;
mod hashed;
mod keys;
mod layouts;
mod linear;
mod storage;
mod tables;
mod trees;

use std::cell::Cell;

use layouts::Layouts;
pub(crate) use storage::Storage;
pub(crate) use tables::CollectionType;
pub(super) use tables::Tables;

use super::library::Library;
use crate::base::hash::Set;
use crate::base::{Addr, CorElementType, len64};
use crate::clr::fields::{Field, Types};
use crate::clr::library::{FieldAt, LibraryType, NoSuchField};
use crate::clr::type_names::TypeNames;
use crate::clr::values::{ArrayShape, Place, Values};
use crate::model::ContainerKind;

/// Maximum number of nodes of a list, tree or chain that are visited, and of slots of one queue.
const MOST: usize = 1 << 24;

/// The location of an element or a key, with its declared type.
#[derive(Clone, Debug)]
pub(crate) struct Slot {
    pub(crate) place: Place,
    pub(crate) type_name: String,
}

/// An element: a value, or a key with its value.
#[derive(Clone, Debug, Default)]
pub(crate) struct Item {
    pub(crate) key: Option<Slot>,
    pub(crate) value: Option<Slot>,
}

/// The contents of a collection.
#[derive(Clone, Debug)]
pub(crate) struct Contents {
    pub(crate) kind: ContainerKind,
    /// Number of elements according to the collection; for a string builder, characters; for a stream, bytes; for an array, elements that
    /// are not null.
    pub(crate) count: u64,
    pub(crate) capacity: Option<u64>,
    pub(crate) text: Option<String>,
    /// The first elements.
    pub(crate) items: Vec<Item>,
    /// Whether elements may be missing because a list of nodes has a cycle or a limit was reached.
    pub(crate) cut: bool,
}

impl Contents {
    fn new(kind: ContainerKind, count: u64, capacity: Option<u64>) -> Contents {
        Contents { kind, count, capacity, text: None, items: Vec::new(), cut: false }
    }
}

/// The result of reading: `Ok(None)` if a part of the collection is not in the dump.
type Read<T> = Result<Option<T>, NoSuchField>;

/// Unwraps an `Option`. For `None`, returns `Ok(None)` from the function: a part of the collection is not in the dump.
macro_rules! there {
    ($part:expr) => {
        match $part {
            Some(part) => part,
            None => return Ok(None),
        }
    };
}
use there;

impl Library {
    /// The reader of collections. It shares the bound types and layouts of this library.
    pub(crate) fn collections(&self) -> Collections<'_> {
        Collections { library: self, tables: self.collection_tables() }
    }
}

/// Whether the type `name` is nested in the type `outer`, whose name may end with its arity.
fn is_nested_in(name: &str, outer: &str) -> bool {
    let outer = outer.split_once('`').map_or(outer, |(outer, _)| outer);
    let Some(rest) = name.strip_prefix(outer) else { return false };
    let mut depth = 0usize;
    let mut after_arguments = rest.chars().skip_while(|c| {
        match c {
            '<' => depth = depth.saturating_add(1),
            '>' => depth = depth.saturating_sub(1),
            _ => return depth > 0,
        }
        true
    });
    after_arguments.next() == Some('+')
}

/// Reads collections.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Collections<'l> {
    library: &'l Library,
    tables: &'l Tables,
}

impl<'l> Collections<'l> {
    /// Charges `n` steps: nodes that are visited, or elements that are read. Returns false if fewer steps are left.
    fn afford(&self, n: u64) -> bool {
        self.library.afford(n)
    }

    fn layouts(&self) -> &'l Layouts {
        &self.tables.layouts
    }

    fn types(&self) -> &Types {
        self.library.types()
    }

    /// The kind of collection of objects with this method table; `None` for other objects.
    pub(crate) fn kind(&self, method_table: Addr) -> Option<ContainerKind> {
        self.tables.kinds.get(method_table, || self.classify(method_table))
    }

    fn classify(&self, method_table: Addr) -> Option<ContainerKind> {
        use CollectionType as C;
        let info = self.types().names().method_tables().read(method_table).ok()?;
        if info.is_array {
            let tables = self.types().names().method_tables();
            let element = tables.element_type(method_table).ok().and_then(TypeNames::method_table_of)?;
            let element = self.types().element(&tables.read(element).ok()?);
            return element.is_some_and(CorElementType::is_reference).then_some(ContainerKind::Array);
        }
        let kind = self.tables.classifier.of(method_table).iter().next()?;
        let name = &self.types().names().name(method_table).name;
        let library = CollectionType::ALL.iter().find(|(of, ..)| *of == kind).map(|(.., name)| *name)?;
        // Views such as `ArrayList.Synchronized` and `SortedSet.GetViewBetween` are nested classes that inherit the fields and do not use them. Classes
        // derived from `MemoryStream` often have their own buffers.
        if is_nested_in(name, library) || (kind == C::MemoryStream && *name != library) {
            return None;
        }
        Some(match kind {
            C::Dictionary => ContainerKind::Dictionary,
            C::HashSet => ContainerKind::HashSet,
            C::List => ContainerKind::List,
            C::Queue | C::OldQueue => ContainerKind::Queue,
            C::Stack => ContainerKind::Stack,
            C::LinkedList => ContainerKind::LinkedList,
            C::SortedDictionary => ContainerKind::SortedDictionary,
            C::SortedList => ContainerKind::SortedList,
            C::SortedSet => ContainerKind::SortedSet,
            C::PriorityQueue => ContainerKind::PriorityQueue,
            C::ConcurrentDictionary | C::CoreConcurrentDictionary => ContainerKind::ConcurrentDictionary,
            C::ConcurrentQueue => ContainerKind::ConcurrentQueue,
            C::ConcurrentStack => ContainerKind::ConcurrentStack,
            C::ConcurrentBag => ContainerKind::ConcurrentBag,
            C::ImmutableDictionary => ContainerKind::ImmutableDictionary,
            C::ImmutableList => ContainerKind::ImmutableList,
            C::Hashtable => ContainerKind::Hashtable,
            C::ArrayList => ContainerKind::ArrayList,
            C::BitArray | C::CoreBitArray => ContainerKind::BitArray,
            C::ConditionalWeakTable => ContainerKind::ConditionalWeakTable,
            C::StringBuilder => ContainerKind::StringBuilder,
            C::MemoryStream => ContainerKind::MemoryStream,
            C::Lazy => ContainerKind::Lazy,
        })
    }

    /// The collection at `object` without its elements and its text. `Ok(None)` if the object is not a collection, or if a part of the
    /// collection is not in the dump.
    ///
    /// # Errors
    /// [`NoSuchField`]
    pub(crate) fn counted(&self, object: Addr) -> Read<Contents> {
        let mt = there!(self.library.method_table(object));
        match there!(self.kind(mt)) {
            // The chunks are not visited, because each chunk of a `StringBuilder` is itself a `StringBuilder`, and a long text has thousands
            // of chunks.
            ContainerKind::StringBuilder => self.builder(object, mt),
            _ => self.read(object, 0),
        }
    }

    /// The collection at `object`, with at most `most` elements. `Ok(None)` if the object is not a collection, or if a part of the collection
    /// is not in the dump.
    ///
    /// # Errors
    /// [`NoSuchField`]
    pub(crate) fn read(&self, object: Addr, most: u64) -> Read<Contents> {
        use ContainerKind as K;
        let mt = there!(self.library.method_table(object));
        let kind = there!(self.kind(mt));
        match kind {
            K::Dictionary | K::HashSet => self.hashed(kind, object, mt, most),
            K::List | K::Stack | K::ArrayList => self.vector(kind, object, mt, most),
            K::Queue => self.ring(object, mt, most),
            K::PriorityQueue => self.heap(object, mt, most),
            K::SortedList => self.sorted_list(object, mt, most),
            K::LinkedList => self.linked_list(object, mt, most),
            K::SortedSet | K::SortedDictionary => self.sorted(kind, object, mt, most),
            K::ConcurrentDictionary => self.concurrent_dictionary(object, mt, most),
            K::ConcurrentQueue => {
                let left = Cell::new(len64(MOST));
                let afford = |n| {
                    left.get().checked_sub(n).is_some_and(|rest| {
                        left.set(rest);
                        true
                    })
                };
                self.concurrent_queue(object, mt, most, &afford)
            }
            K::ConcurrentStack => self.concurrent_stack(object, mt, most),
            K::ConcurrentBag => self.concurrent_bag(object, mt, most),
            K::ImmutableDictionary => self.immutable_dictionary(object, mt, most),
            K::ImmutableList => self.immutable_list(object, mt, most),
            K::Hashtable => self.hashtable(object, mt, most),
            K::ConditionalWeakTable => self.weak_table(object, mt, most),
            K::BitArray => self.bit_array(object, mt),
            K::StringBuilder => self.string_builder(object, mt),
            K::MemoryStream => self.memory_stream(object, mt),
            K::Lazy => self.lazy(object, mt, most),
            K::Array => Ok(self.array(object, most)),
        }
    }

    /// The value of a 32-bit field; `None` if it is negative or not in the dump.
    fn number(&self, object: Addr, field: FieldAt) -> Option<u64> {
        self.library.i32(object, field).and_then(|n| u64::try_from(n).ok())
    }

    /// The array that a field refers to; `None` if the field is null, because the array is not allocated yet, or if the array is not in the
    /// dump.
    fn array_of(&self, object: Addr, field: FieldAt) -> Option<ArrayShape> {
        self.library.array(self.library.reference(object, field)?)
    }

    /// The capacity of a collection that keeps its elements in `array`, the array that a field refers to: 0 if the field is null, `None` if the
    /// field or the array is not in the dump.
    fn capacity_of(&self, object: Addr, field: FieldAt, array: Option<&ArrayShape>) -> Option<u64> {
        array.map(|shape| shape.length).or_else(|| self.library.word(object, field).filter(|at| *at == 0))
    }

    /// Address of a field of the structure at `at`. Field offsets in a structure are relative to its boxed form.
    fn within(&self, field: FieldAt, at: Addr) -> Addr {
        at.plus(field.offset.saturating_sub(self.types().pointer_bytes()))
    }

    /// The slot of a field of an object.
    fn in_object(field: &Field, object: Addr) -> Slot {
        Slot { place: Values::place(field, object), type_name: field.type_name.clone() }
    }

    /// The slot of a field of the structure at `at`. Field offsets in a structure are relative to its boxed form.
    fn in_structure(&self, field: &Field, at: Addr) -> Option<Slot> {
        Some(Self::in_object(field, at.minus(self.types().pointer_bytes())?))
    }

    /// The slot of an array element.
    fn element(&self, shape: &ArrayShape, index: u64) -> Slot {
        let place = self.library.values().element_place(shape);
        let place = Place { address: shape.data.element(index, shape.element_bytes), ..place };
        Slot { place, type_name: self.types().names().handle_name(shape.element).name.clone() }
    }

    /// The slot of a reference to an object of any type at `address`.
    fn object_at(&self, address: Addr) -> Slot {
        let place = Place { address, element: CorElementType::Object, method_table: None, definition: None, bytes: None };
        Slot { place, type_name: "System.Object".into() }
    }

    /// The nodes of the list that starts with `first` and is linked by the field `next`, and whether all nodes were read. Reading ends early if
    /// the list has a cycle or exceeds a limit.
    fn chain(&self, first: Option<Addr>, next: FieldAt) -> (Vec<Addr>, bool) {
        let (mut nodes, mut seen) = (Vec::new(), Set::default());
        let mut at = first;
        while let Some(node) = at {
            if nodes.len() >= MOST || !self.afford(1) || !seen.insert(node) {
                return (nodes, false);
            }
            nodes.push(node);
            at = self.library.reference(node, next);
        }
        (nodes, true)
    }
}

#[cfg(test)]
mod tests {
    use super::is_nested_in;

    #[test]
    fn views_are_nested_in_their_collections() {
        const SET: &str = "System.Collections.Generic.SortedSet`1";
        assert!(is_nested_in("System.Collections.Generic.SortedSet<System.Int32>+TreeSubSet", SET));
        assert!(is_nested_in("System.Collections.Generic.SortedSet+TreeSubSet<Lab.P+Pair<System.Int32, Lab.Q>>", SET));
        assert!(is_nested_in("System.Collections.ArrayList+SyncArrayList", "System.Collections.ArrayList"));
        for name in [
            "System.Collections.Generic.SortedSet<Lab.P+Pair<System.Int32>>",
            "System.Collections.Generic.SortedSetLike+A",
            "Lab.P+Set",
            "",
        ] {
            assert!(!is_nested_in(name, SET), "{name}");
        }
    }
}
