//! Objects by type, in the reports of several commands.

use serde::Serialize;

use crate::base::{Addr, Name};

/// Objects of one type.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct TypeBytes {
    /// Name of the type, or its method table address if unknown.
    #[serde(rename = "type")]
    pub type_name: Name,
    /// Method table.
    pub method_table: Addr,
    /// Number of objects.
    pub count: u64,
    /// Size of the objects in bytes as counted by SOS and ClrMD.
    pub bytes: u64,
}

/// Object count and bytes, in total and by type.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct ObjectsByType {
    /// Number of objects.
    pub count: u64,
    /// Size of the objects in bytes as counted by SOS and ClrMD.
    pub bytes: u64,
    /// Objects by type, most bytes first. `top` cuts this list, not the totals.
    pub types: Vec<TypeBytes>,
}
