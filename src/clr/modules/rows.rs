//! Numbers of metadata rows, from the maps that the loader allocates for the tables of a module.

use super::Reader;
use crate::base::Addr;
use crate::clr::metadata::RowCounts;
use crate::data::{Module, ModuleLookupMap};

impl Reader {
    /// Whether the maps of types, fields or methods of the module at `module` have grown. The loader allocates the maps for the rows of the
    /// image, and only hot reload adds rows.
    pub(super) fn is_edited(&self, module: Addr) -> bool {
        let (Some(fields), Some(map)) = (&self.module, &self.map) else { return false };
        let place = |field| fields.place(module, field);
        let grown = |at: Option<Addr>| at.and_then(|at| map.pointer(&self.memory, at, ModuleLookupMap::Next)).is_some();
        [Module::TypeDefToMethodTableMap, Module::FieldDefToDescMap, Module::MethodDefToDescMap].map(place).into_iter().any(grown)
    }

    /// Returns the first table that proves that the file is not the loaded file: the name of the table, and its numbers of rows in the process
    /// and in the file. The runtime allocates a map for each table, with one entry more than the table has rows (measured on all modules of
    /// .NET 8 to 10).
    pub(super) fn other_rows(&self, module: Addr, file: RowCounts) -> Option<(&'static str, u32, u32)> {
        let (fields, map) = (self.module.as_ref()?, self.map.as_ref()?);
        let places = |field| {
            let at = fields.place(module, field)?;
            // A grown map does not show the original number of rows.
            let grown = map.get(&self.memory, at, ModuleLookupMap::Next)? != Addr::NULL;
            map.get(&self.memory, at, ModuleLookupMap::Count).filter(|n| !grown && *n != 0)
        };
        let tables = [
            ("TypeDef", places(Module::TypeDefToMethodTableMap), file.type_defs),
            ("TypeRef", places(Module::TypeRefToMethodTableMap), file.type_refs),
            ("Field", places(Module::FieldDefToDescMap), file.fields),
            ("MethodDef", places(Module::MethodDefToDescMap), file.methods),
            ("MemberRef", places(Module::MemberRefToDescMap), file.member_refs),
        ];
        tables.into_iter().find_map(|(name, places, rows)| {
            let places = places?;
            (rows.checked_add(1) != Some(places)).then_some((name, places.saturating_sub(1), rows))
        })
    }
}
