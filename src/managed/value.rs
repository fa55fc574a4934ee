//! Values: fields, static fields, array elements, boxed values.

use std::fmt;
use std::sync::Arc;

use crate::base::{Addr, CorElementType};
use crate::clr::fields::Field;
use crate::clr::values::{ArrayShape, Place};
use crate::memory::{Memory, ReadError};
use crate::model::{FieldValue, Storage};
use crate::session::{Error, Heap, ValueError};

/// The origin of a value.
#[derive(Clone)]
pub(super) enum What {
    /// Field `index` of `list`, the fields of the type at `of`.
    Field {
        of: Addr,
        list: Arc<Vec<Field>>,
        index: usize,
    },
    Element {
        of: Addr,
        shape: Arc<ArrayShape>,
        index: u64,
    },
    Boxed {
        of: Addr,
    },
    /// A variable of a frame or an entry of a collection, which has neither a field nor an index.
    Named(Arc<Naming>),
}

/// The name and the type of a value without a field or an index.
#[derive(Debug)]
pub(super) struct Naming {
    pub(super) name: String,
    pub(super) type_name: String,
    /// Description for messages: `argument "count" of Lab.Work.Run(Int32)`.
    pub(super) label: String,
    /// The content of the register that holds the value; `None` for a value in memory.
    pub(super) register: Option<u64>,
}

/// A value in the process: its address and type. The data is read on demand.
///
/// ```
/// let heap = gcdump::open("dumps/net10-wks-basics-heap.dmp.zst")?.runtime()?.heap()?;
/// let all = heap.objects_of("Lab.Everything")?.next().expect("there is one");
/// assert_eq!(all.field("I64")?.read::<i64>()?, -9_223_372_036_854_775_807);
/// assert_eq!(all.field("Inline")?.field("At")?.field("Y")?.read::<f64>()?, 2.0);
/// assert_eq!(all.field("When")?.text(), "2026-01-02T03:04:05Z");
/// assert_eq!(all.field("MaybeUnset")?.read::<Option<i32>>()?, None);
/// let error = all.field("I64")?.read::<i32>().expect_err("it is a long");
/// assert_eq!(error.to_string(), r#"field "I64" of Lab.Everything is System.Int64, not System.Int32"#);
/// # Ok::<(), gcdump::Error>(())
/// ```
#[derive(Clone)]
pub struct Value {
    heap: Heap,
    place: Place,
    what: What,
}

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Value({} at {}: {})", self.label(), self.place.address, self.type_name())
    }
}

impl Value {
    pub(super) fn new(heap: &Heap, place: Place, what: What) -> Value {
        Value { heap: heap.clone(), place, what }
    }

    /// The heap that references point into.
    pub fn heap(&self) -> &Heap {
        &self.heap
    }

    /// The address and element type of the value.
    pub(super) fn place(&self) -> &Place {
        &self.place
    }

    /// Address of the value; null for a variable in a register.
    pub fn address(&self) -> Addr {
        self.place.address
    }

    pub(super) fn described(&self) -> Option<&Field> {
        match &self.what {
            What::Field { list, index, .. } => list.get(*index),
            _ => None,
        }
    }

    /// Name of the field; index of an element, `[3]` or `[1,2]`; `value` if boxed.
    pub fn name(&self) -> String {
        match &self.what {
            What::Field { .. } => self.described().map(|f| f.name.clone()).unwrap_or_default(),
            What::Element { shape, index, .. } => shape.index(*index),
            What::Boxed { .. } => "value".into(),
            What::Named(naming) => naming.name.clone(),
        }
    }

    /// Full name of the declared type; a referenced object may have a derived type.
    pub fn type_name(&self) -> String {
        match &self.what {
            What::Field { .. } => self.described().map(|f| f.type_name.clone()).unwrap_or_default(),
            What::Element { shape, .. } => self.heap.handle_name(shape.element),
            What::Boxed { of } => self.heap.type_name(*of),
            What::Named(naming) => naming.type_name.clone(),
        }
    }

    /// Offset in bytes of an instance field from the start of its object. In a structure, the offset counts from one pointer before the structure's
    /// data. `None` for other values.
    pub fn offset(&self) -> Option<u64> {
        self.described().filter(|f| f.storage == Storage::Instance).map(|f| f.offset)
    }

    /// Element type as stored by the runtime: [`Class`](CorElementType::Class) for references,
    /// [`ValueType`](CorElementType::ValueType) for structures, the underlying type for enums.
    pub fn element_type(&self) -> CorElementType {
        self.place.element
    }

    /// Method table of a structure or enum.
    pub fn method_table(&self) -> Option<Addr> {
        self.place.method_table
    }

    /// Whether the value is an object reference, possibly null.
    pub fn is_reference(&self) -> bool {
        self.place.element.is_reference()
    }

    /// Whether the value is a structure.
    pub fn is_structure(&self) -> bool {
        self.place.element == CorElementType::ValueType
    }

    /// Description for messages: `field "_total" of Lab.Order`.
    pub fn label(&self) -> String {
        match &self.what {
            What::Field { of, .. } => {
                let instance = self.described().is_none_or(|f| f.storage == Storage::Instance);
                let kind = if instance { "field" } else { "static field" };
                format!("{kind} \"{}\" of {}", self.name(), self.heap.type_name(*of))
            }
            What::Element { of, .. } => format!("element {} of {}", self.name(), self.heap.type_name(*of)),
            What::Boxed { of } => format!("the boxed {}", self.heap.type_name(*of)),
            What::Named(naming) => naming.label.clone(),
        }
    }

    /// The value as text, as shown by `gcdump object`: `"text"`, `12345.6789`, `Blue (7)`, `{X=1, Y=2}`, `<not in the dump>`.
    pub fn text(&self) -> String {
        self.to_model().map_or_else(|e| format!("<{e}>"), |m| m.text)
    }

    /// The value as in JSON answers, with the fields of structures.
    ///
    /// # Errors
    /// [`Error::Contract`] if the runtime does not describe fields, [`ValueError::NoLayout`] if the layout is not in the dump.
    pub fn to_model(&self) -> Result<FieldValue, Error> {
        let values = &self.heap.runtime().readers()?.values;
        let found = match &self.what {
            What::Field { of, index, .. } => match self.described() {
                Some(f) if f.storage == Storage::Instance => {
                    self.place.address.minus(f.offset).and_then(|start| values.nth_field(*of, *index, start))
                }
                Some(f) => Some(values.static_field(f, self.place.address)),
                None => None,
            },
            _ => match self.register() {
                Some(register) => values.in_register(self.name(), self.type_name(), &self.place, register),
                None => Some(values.value(self.name(), self.type_name(), &self.place)),
            },
        };
        Ok(found.ok_or_else(|| ValueError::NoLayout { type_name: self.type_name(), part: "fields" })?)
    }

    /// The content of the register that holds the value; `None` for a value in memory.
    fn register(&self) -> Option<u64> {
        match &self.what {
            What::Named(naming) => naming.register,
            _ => None,
        }
    }

    /// Reads the value as a pointer.
    pub(super) fn pointer(&self) -> Result<Addr, Error> {
        self.word().map(Addr)
    }

    /// Reads the value as a pointer-sized integer.
    pub(super) fn word(&self) -> Result<u64, Error> {
        self.stored(|memory, at| memory.word(at), |register| register)
    }

    /// Reads the value from memory or from its register.
    pub(super) fn stored<T>(
        &self,
        memory: impl FnOnce(&Memory, Addr) -> Result<T, ReadError>,
        register: impl FnOnce(u64) -> T,
    ) -> Result<T, Error> {
        match self.register() {
            Some(value) => Ok(register(value)),
            None => self.absent(memory(self.heap.memory(), self.place.address)),
        }
    }

    /// Converts a read error to an error that names this value.
    pub(super) fn absent<T>(&self, read: Result<T, ReadError>) -> Result<T, Error> {
        Ok(read.map_err(|e| ValueError::Absent { what: self.label(), address: e.address, bytes: e.len })?)
    }

    /// The error for a value that is not of the type `wanted`.
    pub(super) fn not(&self, wanted: &'static str) -> ValueError {
        let declared = self.type_name();
        // For enums, include the underlying type.
        let type_name = match self.place.element.type_name() {
            Some(underlying) if underlying != declared && !self.is_reference() => format!("{declared} ({underlying})"),
            _ => declared,
        };
        ValueError::WrongType { what: self.label(), type_name, wanted }
    }
}

impl Heap {
    /// The name of the type, or the address of its method table if the name is unknown.
    pub(super) fn type_name(&self, method_table: Addr) -> String {
        self.runtime().readers().map_or_else(|_| method_table.to_string(), |r| r.namer.name_or_address(method_table).as_str().into())
    }

    fn handle_name(&self, handle: Addr) -> String {
        self.runtime().readers().map_or_else(|_| handle.to_string(), |r| r.types().names().handle_name(handle).name.clone())
    }
}
