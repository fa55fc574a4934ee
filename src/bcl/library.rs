//! Access to objects of .NET's base class library: by address, through fields that are bound once per type.
//!
//! Objects are addresses here, not handles of `src/managed`: the type of an object is known where its fields are read, a field may have several
//! names (one for each version of the library), and a heap may have millions of tasks.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::collections::Tables;
use crate::base::{Addr, Budget, Collector, Missing, NoteKind, Remedy, thousands};
use crate::clr::fields::{CORE, Types};
use crate::clr::library::{FieldAt, NoSuchField};
use crate::clr::statics::{StaticPlace, Statics};
use crate::clr::values::{ArrayShape, ValueLimits, Values};
use crate::memory::Memory;
use crate::session::{Error, Namer, Runtime};

/// Maximum number of characters of a string in an answer.
const LONGEST: u32 = 1024;

/// Reads objects for one answer.
#[derive(Debug)]
pub(crate) struct Library {
    types: Arc<Types>,
    statics: Statics,
    values: Values,
    memory: Arc<Memory>,
    collections: OnceLock<Tables>,
    /// The budget for all lists that an answer reads. In a forged dump, many objects may refer to one list.
    budget: Budget,
    /// The lowest address of an array that was not read completely, and the number of its elements that were read.
    cut: Mutex<Option<(Addr, u64)>>,
}

impl Library {
    /// Binds to the types of an answer's `namer`. Adds notes if the descriptor does not have a layout, or the metadata of the core library
    /// is missing.
    ///
    /// # Errors
    /// [`Error::Contract`] if the runtime does not describe types and fields.
    pub(crate) fn bind(runtime: &Runtime, namer: &Namer, notes: &Collector) -> Result<Library, Error> {
        let types = namer.types()?;
        let known = match types.names().native_aot() {
            Some(_) => types.knows_all(),
            None => types.module_named(CORE).is_some_and(|module| types.names().module(module).metadata.is_some()),
        };
        if !known {
            notes.add(
                Missing::Metadata.supplied_by(Remedy::ModuleFile),
                None,
                format!("the types of {CORE} are unknown: its metadata is not in the dump"),
            );
        }
        Ok(Library::of(runtime, types, notes))
    }

    /// Binds to `types`. Adds notes on layouts that the descriptor does not have.
    pub(crate) fn of(runtime: &Runtime, types: &Arc<Types>, notes: &Collector) -> Library {
        let statics = runtime.scoped(notes, |d| Statics::new(runtime.memory(), d, types));
        let values = Values::new(types, ValueLimits::default());
        let memory = Arc::clone(runtime.memory());
        let budget = Budget::new(memory.dump_bytes(), None);
        Library { types: Arc::clone(types), statics, values, memory, collections: OnceLock::new(), budget, cut: Mutex::default() }
    }

    /// The types and their fields.
    pub(crate) fn types(&self) -> &Arc<Types> {
        &self.types
    }

    /// The target's memory.
    pub(crate) fn memory(&self) -> &Memory {
        &self.memory
    }

    /// The bound types and layouts of collections, created on first use.
    pub(super) fn collection_tables(&self) -> &Tables {
        self.collections.get_or_init(|| Tables::bind(&self.types))
    }

    /// Charges `n` steps: objects that are visited, or elements that are read. Returns false if fewer steps are left.
    pub(crate) fn afford(&self, n: u64) -> bool {
        self.budget.steps(n)
    }

    /// Adds notes if lists were not read completely, because one is too long or all together exceed the budget.
    pub(crate) fn note(&self, notes: &Collector) {
        self.budget.note("reading the lists of objects", notes);
        self.statics.note(notes);
        if let Some((array, most)) = *self.cut.lock().unwrap_or_else(PoisonError::into_inner) {
            notes.add(NoteKind::LimitHit, array, format!("only the first {} elements of the array at {array} were read", thousands(most)));
        }
    }

    /// The decoder that formats values for people.
    pub(crate) fn values(&self) -> &Values {
        &self.values
    }

    /// The method table of the object at `object`.
    pub(crate) fn method_table(&self, object: Addr) -> Option<Addr> {
        self.types.objects().method_table(object)
    }

    /// The object that a field refers to; `None` if the field is null or not in the dump.
    pub(crate) fn reference(&self, object: Addr, field: FieldAt) -> Option<Addr> {
        self.reference_at(field.of_object(object))
    }

    /// The object that the slot at `address` refers to; `None` if the slot is null or not in the dump.
    pub(crate) fn reference_at(&self, address: Addr) -> Option<Addr> {
        self.memory.ptr(address).ok().filter(|target| !target.is_null())
    }

    /// A 32-bit field.
    pub(crate) fn u32(&self, object: Addr, field: FieldAt) -> Option<u32> {
        self.memory.u32(field.of_object(object)).ok()
    }

    /// A signed 32-bit field.
    pub(crate) fn i32(&self, object: Addr, field: FieldAt) -> Option<i32> {
        self.u32(object, field).map(u32::cast_signed)
    }

    /// A 16-bit field.
    pub(crate) fn u16(&self, object: Addr, field: FieldAt) -> Option<u16> {
        self.memory.u16(field.of_object(object)).ok()
    }

    /// A 64-bit field.
    pub(crate) fn u64(&self, object: Addr, field: FieldAt) -> Option<u64> {
        self.memory.u64(field.of_object(object)).ok()
    }

    /// A `bool`, or any other 8-bit field.
    pub(crate) fn u8(&self, object: Addr, field: FieldAt) -> Option<u8> {
        self.memory.u8(field.of_object(object)).ok()
    }

    /// A pointer or native integer.
    pub(crate) fn word(&self, object: Addr, field: FieldAt) -> Option<u64> {
        self.memory.word(field.of_object(object)).ok()
    }

    /// The word at `address`.
    pub(crate) fn word_at(&self, address: Addr) -> Option<u64> {
        self.memory.word(address).ok()
    }

    /// The 32-bit integer at `address`.
    pub(crate) fn u32_at(&self, address: Addr) -> Option<u32> {
        self.memory.u32(address).ok()
    }

    /// The 16-bit integer at `address`.
    pub(crate) fn u16_at(&self, address: Addr) -> Option<u16> {
        self.memory.u16(address).ok()
    }

    /// Whether the user requested that contents of strings and buffers are hidden.
    pub(crate) fn hides_contents(&self) -> bool {
        self.memory.hides_contents()
    }

    /// The text of the string that a field refers to, cut to 1,024 characters.
    pub(crate) fn string(&self, object: Addr, field: FieldAt) -> Option<String> {
        self.types.strings().text(self.reference(object, field)?, LONGEST).map(|(text, _)| text)
    }

    /// Length and element layout of the array at `array`.
    pub(crate) fn array(&self, array: Addr) -> Option<ArrayShape> {
        let info = self.types.names().method_tables().read(self.method_table(array)?).ok()?;
        self.values.array(&info, array)
    }

    /// The elements of an array of references, nulls included: slot and target. The list ends before the first element that is not in the
    /// dump, and is empty if the elements exceed the budget. If the array has more than `most` elements, only these are read, and
    /// [`Library::note`] adds a note.
    pub(crate) fn references(&self, array: Addr, most: u64) -> Vec<(Addr, Addr)> {
        self.first_references(array, u64::MAX, most)
    }

    /// Like [`Library::references`], for an array of which only the first `count` elements are in use.
    pub(crate) fn first_references(&self, array: Addr, count: u64, most: u64) -> Vec<(Addr, Addr)> {
        let Some(shape) = self.array(array) else { return Vec::new() };
        let slot = |i| shape.data.element(i, shape.element_bytes);
        let used = shape.length.min(count);
        let length = used.min(most);
        if length < used {
            let mut cut = self.cut.lock().unwrap_or_else(PoisonError::into_inner);
            *cut = Some(cut.map_or((array, most), |known| known.min((array, most))));
        }
        if !self.afford(length) {
            return Vec::new();
        }
        let slots = (0..length).map(slot);
        slots.map_while(|at| Some((at, self.memory.ptr(at).ok()?))).collect()
    }

    /// The address of a static field of the type at `method_table`. `names` are alternative names, separated by `|`. `None` if the class is
    /// not initialized, or the address is unknown.
    ///
    /// # Errors
    /// [`NoSuchField`]
    pub(crate) fn static_at(&self, method_table: Addr, names: &'static str) -> Result<Option<Addr>, NoSuchField> {
        Ok(place(self.statics.named(method_table, names, None)?))
    }

    /// The address of a thread static for the `Thread` at `thread`. `None` if that thread has not used the field, or the address is
    /// unknown.
    ///
    /// # Errors
    /// [`NoSuchField`]
    pub(crate) fn thread_static_at(&self, method_table: Addr, names: &'static str, thread: Addr) -> Result<Option<Addr>, NoSuchField> {
        Ok(place(self.thread_static(method_table, names, thread)?))
    }

    /// Like [`Library::thread_static_at`], and distinguishes a field that the thread has not used from one whose address is unknown.
    ///
    /// # Errors
    /// [`NoSuchField`]
    pub(crate) fn thread_static(&self, method_table: Addr, names: &'static str, thread: Addr) -> Result<StaticPlace, NoSuchField> {
        self.statics.named(method_table, names, Some(thread))
    }

    /// The object that a static field refers to; `None` if the field is null, or its address or value is unknown.
    ///
    /// # Errors
    /// [`NoSuchField`]
    pub(crate) fn static_object(&self, method_table: Addr, names: &'static str) -> Result<Option<Addr>, NoSuchField> {
        Ok(self.static_at(method_table, names)?.and_then(|at| self.reference_at(at)))
    }
}

fn place(place: StaticPlace) -> Option<Addr> {
    match place {
        StaticPlace::At(at) => Some(at),
        StaticPlace::NotInitialized | StaticPlace::Unknown => None,
    }
}
