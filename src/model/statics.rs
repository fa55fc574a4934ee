use serde::Serialize;

use super::FieldValue;
use crate::base::{Addr, named_enum};

named_enum! {
    /// Where a field's value lies.
    pub enum Storage {
        /// In each object.
        Instance = "instance",
        /// Once for the type.
        Static = "static",
        /// Once for each thread (`[ThreadStatic]`).
        ThreadStatic = "thread-static",
        /// In the module's image: initial values that the compiler put there.
        Rva = "rva",
    }
}

/// `statics`: static fields with their values.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct StaticsReport {
    /// Types with static fields, among those that fit.
    pub types: u64,
    /// Static fields with a value.
    pub initialised: u64,
    /// Static fields of types that have not been initialised, or of threads that have not touched them.
    pub not_initialised: u64,
    /// Fields whose place cannot be told.
    pub unknown: u64,
    /// The fields: by module and type, thread statics once for each thread.
    pub statics: Vec<StaticModel>,
}

/// A static field.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct StaticModel {
    /// Method table of the type that declares it.
    pub method_table: Addr,
    /// Module of the type.
    pub module: Option<String>,
    /// Where its value lies; never `instance`, and `rva` with `--all` only.
    pub storage: Storage,
    /// Thread that a thread static belongs to.
    pub thread: Option<StaticThread>,
    /// Name, type, address and value.
    #[serde(flatten)]
    pub field: FieldValue,
}

/// The thread of a thread static.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct StaticThread {
    /// The runtime's `Thread`.
    pub address: Addr,
    /// Managed id.
    pub managed_id: Option<u32>,
    /// Id of the operating system.
    pub os_id: Option<u64>,
}
