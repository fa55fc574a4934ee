//! Requested fields of listed objects.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::analysis::field_paths::unknown_name;
use crate::base::missed::watched;
use crate::base::{Addr, Collector, IndexVec, NoteKind, did_you_mean};
use crate::gc::{Object, TypeIndex};
use crate::managed::BoundField;
use crate::session::{Error, Heap, ValueError};

/// The fields at the requested paths; `None` for a path that the type does not have.
pub(in crate::analysis) type BoundFields = Arc<[Option<BoundField>]>;

/// The requested paths, bound to the types found so far.
pub(in crate::analysis) struct AskedFields {
    paths: Vec<Vec<String>>,
    bound: IndexVec<TypeIndex, Option<BoundFields>>,
    /// First fields of the paths that no type has had so far.
    unknown: BTreeSet<String>,
    /// Names of fields that the types without these fields have, for suggestions.
    have: BTreeSet<String>,
    /// Method tables of the listed objects.
    tables: Vec<Addr>,
}

impl AskedFields {
    pub(in crate::analysis) fn of(paths: &[String]) -> AskedFields {
        let paths: Vec<Vec<String>> = paths.iter().map(|path| path.split('.').map(str::to_string).collect()).collect();
        let unknown = paths.iter().filter_map(|path| path.first().cloned()).collect();
        AskedFields { paths, bound: IndexVec::new(), unknown, have: BTreeSet::new(), tables: Vec::new() }
    }

    /// Binds the fields of a listed object.
    pub(in crate::analysis) fn meet(&mut self, heap: &Heap, object: &Object<'_>) -> BoundFields {
        if self.paths.is_empty() {
            return BoundFields::default();
        }
        if let Some(known) = self.bound.get(object.ty.index).and_then(Option::as_ref) {
            return Arc::clone(known);
        }
        let bind = |path: &Vec<String>| BoundField::bind(heap, object.ty.method_table, path);
        let bound: BoundFields = if object.ty.is_free { BoundFields::default() } else { self.paths.iter().map(bind).collect() };
        self.tables.push(object.ty.method_table);
        self.look_for_unknown(heap, object);
        if let Some(slot) = self.bound.slot(object.ty.index) {
            *slot = Some(Arc::clone(&bound));
        }
        bound
    }

    fn look_for_unknown(&mut self, heap: &Heap, object: &Object<'_>) {
        let Some(ty) = heap.walker().type_at(object.ty.method_table).filter(|_| !self.unknown.is_empty()) else { return };
        let object = heap.known_object(object.address, object.size, ty);
        let have = &mut self.have;
        self.unknown.retain(|name| match object.field(name) {
            Err(Error::Value(ValueError::NoField { have: others, .. })) => {
                have.extend(others);
                true
            }
            _ => false,
        });
    }

    /// Notes the fields that no listed object has.
    pub(in crate::analysis) fn note(self, heap: &Heap, notes: &Collector) {
        for name in &self.unknown {
            let hint = did_you_mean(name, self.have.iter().map(String::as_str));
            notes.add(NoteKind::NoMatch, None, format!("no listed object has a field '{name}'{hint}"));
        }
        for path in self.paths.iter().filter(|path| path.len() > 1 && path.first().is_some_and(|name| !self.unknown.contains(name))) {
            // A type whose list of fields is not in the dump may have the field.
            let (unknown, missed) = watched(|| unknown_name(heap, &self.tables, path));
            if let Some(name) = unknown.filter(|_| missed.is_empty()) {
                notes.add(NoteKind::NoMatch, None, format!("no object has a field '{name}', in {}", path.join(".")));
            }
        }
    }
}
