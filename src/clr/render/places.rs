//! Where a type is defined.

use std::sync::Arc;

use crate::base::Token;
use crate::clr::modules::Module;

/// Definition of a type.
pub(super) struct Home {
    pub(super) module: Place,
    pub(super) token: Option<Token>,
}

/// Where a type is defined.
pub(super) enum Place {
    Module(Arc<Module>),
    /// In a module that was compiled into a NativeAOT program: its simple name.
    Compiled(Arc<str>),
}

impl Home {
    /// Name of the module for display.
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
