//! Shared start and end of all analyses of the heap graph.

use crate::base::{Addr, Answer, Collector};
use crate::gc::ObjectId;
use crate::session::{Error, Heap, HeapGraph, Namer};

/// An analysis of the heap graph in progress.
pub(super) struct OnGraph<'h> {
    pub(super) heap: &'h Heap,
    pub(super) graph: &'h HeapGraph,
    pub(super) namer: Namer,
    pub(super) notes: Collector,
}

impl<'h> OnGraph<'h> {
    /// Gets the graph, built on first use, with or without weak handles among its roots.
    pub(super) fn open(heap: &'h Heap, weak: bool) -> Result<OnGraph<'h>, Error> {
        let notes = heap.begin();
        let graph = notes.with(heap.graph(weak)?);
        Ok(OnGraph { heap, graph, namer: graph.namer(heap), notes })
    }

    /// The object at or around `address`.
    pub(super) fn object(&self, address: Addr) -> Result<ObjectId, Error> {
        let found = self.graph.index.containing(self.heap.walker(), address).map(|(id, _)| id);
        found.ok_or(Error::NoObject(address))
    }

    /// The answer, with the notes about names.
    pub(super) fn finish<T>(self, data: T) -> Answer<T> {
        self.namer.note(&self.notes);
        self.notes.finish(data)
    }
}
