//! Instance fields, bound to a type.

use std::fmt;
use std::sync::Arc;

use super::members::{instance_fields, instance_position};
use super::value::What;
use crate::base::Addr;
use crate::clr::fields;
use crate::clr::values::Values;
use crate::managed::{FromValue, Object, Type, Value};
use crate::session::{Error, Heap, ValueError};

/// An instance field of a type, which is looked up once and read from many objects.
///
/// ```
/// let heap = gcdump::open("dumps/net10-wks-basics-heap.dmp.zst")?.runtime()?.heap()?;
/// let index = heap.runtime().type_named("Lab.Node")?.field("Index")?;
/// let sum: i64 = heap.objects_of("Lab.Node")?.map(|node| node.read::<i32>(&index).map_or(0, i64::from)).sum();
/// assert_eq!(sum, 999 * 1000 / 2);
/// # Ok::<(), gcdump::Error>(())
/// ```
#[derive(Clone)]
pub struct Field {
    /// The type that the field was looked up in.
    of: Addr,
    list: Arc<Vec<fields::Field>>,
    index: usize,
}

impl fmt::Debug for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Field({}: {} at {})", self.name(), self.type_name(), self.offset())
    }
}

impl Field {
    /// All instance fields of the type at `of`.
    pub(crate) fn all(list: &Arc<Vec<fields::Field>>, of: Addr) -> Vec<Field> {
        (0..list.len()).map(|index| Field { of, list: Arc::clone(list), index }).collect()
    }

    /// The instance field `name` of the type at `of`; `None` if the type does not have one.
    pub(crate) fn named(heap: &Heap, of: Addr, name: &str) -> Result<Option<Field>, Error> {
        let list = instance_fields(heap, of)?;
        Ok(instance_position(heap, of, &list, name).map(|index| Field { of, list, index }))
    }

    fn described(&self) -> Option<&fields::Field> {
        self.list.get(self.index)
    }

    /// Name of the field.
    pub fn name(&self) -> &str {
        self.described().map_or("", |field| &field.name)
    }

    /// Full name of the declared type.
    pub fn type_name(&self) -> &str {
        self.described().map_or("", |field| &field.type_name)
    }

    /// Offset in bytes from the start of the object.
    pub fn offset(&self) -> u64 {
        self.described().map_or(0, |field| field.offset)
    }

    /// Whether the field is an object reference.
    pub fn is_reference(&self) -> bool {
        self.described().is_some_and(fields::Field::is_reference)
    }

    /// Whether the field is a structure.
    pub fn is_structure(&self) -> bool {
        self.described().is_some_and(fields::Field::is_structure)
    }

    /// Method table of the declared type, for structures and enums.
    pub(crate) fn method_table(&self) -> Option<Addr> {
        self.described()?.method_table
    }

    /// The value of the field in the object at `address`, whose type must have the field.
    pub(crate) fn value(&self, heap: &Heap, address: Addr) -> Option<Value> {
        let place = Values::place(self.described()?, address);
        Some(Value::new(heap, place, What::Field { of: self.of, list: Arc::clone(&self.list), index: self.index }))
    }
}

impl Type {
    /// The instance field `name`, to be read from many objects. Names are found as in [`Object::field`].
    ///
    /// # Errors
    /// [`ValueError::NoField`]; also see [`Type::fields`].
    pub fn field(&self, name: &str) -> Result<Field, Error> {
        let have = || self.fields().map(|list| list.iter().map(|field| field.name().to_string()).collect()).unwrap_or_default();
        let found = Field::named(self.heap(), self.method_table(), name)?;
        Ok(found.ok_or_else(|| ValueError::NoField { type_name: self.name(), name: name.into(), have: have() })?)
    }
}

impl Object {
    /// The value of a field of the object's type, or of a base type.
    ///
    /// # Errors
    /// [`ValueError::WrongType`] if the field belongs to another type.
    pub fn value(&self, field: &Field) -> Result<Value, Error> {
        let is_own = || self.ty().bases().any(|base| base.method_table() == field.of);
        if self.method_table() != field.of && !is_own() {
            let what = format!("the object at {}, which has no field \"{}\",", self.address(), field.name());
            return Err(ValueError::WrongType { what, type_name: self.type_name(), wanted: "the type of the field" }.into());
        }
        let no_layout = || ValueError::NoLayout { type_name: self.type_name(), part: "fields" };
        Ok(field.value(self.heap(), self.address()).ok_or_else(no_layout)?)
    }

    /// Reads a field: see [`Object::value`] and [`Value::read`].
    ///
    /// # Errors
    /// See [`Object::value`] and [`Value::read`].
    pub fn read<T: FromValue>(&self, field: &Field) -> Result<T, Error> {
        self.value(field)?.read()
    }
}
