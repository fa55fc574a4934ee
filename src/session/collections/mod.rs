//! Collections of the library: how many elements they have, and where these are.
//!
//! `docs/internals/collections.md` tells the rules. Lock-free collections may be caught half-way: a count may then differ from the
//! elements by one or two.

mod concurrent;
mod hashed;
mod linear;
mod trees;

use super::library::Library;
use crate::base::Addr;
use crate::base::hash::Set;
use crate::clr::fields::{Field, Storage, Types};
use crate::clr::library::{Classifier, FieldAt, NoSuchField, library_types};
use crate::clr::values::{ArrayShape, Place, Values};
use crate::model::ContainerKind;

/// `CorElementType` of an object.
const OBJECT: u8 = 0x1c;
/// Most nodes of a list, a tree or a chain that are visited.
const MOST: usize = 1 << 24;

library_types! {
    /// Collections that are known.
    pub(crate) enum CollectionType {
        in "System.Private.CoreLib" {
            Dictionary = "System.Collections.Generic.Dictionary`2",
            HashSet = "System.Collections.Generic.HashSet`1",
            List = "System.Collections.Generic.List`1",
            Queue = "System.Collections.Generic.Queue`1",
            ConcurrentQueue = "System.Collections.Concurrent.ConcurrentQueue`1",
            CoreConcurrentDictionary = "System.Collections.Concurrent.ConcurrentDictionary`2",
            Hashtable = "System.Collections.Hashtable",
            ArrayList = "System.Collections.ArrayList",
            CoreBitArray = "System.Collections.BitArray",
            ConditionalWeakTable = "System.Runtime.CompilerServices.ConditionalWeakTable`2",
            StringBuilder = "System.Text.StringBuilder",
            MemoryStream = "System.IO.MemoryStream",
            Lazy = "System.Lazy`1",
        }
        in "System.Collections" {
            OldQueue = "System.Collections.Generic.Queue`1",
            Stack = "System.Collections.Generic.Stack`1",
            LinkedList = "System.Collections.Generic.LinkedList`1",
            SortedDictionary = "System.Collections.Generic.SortedDictionary`2",
            SortedList = "System.Collections.Generic.SortedList`2",
            SortedSet = "System.Collections.Generic.SortedSet`1",
            PriorityQueue = "System.Collections.Generic.PriorityQueue`2",
            BitArray = "System.Collections.BitArray",
        }
        in "System.Collections.Concurrent" {
            ConcurrentDictionary = "System.Collections.Concurrent.ConcurrentDictionary`2",
            ConcurrentStack = "System.Collections.Concurrent.ConcurrentStack`1",
            ConcurrentBag = "System.Collections.Concurrent.ConcurrentBag`1",
        }
        in "System.Collections.Immutable" {
            ImmutableDictionary = "System.Collections.Immutable.ImmutableDictionary`2",
            ImmutableList = "System.Collections.Immutable.ImmutableList`1",
        }
    }
}

/// Where an element or its key is, with its declared type.
#[derive(Clone, Debug)]
pub(crate) struct Slot {
    pub(crate) place: Place,
    pub(crate) type_name: String,
}

/// An element.
#[derive(Clone, Debug, Default)]
pub(crate) struct Item {
    pub(crate) key: Option<Slot>,
    pub(crate) value: Option<Slot>,
}

/// What a collection holds.
#[derive(Clone, Debug)]
pub(crate) struct Contents {
    pub(crate) kind: ContainerKind,
    /// Elements, as the collection counts them.
    pub(crate) count: u64,
    pub(crate) capacity: Option<u64>,
    pub(crate) text: Option<String>,
    /// The first elements.
    pub(crate) items: Vec<Item>,
    /// Whether a list of nodes has a cycle or exceeds its limit.
    pub(crate) cut: bool,
}

impl Contents {
    fn new(kind: ContainerKind, count: u64, capacity: Option<u64>) -> Contents {
        Contents { kind, count, capacity, text: None, items: Vec::new(), cut: false }
    }
}

/// What reading yields: `Ok(None)` if a part of the collection is not in the dump.
type Read<T> = Result<Option<T>, NoSuchField>;

/// Unwraps a part of a collection that may not be in the dump.
macro_rules! there {
    ($part:expr) => {
        match $part {
            Some(part) => part,
            None => return Ok(None),
        }
    };
}
use there;

/// Reads collections.
#[derive(Debug)]
pub(crate) struct Collections<'l> {
    library: &'l Library,
    kinds: Classifier<CollectionType>,
}

impl<'l> Collections<'l> {
    /// Binds to the types of `library`.
    pub(crate) fn bind(library: &'l Library) -> Collections<'l> {
        Collections { library, kinds: Classifier::bind(library.types()) }
    }

    fn types(&self) -> &Types {
        self.library.types()
    }

    /// The kind of collection that objects with this method table are.
    pub(crate) fn kind(&self, method_table: Addr) -> Option<ContainerKind> {
        use CollectionType as C;
        let info = self.types().names().method_tables().read(method_table).ok()?;
        if info.is_array {
            let references = self.types().names().method_tables().element_type(method_table).ok();
            let is_reference = |mt: Addr| {
                let element = self.types().names().method_tables().read(mt).ok()?;
                self.types().element(&element).map(crate::clr::fields::is_reference)
            };
            return references.and_then(is_reference).filter(|is| *is).map(|_| ContainerKind::Array);
        }
        Some(match self.kinds.of(method_table).iter().next()? {
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

    /// The collection at `object`, with at most `most` elements. `Ok(None)` if it is none, or if a part of it is not in the dump.
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
            K::ConcurrentQueue => self.concurrent_queue(object, mt, most),
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

    /// The field of the type at `mt` with one of these `names`.
    fn field(&self, mt: Addr, names: &'static str) -> Result<Field, NoSuchField> {
        let fields = self.types().instance_fields(mt);
        let mut own = fields.iter().flat_map(|list| list.iter().rev()).filter(|f| f.storage == Storage::Instance);
        let found = own.find(|f| names.split('|').any(|name| name == f.name)).cloned();
        found.ok_or_else(|| NoSuchField { type_name: self.types().names().name(mt).name.clone(), field: names })
    }

    fn at(&self, mt: Addr, names: &'static str) -> Result<FieldAt, NoSuchField> {
        self.types().field_at(mt, names)
    }

    /// A non-negative number of 32 bits.
    fn number(&self, object: Addr, mt: Addr, names: &'static str) -> Read<u64> {
        let field = self.at(mt, names)?;
        Ok(self.library.i32(object, field).and_then(|n| u64::try_from(n).ok()))
    }

    fn reference(&self, object: Addr, mt: Addr, names: &'static str) -> Read<Addr> {
        let field = self.at(mt, names)?;
        Ok(self.library.reference(object, field))
    }

    /// The array that a field refers to; one that a collection has not made yet has no elements.
    fn array_of(&self, object: Addr, mt: Addr, names: &'static str) -> Read<ArrayShape> {
        let array = there!(self.reference(object, mt, names)?);
        Ok(self.library.array(array))
    }

    /// The field of an object.
    fn in_object(field: &Field, object: Addr) -> Slot {
        Slot { place: Values::place(field, object), type_name: field.type_name.clone() }
    }

    /// The field of a structure: offsets are those of its box.
    fn in_structure(&self, field: &Field, at: Addr) -> Option<Slot> {
        Some(Self::in_object(field, at.minus(self.types().pointer_bytes())?))
    }

    /// An element of an array.
    fn element(&self, shape: &ArrayShape, index: u64) -> Slot {
        let place = self.library.values().element_place(shape);
        let place = Place { address: shape.data.element(index, shape.element_bytes), ..place };
        Slot { place, type_name: self.types().names().handle_name(shape.element).name.clone() }
    }

    /// The reference at `address`.
    fn object_at(&self, address: Addr) -> Slot {
        let place = Place { address, element: OBJECT, method_table: None, definition: None, bytes: None };
        Slot { place, type_name: "System.Object".into() }
    }

    /// The nodes from `first` on, each found by the field `next` of the one before it. Whether the list ends.
    fn chain(&self, first: Option<Addr>, next: FieldAt) -> (Vec<Addr>, bool) {
        let (mut nodes, mut seen) = (Vec::new(), Set::default());
        let mut at = first;
        while let Some(node) = at {
            if nodes.len() >= MOST || !seen.insert(node) {
                return (nodes, false);
            }
            nodes.push(node);
            at = self.library.reference(node, next);
        }
        (nodes, true)
    }
}
