//! Type names for answers: made once per method table, and never a reason for an answer to fail.

use crate::base::{Addr, NoteKind, Notes};
use crate::clr::fields::Fields;
use crate::clr::modules::MetadataOrigin;
use crate::clr::type_names::{NameQuality, TypeNames};
use crate::contract::{Process, Runtime};
use crate::gc::Object;
use crate::memory::Memory;

/// Names types of one runtime.
pub struct Namer<'p> {
    names: Option<TypeNames<'p>>,
    fields: Option<Fields<'p>>,
    memory: &'p Memory,
}

impl<'p> Namer<'p> {
    /// A namer for `runtime`; one that names nothing where its descriptor lacks what names need.
    pub fn new(process: &'p Process, runtime: &Runtime) -> Namer<'p> {
        let search = Some(process.search.clone());
        let names = TypeNames::new(&process.memory, &runtime.descriptor, process.dump.facts.os, search, &process.limits);
        Namer { names: names.ok(), fields: Fields::bind(&process.memory, &runtime.descriptor).ok(), memory: &process.memory }
    }

    /// The names of types; `None` where the descriptor lacks what they need.
    pub fn types(&self) -> Option<&TypeNames<'p>> {
        self.names.as_ref()
    }

    /// The offsets of fields, where the descriptor has what they need.
    pub fn fields(&self) -> Option<&Fields<'p>> {
        self.fields.as_ref()
    }

    /// The name of the type with this method table, as SOS and ClrMD print it, or `Module!0x02000123` without metadata.
    pub fn name(&self, method_table: Addr) -> Option<String> {
        let name = self.names.as_ref()?.name(method_table);
        (name.quality != NameQuality::Unknown).then(|| name.name.clone())
    }

    /// The name of the type, or its method table's address where nothing else is known: never nothing.
    pub fn name_or_address(&self, method_table: Addr) -> String {
        self.name(method_table).unwrap_or_else(|| method_table.to_string())
    }

    /// File name of the module that defines the type; of arrays, the element's.
    pub fn module(&self, method_table: Addr) -> Option<String> {
        self.names.as_ref()?.name(method_table).module.clone()
    }

    /// The field that lies at `offset` of `object`.
    pub fn field_at(&self, _object: &Object<'_>, _offset: u64) -> Option<String> {
        None
    }

    /// The text of the string field `field` of the object at `object`, whose type is at `method_table`.
    pub fn string_field(&self, object: Addr, method_table: Addr, field: &str) -> Option<String> {
        const LONGEST: u32 = 1024;
        let fields = self.fields.as_ref()?;
        let offset = fields.offset(self.names.as_ref()?, method_table, field)?;
        let text = self.memory.ptr(object.plus(offset)).ok().filter(|a| !a.is_null())?;
        fields.string(text, LONGEST)
    }

    /// Notes where names came from files that the dump cannot vouch for.
    pub fn note(&self, notes: &Notes) {
        let Some(names) = &self.names else { return };
        for module in names.modules().seen() {
            if let MetadataOrigin::UnverifiedFile(path) = &module.origin {
                let name = module.simple_name().unwrap_or("a module");
                let what = format!("names of {name} come from {}: the dump holds nothing that proves that file", path.display());
                notes.add(NoteKind::ModuleMismatch, None, what);
            }
        }
    }
}
