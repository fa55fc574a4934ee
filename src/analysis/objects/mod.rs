//! Objects and types: the commands under "Objects and types" in `help`.

pub(super) mod asked_fields;
pub(super) mod layout;
pub(super) mod list;
pub(super) mod near;
pub(super) mod object;
pub(super) mod stat;
pub(super) mod statics;
pub(super) mod strings;
pub(super) mod type_methods;
pub(super) mod types;
pub(super) mod where_is;
