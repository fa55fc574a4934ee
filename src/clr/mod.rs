//! Floor 4: what the runtime's own structures mean: threads, method tables, types, metadata.

pub mod exceptions;
pub mod fields;
pub mod header;
pub mod loader;
pub mod metadata;
pub mod method_table;
pub mod methods;
pub mod modules;
mod pe;
mod render;
pub mod statics;
pub mod threads;
pub mod type_names;
pub mod values;
