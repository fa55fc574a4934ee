//! A loaded type.

use std::fmt;
use std::sync::Arc;

use super::value::{What, position};
use super::{Field, Thread, Value};
use crate::base::{Addr, glob};
use crate::clr::fields;
use crate::clr::method_table::MethodTableInfo;
use crate::clr::statics::StaticPlace;
use crate::clr::values::{Place, Values};
use crate::model::Storage;
use crate::session::{Error, Heap, Runtime, ValueError, loaded_types};

/// Maximum base types: corruption can create cycles.
const MAX_BASES: usize = 256;

/// A loaded type. Generic types are loaded once per set of arguments.
///
/// ```
/// let runtime = gcdump::open("dumps/net10-wks-basics-heap.dmp.zst")?.runtime()?;
/// let dog = runtime.type_named("Lab.Dog")?;
/// assert_eq!(dog.base().map(|b| b.name()).as_deref(), Some("Lab.Animal"));
/// assert_eq!(runtime.static_field("Lab.Program", "n")?.read::<i32>()?, 1000);
/// # Ok::<(), gcdump::Error>(())
/// ```
#[derive(Clone)]
pub struct Type {
    heap: Heap,
    method_table: Addr,
}

impl fmt::Debug for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Type({} {})", self.method_table, self.name())
    }
}

/// Equal if they have the same method table in the same heap.
impl PartialEq for Type {
    fn eq(&self, other: &Type) -> bool {
        self.method_table == other.method_table && self.heap.is(&other.heap)
    }
}

impl Eq for Type {}

impl Runtime {
    /// The loaded types with a full name that matches `pattern`, where `*` matches any text and `?` one character; by module,
    /// generic instances last.
    ///
    /// # Errors
    /// [`Error::Contract`] if the runtime does not describe types.
    pub fn types_of(&self, pattern: &str) -> Result<Vec<Type>, Error> {
        let heap = self.heap()?;
        let types = self.readers()?.types();
        let all = loaded_types(types).into_iter();
        Ok(all.filter(|mt| glob(pattern, &types.names().name(*mt).name)).map(|mt| Type::new(&heap, mt)).collect())
    }

    /// The loaded type with this full name: `Lab.Order`, `System.Collections.Generic.List<System.Int32>`. The first if several
    /// modules define one.
    ///
    /// # Errors
    /// [`Error::Nothing`] if none is loaded, [`Error::Contract`] as for [`Runtime::types_of`].
    pub fn type_named(&self, name: &str) -> Result<Type, Error> {
        let heap = self.heap()?;
        let types = self.readers()?.types();
        let found = loaded_types(types).into_iter().find(|mt| types.names().name(*mt).name == name);
        let found = found.ok_or_else(|| Error::Nothing(format!("no type {name} is loaded")))?;
        Ok(Type::new(&heap, found))
    }

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

impl Type {
    pub(super) fn new(heap: &Heap, method_table: Addr) -> Type {
        Type { heap: heap.clone(), method_table }
    }

    /// Address of its method table.
    pub fn method_table(&self) -> Addr {
        self.method_table
    }

    pub(super) fn heap(&self) -> &Heap {
        &self.heap
    }

    /// Its full name as printed by SOS and ClrMD.
    pub fn name(&self) -> String {
        self.heap.type_name(self.method_table)
    }

    /// File name of the module that defines it; for arrays, the element type.
    pub fn module(&self) -> Option<String> {
        self.heap.runtime().readers().ok()?.namer.module(self.method_table)
    }

    fn info(&self) -> Option<MethodTableInfo> {
        self.heap.walker().tables().read(self.method_table).ok()
    }

    /// Its base type; `None` for `System.Object`, interfaces, or if the method table is not in the dump.
    pub fn base(&self) -> Option<Type> {
        let parent = self.info()?.parent;
        (!parent.is_null() && self.heap.walker().tables().is_valid(parent) == Ok(true)).then(|| Type::new(&self.heap, parent))
    }

    /// Its base types, nearest first.
    pub fn bases(&self) -> impl Iterator<Item = Type> + use<> {
        std::iter::successors(self.base(), Type::base).take(MAX_BASES)
    }

    /// Whether it is the type with this full name or derives from it. Interfaces are not considered.
    pub fn is_a(&self, name: &str) -> bool {
        self.name() == name || self.bases().any(|b| b.name() == name)
    }

    /// Whether it is an array type.
    pub fn is_array(&self) -> bool {
        self.info().is_some_and(|i| i.is_array)
    }

    /// Whether it is `System.String`.
    pub fn is_string(&self) -> bool {
        self.info().is_some_and(|i| i.is_string)
    }

    /// Whether it has a finalizer.
    pub fn has_finalizer(&self) -> bool {
        self.info().is_some_and(|i| i.has_finalizer)
    }

    /// Its instance fields with offsets from the start of an object, inherited ones first.
    ///
    /// # Errors
    /// [`ValueError::NoLayout`] if the layout is not in the dump, [`Error::Contract`] if the runtime does not describe fields.
    pub fn fields(&self) -> Result<Vec<Field>, Error> {
        let list = self.heap.runtime().readers()?.types().instance_fields(self.method_table);
        Ok(Field::all(&list.ok_or_else(|| self.no_layout())?, self.method_table))
    }

    /// The objects of exactly this type.
    pub fn objects(&self) -> impl Iterator<Item = super::Object> + use<> {
        let mt = self.method_table;
        self.heap.objects().filter(move |o| o.method_table() == mt)
    }

    /// Its own static fields, without constants, thread statics, and uninitialized fields; [`Type::static_field`] tells why one
    /// is missing.
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

    /// Its own static field `name`.
    ///
    /// # Errors
    /// [`ValueError::NoField`]; [`ValueError::NotInitialised`] if the class is uninitialized; [`ValueError::NoPlace`] if its
    /// location is not in the dump; also see [`Type::fields`]. For thread statics use [`Type::thread_static`].
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
            StaticPlace::NotInitialised => Err(ValueError::NotInitialised { what: what() }.into()),
            StaticPlace::Unknown => Err(ValueError::NoPlace { what: what() }.into()),
        }
    }

    fn own_statics(&self) -> Result<Arc<Vec<fields::Field>>, Error> {
        let list = self.heap.runtime().readers()?.types().static_fields(self.method_table);
        Ok(list.ok_or_else(|| self.no_layout())?)
    }

    fn place(&self, field: &fields::Field, thread: Option<&Thread>) -> Result<StaticPlace, Error> {
        let statics = &self.heap.runtime().readers()?.statics;
        let Some(info) = self.info() else { return Ok(StaticPlace::Unknown) };
        Ok(match thread {
            Some(thread) => statics.of_thread(thread.address(), &info, field),
            None => statics.place(&info, field),
        })
    }

    fn value(&self, list: &Arc<Vec<fields::Field>>, index: usize, field: &fields::Field, address: Addr) -> Value {
        // Offsets of statics are relative to the base of their kind; the address is already known.
        let place = Place { address, ..Values::place(field, address) };
        Value::new(&self.heap, place, What::Field { of: self.method_table, list: Arc::clone(list), index })
    }

    fn no_layout(&self) -> ValueError {
        ValueError::NoLayout { type_name: self.name(), part: "fields" }
    }
}
