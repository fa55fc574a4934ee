//! Types by name, and the types that are loaded.

use crate::base::{Addr, glob};
use crate::clr::fields::Types;

/// A type, as a person names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TypePattern {
    /// By its method table.
    MethodTable(Addr),
    /// By its name, in which `*` and `?` may stand for something else.
    Name(String),
}

impl TypePattern {
    /// Whether it means the type with this method table. `name` makes the type's name, where that is needed.
    pub fn matches(&self, method_table: Addr, name: impl FnOnce() -> String) -> bool {
        match self {
            TypePattern::MethodTable(mt) => *mt == method_table,
            TypePattern::Name(pattern) => glob(pattern, &name()),
        }
    }
}

/// Method tables of all loaded types: those of every module by token, then the generic instances. Generic types without
/// arguments are among them.
pub(crate) fn loaded_types(types: &Types) -> Vec<Addr> {
    let tables = types.names().method_tables();
    let mut out = Vec::new();
    for module in types.modules() {
        out.extend(types.loader().type_defs(*module).into_iter().map(|(_, mt)| mt).filter(|mt| tables.is_valid(*mt) == Ok(true)));
    }
    out.extend(types.instances());
    out
}
