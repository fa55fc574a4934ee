//! The chain of enclosing types of a type.

use crate::base::len64;
use crate::clr::metadata::Metadata;

/// Maximum number of enclosing types of a nested type.
const MAX_NESTING: usize = 64;

/// Mask of the visibility in `TypeAttributes`. Values above 1 denote nested types.
const VISIBILITY: u32 = 7;

const LAST_NOT_NESTED: u32 = 1;

/// A type in a chain of nested types.
pub(in crate::clr) struct Level {
    pub(in crate::clr) name: String,
    pub(in crate::clr) arity: usize,
}

impl Level {
    /// The name without `` `n ``.
    pub(in crate::clr) fn plain_name(&self) -> &str {
        split_arity(&self.name).0
    }
}

/// Splits `` List`1 `` into `List` and 1.
pub(in crate::clr) fn split_arity(name: &str) -> (&str, usize) {
    match name.rsplit_once('`') {
        Some((plain, digits)) if !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) => {
            digits.parse().map_or((name, 0), |arity| (plain, arity))
        }
        _ => (name, 0),
    }
}

/// The type in row `rid` and its enclosing types, outermost first. Only the outermost type has a namespace.
pub(in crate::clr) fn levels(metadata: &Metadata, rid: u32) -> Option<Vec<Level>> {
    counted_levels(metadata, rid, &mut 0)
}

/// Like [`levels`], but adds the bytes of the names to `read`.
pub(in crate::clr) fn counted_levels(metadata: &Metadata, rid: u32, read: &mut u64) -> Option<Vec<Level>> {
    let mut out = Vec::new();
    let mut row = rid;
    loop {
        let def = metadata.type_def(row)?;
        *read = read.saturating_add(len64(def.name.len().saturating_add(def.namespace.len())));
        let arity = split_arity(&def.name).1;
        let around = if def.flags & VISIBILITY > LAST_NOT_NESTED { Some(metadata.enclosing_of_nested(row)?) } else { None };
        let name = if def.namespace.is_empty() { def.name } else { def.namespace + "." + &def.name };
        out.push(Level { name, arity });
        match around {
            Some(_) if out.len() >= MAX_NESTING => return None,
            Some(outer) => row = outer,
            None => break,
        }
    }
    out.reverse();
    Some(out)
}
