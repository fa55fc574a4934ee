//! Caches the names of the fields that contain references, because finding the name of each reference anew would take longer than all other work.

use std::fmt;
use std::hash::Hash;

use super::Namer;
use crate::base::Name;
use crate::base::hash::Map;
use crate::gc::ObjectType;

/// The field or array element that contains a reference.
#[derive(Clone, Debug)]
pub(crate) enum FieldPlace {
    /// A field, or a path through structures.
    Field(Name),
    /// The index of an array element, and the path within the element. The path is empty unless the element is a structure, as in `.key`.
    Element(u64, Name),
}

impl FieldPlace {
    /// The place as text: `_items`, `[3].key`.
    pub(crate) fn into_name(self) -> Name {
        match self {
            FieldPlace::Field(name) => name,
            FieldPlace::Element(..) => Name::from(self.to_string()),
        }
    }
}

impl fmt::Display for FieldPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FieldPlace::Field(name) => f.write_str(name),
            FieldPlace::Element(index, behind) => write!(f, "[{index}]{behind}"),
        }
    }
}

/// Finds names by type and offset. `K` identifies a type.
pub(crate) struct FieldNames<'h, K> {
    namer: &'h Namer,
    word: u64,
    /// Names by type and offset. For arrays, the offset is relative to the element, and the name is the path within the element.
    known: Map<(K, u64), Option<Name>>,
}

impl<'h, K: Copy + Eq + Hash> FieldNames<'h, K> {
    /// Creates an empty cache. `word` is the size of a pointer in bytes.
    pub(crate) fn new(namer: &'h Namer, word: u64) -> FieldNames<'h, K> {
        FieldNames { namer, word, known: Map::default() }
    }

    /// The field or element at `offset` in an object of the type `kind`; `None` if its name cannot be read from the dump.
    pub(crate) fn at(&mut self, key: K, kind: &ObjectType, offset: u64) -> Option<FieldPlace> {
        let (mt, namer) = (kind.method_table, self.namer);
        if !kind.is_array {
            let name = self.known.entry((key, offset)).or_insert_with(|| namer.path_at(mt, offset).map(Name::from));
            return name.clone().map(FieldPlace::Field);
        }
        // The base size covers the header word before the object and everything up to the first element.
        let first = kind.base_size.checked_sub(self.word)?;
        let within = offset.checked_sub(first)?;
        let (element, inner) = (within.checked_div(kind.component_size)?, within.checked_rem(kind.component_size)?);
        let behind = self.known.entry((key, inner)).or_insert_with(|| {
            let path = namer.path_at(mt, first.checked_add(inner)?)?;
            path.strip_prefix("[0]").map(Name::from)
        });
        behind.clone().map(|behind| FieldPlace::Element(element, behind))
    }
}
