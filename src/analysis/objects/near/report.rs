//! The report of `near`.

use serde::Serialize;

use crate::analysis::SegmentPlace;
use crate::base::{Addr, Name, named_enum};
use crate::model::GapKind;

named_enum! {
    /// Kinds of rows of `near`.
    pub enum NearKind {
        /// An object.
        Object = "object",
        /// Free space.
        Free = "free",
        /// An allocation context.
        AllocationContext = "allocation-context",
        /// An object that was being allocated.
        InAllocation = "in-allocation",
        /// Corrupt: neither an object nor memory of an object that was being allocated.
        Corrupt = "corrupt",
        /// Memory that is missing from the dump or cannot be identified without other missing memory.
        Absent = "absent",
        /// A gap between objects, of unknown cause.
        Gap = "gap",
    }
}

impl From<GapKind> for NearKind {
    fn from(kind: GapKind) -> NearKind {
        match kind {
            GapKind::InAllocation => NearKind::InAllocation,
            GapKind::Corrupt => NearKind::Corrupt,
            GapKind::Absent => NearKind::Absent,
        }
    }
}

/// A row of `near`.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct NearRow {
    /// Kind of row.
    pub kind: NearKind,
    /// Address.
    pub address: Addr,
    /// Size in bytes; for gaps, the whole gap.
    pub size: u64,
    /// Name of the object's type.
    #[serde(rename = "type")]
    pub type_name: Option<Name>,
    /// Method table of the object.
    pub method_table: Option<Addr>,
    /// Whether the row contains the queried address.
    pub here: bool,
}

/// `near`: the surroundings of a heap address.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct NearReport {
    /// The queried address.
    pub address: Addr,
    /// Location of the address in the heap.
    pub segment: SegmentPlace,
    /// Objects and gaps around it, in address order.
    pub rows: Vec<NearRow>,
}
