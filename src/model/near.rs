use serde::Serialize;

use super::walk::GapKind;
use super::where_is::SegmentPlace;
use crate::base::{Addr, Name, named_enum};

named_enum! {
    /// Kinds of rows of `near`.
    pub enum NearKind {
        /// An object.
        Object = "object",
        /// Free space.
        Free = "free",
        /// An allocation context.
        AllocationContext = "allocation-context",
        /// An object in allocation.
        InAllocation = "in-allocation",
        /// Neither an object nor one in allocation.
        Corrupt = "corrupt",
        /// Not in the dump, or undecidable without memory that is not in the dump.
        Absent = "absent",
        /// A gap between objects of unknown cause.
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
    /// Its address.
    pub address: Addr,
    /// Its size in bytes; for gaps, the whole gap.
    pub size: u64,
    /// Name of the object's type.
    #[serde(rename = "type")]
    pub type_name: Option<Name>,
    /// Method table of the object.
    pub method_table: Option<Addr>,
    /// Whether it contains the queried address.
    pub here: bool,
}

/// `near`: what surrounds a heap address.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct NearReport {
    /// The queried address.
    pub address: Addr,
    /// Its location in the heap.
    pub segment: SegmentPlace,
    /// Objects and gaps around it, in address order.
    pub rows: Vec<NearRow>,
}
