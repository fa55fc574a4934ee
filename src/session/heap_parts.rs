//! The parts of a heap that are built once and shared by all handles to it. The modules `heap` and `graph` fill them.

use std::sync::{Arc, OnceLock};

use super::Error;
use crate::base::store::caught;
use crate::base::{Answer, Progress};
use crate::gc::{Gc, ObjectStarts, Walker};
use crate::heapgraph::{DominatorTree, HeapGraph, HeapIndex, IndexError, TypeSums};
use crate::model::Stacks;

/// Parts of the heap.
#[derive(Debug)]
pub(super) struct HeapParts {
    pub(super) gc: Arc<Answer<Gc>>,
    pub(super) walker: Answer<Walker>,
    pub(super) index: OnceLock<Result<Option<HeapIndex>, IndexError>>,
    pub(super) starts: OnceLock<Answer<Arc<ObjectStarts>>>,
    pub(super) sums: OnceLock<Answer<TypeSums>>,
    pub(super) graph: OnceLock<Answer<HeapGraph>>,
    pub(super) graph_with_weak: OnceLock<Answer<HeapGraph>>,
    /// One dominator tree per treatment of stack values, in the order of [`Stacks::ALL`].
    pub(super) dominators: [OnceLock<DominatorTree>; Stacks::ALL.len()],
}

impl HeapParts {
    /// Creates parts with only the GC's structures and the walker; the other parts are empty.
    pub(super) fn new(gc: Arc<Answer<Gc>>, walker: Answer<Walker>) -> HeapParts {
        let (index, starts, sums, graph, graph_with_weak, dominators) = Default::default();
        HeapParts { gc, walker, index, starts, sums, graph, graph_with_weak, dominators }
    }
}

/// The dominator tree of `graph`, which is created once and kept in the cell for `stacks`. `kept` may supply the tree from an index.
pub(super) fn dominators_of<'c>(
    graph: &HeapGraph,
    stacks: Stacks,
    cells: &'c [OnceLock<DominatorTree>; Stacks::ALL.len()],
    progress: &dyn Progress,
    kept: impl FnOnce() -> Option<DominatorTree>,
) -> Result<&'c DominatorTree, Error> {
    let place = Stacks::ALL.iter().zip(cells).find(|(s, _)| **s == stacks);
    let (_, cell) = place.ok_or_else(|| Error::Query("there are no dominators for this treatment of stacks".into()))?;
    let made = || {
        progress.start("computing dominators", None);
        let [lasting, on_stacks] = graph.start_groups(stacks);
        let tree = graph.edges.dominators([&lasting, &on_stacks], |id| graph.size(id));
        progress.finish();
        tree
    };
    Ok(caught(|| cell.get_or_init(|| kept().unwrap_or_else(made)))?)
}
