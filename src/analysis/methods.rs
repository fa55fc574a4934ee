//! The questions that read well as methods, with their defaults. The functions of this floor take every query.

use super::{
    HandlesQuery, PathsQuery, RetainedQuery, RootsQuery, StringsQuery, exceptions, handles, objsize, paths, retained, roots, strings,
};
use crate::base::{Addr, Answer};
use crate::model::{ExceptionsReport, HandlesReport, ObjSizeReport, PathsReport, RetainedReport, RootsReport, Stacks, StringsReport};
use crate::session::{Error, Heap, Object, Runtime};

impl Heap {
    /// What keeps objects alive from outside of the heap, weak handles left out: [`roots`] with its defaults.
    ///
    /// # Errors
    /// See [`roots`].
    pub fn roots(&self) -> Result<Answer<RootsReport>, Error> {
        roots(self, &RootsQuery::default())
    }

    /// Shortest paths from roots to the object at, or around, `address`: [`paths`] with its defaults. The first call builds the
    /// heap's graph, which is kept.
    ///
    /// # Errors
    /// [`Error::NoObject`]; [`Error::Graph`] or [`Error::Memory`] where the graph cannot be built.
    pub fn paths_to(&self, address: Addr) -> Result<Answer<PathsReport>, Error> {
        paths(self, &PathsQuery::to(address))
    }

    /// The objects and types that retain most: [`retained`] with its defaults. The first call builds the heap's graph and its
    /// dominator tree, which are kept.
    ///
    /// # Errors
    /// [`Error::Graph`] or [`Error::Memory`].
    pub fn retained(&self) -> Result<Answer<RetainedReport>, Error> {
        retained(self, &RetainedQuery::default())
    }

    /// Strings that are there several times: [`strings`] with its defaults.
    ///
    /// # Errors
    /// See [`strings`].
    pub fn strings(&self) -> Result<Answer<StringsReport>, Error> {
        strings(self, &StringsQuery::default())
    }

    /// The exceptions on the heap, those in flight on a thread first: [`exceptions`] with its defaults.
    ///
    /// # Errors
    /// See [`exceptions`].
    pub fn exceptions(&self) -> Result<Answer<ExceptionsReport>, Error> {
        exceptions(self, &super::ExceptionsQuery::default())
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
    /// What keeps it alive: see [`Heap::paths_to`].
    ///
    /// # Errors
    /// As [`Heap::paths_to`].
    pub fn paths(&self) -> Result<Answer<PathsReport>, Error> {
        self.heap().paths_to(self.address())
    }

    /// Bytes that would be freed without it, its own included: the total size of what it dominates. 0 where no root reaches it.
    /// Words of stacks count as roots only for what nothing else reaches. The first call builds the heap's graph and its
    /// dominator tree, which are kept.
    ///
    /// # Errors
    /// [`Error::Graph`] or [`Error::Memory`]; [`Error::NoObject`] where the walk of the heap does not meet it.
    pub fn retained_size(&self) -> Result<u64, Error> {
        let graph = self.heap().graph(false)?;
        let id = graph.index.id_of(self.address()).ok_or(Error::NoObject(self.address()))?;
        let sizes = &self.heap().retention(Stacks::default())?.retained;
        Ok(usize::try_from(id).ok().and_then(|i| sizes.get(i)).copied().unwrap_or(0))
    }

    /// Everything that it leads to, and how much of that it retains: [`objsize`].
    ///
    /// # Errors
    /// As [`Object::retained_size`].
    pub fn closure(&self) -> Result<Answer<ObjSizeReport>, Error> {
        objsize(self.heap(), self.address())
    }
}
