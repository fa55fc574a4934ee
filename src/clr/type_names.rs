//! Type names as in ClrMD and SOS:
//! `System.Collections.Generic.Dictionary<System.String, System.Int32>+Entry[]`.
//!
//! Without metadata, a type is identified by module and token (`lab!0x02000012`), which can be looked up later.

use std::sync::{Arc, Mutex, PoisonError};

use super::aot::Program;
use super::generated::{self, Boxed};
use super::loader::Loader;
use super::method_table::{Category, Generics, MethodTableInfo, MethodTables};
use super::modules::{Module, Modules};
use super::render::{Layouts, Notation, Renderer, is_type_desc};
pub(crate) use super::type_name::has_label;
pub use super::type_name::{NameQuality, TypeName};
use crate::base::hash::Map;
use crate::base::missed::{Kept, tried, watched};
use crate::base::{Addr, Budget, Collector, Limits, Name, Os};
use crate::contract::{ContractError, Descriptor, Site};
use crate::memory::{FileSearch, Memory};

/// The name that type patterns are matched against.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Label {
    /// Name of the type, or a placeholder.
    pub name: Name,
    /// Whether the name, or a part of it, is missing from the dump, so that another name would be shown if module files were available.
    pub is_lost: bool,
}

/// Names types and caches their names. Shared between threads.
#[derive(Debug)]
pub struct TypeNames {
    tables: MethodTables,
    modules: Modules,
    layouts: Layouts,
    loader: Arc<Loader>,
    native_aot: Option<Arc<Program>>,
    memory: Arc<Memory>,
    longest: usize,
    /// Budget for the names and fields of types. In a forged dump, many types may share the bytes of their names. The size of the dump
    /// therefore does not limit the size of all names.
    budget: Budget,
    cache: Mutex<Map<Addr, Kept<Arc<TypeName>>>>,
}

impl TypeNames {
    /// Binds to a runtime. `site` is the location of the runtime. Only a NativeAOT program needs `site`, because its module contains the names.
    /// `search` determines where module files are searched for metadata that is missing from the dump; `None` means nowhere.
    ///
    /// # Errors
    /// [`ContractError`] if no supported version of contract `RuntimeTypeSystem` or `Loader` is advertised, or the descriptor does not have
    /// layouts that every name needs.
    pub fn new(
        memory: &Arc<Memory>,
        descriptor: &Descriptor,
        site: Option<&Site>,
        os: Os,
        search: Option<FileSearch>,
        limits: &Limits,
    ) -> Result<TypeNames, ContractError> {
        let site = site.filter(|_| descriptor.is_native_aot());
        Ok(TypeNames {
            native_aot: site.map(|site| Arc::new(Program::new(memory, descriptor, site, os, search.clone(), limits))),
            tables: MethodTables::bind(memory, descriptor)?,
            modules: Modules::bind(memory, descriptor, os, search, limits)?,
            layouts: Layouts::bind(descriptor),
            // The loader only confirms names. Items that the descriptor does not have for it are not losses of names: the clone records them.
            loader: Arc::new(Loader::bind(memory, &descriptor.clone(), limits)?),
            memory: Arc::clone(memory),
            longest: usize::try_from(limits.string_bytes).unwrap_or(usize::MAX),
            budget: Budget::of_types(memory.dump_bytes(), limits.max_memory),
            cache: Mutex::default(),
        })
    }

    /// A view of these names with a separate record of the modules used, because notes about missing names must not depend on earlier
    /// queries. Both views share the opened modules.
    pub fn for_answer(&self) -> TypeNames {
        TypeNames {
            tables: self.tables.clone(),
            modules: self.modules.for_answer(),
            layouts: self.layouts.clone(),
            loader: Arc::clone(&self.loader),
            native_aot: self.native_aot.clone(),
            memory: Arc::clone(&self.memory),
            longest: self.longest,
            budget: self.budget.renewed(),
            cache: Mutex::default(),
        }
    }

    /// The name of the type with the method table at `mt`.
    pub fn name(&self, mt: Addr) -> Arc<TypeName> {
        let known = self.cache.lock().unwrap_or_else(PoisonError::into_inner).get(&mt).map(|name| Arc::clone(name.get()));
        if let Some(name) = known {
            return name;
        }
        if self.spent() {
            return Arc::new(TypeName::unknown(mt));
        }
        if self.tables.is_inferred(mt) {
            return Arc::new(TypeName::lost(mt, self.tables.string == Some(mt)));
        }
        let name = Kept::of(|| Arc::new(self.with_source(mt, self.renderer().type_name(mt))));
        if !self.afford(name.get().bytes()) {
            return Arc::new(TypeName::unknown(mt));
        }
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(cache.entry(mt).or_insert(name).get())
    }

    /// Adds the display form to `name`. `mt` is the method table of the type with that name.
    fn with_source(&self, mt: Addr, name: TypeName) -> TypeName {
        let machine = || TypeNames::method_table_of(*self.arguments(&self.tables.read(mt).ok()?)?.last()?);
        let source = Boxed::of(&name.name).and_then(|found| found.shown(|| self.shares_method(machine(), found.machine)));
        TypeName { source, ..name }
    }

    /// Whether the method of a state machine shares its name with another method. `name` is the name of the state machine, and `machine` its
    /// method table.
    fn shares_method(&self, machine: Option<Addr>, name: &str) -> bool {
        if let Some(program) = &self.native_aot {
            return program.shares_name(name);
        }
        let shares = || {
            let info = self.tables.read(machine?).ok()?;
            Some(self.module(self.tables.module(&info).ok()?).machine_shares_name(self.tables.rid(&info).ok()?))
        };
        self.beside(shares).unwrap_or(false)
    }

    /// Runs `ask`, which reads metadata that only the display form needs. A trimmed copy from an earlier version of gcdump may not contain
    /// that metadata. Its absence from a trimmed copy is therefore not a loss.
    pub(super) fn beside<T>(&self, ask: impl FnOnce() -> T) -> T {
        let (found, missed) = watched(ask);
        if !self.memory.is_trimmed() && self.memory.has_lost(&missed) {
            missed.tell();
        }
        found
    }

    /// The name of the method whose state machine has the method table at `machine`. If the state machine's name does not have the form
    /// that the C# compiler generates, returns the state machine's name.
    pub(crate) fn kickoff(&self, machine: Addr) -> Name {
        let name = self.name(machine);
        let method = generated::kickoff(&name.name, || self.shares_method(Some(machine), &name.name));
        method.map_or_else(|| name.to_name(), |method| Name::shown_as(method.raw, Some(method.shown)))
    }

    /// The name of the type with this handle, a method table or a type descriptor (bit 1 set).
    pub fn handle_name(&self, handle: Addr) -> Arc<TypeName> {
        if !is_type_desc(handle) {
            return self.name(handle);
        }
        Arc::new(self.renderer().handle_name(handle))
    }

    /// The name of the type with this handle in a notation. Only names for display are cached.
    pub(crate) fn written(&self, handle: Addr, notation: Notation) -> Arc<TypeName> {
        match notation {
            Notation::Readable => self.handle_name(handle),
            _ => self.once(handle, |r| r.with(notation).handle_name(handle)),
        }
    }

    /// A list of generic arguments in brackets; an empty text if `arguments` is empty.
    pub(crate) fn written_list(&self, arguments: &[Addr], notation: Notation) -> Arc<TypeName> {
        if arguments.is_empty() {
            return Arc::new(TypeName { name: String::new(), source: None, module: None, token: None, quality: NameQuality::Exact });
        }
        self.once(Addr::NULL, |r| r.with(notation).list(arguments))
    }

    /// Formats a name without caching it.
    fn once(&self, of: Addr, write: impl FnOnce(Renderer<'_>) -> TypeName) -> Arc<TypeName> {
        let name = (!self.spent()).then(|| write(self.renderer())).filter(|name| self.afford(name.bytes()));
        Arc::new(name.unwrap_or_else(|| TypeName::unknown(of)))
    }

    /// The method table of the type with this handle. Types with type descriptors (pointers, function pointers, type variables) have no method
    /// table.
    pub fn method_table_of(handle: Addr) -> Option<Addr> {
        (!is_type_desc(handle)).then_some(handle)
    }

    /// Charges `bytes` of memory for cached data of types. Returns whether the budget allows it.
    pub(super) fn afford(&self, bytes: u64) -> bool {
        self.budget.memory(bytes)
    }

    /// Charges `n` steps for reading fields. Returns whether the budget allows it.
    pub(super) fn afford_steps(&self, n: u64) -> bool {
        self.budget.steps(n)
    }

    /// Whether the budget is exhausted, so that nothing more is read.
    pub(super) fn spent(&self) -> bool {
        self.budget.met()
    }

    /// The label of the type with the method table at `mt`.
    pub(crate) fn label(&self, mt: Addr) -> Label {
        Label { name: self.name(mt).to_name(), is_lost: self.is_lost(mt) }
    }

    /// The reason why no type has its method table at `mt`, with what is there; `None` if a type has it, or if the structures that would show it are not
    /// in the dump.
    pub(crate) fn no_type_at(&self, mt: Addr) -> Option<String> {
        let is_type = |mt| self.tables.is_valid(mt) == Ok(true);
        tried(|| {
            let valid = self.tables.is_valid(mt);
            let Ok(first) = self.memory.word(mt) else {
                let lacks = || format!("no type is known to have the method table {mt}, whose memory is not in the dump");
                return (valid != Ok(true)).then(lacks);
            };
            // The lowest bits of an object's first word are marks of the GC.
            let of_object = Addr(first & !self.memory.ptr_bytes().saturating_sub(1));
            (valid == Ok(false)).then(|| match is_type(of_object) {
                true => format!("no type has the method table {mt}: an object of type {} is there", self.name(of_object).to_name()),
                false => format!("no type has the method table {mt}"),
            })
        })
    }

    /// Whether the name of the type with the method table at `mt`, or a part of it, is missing from the dump.
    pub(crate) fn is_lost(&self, mt: Addr) -> bool {
        match self.name(mt).quality {
            NameQuality::Exact => false,
            NameQuality::ModuleToken => true,
            // Some types of a NativeAOT program have no names.
            NameQuality::Unknown => self.native_aot.as_ref().is_none_or(|program| program.lacks_names()),
        }
    }

    /// Adds notes about names, fields or modules that exceeded the budget.
    pub fn note(&self, notes: &Collector) {
        self.budget.note("reading types", notes);
        if let Some(program) = &self.native_aot {
            program.note(notes);
        }
        self.modules.note(notes);
    }

    fn renderer(&self) -> Renderer<'_> {
        Renderer::new(
            &self.memory,
            &self.tables,
            (&self.modules, self.native_aot.as_ref().and_then(|program| program.blobs()), &self.loader),
            &self.layouts,
            self.longest,
        )
    }

    /// The arguments of a generic instance, as type handles; empty for other types.
    pub fn arguments(&self, info: &MethodTableInfo) -> Option<Vec<Addr>> {
        if info.generics == Generics::None {
            return Some(Vec::new());
        }
        if let Some(instance) = self.tables.instance(info) {
            return instance.ok().map(|(_, arguments)| arguments);
        }
        self.layouts.arguments(&self.memory, &self.tables, info)
    }

    /// Number of dimensions of an array; `None` for other types.
    pub fn rank(&self, info: &MethodTableInfo) -> Option<u8> {
        match info.category {
            Category::SzArray => Some(1),
            Category::Array => self.layouts.rank(&self.memory, &self.tables, info),
            _ => None,
        }
    }

    /// The NativeAOT program; `None` for other runtimes.
    pub(crate) fn native_aot(&self) -> Option<&Program> {
        self.native_aot.as_deref()
    }

    /// The reader of method tables.
    pub fn method_tables(&self) -> &MethodTables {
        &self.tables
    }

    /// The modules, with a record of the modules used for names.
    pub fn modules(&self) -> &Modules {
        &self.modules
    }

    /// The module whose `Module` is at `address`.
    pub fn module(&self, address: Addr) -> Arc<Module> {
        self.modules.get(address)
    }
}
