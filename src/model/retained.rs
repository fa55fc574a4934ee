//! Totals of the reachable objects.

use serde::{Deserialize, Serialize};

/// Totals of the heap.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct ReachTotals {
    /// Number of objects, free space excluded.
    pub objects: u64,
    /// Size of these objects in bytes.
    pub bytes: u64,
    /// Number of reachable objects.
    pub reachable_objects: u64,
    /// Size of these objects in bytes.
    pub reachable_bytes: u64,
    /// Number of references between objects.
    pub references: u64,
}
