use serde::Serialize;

use super::object_list::ObjectBrief;
use super::segment::Generation;
use super::walk::GapKind;
use crate::base::{Addr, AddrRange, named_enum};

named_enum! {
    /// What lies at an address.
    pub enum PlaceKind {
        /// An object of the heap, or a place inside of one.
        Object = "object",
        /// Free space of the heap.
        Free = "free",
        /// An allocation context: handed to a thread and not yet filled.
        AllocationContext = "allocation-context",
        /// Between the objects of a segment: damaged, in allocation, or not in the dump.
        Gap = "gap",
        /// Memory of a segment behind its last object.
        SegmentUnused = "segment-unused",
        /// Other memory of the GC: free regions, card tables, handle tables.
        Gc = "gc",
        /// A method table.
        MethodTable = "method-table",
        /// A module's image.
        Module = "module",
        /// The stack of a thread.
        Stack = "stack",
        /// Captured memory of some other kind.
        Memory = "memory",
        /// Mapped in the process but not in the dump.
        NotCaptured = "not-captured",
        /// Nothing that the dump knows of.
        Unknown = "unknown",
    }
}

named_enum! {
    /// What a row of `near` is.
    pub enum NearKind {
        /// An object.
        Object = "object",
        /// Free space.
        Free = "free",
        /// An allocation context: handed to a thread and not yet filled.
        AllocationContext = "allocation-context",
        /// An object was being allocated.
        InAllocation = "in-allocation",
        /// What lies there is no object and cannot become one.
        Corrupt = "corrupt",
        /// It is not in the dump, or what tells whether it is an object is not.
        Absent = "absent",
        /// Between two objects, for no known reason.
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

/// `where`: what lies at an address.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct WhereReport {
    /// The address asked for.
    pub address: Addr,
    /// What lies there.
    pub kind: PlaceKind,
    /// The same in a sentence.
    pub text: String,
    /// Whether the byte at the address is in the dump.
    pub captured: bool,
    /// The object, or the free space, that the address lies in.
    pub object: Option<ObjectBrief>,
    /// Bytes from the object's start to the address.
    pub offset: Option<u64>,
    /// The segment of the heap.
    pub segment: Option<SegmentPlace>,
    /// The stretch of memory that it belongs to: of a context, a module, a stack, a mapping.
    pub range: Option<AddrRange>,
    /// Name: of a module, a type, a kind of GC memory.
    pub name: Option<String>,
    /// Managed id of the thread, of stacks.
    pub managed_id: Option<u32>,
    /// Id of the operating system, of stacks.
    pub os_id: Option<u32>,
}

/// A place in the heap.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct SegmentPlace {
    /// Address of the segment's structure.
    pub address: Addr,
    /// Number of its heap.
    pub heap: u64,
    /// Generation at the address.
    pub generation: Generation,
    /// First object of the segment.
    pub start: Addr,
    /// End of its objects.
    pub allocated: Addr,
}

/// Something in a segment, as `near` lists it.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct NearRow {
    /// What it is.
    pub kind: NearKind,
    /// Where it lies.
    pub address: Addr,
    /// Its bytes: of objects as counted, of gaps the whole stretch.
    pub size: u64,
    /// Name of the object's type.
    #[serde(rename = "type")]
    pub type_name: Option<String>,
    /// Method table of the object.
    pub method_table: Option<Addr>,
    /// Whether the address asked for lies in it.
    pub here: bool,
}

/// `near`: what lies around an address of the heap.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct NearReport {
    /// The address asked for.
    pub address: Addr,
    /// Where in the heap it is.
    pub segment: SegmentPlace,
    /// What lies around it, in order.
    pub rows: Vec<NearRow>,
}
