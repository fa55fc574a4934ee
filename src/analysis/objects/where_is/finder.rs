//! Looks up an address.

use crate::base::{Addr, Collector, Name};
use crate::session::{Heap, Namer};

/// Looks up an address in one list after another.
pub(super) struct Finder<'h> {
    pub(super) heap: &'h Heap,
    pub(super) namer: &'h Namer,
    pub(super) notes: &'h Collector,
}

/// Formats the target of a reference: ` → Lab.Dog at 0x7f31535a25f8`.
pub(super) fn arrow(target: Option<Addr>, type_name: Option<&Name>) -> String {
    target.map_or_else(String::new, |object| format!(" → {} at {object}", type_name.map_or("an object not in the dump", Name::shown)))
}
