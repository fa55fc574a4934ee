//! Type patterns, and the list of loaded types.

use crate::base::{Addr, glob};
use crate::clr::fields::Types;

/// A type, as named by users.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TypePattern {
    /// By its method table.
    MethodTable(Addr),
    /// By its name, with `*` and `?` as wildcards.
    Name(String),
}

impl TypePattern {
    /// Whether it matches the type with this method table. `name` supplies the name of the type if needed.
    pub fn matches(&self, method_table: Addr, name: impl FnOnce() -> String) -> bool {
        match self {
            TypePattern::MethodTable(mt) => *mt == method_table,
            TypePattern::Name(pattern) => glob(pattern, &name()),
        }
    }
}

/// Method tables of all loaded types: those of every module by token, including open generic types, then the generic
/// instances.
pub(crate) fn loaded_types(types: &Types) -> Vec<Addr> {
    let tables = types.names().method_tables();
    if let Some(blobs) = types.names().native_aot().and_then(|p| p.blobs()) {
        let mut out: Vec<Addr> = blobs.definitions().map(|(mt, _)| mt).collect();
        out.sort_unstable();
        return out;
    }
    let mut out = types.loader().type_defs(types.modules(), |mt| tables.is_valid(mt) == Ok(true));
    out.extend(types.instances());
    out
}
