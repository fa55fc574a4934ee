//! Names of types, as ClrMD and SOS print them:
//! `System.Collections.Generic.Dictionary<System.String, System.Int32>+Entry[]`.
//!
//! A type without metadata keeps module and token (`lab!0x02000012`): both can be looked up later.

use std::sync::{Arc, Mutex, PoisonError};

use rustc_hash::FxHashMap;

use super::method_table::{Category, Generics, MethodTableInfo, MethodTables};
use super::modules::{Module, Modules};
use super::render::{Layouts, Renderer, is_type_desc};
use crate::base::{Addr, Limits, Os};
use crate::contract::{ContractError, Descriptor};
use crate::memory::{FileSearch, Memory};

/// How good a name is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NameQuality {
    /// Neither a name nor a token: `<unknown 0x7f…>`.
    Unknown,
    /// Module and token stand in for the name, or for a part of it: `Module!0x02000123`.
    ModuleToken,
    /// The type's own name.
    Exact,
}

/// The name of a type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeName {
    /// For display.
    pub name: String,
    /// Name of the module that defines it; of an array, the one that defines its element.
    pub module: Option<String>,
    /// Its TypeDef token in that module; `None` for arrays.
    pub token: Option<u32>,
    /// How good the name is.
    pub quality: NameQuality,
}

/// Names types, and remembers the names. Shared between threads.
#[derive(Debug)]
pub struct TypeNames {
    tables: MethodTables,
    modules: Modules,
    layouts: Layouts,
    memory: Arc<Memory>,
    longest: usize,
    cache: Mutex<FxHashMap<Addr, Arc<TypeName>>>,
}

impl TypeNames {
    /// Binds to a runtime. `search` tells where module files may be taken from when the dump lacks their metadata;
    /// `None` for nowhere.
    ///
    /// # Errors
    /// [`ContractError`] where contract `RuntimeTypeSystem` or `Loader` is not advertised in a version that is read, or the
    /// descriptor lacks what every name needs.
    pub fn new(
        memory: &Arc<Memory>,
        descriptor: &Descriptor,
        os: Os,
        search: Option<FileSearch>,
        limits: &Limits,
    ) -> Result<TypeNames, ContractError> {
        Ok(TypeNames {
            tables: MethodTables::bind(memory, descriptor)?,
            modules: Modules::bind(memory, descriptor, os, search, limits)?,
            layouts: Layouts::bind(descriptor),
            memory: Arc::clone(memory),
            longest: usize::try_from(limits.string_bytes).unwrap_or(usize::MAX),
            cache: Mutex::default(),
        })
    }

    /// The same names with their own record of the modules used: notes about missing names must not depend on earlier questions.
    /// Opened modules are shared.
    pub fn for_answer(&self) -> TypeNames {
        TypeNames {
            tables: self.tables.clone(),
            modules: self.modules.for_answer(),
            layouts: self.layouts.clone(),
            memory: Arc::clone(&self.memory),
            longest: self.longest,
            cache: Mutex::default(),
        }
    }

    /// The name of the type whose method table is at `mt`.
    pub fn name(&self, mt: Addr) -> Arc<TypeName> {
        let known = self.cache.lock().unwrap_or_else(PoisonError::into_inner).get(&mt).map(Arc::clone);
        if let Some(name) = known {
            return name;
        }
        let name = Arc::new(self.renderer().type_name(mt));
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(cache.entry(mt).or_insert(name))
    }

    /// The name of the type with this handle: a method table, or a type descriptor (bit 1 set).
    pub fn handle_name(&self, handle: Addr) -> Arc<TypeName> {
        if !is_type_desc(handle) {
            return self.name(handle);
        }
        Arc::new(self.renderer().handle_name(handle))
    }

    fn renderer(&self) -> Renderer<'_> {
        Renderer::new(&self.memory, &self.tables, &self.modules, &self.layouts, self.longest)
    }

    /// The arguments of a generic instance, as type handles; empty for other types.
    pub fn arguments(&self, info: &MethodTableInfo) -> Option<Vec<Addr>> {
        if info.generics == Generics::None {
            return Some(Vec::new());
        }
        self.layouts.arguments(&self.memory, &self.tables, info)
    }

    /// Dimensions of an array; `None` for other types.
    pub fn rank(&self, info: &MethodTableInfo) -> Option<u8> {
        match info.category {
            Category::SzArray => Some(1),
            Category::Array => self.layouts.rank(&self.memory, &self.tables, info),
            _ => None,
        }
    }

    /// The reader of method tables that names are made with.
    pub fn method_tables(&self) -> &MethodTables {
        &self.tables
    }

    /// The modules that names were taken from.
    pub fn modules(&self) -> &Modules {
        &self.modules
    }

    /// The module at `address`, a `Module` of the runtime.
    pub fn module(&self, address: Addr) -> Arc<Module> {
        self.modules.get(address)
    }
}
