//! Structures of the runtime: threads, method tables, types, metadata.

pub mod aot;
pub(crate) mod binders;
pub(crate) mod blocking;
pub(crate) mod code_versions;
pub mod exceptions;
pub mod fields;
pub mod gcdesc;
pub(crate) mod generated;
pub mod header;
pub(crate) mod library;
pub mod loader;
pub(crate) mod loader_heaps;
pub(crate) mod managed_lock;
pub mod metadata;
pub(crate) mod method_list;
pub mod method_table;
pub mod methods;
pub mod modules;
pub mod objects;
pub(crate) mod pdb;
mod pe;
pub(crate) mod precodes;
pub mod refusal;
mod render;
pub mod statics;
pub mod strings;
pub mod threads;
pub(crate) mod thunks;
mod type_name;
pub mod type_names;
pub mod values;
pub mod wrappers;

use crate::contract::Contract;

/// Contracts that this layer reads.
pub const CONTRACTS: &[Contract] = &[
    code_versions::CodeVersions::CONTRACT,
    exceptions::Exceptions::CONTRACT,
    header::Headers::SYNC_BLOCK,
    loader::Loader::CONTRACT,
    method_table::MethodTables::CONTRACT,
    modules::Modules::METADATA,
    objects::Objects::CONTRACT,
    precodes::Precodes::CONTRACT,
    threads::Threads::CONTRACT,
    wrappers::Wrappers::BUILT_IN_COM,
    wrappers::Wrappers::COM_WRAPPERS,
];
