//! Names of object types in a graph, and its roots for display.

use std::sync::Arc;

use super::{NamedTypes, Namer, TypeFilter, TypePattern};
use crate::base::{Collector, IndexVec, Name};
use crate::gc::{ObjectId, ObjectType, TypeIndex};
use crate::heapgraph::{HeapGraph, RawRoot};
use crate::model::{RootModel, Stacks};

impl HeapGraph {
    /// Adds to `namer` the modules that supplied names of this graph's roots, and returns `namer`. [`Namer::note`] then also adds the notes
    /// about these modules.
    pub(crate) fn namer(&self, namer: Namer) -> Namer {
        namer.include(self.modules());
        namer
    }

    /// The name to show for an object's type; `?` if the type is unknown.
    pub fn type_name(&self, namer: &Namer, id: ObjectId) -> Name {
        let named = |k: &ObjectType| namer.of_object(self.address(id), k.method_table, namer.name_or_address(k.method_table));
        self.kind(id).map_or_else(|| "?".into(), named)
    }

    /// For each type, whether it matches one of `patterns`. Free space never does.
    pub(crate) fn wanted_types(&self, namer: &Namer, patterns: &[TypePattern], notes: &Collector) -> IndexVec<TypeIndex, bool> {
        let tables = || self.types_met().filter(|t| !t.is_free).map(|t| t.method_table).collect();
        let filter = TypeFilter::of(patterns, &NamedTypes { namer, tables }, notes);
        let wanted = |t: &Arc<ObjectType>| filter.takes(t, namer);
        self.types.iter().map(|t| !t.is_free && wanted(t)).collect()
    }

    /// The objects of types that match `patterns`, ascending.
    pub(crate) fn of_types(&self, namer: &Namer, patterns: &[TypePattern], notes: &Collector) -> Vec<ObjectId> {
        let wanted = self.wanted_types(namer, patterns, notes);
        self.objects_of(&wanted)
    }

    /// The roots of an object for display, at most `most`, with exact and named roots first.
    pub fn root_models(&self, namer: &Namer, id: ObjectId, (stacks, weak): (Stacks, bool), most: usize) -> Vec<RootModel> {
        self.best_roots_of(id, (stacks, weak), most).into_iter().map(|r| self.root_model(namer, id, r)).collect()
    }

    fn root_model(&self, namer: &Namer, id: ObjectId, root: &RawRoot) -> RootModel {
        let method_table = self.kind(id).map(|kind| kind.method_table);
        RootModel {
            kind: root.kind,
            address: root.address,
            object: root.object,
            type_name: method_table.map(|mt| namer.of_object(root.object, mt, namer.name_or_address(mt))),
            method_table,
            flags: root.flags.names(),
            label: self.roots.label(root),
            thread: self.roots.thread_of(root).and_then(|t| t.managed_id),
        }
    }
}
