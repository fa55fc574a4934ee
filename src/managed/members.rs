//! Navigation between handles: from an object to its fields and elements, from a value to its object, from a type to its static fields.

use std::sync::Arc;

use super::value::What;
use super::{Field, Object, Thread, Type, Value};
use crate::base::Addr;
use crate::base::missed::unnamed;
use crate::clr::fields;
use crate::clr::statics::StaticPlace;
use crate::clr::values::{ArrayShape, Place, Values};
use crate::model::Storage;
use crate::session::{Error, Heap, Runtime, ValueError};

impl Object {
    /// The instance field `name`, such as `_total`. A field of the type itself hides base fields of the same name. The backing
    /// field of a C# auto-property is also found by the property name: `Total` for `<Total>k__BackingField`.
    ///
    /// # Errors
    /// [`Error::Value`]: [`ValueError::NoField`], or [`ValueError::NoLayout`] if the layout is not in the dump;
    /// [`Error::Contract`] if the runtime does not describe fields.
    pub fn field(&self, name: &str) -> Result<Value, Error> {
        Value::field_of(self.heap(), self.method_table(), self.address(), name)
    }

    /// All instance fields, inherited ones first. The list is empty for arrays and strings.
    ///
    /// # Errors
    /// See [`Object::field`].
    pub fn fields(&self) -> Result<Vec<Value>, Error> {
        if self.is_array() || self.is_string() {
            return Ok(Vec::new());
        }
        Value::fields_of(self.heap(), self.method_table(), self.address())
    }

    /// The contents of a boxed structure, enum or primitive.
    ///
    /// # Errors
    /// [`ValueError::WrongType`] if the object is not a boxed value.
    pub fn boxed(&self) -> Result<Value, Error> {
        let readers = self.heap().runtime().readers()?;
        let info = readers.types().names().method_tables().read(self.method_table());
        let info = info.map_err(|e| ValueError::Absent { what: self.label(), address: e.address, bytes: e.len })?;
        let place = readers.values.box_place(&info, self.address()).ok_or_else(|| self.not("a boxed value"))?;
        Ok(Value::new(self.heap(), place, What::Boxed { of: self.method_table() }))
    }

    /// The element of an array at `index`, counted from 0 in row-major order across all dimensions.
    ///
    /// # Errors
    /// [`ValueError::WrongType`] if the object is not an array, [`ValueError::NoElement`] past the end of the array,
    /// [`ValueError::NoLayout`] if the element layout is not in the dump.
    pub fn element(&self, index: u64) -> Result<Value, Error> {
        let (shape, place) = self.shape()?;
        if index >= shape.length {
            return Err(ValueError::NoElement { type_name: self.type_name(), index, length: shape.length }.into());
        }
        Ok(self.element_of(&shape, &place, index))
    }

    /// The elements of an array, in order.
    ///
    /// # Errors
    /// See [`Object::element`].
    pub fn elements(&self) -> Result<impl DoubleEndedIterator<Item = Value> + Send + use<>, Error> {
        let (shape, place) = self.shape()?;
        let array = self.clone();
        Ok((0..shape.length).map(move |n| array.element_of(&shape, &place, n)))
    }

    fn element_of(&self, shape: &Arc<ArrayShape>, place: &Place, index: u64) -> Value {
        let place = Place { address: shape.data.element(index, shape.element_bytes), ..*place };
        Value::new(self.heap(), place, What::Element { of: self.method_table(), shape: Arc::clone(shape), index })
    }

    fn shape(&self) -> Result<(Arc<ArrayShape>, Place), Error> {
        if !self.is_array() {
            return Err(self.not("an array").into());
        }
        let readers = self.heap().runtime().readers()?;
        let info = readers.types().names().method_tables().read(self.method_table()).ok();
        let shape = info.and_then(|i| readers.values.array(&i, self.address()));
        let shape = shape.ok_or_else(|| ValueError::NoLayout { type_name: self.type_name(), part: "elements" })?;
        let place = readers.values.element_place(&shape);
        Ok((Arc::new(shape), place))
    }
}

impl Value {
    /// The instance field `name` of the type at `mt`. `start` is the address of the object, or one pointer before the data of a structure.
    pub(super) fn field_of(heap: &Heap, mt: Addr, start: Addr, name: &str) -> Result<Value, Error> {
        let list = instance_fields(heap, mt)?;
        let found = instance_position(heap, mt, &list, name).and_then(|i| Some((i, list.get(i)?)));
        let Some((index, field)) = found else {
            let have = list.iter().map(|f| f.name.clone()).collect();
            return Err(ValueError::NoField { type_name: heap.type_name(mt), name: name.into(), have }.into());
        };
        let place = Values::place(field, start);
        Ok(Value::new(heap, place, What::Field { of: mt, list, index }))
    }

    pub(super) fn fields_of(heap: &Heap, mt: Addr, start: Addr) -> Result<Vec<Value>, Error> {
        let list = instance_fields(heap, mt)?;
        let value = |(index, field): (usize, &fields::Field)| {
            Value::new(heap, Values::place(field, start), What::Field { of: mt, list: Arc::clone(&list), index })
        };
        Ok(list.iter().enumerate().map(value).collect())
    }

    /// The referenced object. Null is an error, so that paths through objects read as in C#. If null is expected, use `read::<Option<Object>>()`,
    /// which returns `None`.
    ///
    /// # Errors
    /// [`ValueError::WrongType`] if the value is not a reference, [`ValueError::Null`], [`ValueError::NoObject`] if no object is at
    /// the address, [`ValueError::Absent`].
    pub fn object(&self) -> Result<Object, Error> {
        if !self.is_reference() {
            return Err(self.not("a reference").into());
        }
        let address = self.pointer()?;
        if address.is_null() {
            return Err(ValueError::Null { what: self.label() }.into());
        }
        let found = self.heap().object_if_any(address);
        Ok(found.ok_or_else(|| ValueError::NoObject { what: self.label(), address })?)
    }

    /// A field of the structure or referenced object: `order.field("_customer")?.field("_name")?`.
    ///
    /// # Errors
    /// See [`Object::field`] and [`Value::object`]; [`ValueError::WrongType`] if the value is neither a structure nor a reference.
    pub fn field(&self, name: &str) -> Result<Value, Error> {
        if self.is_reference() {
            return self.object()?.field(name);
        }
        let (mt, start) = self.structure()?;
        Value::field_of(self.heap(), mt, start, name)
    }

    /// The fields of the structure or referenced object.
    ///
    /// # Errors
    /// See [`Value::field`].
    pub fn fields(&self) -> Result<Vec<Value>, Error> {
        if self.is_reference() {
            return self.object()?.fields();
        }
        let (mt, start) = self.structure()?;
        Value::fields_of(self.heap(), mt, start)
    }

    /// Type of the structure, and the address from which field offsets count: one pointer before the structure's data, as in a box.
    fn structure(&self) -> Result<(Addr, Addr), Error> {
        if !self.is_structure() {
            return Err(self.not("a structure").into());
        }
        let start = self.place().address.minus(self.heap().memory().ptr_bytes());
        let found = self.place().method_table.zip(start);
        Ok(found.ok_or_else(|| ValueError::NoLayout { type_name: self.type_name(), part: "fields" })?)
    }
}

impl Type {
    /// The instance fields, inherited ones first. Offsets are relative to the start of an object.
    ///
    /// # Errors
    /// [`ValueError::NoLayout`] if the layout is not in the dump, [`Error::Contract`] if the runtime does not describe fields.
    pub fn fields(&self) -> Result<Vec<Field>, Error> {
        let list = self.heap().runtime().readers()?.types().instance_fields(self.method_table());
        Ok(Field::all(&list.ok_or_else(|| self.no_layout())?, self.method_table()))
    }

    /// The objects of exactly this type.
    pub fn objects(&self) -> impl Iterator<Item = Object> + use<> {
        let mt = self.method_table();
        self.heap().objects().filter(move |o| o.method_table() == mt)
    }

    /// The static fields that the type declares, except constants, thread statics and uninitialized fields. [`Type::static_field`] returns the reason
    /// why a field is missing.
    ///
    /// # Errors
    /// See [`Type::fields`].
    pub fn static_fields(&self) -> Result<Vec<Value>, Error> {
        let list = self.own_statics()?;
        let fields = list.iter().enumerate().filter(|(_, f)| matches!(f.storage, Storage::Static | Storage::Rva));
        let placed = fields.filter_map(|(i, f)| match self.place(f, None) {
            Ok(StaticPlace::At(at)) => Some(self.value(&list, i, f, at)),
            _ => None,
        });
        Ok(placed.collect())
    }

    /// The static field `name` that the type declares.
    ///
    /// # Errors
    /// [`ValueError::NoField`]; [`ValueError::NotInitialized`] if the class is uninitialized; [`ValueError::NoPlace`] if the location of the field is
    /// not in the dump; also see [`Type::fields`]. For thread statics use [`Type::thread_static`].
    pub fn static_field(&self, name: &str) -> Result<Value, Error> {
        self.static_at(name, None)
    }

    /// The value of the `[ThreadStatic]` field `name` for `thread`, one of [`Runtime::threads`].
    ///
    /// # Errors
    /// See [`Type::static_field`].
    pub fn thread_static(&self, name: &str, thread: &Thread) -> Result<Value, Error> {
        self.static_at(name, Some(thread))
    }

    fn static_at(&self, name: &str, thread: Option<&Thread>) -> Result<Value, Error> {
        let list = self.own_statics()?;
        let found = position(&list, name).and_then(|i| Some((i, list.get(i)?)));
        let Some((index, field)) = found else {
            let have = list.iter().map(|f| f.name.clone()).collect();
            return Err(ValueError::NoField { type_name: self.name(), name: name.into(), have }.into());
        };
        let what = || format!("static field \"{name}\" of {}", self.name());
        if thread.is_none() && field.storage == Storage::ThreadStatic {
            return Err(ValueError::WrongType { what: what(), type_name: "a thread static".into(), wanted: "one for all threads" }.into());
        }
        match self.place(field, thread)? {
            StaticPlace::At(at) => Ok(self.value(&list, index, field, at)),
            StaticPlace::NotInitialized => Err(ValueError::NotInitialized { what: what() }.into()),
            StaticPlace::Unknown => Err(ValueError::NoPlace { what: what() }.into()),
        }
    }

    fn own_statics(&self) -> Result<Arc<Vec<fields::Field>>, Error> {
        let list = self.heap().runtime().readers()?.types().static_fields(self.method_table());
        Ok(list.ok_or_else(|| self.no_layout())?)
    }

    fn place(&self, field: &fields::Field, thread: Option<&Thread>) -> Result<StaticPlace, Error> {
        let statics = &self.heap().runtime().readers()?.statics;
        let Some(info) = self.info() else { return Ok(StaticPlace::Unknown) };
        Ok(match thread {
            Some(thread) => statics.of_thread(thread.address(), &info, field),
            None => statics.place(&info, field),
        })
    }

    fn value(&self, list: &Arc<Vec<fields::Field>>, index: usize, field: &fields::Field, address: Addr) -> Value {
        // `Values::place` adds the field's offset to an address. The offset of a static field counts from another base, so the known address replaces
        // the sum.
        let place = Place { address, ..Values::place(field, address) };
        Value::new(self.heap(), place, What::Field { of: self.method_table(), list: Arc::clone(list), index })
    }

    fn no_layout(&self) -> ValueError {
        ValueError::NoLayout { type_name: self.name(), part: "fields" }
    }
}

impl Runtime {
    /// The static fields of the type with this full name: see [`Type::static_fields`].
    ///
    /// # Errors
    /// See [`Runtime::type_named`] and [`Type::static_fields`].
    pub fn statics_of(&self, type_name: &str) -> Result<Vec<Value>, Error> {
        self.type_named(type_name)?.static_fields()
    }

    /// The static field `field` of the type with this full name: see [`Type::static_field`].
    ///
    /// # Errors
    /// See [`Runtime::type_named`] and [`Type::static_field`].
    pub fn static_field(&self, type_name: &str, field: &str) -> Result<Value, Error> {
        self.type_named(type_name)?.static_field(field)
    }
}

/// The index of the field `name`, or of the backing field of the C# auto-property `name`. If several fields match, the index of the last one, because
/// a field of the type hides fields of base types.
pub(super) fn position(list: &[fields::Field], name: &str) -> Option<usize> {
    let made_for = |field: &str| field.strip_prefix('<').and_then(|f| f.strip_suffix(">k__BackingField")) == Some(name);
    list.iter().rposition(|f| f.name == name).or_else(|| list.iter().rposition(|f| made_for(&f.name)))
}

/// Like [`position`], for the instance fields of the type at `mt`. If the field is not found and field names are missing, the loss is
/// reported.
pub(super) fn instance_position(heap: &Heap, mt: Addr, list: &[fields::Field], name: &str) -> Option<usize> {
    let found = position(list, name);
    if found.is_none() && heap.runtime().readers().is_ok_and(|readers| readers.types().lacks_fields(mt)) {
        unnamed(mt);
    }
    found
}

pub(super) fn instance_fields(heap: &Heap, mt: Addr) -> Result<Arc<Vec<fields::Field>>, Error> {
    let list = heap.runtime().readers()?.types().instance_fields(mt);
    if list.is_none() {
        unnamed(mt);
    }
    Ok(list.ok_or_else(|| ValueError::NoLayout { type_name: heap.type_name(mt), part: "fields" })?)
}
