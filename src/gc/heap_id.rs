//! The identity of a GC heap.

use crate::base::Addr;

/// A GC heap: its index and, with server GC, the address of its `gc_heap`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeapId {
    /// Index of the heap.
    pub index: u64,
    /// Address of its `gc_heap`; `None` for the single workstation heap.
    pub address: Option<Addr>,
}
