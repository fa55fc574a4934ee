//! The report of `finalizers`.

use serde::Serialize;

use crate::base::{Addr, Name};
use crate::model::{FinalizerState, Generation};

/// `finalizers`: the finalization queues of all heaps.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct FinalizersReport {
    /// Number of objects registered for finalization and not yet found dead, in all heaps.
    pub registered: u64,
    /// Number of objects ready for finalization, critical ones excluded.
    pub ready: u64,
    /// Number of objects ready for critical finalization.
    pub critical: u64,
    /// The queue of each heap.
    pub heaps: Vec<FinalizerHeap>,
    /// The finalizer thread; `null` if it is unknown or not yet created.
    pub thread: Option<FinalizerThread>,
    /// Objects in the queues by type, most frequent first.
    pub types: Vec<FinalizerType>,
    /// Number of types listed, if cut by `top`; `null` if complete.
    pub shown: Option<u64>,
    /// With `objects`: the objects, in heap and queue order.
    pub objects: Option<Vec<FinalizerObject>>,
    /// With `objects`: number of objects listed, if cut by `top`; `null` if all are. The total is the sum of `registered`, `ready` and
    /// `critical`.
    pub objects_shown: Option<u64>,
    /// Whether the numbers of objects are known: the dump has the fill pointers of all queues.
    #[serde(skip)]
    pub(crate) is_counted: bool,
}

/// The finalization queue of one heap.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct FinalizerHeap {
    /// Index of the heap.
    pub heap: u64,
    /// Number of objects registered for finalization and not yet found dead.
    pub registered: u64,
    /// Number of objects ready for finalization, critical ones excluded.
    pub ready: u64,
    /// Number of objects ready for critical finalization.
    pub critical: u64,
    /// Registered objects by queue generation; generations without objects are omitted. `gen0` also has the objects that were registered or
    /// re-registered since the last collection.
    pub generations: Vec<FinalizerGeneration>,
}

/// Registered objects of one generation.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct FinalizerGeneration {
    /// The generation.
    pub generation: Generation,
    /// Number of registered objects.
    pub count: u64,
}

/// The finalizer thread.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct FinalizerThread {
    /// Managed id.
    pub managed_id: Option<u32>,
    /// OS thread id.
    pub os_id: Option<u64>,
    /// Address of the `Thread`.
    pub address: Addr,
}

/// Objects of one type in the queues.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct FinalizerType {
    /// Name of the type, or its method table address if unknown; `null` if the objects are not in the dump.
    #[serde(rename = "type")]
    pub type_name: Option<Name>,
    /// Method table; `null` if the objects are not in the dump.
    pub method_table: Option<Addr>,
    /// Number of registered objects.
    pub registered: u64,
    /// Number of objects ready for finalization.
    pub ready: u64,
    /// Number of objects ready for critical finalization.
    pub critical: u64,
}

/// An object in a queue.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct FinalizerObject {
    /// The object.
    pub object: Addr,
    /// Type name of the object; `null` if the object is not in the dump.
    #[serde(rename = "type")]
    pub type_name: Option<Name>,
    /// Method table; `null` if the object is not in the dump.
    pub method_table: Option<Addr>,
    /// Finalization state.
    pub state: FinalizerState,
    /// Queue generation, for registered objects.
    pub generation: Option<Generation>,
    /// Index of the heap that owns the queue.
    pub heap: u64,
}
