//! A value: of a field, of a static field, of an array's element, in a box.

use std::fmt;
use std::sync::Arc;

use super::{Error, FromValue, Heap, Object, ValueError};
use crate::base::Addr;
use crate::clr::fields::{Field, VALUE_TYPE, is_reference};
use crate::clr::metadata::signature::Primitive;
use crate::clr::values::{ArrayShape, Place, Values};
use crate::memory::ReadError;
use crate::model::{FieldValue, Storage};

/// How a value was reached.
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
}

/// A value of the process: where it lies and what type it has. Nothing is read before it is asked for.
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

/// The position of the field that `name` means: the last of that name, which hides those of base types; or the field that
/// the C# compiler made for the property of that name.
pub(super) fn position(list: &[Field], name: &str) -> Option<usize> {
    let made_for = |field: &str| field.strip_prefix('<').and_then(|f| f.strip_suffix(">k__BackingField")) == Some(name);
    list.iter().rposition(|f| f.name == name).or_else(|| list.iter().rposition(|f| made_for(&f.name)))
}

impl Value {
    pub(super) fn new(heap: &Heap, place: Place, what: What) -> Value {
        Value { heap: heap.clone(), place, what }
    }

    /// The instance field `name` of what has the type at `mt` and starts at `start`: an object, or a structure's data less one
    /// pointer.
    pub(super) fn field_of(heap: &Heap, mt: Addr, start: Addr, name: &str) -> Result<Value, Error> {
        let list = instance_fields(heap, mt)?;
        let found = position(&list, name).and_then(|i| Some((i, list.get(i)?)));
        let Some((index, field)) = found else {
            let have = list.iter().map(|f| f.name.clone()).collect();
            return Err(ValueError::NoField { type_name: heap.type_name(mt), name: name.into(), have }.into());
        };
        let place = Values::place(field, start);
        Ok(Value::new(heap, place, What::Field { of: mt, list, index }))
    }

    pub(super) fn fields_of(heap: &Heap, mt: Addr, start: Addr) -> Result<Vec<Value>, Error> {
        let list = instance_fields(heap, mt)?;
        let value = |(index, field): (usize, &Field)| {
            Value::new(heap, Values::place(field, start), What::Field { of: mt, list: Arc::clone(&list), index })
        };
        Ok(list.iter().enumerate().map(value).collect())
    }

    /// The heap that references lead into.
    pub fn heap(&self) -> &Heap {
        &self.heap
    }

    /// Where it lies: its first byte.
    pub fn address(&self) -> Addr {
        self.place.address
    }

    fn described(&self) -> Option<&Field> {
        match &self.what {
            What::Field { list, index, .. } => list.get(*index),
            _ => None,
        }
    }

    /// Name of the field; of an element its index, `[3]` or `[1,2]`; `value` in a box.
    pub fn name(&self) -> String {
        match &self.what {
            What::Field { .. } => self.described().map(|f| f.name.clone()).unwrap_or_default(),
            What::Element { shape, index, .. } => shape.index(*index),
            What::Boxed { .. } => "value".into(),
        }
    }

    /// Full name of its declared type: of a reference, the object's own type may be derived from it.
    pub fn type_name(&self) -> String {
        match &self.what {
            What::Field { .. } => self.described().map(|f| f.type_name.clone()).unwrap_or_default(),
            What::Element { shape, .. } => self.heap.handle_name(shape.element),
            What::Boxed { of } => self.heap.type_name(*of),
        }
    }

    /// Bytes of an instance field from the start of its object or, in a structure, from one pointer before the structure's data;
    /// `None` for other values.
    pub fn offset(&self) -> Option<u64> {
        self.described().filter(|f| f.storage == Storage::Instance).map(|f| f.offset)
    }

    /// `CorElementType` (ECMA-335 II.23.1.16) as the runtime keeps it: `0x12` for references, `0x11` for structures, for enums what they
    /// are made of.
    pub fn element_type(&self) -> u8 {
        self.place.element
    }

    /// Method table of a structure or enum.
    pub fn method_table(&self) -> Option<Addr> {
        self.place.method_table
    }

    /// Whether it is a reference to an object, or null.
    pub fn is_reference(&self) -> bool {
        is_reference(self.place.element)
    }

    /// Whether it is a structure.
    pub fn is_structure(&self) -> bool {
        self.place.element == VALUE_TYPE
    }

    /// How it was reached, for messages: `field "_total" of Lab.Order`.
    pub fn label(&self) -> String {
        match &self.what {
            What::Field { of, .. } => {
                let instance = self.described().is_none_or(|f| f.storage == Storage::Instance);
                let kind = if instance { "field" } else { "static field" };
                format!("{kind} \"{}\" of {}", self.name(), self.heap.type_name(*of))
            }
            What::Element { of, .. } => format!("element {} of {}", self.name(), self.heap.type_name(*of)),
            What::Boxed { of } => format!("the boxed {}", self.heap.type_name(*of)),
        }
    }

    /// Reads it as a `T`: see [`FromValue`] for what each type takes.
    ///
    /// # Errors
    /// [`Error::Value`]: [`ValueError::WrongType`], [`ValueError::Absent`], [`ValueError::Null`].
    pub fn read<T: FromValue>(&self) -> Result<T, Error> {
        T::from_value(self)
    }

    /// The object that it refers to. Null is an error here, so that paths through objects read as in C#; where null is to be
    /// expected, `read::<Option<Object>>()` returns `None` for it.
    ///
    /// # Errors
    /// [`ValueError::WrongType`] where it is no reference, [`ValueError::Null`], [`ValueError::NoObject`] where the dump has no
    /// object there, [`ValueError::Absent`].
    pub fn object(&self) -> Result<Object, Error> {
        if !self.is_reference() {
            return Err(self.not("a reference").into());
        }
        let address = self.pointer()?;
        if address.is_null() {
            return Err(ValueError::Null { what: self.label() }.into());
        }
        let found = self.heap.object_if_any(address);
        Ok(found.ok_or_else(|| ValueError::NoObject { what: self.label(), address })?)
    }

    /// A field of the structure, or of the object that it refers to: `order.field("_customer")?.field("_name")?`.
    ///
    /// # Errors
    /// As [`Object::field`] and [`Value::object`]; [`ValueError::WrongType`] where it is neither.
    pub fn field(&self, name: &str) -> Result<Value, Error> {
        if self.is_reference() {
            return self.object()?.field(name);
        }
        let (mt, start) = self.structure()?;
        Value::field_of(&self.heap, mt, start, name)
    }

    /// The fields of the structure, or of the object that it refers to.
    ///
    /// # Errors
    /// As [`Value::field`].
    pub fn fields(&self) -> Result<Vec<Value>, Error> {
        if self.is_reference() {
            return self.object()?.fields();
        }
        let (mt, start) = self.structure()?;
        Value::fields_of(&self.heap, mt, start)
    }

    /// Type of the structure, and what the offsets of its fields count from: one pointer before its data, where a box of it
    /// would start.
    fn structure(&self) -> Result<(Addr, Addr), Error> {
        if !self.is_structure() {
            return Err(self.not("a structure").into());
        }
        let start = self.place.address.minus(self.heap.memory().ptr_bytes());
        let found = self.place.method_table.zip(start);
        Ok(found.ok_or_else(|| ValueError::NoLayout { type_name: self.type_name(), part: "fields" })?)
    }

    /// The value for people, as `gcdump object` shows it: `"text"`, `12345.6789`, `Blue (7)`, `{X=1, Y=2}`, `<not in the dump>`.
    pub fn text(&self) -> String {
        self.to_model().map_or_else(|e| format!("<{e}>"), |m| m.text)
    }

    /// The value as the answers in JSON have it, structures with their fields.
    ///
    /// # Errors
    /// [`Error::Contract`] where the runtime does not describe fields, [`ValueError::NoLayout`] where the dump lacks what does.
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
            _ => Some(values.value(self.name(), self.type_name(), &self.place)),
        };
        Ok(found.ok_or_else(|| ValueError::NoLayout { type_name: self.type_name(), part: "fields" })?)
    }

    /// The pointer that lies here.
    pub(super) fn pointer(&self) -> Result<Addr, Error> {
        self.absent(self.heap.memory().ptr(self.place.address))
    }

    /// What was read; a failure says what of.
    pub(super) fn absent<T>(&self, read: Result<T, ReadError>) -> Result<T, Error> {
        Ok(read.map_err(|e| ValueError::Absent { what: self.label(), address: e.address, bytes: e.len })?)
    }

    /// Says what it is, and not.
    pub(super) fn not(&self, wanted: &'static str) -> ValueError {
        let declared = self.type_name();
        // Of enums also what they are made of.
        let type_name = match Primitive::of(self.place.element).map(Primitive::name) {
            Some(made_of) if made_of != declared && !self.is_reference() => format!("{declared} ({made_of})"),
            _ => declared,
        };
        ValueError::WrongType { what: self.label(), type_name, wanted }
    }

    /// The value of a `Nullable<T>`, `None` for null; the value itself where it is of another type.
    pub(super) fn unless_null(&self) -> Result<Option<Value>, Error> {
        if self.is_reference() {
            return Ok((!self.pointer()?.is_null()).then(|| self.clone()));
        }
        let tables = self.heap.walker().tables();
        let info = self.place.method_table.filter(|_| self.is_structure()).and_then(|mt| tables.read(mt).ok());
        if !info.is_some_and(|i| tables.is_nullable(&i)) {
            return Ok(Some(self.clone()));
        }
        let [has, value] =
            <[Value; 2]>::try_from(self.fields()?).map_err(|_| ValueError::NoLayout { type_name: self.type_name(), part: "fields" })?;
        Ok(has.read::<bool>()?.then_some(value))
    }
}

fn instance_fields(heap: &Heap, mt: Addr) -> Result<Arc<Vec<Field>>, Error> {
    let list = heap.runtime().readers()?.types().instance_fields(mt);
    Ok(list.ok_or_else(|| ValueError::NoLayout { type_name: heap.type_name(mt), part: "fields" })?)
}

impl Heap {
    /// The name of the type, or its method table's address where nothing else is known.
    pub(super) fn type_name(&self, method_table: Addr) -> String {
        self.runtime().readers().map_or_else(|_| method_table.to_string(), |r| r.namer.name_or_address(method_table))
    }

    fn handle_name(&self, handle: Addr) -> String {
        self.runtime().readers().map_or_else(|_| handle.to_string(), |r| r.types().names().handle_name(handle).name.clone())
    }
}
