//! The module that defines a type.

use std::sync::Arc;

use crate::base::Token;
use crate::clr::modules::Module;

/// Defining module and token of a type.
pub(super) struct Home {
    pub(super) module: Place,
    pub(super) token: Option<Token>,
}

/// The module that defines a type.
pub(super) enum Place {
    Module(Arc<Module>),
    /// A module that was compiled into a NativeAOT program, by its simple name.
    Compiled(Arc<str>),
}

impl Home {
    /// Name of the module, for display.
    pub(super) fn name(&self) -> Option<&str> {
        match &self.module {
            Place::Module(module) => module.name.as_deref(),
            Place::Compiled(name) => Some(name),
        }
    }

    /// Name of the module without `.dll`.
    pub(super) fn simple_name(&self) -> Option<&str> {
        match &self.module {
            Place::Module(module) => module.simple_name(),
            Place::Compiled(name) => Some(name),
        }
    }
}
