//! Common analyses as methods with default arguments. The functions in [`crate::analysis`] accept all queries.

use super::{ExceptionsQuery, PathsQuery, RetainedQuery, StringsQuery, exceptions, objsize, paths, retained, strings};
use crate::analysis::{
    ExceptionsReport, ExceptionsRows, HeapExceptions, ObjSizeReport, PathsReport, RetainedReport, RetainedRows, StringsReport, TopRetained,
};
use crate::base::{Addr, Answer};
use crate::managed::Object;
use crate::model::Stacks;
use crate::session::{Error, Heap};

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
    pub fn retained(&self) -> Result<Answer<TopRetained>, Error> {
        Ok(retained(self, &RetainedQuery::default())?.map(|RetainedReport { rows, totals, coverage, .. }| {
            let (objects, types) =
                if let RetainedRows::Top { objects, types, .. } = rows { (objects, types) } else { (Vec::new(), Vec::new()) };
            TopRetained { objects, types, totals, coverage }
        }))
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
    pub fn exceptions(&self) -> Result<Answer<HeapExceptions>, Error> {
        Ok(exceptions(self, &ExceptionsQuery::default())?.map(|ExceptionsReport { total, preallocated, groups, rows, .. }| {
            let exceptions = if let ExceptionsRows::Exceptions { exceptions } = rows { exceptions } else { Vec::new() };
            HeapExceptions { total, preallocated, groups, exceptions }
        }))
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
