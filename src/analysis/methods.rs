//! Common analyses as methods with default arguments. The functions in [`crate::analysis`] accept all queries.

use super::{
    HandlesQuery, ModulesQuery, PathsQuery, RetainedQuery, StringsQuery, exceptions, handles, modules, objsize, paths, retained, strings,
};
use crate::analysis::{ExceptionsReport, HandlesReport, ModuleModel, ObjSizeReport, PathsReport, RetainedReport, StringsReport};
use crate::base::{Addr, Answer};
use crate::managed::Object;
use crate::model::Stacks;
use crate::session::{Dump, Error, Heap, Runtime};

impl Heap {
    /// The three shortest paths from roots to the object at or around `address`: [`paths`] with its defaults. Paths from lasting roots come first.
    /// The first call builds the heap graph, which is cached.
    ///
    /// # Errors
    /// [`Error::NoObject`]; [`Error::Graph`], [`Error::Memory`] or [`Error::Room`] if the graph cannot be built.
    pub fn paths_to(&self, address: Addr) -> Result<Answer<PathsReport>, Error> {
        paths(self, &PathsQuery::to(address))
    }

    /// The objects and types with the largest retained size: [`retained`] with its defaults. The first call builds the heap
    /// graph and its dominator tree, which are cached.
    ///
    /// # Errors
    /// [`Error::Graph`], [`Error::Memory`] or [`Error::Room`] if the graph cannot be built.
    pub fn retained(&self) -> Result<Answer<RetainedReport>, Error> {
        retained(self, &RetainedQuery::default())
    }

    /// Duplicate strings: [`strings`] with its defaults.
    ///
    /// # Errors
    /// See [`strings`].
    pub fn strings(&self) -> Result<Answer<StringsReport>, Error> {
        strings(self, &StringsQuery::default())
    }

    /// The exception objects on the heap: [`exceptions`] with its defaults.
    ///
    /// # Errors
    /// See [`exceptions`].
    pub fn exceptions(&self) -> Result<Answer<ExceptionsReport>, Error> {
        exceptions(self, &super::ExceptionsQuery::default())
    }
}

impl Dump {
    /// The modules of the process, managed and native: [`modules`] with its defaults.
    ///
    /// # Errors
    /// The errors of [`modules`]. For a dump without a runtime, the answer has the native modules.
    pub fn modules(&self) -> Result<Answer<Vec<ModuleModel>>, Error> {
        modules(self, &ModulesQuery::default()).map(|answer| answer.map(|report| report.modules))
    }
}

impl Runtime {
    /// The GC handles: [`handles`] with its defaults.
    ///
    /// # Errors
    /// See [`handles`].
    pub fn handles(&self) -> Result<Answer<HandlesReport>, Error> {
        handles(self, &HandlesQuery::default())
    }
}

impl Object {
    /// The paths that keep the object alive: see [`Heap::paths_to`].
    ///
    /// # Errors
    /// The errors of [`Heap::paths_to`].
    pub fn paths(&self) -> Result<Answer<PathsReport>, Error> {
        self.heap().paths_to(self.address())
    }

    /// The retained size in bytes: the size of everything that the object dominates, itself included. 0 if it is unreachable. References on stacks
    /// are roots only of objects that no handle, static field or finalization queue keeps alive. The first call builds the heap graph and its
    /// dominator tree, which are cached.
    ///
    /// # Errors
    /// [`Error::Graph`], [`Error::Memory`] or [`Error::Room`] if the graph cannot be built; [`Error::NoObject`] if the heap walk does not find the object.
    pub fn retained_size(&self) -> Result<u64, Error> {
        let graph = self.heap().graph(false)?;
        let none = || Error::NoObject(self.address()).given(&graph.notes);
        let id = graph.index.id_of(self.address()).ok_or_else(none)?;
        Ok(self.heap().dominators(Stacks::default())?.retained(id))
    }

    /// The size of everything that is reachable from the object, and how much of it the object retains: [`objsize`].
    ///
    /// # Errors
    /// The errors of [`Object::retained_size`].
    pub fn closure(&self) -> Result<Answer<ObjSizeReport>, Error> {
        objsize(self.heap(), self.address(), Stacks::default())
    }
}
