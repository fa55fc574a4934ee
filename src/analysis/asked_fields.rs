//! Fields that a list is to show: whether objects have them.

use std::collections::BTreeSet;

use crate::base::{Collector, IndexVec, NoteKind, did_you_mean};
use crate::gc::{Object, TypeIndex};
use crate::session::{Error, Heap, Namer, ValueError};

/// The first fields of the paths that are asked for, and which types were looked at.
pub(super) struct AskedFields {
    unknown: BTreeSet<String>,
    met: IndexVec<TypeIndex, bool>,
    /// Fields of types that lack one of them.
    have: BTreeSet<String>,
}

impl AskedFields {
    pub(super) fn of(paths: &[String]) -> AskedFields {
        let first = |path: &String| path.split('.').next().unwrap_or_default().to_string();
        AskedFields { unknown: paths.iter().map(first).collect(), met: IndexVec::new(), have: BTreeSet::new() }
    }

    /// Looks at the type of an object that is listed, the first time.
    pub(super) fn meet(&mut self, heap: &Heap, namer: &Namer, object: &Object<'_>) {
        if self.unknown.is_empty() {
            return;
        }
        let Some(met) = self.met.slot(object.ty.index).filter(|met| !**met) else { return };
        *met = true;
        let Some(ty) = heap.walker().type_at(object.ty.method_table) else { return };
        let table = ty.method_table;
        let object = heap.known_object(object.address, object.size, ty);
        let have = &mut self.have;
        self.unknown.retain(|name| match object.field(name) {
            Err(Error::Value(ValueError::NoField { have: others, .. })) => {
                namer.depends_on(table);
                have.extend(others);
                true
            }
            _ => false,
        });
    }

    /// Tells of those that no object had.
    pub(super) fn note(self, notes: &Collector) {
        for name in &self.unknown {
            let hint = did_you_mean(name, self.have.iter().map(String::as_str));
            notes.add(NoteKind::NoMatch, None, format!("no object that is listed has a field '{name}'{hint}"));
        }
    }
}
