//! Files for other tools. Formats with the graph are written from one view of it, [`Part`], so that they agree with `retained`; tables are written
//! from the walk and from the answers of commands. A format is one file of this floor.

pub mod gcdump;
pub mod heapsnapshot;
mod part;
pub mod tables;

use crate::base::IndexVec;
use crate::gc::ObjectId;
pub use part::{Part, Scope};

/// Numbers of written items.
#[derive(Clone, Copy, Debug, Default)]
pub struct Written {
    /// Number of nodes: objects, groups of roots, and sums of omitted objects.
    pub nodes: u64,
    /// Number of edges between them.
    pub edges: u64,
    /// Number of sizes that were clipped to the largest one the format can hold.
    pub clipped: u64,
}

/// Numbers of objects that are valid for two dumps of one process, so that viewers can compare them.
#[derive(Clone, Debug, Default)]
pub struct Ids {
    /// Number of objects in the earlier dump.
    earlier: u64,
    /// For each object, the matching object of the earlier dump.
    was: IndexVec<ObjectId, Option<ObjectId>>,
}

impl Ids {
    /// Creates numbers for a dump. `was` has the known objects of an earlier dump with `earlier` objects.
    pub fn since(earlier: u32, was: IndexVec<ObjectId, Option<ObjectId>>) -> Ids {
        Ids { earlier: earlier.into(), was }
    }

    /// Returns the number of an object, from 0: that in the earlier dump, or one above all of those.
    pub fn number(&self, id: ObjectId) -> u64 {
        use crate::base::Index;
        match self.was.get(id) {
            Some(Some(was)) => was.as_u32().into(),
            _ => self.earlier.saturating_add(id.as_u32().into()),
        }
    }

    /// Returns the largest number of a heap with this many objects.
    pub fn largest(&self, objects: u32) -> u64 {
        self.earlier.saturating_add(objects.into())
    }
}
