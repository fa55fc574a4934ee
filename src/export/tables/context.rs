//! Options for writing tables, and the state that the tables of a dump share.

use super::block::Value;
use crate::analysis::TypeStats;
use crate::base::{Addr, Collector, IndexVec, Name};
use crate::gc::{ObjectStarts, TypeIndex};
use crate::model::{ExportFormat, ExportTable, Stacks};
use crate::session::{Heap, Namer};

/// Options for writing tables.
#[derive(Clone, Debug)]
pub struct Tables {
    /// The format.
    pub format: ExportFormat,
    /// The tables.
    pub tables: Vec<ExportTable>,
    /// Whether to fill the columns that need the graph of the heap: retained sizes, dominators, distances.
    pub retained: bool,
    /// The stack values that are treated as roots.
    pub stacks: Stacks,
    /// Whether to include the contents of strings.
    pub contents: bool,
    /// Fields to add as columns of `objects`: names, or dotted paths of names.
    pub fields: Vec<String>,
}

impl Tables {
    pub(super) fn has(&self, table: ExportTable) -> bool {
        self.tables.contains(&table)
    }
}

/// A type on the heap.
pub(super) struct HeapType {
    /// Number of the type. Types are numbered in method table order.
    pub(super) id: u32,
    pub(super) name: Name,
}

/// State that the tables of a dump share.
pub(super) struct Context<'c> {
    pub(super) heap: &'c Heap,
    pub(super) namer: &'c Namer,
    pub(super) notes: &'c Collector,
    pub(super) starts: &'c ObjectStarts,
    pub(super) stat: &'c TypeStats,
    pub(super) types: IndexVec<TypeIndex, Option<HeapType>>,
    pub(super) options: &'c Tables,
}

impl Context<'_> {
    /// Returns the number of the object at an address; null if no object on the heap starts there.
    pub(super) fn object(&self, at: Addr) -> Value<'static> {
        self.starts.id_of(at).map(crate::base::Index::as_u32).into()
    }
}
