//! Files for other tools. Those that hold the graph are written from one view of it, [`Part`], so that they agree with `retained`; tables
//! from the walk and from the answers of commands. A format is one file of this floor.

pub mod gcdump;
pub mod heapsnapshot;
mod part;
pub mod tables;

use crate::base::IndexVec;
use crate::gc::ObjectId;
pub use part::{Part, Scope};

/// What was written.
#[derive(Clone, Copy, Debug, Default)]
pub struct Written {
    /// Nodes: objects, groups of roots, and sums of what is left out.
    pub nodes: u64,
    /// Edges between them.
    pub edges: u64,
    /// Sizes that the format cannot hold, cut to the largest that it can.
    pub clipped: u64,
}

/// Numbers of objects that hold for two dumps of one process: viewers compare by them.
#[derive(Clone, Debug, Default)]
pub struct Ids {
    /// Objects of the dump before.
    earlier: u64,
    /// By object: which object of the dump before it is.
    was: IndexVec<ObjectId, Option<ObjectId>>,
}

impl Ids {
    /// Numbers for a dump whose objects were, where known, those of an earlier one with `earlier` objects.
    pub fn since(earlier: u32, was: IndexVec<ObjectId, Option<ObjectId>>) -> Ids {
        Ids { earlier: earlier.into(), was }
    }

    /// The number of an object, from 0: that of the dump before, or one above all of those.
    pub fn number(&self, id: ObjectId) -> u64 {
        use crate::base::Index;
        match self.was.get(id) {
            Some(Some(was)) => was.as_u32().into(),
            _ => self.earlier.saturating_add(id.as_u32().into()),
        }
    }

    /// The largest number of a heap with this many objects.
    pub fn largest(&self, objects: u32) -> u64 {
        self.earlier.saturating_add(objects.into())
    }
}
