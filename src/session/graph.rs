//! Builds and caches the graph of a heap.

use std::fs::File;
use std::io;
use std::sync::Arc;

use super::heap_parts::dominators_of;
use super::references::{Gathered, store_of};
use super::roots::RootOptions;
use super::roots::dangling::note_dangling;
use super::{Error, Heap, Namer};
use crate::base::store::caught;
use crate::base::{Answer, Collector};
use crate::gc::{ObjectId, ObjectStarts};
use crate::heapgraph::index::{self, Contents};
use crate::heapgraph::{DominatorTree, Extra, HeapGraph, IndexUse, ObjectSet, References, Roots};
use crate::model::{Generation, Stacks};

/// Builds the graph of `heap`, with or without weak handles among its roots.
///
/// # Errors
/// [`Error::Graph`] if there are too many objects or references to index, [`Error::Memory`] if the graph would exceed the
/// memory limit.
fn build(heap: &Heap, weak: bool) -> Result<Answer<HeapGraph>, Error> {
    let notes = Collector::new();
    let gathered = if heap.index().is_none() { Some(Gathered::walk(heap)?) } else { None };
    let index = notes.with(heap.starts());
    let namer = heap.namer();
    let roots = notes.take(Roots::collect(heap, &namer, &RootOptions { weak, any_stacks: true, ..RootOptions::default() }));
    let extra = extra_edges(heap, &namer, index, &roots);
    let kept = heap.index().and_then(|of_file| of_file.graph(&extra));
    let walked = match kept {
        Some(kept) => References { edges: kept.edges.with_store(&store_of(heap)), ..kept },
        None => gathered.map_or_else(|| Gathered::walk(heap), Ok)?.resolved(heap, index, &extra)?,
    };
    notes.extend(&walked.notes);
    note_dangling(heap, (&roots, index), &notes);
    let graph = HeapGraph::new(Arc::clone(index), walked, roots, frozen(heap, index)).with_modules(namer.modules());
    Ok(notes.finish(graph))
}

/// The edges of `heap` that are not references: the edges of the dependent handles in `roots`, and edges from objects of collectible types to
/// their loader allocators. `index` numbers the objects. Types that no walk has found yet have no edges.
pub(crate) fn extra_edges(heap: &Heap, namer: &Namer, index: &ObjectStarts, roots: &Roots) -> Extra {
    let collectible = heap.walker().types().list();
    let types = namer.types().ok();
    let allocators = collectible.iter().filter(|t| t.is_collectible).filter_map(|kind| {
        let module = heap.walker().tables().loader_module(kind.method_table)?;
        Some((kind.method_table, index.id_of(types?.loader().allocator_object(module)?)?))
    });
    Extra::new(index, &roots.dependents, allocators)
}

/// The objects in frozen segments.
fn frozen(heap: &Heap, index: &ObjectStarts) -> Vec<ObjectId> {
    let frozen = heap.walker().segments_enumerated().filter(|(_, s)| s.generation == Generation::Frozen);
    let mut ids: Vec<ObjectId> = frozen.filter_map(|(i, _)| index.of_segment(i)).flatten().collect();
    ids.sort_unstable();
    ids
}

impl Heap {
    /// The heap as a graph, with or without weak handles among its roots. Each of the two graphs is built once.
    ///
    /// # Errors
    /// [`Error::Graph`] if there are too many objects or references to index, [`Error::Memory`] if the graph would exceed the memory limit,
    /// [`Error::Room`] if its temporary files do not fit on the disk.
    pub(crate) fn graph(&self, weak: bool) -> Result<&Answer<HeapGraph>, Error> {
        let cell = if weak { &self.parts().graph_with_weak } else { &self.parts().graph };
        if let Some(graph) = cell.get() {
            return Ok(graph);
        }
        let graph = caught(|| build(self, weak))??;
        Ok(cell.get_or_init(|| graph))
    }

    /// The dominator tree with retained sizes, with stack values as roots according to `stacks`. Computed once per setting.
    ///
    /// # Errors
    /// See [`Heap::graph`].
    pub(crate) fn dominators(&self, stacks: Stacks) -> Result<&DominatorTree, Error> {
        let graph = &self.graph(false)?.data;
        let kept = || self.index()?.dominators(graph, stacks);
        dominators_of(graph, stacks, &self.parts().dominators, self.progress(), kept)
    }

    /// The live objects, from the index if possible: see [`HeapGraph::live`]. `graph` must be the graph of this heap.
    pub(crate) fn live(&self, graph: &HeapGraph, stacks: Stacks) -> ObjectSet {
        self.index().and_then(|index| index.live(graph, stacks)).unwrap_or_else(|| graph.live(stacks))
    }

    /// The number of objects in the graph, if writing an index would spare the next command from building it again. `None` if the graph is not
    /// built yet, if an index file exists, or if no index is looked for.
    #[doc(hidden)]
    pub fn index_spares(&self) -> Option<u32> {
        let graph = self.parts().graph.get()?;
        let none_there = *self.runtime().index_use() == IndexUse::Auto && matches!(self.opened_index(), Ok(None));
        none_there.then_some(graph.data.len())
    }

    /// Writes an index of the heap to `file`, for later commands on the same dump. Returns its length in bytes.
    ///
    /// # Errors
    /// [`Error::Graph`], [`Error::Memory`] or [`Error::Room`] if the graph cannot be built; [`io::Error`] if the file cannot be written.
    #[doc(hidden)]
    pub fn write_index(&self, file: &File) -> Result<io::Result<u64>, Error> {
        let (graph, tree) = (&self.graph(false)?.data, self.dominators(Stacks::default())?);
        let (sums, starts) = (self.type_sums(), self.starts());
        let extra = &extra_edges(self, &self.namer(), &graph.index, &graph.roots);
        let contents = Contents { dump: self.runtime().file(), walker: self.walker(), sums, starts, graph, extra, tree };
        Ok(caught(|| index::write(&contents, file))?)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::session::{Dump, OpenOptions};

    /// Regression test: the index of a mutated dump was longer after other commands.
    #[test]
    fn the_index_has_only_types_with_objects() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("dumps");
        // The second dump has collectible types.
        for name in ["net10-wks-basics-heap.dmp.zst", "corpus/net10-wks-dynamic-heap.dmp.zst"] {
            let index = |met_elsewhere: bool| {
                let runtime = Dump::open(folder.join(name), &OpenOptions::default()).unwrap().runtime().unwrap();
                let heap = runtime.heap().unwrap();
                if met_elsewhere {
                    runtime.types().unwrap().instances().iter().for_each(|mt| drop(heap.walker().type_at(*mt)));
                    assert!(heap.walker().types().list().len() > 50);
                }
                let file = tempfile::NamedTempFile::new().unwrap();
                heap.write_index(file.as_file()).unwrap().unwrap();
                let types = heap.type_sums().sums.iter().filter(|sum| sum.count > 0).count();
                assert!(!met_elsewhere || heap.walker().types().list().len() > types);
                std::fs::read(file.path()).unwrap()
            };
            assert!(index(false) == index(true), "{name}");
        }
    }
}
