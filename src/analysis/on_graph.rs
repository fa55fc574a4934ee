//! The code with which each analysis of the heap graph starts and ends.

use crate::base::{Addr, Answer, Collector};
use crate::gc::ObjectId;
use crate::heapgraph::{Depends, HeapGraph};
use crate::model::{RootCoverageModel, Stacks};
use crate::session::{Error, GraphSource, Heap, Namer};

/// An analysis of the heap graph in progress.
pub(super) struct OnGraph<'h, S: GraphSource + ?Sized = Heap> {
    pub(super) heap: &'h S,
    pub(super) graph: &'h HeapGraph,
    pub(super) namer: Namer,
    pub(super) notes: Collector,
    pub(super) stacks: Stacks,
}

impl<'h, S: GraphSource + ?Sized> OnGraph<'h, S> {
    /// Gets the graph, which is built on first use. `weak`: whether weak handles are roots; `stacks`: which stack values are roots. If `depends` is
    /// `None`, the caller must add the notes on stack values that may be stale.
    pub(super) fn open(heap: &'h S, weak: bool, stacks: Stacks, depends: Option<Depends>) -> Result<OnGraph<'h, S>, Error> {
        let notes = heap.begin();
        let graph = heap.graph(weak)?;
        heap.graph_notes(weak, &notes);
        graph.root_notes(stacks).into_iter().for_each(|n| notes.extend(n));
        depends.into_iter().for_each(|depends| graph.note_doubts(stacks, depends, &notes));
        Ok(OnGraph { heap, graph, namer: graph.namer(heap.namer()), notes, stacks })
    }

    /// Returns how complete the roots of each kind are in the dump.
    pub(super) fn coverage(&self) -> Vec<RootCoverageModel> {
        self.graph.coverage(self.stacks)
    }

    /// Returns the object at or around `address`.
    pub(super) fn object(&self, address: Addr) -> Result<ObjectId, Error> {
        self.around(address).ok_or_else(|| self.none(Error::NoObject(address)))
    }

    /// Returns `error`, which says that nothing was found. If data is missing from the dump, returns an error which says that the answer is unknown.
    pub(super) fn none(&self, error: Error) -> Error {
        error.given(&self.notes.notes())
    }

    /// Returns the object that contains `address`, if any.
    pub(super) fn around(&self, address: Addr) -> Option<ObjectId> {
        self.heap.around(self.graph, address)
    }

    /// Returns the answer, with the notes about names.
    pub(super) fn finish<T>(self, data: T) -> Answer<T> {
        self.namer.note(&self.notes);
        self.notes.finish(data)
    }
}
