//! Collections of .NET's own library: lists, dictionaries, sets, queues.

use std::fmt;
use std::sync::Arc;

use super::value::{Naming, What};
use crate::base::Collector;
use crate::bcl::Library;
use crate::bcl::collections::{Contents, Slot};
use crate::managed::{Object, Value};
use crate::model::ContainerKind;
use crate::session::{Error, ValueError};

/// A collection of .NET's own library, a collection of a type derived from one, or an array of references.
///
/// ```
/// let heap = gcdump::open("dumps/net10-wks-basics-heap.dmp.zst")?.runtime()?.heap()?;
/// let list = heap.objects_of("System.Collections.Generic.List<Lab.Pair<*>>")?.next().expect("there is one");
/// let second: Vec<String> = list.collection()?.items()?.take(2).map(|pair| pair.field("Second")?.read()).collect::<Result<_, _>>()?;
/// assert_eq!(second, ["pair-0", "pair-1"]);
/// # Ok::<(), gcdump::Error>(())
/// ```
#[derive(Clone)]
pub struct Collection {
    object: Object,
    kind: ContainerKind,
    count: u64,
    capacity: Option<u64>,
}

impl fmt::Debug for Collection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Collection({:?}, {} of {:?})", self.object, self.count, self.kind)
    }
}

impl Object {
    /// The object as a collection of .NET's own library, or an array of references.
    ///
    /// # Errors
    /// [`ValueError::WrongType`] if the object is not a supported collection, [`ValueError::Absent`] if a part of the collection is not in the dump,
    /// [`ValueError::NoLayout`] if its type does not have the expected fields, [`ValueError::Endless`] if counting the elements follows links that
    /// form a cycle, [`Error::Contract`] if the runtime does not describe fields.
    pub fn collection(&self) -> Result<Collection, Error> {
        let contents = contents(self, 0)?;
        Ok(Collection { object: self.clone(), kind: contents.kind, count: contents.count, capacity: contents.capacity })
    }

    /// The keys and values of a dictionary: see [`Collection::entries`].
    ///
    /// # Errors
    /// See [`Collection::entries`].
    pub fn entries(&self) -> Result<impl ExactSizeIterator<Item = (Value, Value)> + Send + use<>, Error> {
        entries(self, contents(self, u64::MAX)?)
    }
}

/// Reads the collection at `object`, with at most `most` elements.
fn contents(object: &Object, most: u64) -> Result<Contents, Error> {
    let runtime = object.heap().runtime();
    let library = Library::of(runtime, runtime.types()?, &Collector::new());
    let collections = library.collections();
    if collections.kind(object.method_table()).is_none() {
        return Err(object.not("a collection").into());
    }
    let read = if most == 0 { collections.counted(object.address()) } else { collections.read(object.address(), most) };
    let absent = || ValueError::Absent { what: format!("a part of {}", object.label()), address: object.address(), bytes: object.size() };
    let no_layout = |_| ValueError::NoLayout { type_name: object.type_name(), part: "fields" };
    let contents = read.map_err(no_layout)?.ok_or_else(absent)?;
    if contents.cut { Err(ValueError::Endless { what: object.label() }.into()) } else { Ok(contents) }
}

/// The keys and values in `contents`, which belong to the collection at `object`.
fn entries(object: &Object, contents: Contents) -> Result<impl ExactSizeIterator<Item = (Value, Value)> + Send + use<>, Error> {
    let entries: Vec<(Slot, Slot)> = contents.items.into_iter().filter_map(|item| item.key.zip(item.value)).collect();
    if entries.is_empty() && contents.count > 0 {
        return Err(object.not("a dictionary").into());
    }
    let (mut keys, mut values) = (Items::new(object, "key"), Items::new(object, "value"));
    Ok(entries.into_iter().map(move |(key, value)| (keys.value(key), values.value(value))))
}

/// Creates values for the slots of one collection. Successive values of the same type share their naming.
struct Items {
    object: Object,
    name: &'static str,
    naming: Option<Arc<Naming>>,
}

impl Items {
    fn new(object: &Object, name: &'static str) -> Items {
        Items { object: object.clone(), name, naming: None }
    }

    fn value(&mut self, slot: Slot) -> Value {
        let naming = match self.naming.take() {
            Some(naming) if naming.type_name == slot.type_name => naming,
            _ => {
                let label = format!("a {} of {}", self.name, self.object.label());
                Arc::new(Naming { name: self.name.into(), type_name: slot.type_name, label, register: None })
            }
        };
        self.naming = Some(Arc::clone(&naming));
        Value::new(self.object.heap(), slot.place, What::Named(naming))
    }
}

impl Collection {
    /// The object that is the collection.
    pub fn object(&self) -> &Object {
        &self.object
    }

    /// The kind of the collection.
    pub fn kind(&self) -> ContainerKind {
        self.kind
    }

    /// Number of elements: the collection's `Count`, or the elements of an array that are not null.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Number of elements that fit without growing; `None` for kinds without a capacity.
    pub fn capacity(&self) -> Option<u64> {
        self.capacity
    }

    /// The elements in the collection's own order: the values of a dictionary, the keys of a `ConditionalWeakTable`. Empty for a `StringBuilder`, a
    /// `MemoryStream` and a `BitArray`, whose elements are characters, bytes and bits.
    ///
    /// # Errors
    /// [`ValueError::Endless`] if the elements form a cycle or exceed the limit; otherwise as [`Object::collection`].
    pub fn items(&self) -> Result<impl ExactSizeIterator<Item = Value> + Send + use<>, Error> {
        let items = contents(&self.object, u64::MAX)?.items;
        let slots: Vec<Slot> = items.into_iter().filter_map(|item| item.value.or(item.key)).collect();
        let mut items = Items::new(&self.object, "element");
        Ok(slots.into_iter().map(move |slot| items.value(slot)))
    }

    /// The keys and values of a dictionary in its own order.
    ///
    /// # Errors
    /// [`ValueError::WrongType`] if the elements have no keys; otherwise as [`Collection::items`].
    pub fn entries(&self) -> Result<impl ExactSizeIterator<Item = (Value, Value)> + Send + use<>, Error> {
        self.object.entries()
    }
}
