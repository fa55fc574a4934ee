//! Writes files for other tools. The graph formats are written from a [`Subgraph`] of the heap graph, so that they agree with the command `retained`.
//! Tables are written from a heap walk and from the answers of commands. Each format has its own source file.

pub mod gcdump;
pub mod heapsnapshot;
mod subgraph;
pub mod tables;

use crate::base::IndexVec;
use crate::gc::ObjectId;
pub use subgraph::{Scope, Subgraph};

/// Numbers of written items.
#[derive(Clone, Copy, Debug, Default)]
pub struct Written {
    /// Number of nodes: objects, groups of roots, and sums of omitted objects.
    pub nodes: u64,
    /// Number of edges between the nodes.
    pub edges: u64,
    /// Number of sizes that were clipped to the largest one the format can hold.
    pub clipped: u64,
}

/// Object numbers that are valid for two dumps of one process, so that viewers can compare the exported files.
#[derive(Clone, Debug, Default)]
pub struct Ids {
    /// Number of objects in the earlier dump.
    earlier: u64,
    /// For each object, the matching object of the earlier dump.
    was: IndexVec<ObjectId, Option<ObjectId>>,
}

impl Ids {
    /// Creates numbers for the objects of a dump. `was` has the matching object in an earlier dump, which has `earlier` objects.
    pub fn since(earlier: u32, was: IndexVec<ObjectId, Option<ObjectId>>) -> Ids {
        Ids { earlier: earlier.into(), was }
    }

    /// Returns the number of an object, from 0: the id of the matching object in the earlier dump, or else a number above all ids of that dump.
    pub fn number(&self, id: ObjectId) -> u64 {
        use crate::base::Index;
        match self.was.get(id) {
            Some(Some(was)) => was.as_u32().into(),
            _ => self.earlier.saturating_add(id.as_u32().into()),
        }
    }

    /// Returns an exclusive upper bound of the numbers in a heap with this many objects.
    pub fn largest(&self, objects: u32) -> u64 {
        self.earlier.saturating_add(objects.into())
    }
}
