//! [`GraphSource`]: the interface to a heap graph of a process or of a heap snapshot.

use std::sync::Arc;

use super::{Error, Heap, Namer};
use crate::base::{Addr, Collector};
use crate::dump::DumpFacts;
use crate::gc::ObjectId;
use crate::heapgraph::{DominatorTree, HeapGraph};
use crate::memory::Memory;
use crate::model::Stacks;

/// Objects with types, sizes, references and roots: the heap of a process, or a heap snapshot (`.gcdump`). `stat`, `retained`, `paths` and
/// `diff` work with either.
pub trait GraphSource: std::fmt::Debug + Sync {
    /// Begins an answer, with the notes of opening the file.
    #[doc(hidden)]
    fn begin(&self) -> Collector;

    /// Creates a namer for one answer.
    #[doc(hidden)]
    fn namer(&self) -> Namer;

    /// The graph, with or without weak handles among its roots.
    ///
    /// # Errors
    /// [`Error::Graph`], [`Error::Memory`] or [`Error::Room`].
    #[doc(hidden)]
    fn graph(&self, weak: bool) -> Result<&HeapGraph, Error>;

    /// Adds the notes of building the graph that [`GraphSource::graph`] returns.
    #[doc(hidden)]
    fn graph_notes(&self, weak: bool, notes: &Collector);

    /// The dominator tree with retained sizes, with stack values as roots according to `stacks`.
    ///
    /// # Errors
    /// See [`GraphSource::graph`].
    #[doc(hidden)]
    fn dominators(&self, stacks: Stacks) -> Result<&DominatorTree, Error>;

    /// The object at or around `address` in `graph`, which must be the graph of this source.
    #[doc(hidden)]
    fn around(&self, graph: &HeapGraph, address: Addr) -> Option<ObjectId>;

    /// The memory of the process; empty for a snapshot.
    #[doc(hidden)]
    fn memory(&self) -> &Arc<Memory>;

    /// The facts that the file records about the process.
    #[doc(hidden)]
    fn facts(&self) -> &DumpFacts;

    /// The heap; `None` for a snapshot.
    #[doc(hidden)]
    fn heap(&self) -> Option<&Heap>;
}

impl GraphSource for Heap {
    fn begin(&self) -> Collector {
        Heap::begin(self)
    }

    fn namer(&self) -> Namer {
        Heap::namer(self)
    }

    fn graph(&self, weak: bool) -> Result<&HeapGraph, Error> {
        Heap::graph(self, weak).map(|graph| &graph.data)
    }

    fn graph_notes(&self, weak: bool, notes: &Collector) {
        if let Ok(graph) = Heap::graph(self, weak) {
            notes.extend(&graph.notes);
        }
    }

    fn dominators(&self, stacks: Stacks) -> Result<&DominatorTree, Error> {
        Heap::dominators(self, stacks)
    }

    fn around(&self, graph: &HeapGraph, address: Addr) -> Option<ObjectId> {
        graph.index.containing(self.walker(), address).map(|(id, _)| id)
    }

    fn memory(&self) -> &Arc<Memory> {
        Heap::memory(self)
    }

    fn facts(&self) -> &DumpFacts {
        &self.runtime().file().facts
    }

    fn heap(&self) -> Option<&Heap> {
        Some(self)
    }
}
