//! Collections of .NET's own library: lists, dictionaries, sets, queues.

use std::fmt;
use std::sync::Arc;

use crate::base::Collector;
use crate::model::ContainerKind;
use crate::session::collections::{Contents, Item, Slot};
use crate::session::value::{Naming, What};
use crate::session::{Error, Library, Object, Value, ValueError};

/// A collection of .NET's own library, or an array of references.
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
    /// The object as a collection of .NET's own library.
    ///
    /// # Errors
    /// [`ValueError::WrongType`] if it is not one that is known, [`ValueError::Absent`] if a part of it is not in the dump,
    /// [`Error::Contract`] if the runtime does not describe fields.
    pub fn collection(&self) -> Result<Collection, Error> {
        let contents = contents(self, 0)?;
        Ok(Collection { object: self.clone(), kind: contents.kind, count: contents.count, capacity: contents.capacity })
    }

    /// The keys and values of a dictionary: see [`Collection::entries`].
    ///
    /// # Errors
    /// As [`Object::collection`] and [`Collection::entries`].
    pub fn entries(&self) -> Result<impl ExactSizeIterator<Item = (Value, Value)> + Send + use<>, Error> {
        self.collection()?.entries()
    }
}

/// Reads the collection at `object`, with at most `most` elements.
fn contents(object: &Object, most: u64) -> Result<Contents, Error> {
    let runtime = object.heap().runtime();
    let library = Library::of(runtime, runtime.types()?, &Collector::new());
    let collections = library.collections();
    let what = || format!("the object at {}", object.address());
    if collections.kind(object.method_table()).is_none() {
        return Err(ValueError::WrongType { what: what(), type_name: object.type_name(), wanted: "a collection" }.into());
    }
    let read = if most == 0 { collections.counted(object.address()) } else { collections.read(object.address(), most) };
    let absent = || ValueError::Absent { what: format!("a part of {}", what()), address: object.address(), bytes: object.size() };
    let no_layout = |_| ValueError::NoLayout { type_name: object.type_name(), part: "fields" };
    Ok(read.map_err(no_layout)?.ok_or_else(absent)?)
}

impl Collection {
    /// The object.
    pub fn object(&self) -> &Object {
        &self.object
    }

    /// Its kind.
    pub fn kind(&self) -> ContainerKind {
        self.kind
    }

    /// Number of its elements, as the collection counts them.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Number of elements that it has room for; `None` where that has no meaning.
    pub fn capacity(&self) -> Option<u64> {
        self.capacity
    }

    /// Its elements in its own order: of a dictionary the values, of a `ConditionalWeakTable` the keys.
    ///
    /// # Errors
    /// As [`Object::collection`].
    pub fn items(&self) -> Result<impl ExactSizeIterator<Item = Value> + Send + use<>, Error> {
        let (object, items) = (self.object.clone(), self.read()?);
        let values: Vec<Slot> = items.into_iter().filter_map(|item| item.value.or(item.key)).collect();
        Ok(values.into_iter().map(move |slot| value(&object, "element", slot)))
    }

    /// The keys and values of a dictionary in its own order.
    ///
    /// # Errors
    /// [`ValueError::WrongType`] if its elements have no keys; also as [`Object::collection`].
    pub fn entries(&self) -> Result<impl ExactSizeIterator<Item = (Value, Value)> + Send + use<>, Error> {
        let (object, items) = (self.object.clone(), self.read()?);
        let entries: Vec<(Slot, Slot)> = items.into_iter().filter_map(|item| item.key.zip(item.value)).collect();
        if entries.is_empty() && self.count > 0 {
            let what = format!("the object at {}", self.object.address());
            return Err(ValueError::WrongType { what, type_name: self.object.type_name(), wanted: "a dictionary" }.into());
        }
        Ok(entries.into_iter().map(move |(key, item)| (value(&object, "key", key), value(&object, "value", item))))
    }

    fn read(&self) -> Result<Vec<Item>, Error> {
        Ok(contents(&self.object, u64::MAX)?.items)
    }
}

fn value(object: &Object, name: &str, slot: Slot) -> Value {
    let label = format!("a {name} of the {} at {}", object.type_name(), object.address());
    let naming = Naming { name: name.into(), type_name: slot.type_name, label, register: None };
    Value::new(object.heap(), slot.place, What::Named(Arc::new(naming)))
}
