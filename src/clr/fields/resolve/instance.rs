//! Instance fields of a type, including inherited ones.

use super::{MAX_BASES, MAX_FIELDS, Types};
use crate::base::Addr;
use crate::base::missed::contradiction;
use crate::clr::fields::Field;
use crate::clr::method_table::{Category, MethodTableInfo};

impl Types {
    /// Whether a type may have no base type: `System.Object`, interfaces, and `<Module>`, which is the first type of a module.
    fn may_have_no_base(&self, info: &MethodTableInfo) -> bool {
        let tables = self.names.method_tables();
        tables.object.is_none_or(|object| object == info.address)
            || info.category == Category::Interface
            || tables.rid(info).is_ok_and(|rid| rid <= 1)
    }

    pub(super) fn read_instance_fields(&self, mt: Addr) -> Option<Vec<Field>> {
        let tables = self.names.method_tables();
        // The type of free objects has no class, only a length.
        if tables.free == Some(mt) {
            return Some(Vec::new());
        }
        if let Some(program) = self.names.native_aot() {
            return Some(self.compiled_fields(program, &tables.read(mt).ok()?));
        }
        if let Some(mono) = tables.mono() {
            return self.mono_fields(mono, &tables.read(mt).ok()?);
        }
        let mut chain = Vec::new();
        let mut at = mt;
        while !at.is_null() {
            if chain.len() >= MAX_BASES || tables.is_valid(at) != Ok(true) {
                return None;
            }
            let info = tables.read(at).ok()?;
            at = info.parent;
            // Fields of a continuation beyond its base type are variables of a method, without metadata.
            if tables.continuation(info.address).is_none() {
                chain.push(info);
            }
        }
        if let Some(root) = chain.last().filter(|root| !self.may_have_no_base(root)) {
            contradiction(root.address, "a class has no base type in its method table");
        }
        let mut out = Vec::new();
        for info in chain.iter().rev() {
            let own = self.own(info)?;
            let room = u64::from(info.base_size).saturating_sub(self.pointer_bytes().saturating_mul(2));
            if own.instance.iter().any(|field| field.offset >= room) {
                contradiction(info.address, "a field is past the end of the objects of its type");
            }
            out.extend(self.complete(info, &own.instance)?);
            if out.len() > MAX_FIELDS {
                return None;
            }
        }
        Some(out)
    }
}
