//! Index of loaded types: generic instances by arguments.

use super::definition::Definition;
use crate::base::Addr;
use crate::base::hash::Map;
use crate::base::missed::contradiction;
use crate::clr::loader::Loader;
use crate::clr::method_table::{Category, Generics};
use crate::clr::type_names::TypeNames;

/// Maximum number of instances in the index.
const MAX_INSTANCES: usize = 1 << 21;

/// Generic instances and modules of a process.
#[derive(Debug, Default)]
pub(super) struct Index {
    /// Modules, in load order.
    pub(super) modules: Vec<Addr>,
    /// Whether the list of modules is complete.
    pub(super) whole: bool,
    /// Method tables by definition and arguments.
    pub(super) instances: Map<(Definition, Vec<Addr>), Addr>,
    /// Method tables of arrays by element type and rank; rank 0 for one-dimensional, zero-based arrays.
    pub(super) arrays: Map<(Addr, u8), Addr>,
    /// Every generic instance, in hash table order.
    pub(super) all: Vec<Addr>,
}

impl Index {
    pub(super) fn build(names: &TypeNames, loader: &Loader) -> Index {
        let tables = names.method_tables();
        let listed = loader.listed();
        let mut out = Index { modules: listed.modules, whole: listed.whole, ..Index::default() };
        // System.Private.CoreLib is loaded in every process, so it is added even if the list is corrupt.
        let core = tables.object.and_then(|o| tables.module(&tables.read(o).ok()?).ok());
        if let Some(core) = core.filter(|c| !out.modules.contains(c)) {
            out.modules.push(core);
        }
        if let Some(at) = listed.empty.filter(|_| core.is_none_or(|core| !unloads(names, loader, core))) {
            loader.emptied(at);
            out.whole = false;
        }
        for handle in loader.instances(&out.modules) {
            if out.all.len() >= MAX_INSTANCES {
                loader.overfull();
                break;
            }
            out.add(names, handle);
        }
        out
    }

    fn add(&mut self, names: &TypeNames, mt: Addr) -> Option<()> {
        let tables = names.method_tables();
        let valid = tables.is_valid(mt);
        if valid == Ok(false) && TypeNames::method_table_of(mt).is_some() {
            contradiction(mt, "the instance table of a module has an entry that is not a type");
        }
        (valid == Ok(true)).then_some(())?;
        let info = tables.read(mt).ok()?;
        if info.is_array {
            let rank = if info.category == Category::SzArray { 0 } else { names.rank(&info)? };
            self.arrays.entry((tables.element_type(mt).ok()?, rank)).or_insert(mt);
        }
        (info.generics == Generics::Instance).then_some(())?;
        let definition = Definition { module: tables.module(&info).ok()?, rid: tables.rid(&info).ok()? };
        let arguments = names.arguments(&info)?;
        self.all.push(mt);
        self.instances.entry((definition, arguments)).or_insert(mt);
        Some(())
    }
}

/// Whether the process may have unloaded an assembly. Only collectible assemblies are unloaded, and each has a managed `LoaderAllocator` object
/// (`vm/loaderallocator.cpp`), so that type must be loaded. It is not loaded in 88 of 100 dumps.
fn unloads(names: &TypeNames, loader: &Loader, core: Addr) -> bool {
    let rid = names.module(core).type_def_named("System.Reflection.LoaderAllocator");
    rid.is_some_and(|rid| loader.type_def(core, rid).is_some())
}
