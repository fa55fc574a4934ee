//! Static fields.

use serde::Serialize;

use super::FieldValue;
use crate::base::{Addr, named_enum};

named_enum! {
    /// Storage of a field.
    pub enum Storage {
        /// Per object.
        Instance = "instance",
        /// Per type.
        Static = "static",
        /// Per thread (`[ThreadStatic]`).
        ThreadStatic = "thread-static",
        /// In the module image: compiler-generated initial values.
        Rva = "rva",
    }
}

/// `statics`: static fields with values.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct StaticsReport {
    /// Number of matching types with static fields.
    pub types: u64,
    /// Number of initialized static fields.
    pub initialized: u64,
    /// Number of static fields without a value: of types that are not initialized, or thread statics that the thread never accessed.
    pub not_initialized: u64,
    /// Number of fields with unknown location.
    pub unknown: u64,
    /// The fields, by module and type. A thread static is listed once for each thread.
    pub statics: Vec<StaticModel>,
    /// Number of fields listed, if cut by `top`.
    pub shown: Option<u64>,
}

/// A static field.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct StaticModel {
    /// Method table of the declaring type.
    pub method_table: Addr,
    /// Module of the type.
    pub module: Option<String>,
    /// Storage: never `instance`, and `rva` only with `everything`.
    pub storage: Storage,
    /// Thread of a thread static.
    pub thread: Option<StaticThread>,
    /// With `retained`: retained size of the object that the field refers to, or of all objects that its structure refers to. `null` for
    /// other values.
    pub retained: Option<u64>,
    /// Name, type, address and value.
    #[serde(flatten)]
    pub field: FieldValue,
}

/// The thread of a thread static.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct StaticThread {
    /// Address of the `Thread`.
    pub address: Addr,
    /// Managed id.
    pub managed_id: Option<u32>,
    /// OS thread id.
    pub os_id: Option<u64>,
}
