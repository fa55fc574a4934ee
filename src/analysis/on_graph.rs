//! What every question to the heap's graph begins and ends with.

use crate::base::{Addr, Answer, Collector};
use crate::session::{Error, Heap, HeapGraph, Namer};

/// An answer in the making about the heap's graph.
pub(super) struct OnGraph<'h> {
    pub(super) heap: &'h Heap,
    pub(super) graph: &'h HeapGraph,
    pub(super) namer: Namer,
    pub(super) notes: Collector,
}

impl<'h> OnGraph<'h> {
    /// Takes the graph, building it where nobody has yet; with weak handles among its roots, or without.
    pub(super) fn open(heap: &'h Heap, weak: bool) -> Result<OnGraph<'h>, Error> {
        let notes = heap.begin();
        let graph = notes.with(heap.graph(weak)?);
        Ok(OnGraph { heap, graph, namer: graph.namer(heap), notes })
    }

    /// The object at `address`, or around it.
    pub(super) fn object(&self, address: Addr) -> Result<u32, Error> {
        let found = self.graph.index.containing(self.heap.walker(), address).map(|(id, _)| id);
        found.ok_or(Error::NoObject(address))
    }

    /// The answer, with what there is to tell about names.
    pub(super) fn finish<T>(self, data: T) -> Answer<T> {
        self.namer.note(&self.notes);
        self.notes.finish(data)
    }
}
