//! One object of the heap.

use std::fmt;
use std::sync::Arc;

use super::Type;
use crate::base::{Addr, Collector};
use crate::gc::ObjectType;
use crate::model::Generation;
use crate::session::{Error, Heap, ValueError};

/// An object of the heap: its address and type.
///
/// ```
/// let heap = gcdump::open("dumps/net10-wks-basics-heap.dmp.zst")?.runtime()?.heap()?;
/// let dog = heap.objects_of("Lab.Dog")?.next().expect("there are a hundred");
/// let friend = dog.field("Friend")?.object()?;
/// assert_eq!(friend.type_name(), "Lab.Dog");
/// assert_eq!(dog.field("_name")?.read::<String>()?, "dog0");
/// # Ok::<(), gcdump::Error>(())
/// ```
#[derive(Clone)]
pub struct Object {
    heap: Heap,
    address: Addr,
    size: u64,
    ty: Arc<ObjectType>,
}

impl fmt::Debug for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Object({} {})", self.address, self.type_name())
    }
}

/// Objects are equal if they are at the same address in the same heap.
impl PartialEq for Object {
    fn eq(&self, other: &Object) -> bool {
        self.address == other.address && self.heap.is(&other.heap)
    }
}

impl Eq for Object {}

/// A reference stored in an object.
#[derive(Clone, Debug)]
pub struct Reference {
    /// Offset in bytes from the start of the referring object.
    pub offset: u64,
    /// The field: `_items`, `[3]` in an array, `[3].key` in an array of structures; `None` if unknown.
    pub field: Option<String>,
    /// The target. `None` if no object is at the address: corruption, or an interior pointer.
    pub object: Option<Object>,
    /// The address stored.
    pub address: Addr,
}

impl Heap {
    /// The object that starts at `address`.
    ///
    /// Checks only that the data there looks like an object. [`Heap::object_around`] walks the heap to prove that an object starts there,
    /// and also accepts interior addresses.
    ///
    /// # Errors
    /// [`Error::NoObject`] if no object is there, or only free space, [`Error::Unknown`] if the memory is not in the dump.
    pub fn object(&self, address: Addr) -> Result<Object, Error> {
        let notes = Collector::new();
        self.object_if_any(address).ok_or_else(|| Error::NoObject(address).given(&notes.into_notes()))
    }

    /// The object at or around `address`. The first call walks the heap to find object starts.
    ///
    /// # Errors
    /// [`Error::NoObject`] if no object is found, [`Error::Unknown`] if a part of the heap could not be walked.
    pub fn object_around(&self, address: Addr) -> Result<Object, Error> {
        let starts = self.starts();
        let found = starts.containing(self.walker(), address);
        let (_, start) = found.ok_or_else(|| Error::NoObject(address).given(&starts.notes))?;
        self.object(start)
    }

    pub(super) fn object_if_any(&self, address: Addr) -> Option<Object> {
        let (ty, size) = self.walker().object(address)?;
        (!ty.is_free).then(|| self.known_object(address, size, ty))
    }

    pub(crate) fn known_object(&self, address: Addr, size: u64, ty: Arc<ObjectType>) -> Object {
        Object { heap: self.clone(), address, size, ty }
    }
}

impl Object {
    /// Address of the object: the address of its method table pointer.
    pub fn address(&self) -> Addr {
        self.address
    }

    /// Size of the object itself in bytes, as counted by SOS and ClrMD: with the header word and not rounded up to the heap alignment. To include the
    /// objects that this object keeps alive, use [`Object::retained_size`].
    pub fn size(&self) -> u64 {
        self.size
    }

    /// The heap that contains the object.
    pub fn heap(&self) -> &Heap {
        &self.heap
    }

    /// Address of the method table of the object's type.
    pub fn method_table(&self) -> Addr {
        self.ty.method_table
    }

    /// The type of the object.
    pub fn ty(&self) -> Type {
        Type::new(&self.heap, self.ty.method_table)
    }

    /// Full name of the type, such as `System.Collections.Generic.Dictionary<System.String, Lab.Order[]>+Entry[]`; `Module!0x02000012`
    /// without metadata, or the method table address if the type is unknown.
    pub fn type_name(&self) -> String {
        self.heap.type_name(self.ty.method_table)
    }

    /// The generation of the object; `None` outside of all segments.
    pub fn generation(&self) -> Option<Generation> {
        self.heap.generation_of(self.address)
    }

    /// Whether the object is an array.
    pub fn is_array(&self) -> bool {
        self.ty.is_array
    }

    /// Whether the object is a `System.String`.
    pub fn is_string(&self) -> bool {
        self.ty.is_string
    }

    /// Total number of elements of an array, or of UTF-16 code units of a string; `None` for other objects, or if the length is not in the
    /// dump.
    pub fn length(&self) -> Option<u64> {
        if self.ty.component_size == 0 {
            return None;
        }
        self.heap.memory().u32(self.address.plus(self.ty.length_at)).ok().map(u64::from)
    }

    /// The full text of a string. A lone surrogate becomes six characters, such as `\ud800`.
    ///
    /// # Errors
    /// [`ValueError::WrongType`] if the object is not a string, [`ValueError::Absent`] if a part of the text is not in the dump.
    pub fn string(&self) -> Result<String, Error> {
        if !self.ty.is_string {
            return Err(self.not("System.String").into());
        }
        let text = self.heap.runtime().readers()?.types().strings().text(self.address, u32::MAX);
        let absent = || ValueError::Absent { what: self.label(), address: self.address, bytes: self.size };
        Ok(text.ok_or_else(absent)?.0)
    }

    /// The references of the object that are not null, by offset. A reference whose memory is not in the dump is missing.
    pub fn references(&self) -> Vec<Reference> {
        let generation = self.generation().unwrap_or(Generation::Gen0);
        let mut found = Vec::new();
        self.heap.walker().again(self.address, &self.ty, self.size, generation).references(|offset, target| found.push((offset, target)));
        found.sort_unstable_by_key(|(offset, _)| *offset);
        let namer = self.heap.runtime().readers().ok().map(|r| &r.namer);
        let reference = |(offset, address): (u64, Addr)| Reference {
            offset,
            field: namer.and_then(|n| n.path_at(self.ty.method_table, offset)),
            object: self.heap.object_if_any(address),
            address,
        };
        found.into_iter().map(reference).collect()
    }

    /// The objects that refer to this one. Each call walks the whole heap: see [`Heap::objects`].
    pub fn referrers(&self) -> impl Iterator<Item = Object> + use<> {
        let target = self.address;
        self.heap.objects().filter(move |o| o.refers_to(target))
    }

    /// Whether a reference of the object points to `address`.
    pub fn refers_to(&self, address: Addr) -> bool {
        let mut found = false;
        let generation = self.generation().unwrap_or(Generation::Gen0);
        self.heap.walker().again(self.address, &self.ty, self.size, generation).references(|_, target| found |= target == address);
        found
    }

    /// Calls `f` with the target of each reference of the object.
    pub(crate) fn targets(&self, mut f: impl FnMut(Addr)) {
        let generation = self.generation().unwrap_or(Generation::Gen0);
        self.heap.walker().again(self.address, &self.ty, self.size, generation).references(|_, target| f(target));
    }

    pub(super) fn label(&self) -> String {
        format!("the {} at {}", self.type_name(), self.address)
    }

    pub(super) fn not(&self, wanted: &'static str) -> ValueError {
        ValueError::WrongType { what: format!("the object at {}", self.address), type_name: self.type_name(), wanted }
    }
}
