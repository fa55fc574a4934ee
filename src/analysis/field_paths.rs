//! Paths of fields that users type.

use std::collections::BTreeSet;

use crate::base::Addr;
use crate::managed::Field;
use crate::session::Heap;

/// Returns the name in `path` that no object has there, if the path starts in an object of one of the types `tables`. A name after a reference must be
/// a field of some type on the heap, because the reference may lead to any object.
pub(super) fn unknown_name<'p>(heap: &Heap, tables: &[Addr], path: &'p [String]) -> Option<&'p str> {
    let (name, rest) = path.split_first()?;
    let (mut found, mut references, mut structures) = (false, false, BTreeSet::new());
    for field in tables.iter().filter_map(|table| Field::named(heap, *table, name).ok()?) {
        found = true;
        if rest.is_empty() {
            return None;
        }
        references |= field.is_reference();
        if field.is_structure() {
            // The fields of a structure whose method table is not loaded are unknown.
            structures.insert(field.method_table()?);
        }
    }
    if !found {
        return Some(name);
    }
    let structures: Vec<Addr> = structures.into_iter().collect();
    let in_structures = || unknown_name(heap, &structures, rest);
    let behind_references = || {
        let all: Vec<Addr> = heap.walker().types().list().iter().filter(|ty| !ty.is_free).map(|ty| ty.method_table).collect();
        unknown_name(heap, &all, rest)
    };
    // `and_then`: the path exists if one of its ways exists.
    match (structures.is_empty(), references) {
        (true, true) => behind_references(),
        (false, true) => in_structures().and_then(|_| behind_references()),
        _ => in_structures(),
    }
}
