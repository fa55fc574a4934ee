//! The types that patterns are resolved against.

use super::Namer;
use crate::base::Addr;
use crate::clr::type_names::{Label, TypeNames};

/// The types that patterns are resolved against.
pub(crate) trait KnownTypes {
    /// The names of the types.
    fn labels(&self) -> Vec<Label>;

    /// Whether a type has the method table at `address`.
    fn has(&self, address: Addr) -> bool;

    /// File names of the modules that define the types.
    fn modules(&self) -> Vec<String>;

    /// The reason why the structure at `address` is not a method table; `None` if it is one, or if that is unknown.
    fn no_type_at(&self, address: Addr) -> Option<NoType>;
}

/// The reason why no type has a method table at an address.
pub(crate) struct NoType {
    /// The reason in words, with what is there.
    pub(crate) why: String,
    /// The address in the process; `None` in a heap snapshot, whose types have numbers.
    pub(crate) at: Option<Addr>,
}

impl NoType {
    pub(crate) fn at(names: &TypeNames, address: Addr) -> Option<NoType> {
        names.no_type_at(address).map(|why| NoType { why, at: Some(address) })
    }
}

/// Types by their method tables, with the namer of the answer.
pub(crate) struct NamedTypes<'n, F> {
    /// The names.
    pub(crate) namer: &'n Namer,
    /// Returns the method tables.
    pub(crate) tables: F,
}

impl<F: Fn() -> Vec<Addr>> KnownTypes for NamedTypes<'_, F> {
    fn labels(&self) -> Vec<Label> {
        (self.tables)().into_iter().map(|mt| self.namer.label(mt)).collect()
    }

    fn has(&self, address: Addr) -> bool {
        (self.tables)().contains(&address)
    }

    fn modules(&self) -> Vec<String> {
        (self.tables)().into_iter().filter_map(|mt| self.namer.module(mt)).collect()
    }

    fn no_type_at(&self, address: Addr) -> Option<NoType> {
        self.namer.no_type_at(address)
    }
}

/// Types by their method tables, with the type names of the process.
pub(crate) struct LoadedTypes<'n, F> {
    /// The names.
    pub(crate) names: &'n TypeNames,
    /// Returns the method tables.
    pub(crate) tables: F,
}

impl<F: Fn() -> Vec<Addr>> KnownTypes for LoadedTypes<'_, F> {
    fn labels(&self) -> Vec<Label> {
        (self.tables)().into_iter().map(|mt| self.names.label(mt)).collect()
    }

    fn has(&self, address: Addr) -> bool {
        (self.tables)().contains(&address)
    }

    fn modules(&self) -> Vec<String> {
        (self.tables)().into_iter().filter_map(|mt| self.names.name(mt).module.clone()).collect()
    }

    fn no_type_at(&self, address: Addr) -> Option<NoType> {
        NoType::at(self.names, address)
    }
}
