//! Comparison of a method table with the structures of its module.

use super::Renderer;
use crate::base::Token;
use crate::base::missed::{contradiction, tried};
use crate::clr::method_table::{Generics, MethodTableInfo};
use crate::clr::modules::{MetadataOrigin, Module};

impl Renderer<'_> {
    /// Reports that the module or the token of a class contradicts other structures of the runtime, so that the name of the class is wrong or unknown.
    /// Structures that the dump does not have contradict nothing.
    pub(super) fn check(&self, info: &MethodTableInfo, module: &Module, token: Token) {
        if self.loader.is_module(module.address) == Some(false) {
            return contradiction(info.address, "the module of a method table is not a module");
        }
        // Hot reload adds rows, and the saved metadata of a dynamic module may be older than its last types.
        let is_whole = matches!(module.origin, MetadataOrigin::Image | MetadataOrigin::File(_)) && !module.edited;
        if is_whole && module.metadata.as_ref().is_some_and(|m| token.rid() > m.type_defs()) {
            return contradiction(info.address, "the type token of a method table is not in the metadata of its module");
        }
        let Some(listed) = tried(|| self.loader.type_def(module.address, token.rid())) else { return };
        let is_own = match info.generics {
            // The type table contains the definition of a generic type.
            Generics::Instance => tried(|| self.tables.read(listed)).map_or(true, |listed| listed.generics == Generics::Definition),
            _ => listed == info.address,
        };
        if !is_own {
            contradiction(info.address, "the type table of a module has another type for the token of a method table");
        }
    }
}
