//! What is asked for, and what the tables of a dump have in common.

use super::block::Value;
use crate::base::{Addr, Collector, IndexVec, Name};
use crate::gc::{ObjectStarts, TypeIndex};
use crate::model::{ExportFormat, ExportTable, Stacks, StatReport};
use crate::session::{Heap, Namer};

/// What to write.
#[derive(Clone, Debug)]
pub struct Tables {
    /// The format.
    pub format: ExportFormat,
    /// The tables.
    pub tables: Vec<ExportTable>,
    /// Fill the columns that need the graph of the heap: retained sizes, dominators, distances.
    pub retained: bool,
    /// Which stack values count as roots.
    pub stacks: Stacks,
    /// Also the contents of strings.
    pub contents: bool,
    /// Fields that are columns of `objects`: names, or paths of names with dots.
    pub fields: Vec<String>,
}

impl Tables {
    pub(super) fn has(&self, table: ExportTable) -> bool {
        self.tables.contains(&table)
    }
}

/// A type on the heap.
pub(super) struct HeapType {
    /// Its number: types are numbered by method table.
    pub(super) id: u32,
    pub(super) name: Name,
}

/// What the tables of a dump have in common.
pub(super) struct Context<'c> {
    pub(super) heap: &'c Heap,
    pub(super) namer: &'c Namer,
    pub(super) notes: &'c Collector,
    pub(super) starts: &'c ObjectStarts,
    pub(super) stat: &'c StatReport,
    pub(super) types: IndexVec<TypeIndex, Option<HeapType>>,
    pub(super) options: &'c Tables,
}

impl Context<'_> {
    /// The number of the object at an address; nothing for those that the heap does not have.
    pub(super) fn object(&self, at: Addr) -> Value<'static> {
        self.starts.id_of(at).map(crate::base::Index::as_u32).into()
    }
}
