//! Keys that identify groups of objects across dumps.

use crate::analysis::TypeStat;
use crate::base::Name;
use crate::clr::type_names::has_label;

/// Key of types without a name, and of types whose module is unknown.
pub(super) const UNKNOWN: &str = "(unknown)";

/// A group: its name and, for types, the module.
pub(super) type Key = (Name, Option<String>);

/// Returns the key of a type.
pub(super) fn type_key(t: &TypeStat) -> Key {
    if is_named(t) { (t.type_name.clone(), t.module.clone()) } else { (UNKNOWN.into(), None) }
}

/// Whether the full names of all types in `types` are known.
pub(super) fn are_all_named<'t>(mut types: impl Iterator<Item = &'t TypeStat>) -> bool {
    types.all(|t| is_named(t) && !has_label(&t.type_name))
}

/// Whether a type has a name. Otherwise only the address of the method table is known, which may differ in another dump.
pub(super) fn is_named(t: &TypeStat) -> bool {
    *t.type_name != *t.method_table.to_string()
}
