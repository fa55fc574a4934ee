//! Rows of metadata, as the maps that the loader keeps for the tables of a module count them.

use super::Reader;
use crate::base::Addr;
use crate::clr::metadata::RowCounts;

impl Reader {
    /// Whether the maps of types, fields or methods of the module at `module` have grown. The loader makes them for the rows of the image, and
    /// only edits of the running process add some.
    pub(super) fn is_edited(&self, module: Addr) -> bool {
        let (Some(layout), Some(map)) = (&self.module, &self.map) else { return false };
        let grown = |offset: Option<u64>| self.pointer(module.plus(offset.unwrap_or(0)), offset.and(Some(map.next))).is_some();
        [layout.type_defs, layout.fields, layout.methods].into_iter().any(grown)
    }

    /// The runtime allocates a map per table, with one entry more than the table has rows (measured: every module, .NET 8 to
    /// 10). Returns the first table that proves the file to be another one: name, rows in the process, rows in the file.
    pub(super) fn other_rows(&self, module: Addr, file: RowCounts) -> Option<(&'static str, u32, u32)> {
        let (module_layout, map) = (self.module.as_ref()?, self.map.as_ref()?);
        let places = |offset: Option<u64>| {
            let at = module.plus(offset?);
            // A grown map does not reveal the original number of rows.
            let grown = self.memory.ptr(at.plus(map.next)).ok()? != Addr::NULL;
            self.memory.u32(at.plus(map.count)).ok().filter(|n| !grown && *n != 0)
        };
        let tables = [
            ("TypeDef", places(module_layout.type_defs), file.type_defs),
            ("TypeRef", places(module_layout.type_refs), file.type_refs),
            ("Field", places(module_layout.fields), file.fields),
            ("MethodDef", places(module_layout.methods), file.methods),
            ("MemberRef", places(module_layout.member_refs), file.member_refs),
        ];
        tables.into_iter().find_map(|(name, places, rows)| {
            let places = places?;
            (rows.checked_add(1) != Some(places)).then_some((name, places.saturating_sub(1), rows))
        })
    }
}
