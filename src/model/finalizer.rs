use serde::Serialize;

use super::segment::Generation;
use crate::base::{Addr, named_enum};

named_enum! {
    /// Where an object stands on its way to finalization.
    pub enum FinalizerState {
        /// It has a finalizer and has not been found dead.
        Registered = "registered",
        /// It was found dead; its finalizer is due, and until it has run the queue keeps the object alive.
        Ready = "ready",
        /// As `ready`; it derives from `CriticalFinalizerObject`, whose finalizers run after the others.
        Critical = "critical",
    }
}

/// `finalizers`: the finalization queues of all heaps.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct FinalizersReport {
    /// Objects that have a finalizer and were not found dead, in all heaps.
    pub registered: u64,
    /// Objects whose finalizer is due, critical ones not counted.
    pub ready: u64,
    /// Objects whose critical finalizer is due.
    pub critical: u64,
    /// The queue of each heap.
    pub heaps: Vec<FinalizerHeap>,
    /// The thread that runs finalizers; `null` where the runtime has none yet or it cannot be told.
    pub thread: Option<FinalizerThread>,
    /// By type, the most frequent first.
    pub types: Vec<FinalizerType>,
    /// Types listed, where `--top` cut the list; `null` where all are.
    pub shown: Option<u64>,
    /// With `--objects`: every object, in the order of heaps and queues.
    pub objects: Option<Vec<FinalizerObject>>,
}

/// The finalization queue of one heap.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct FinalizerHeap {
    /// Number of the heap.
    pub heap: u64,
    /// Objects that have a finalizer and were not found dead.
    pub registered: u64,
    /// Objects whose finalizer is due, critical ones not counted.
    pub ready: u64,
    /// Objects whose critical finalizer is due.
    pub critical: u64,
    /// The registered ones by the generation that the queue keeps them under; none for a generation without. What was
    /// registered since the last collection, or registered again, counts as `gen0`.
    pub generations: Vec<FinalizerGeneration>,
}

/// Registered objects of one generation.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct FinalizerGeneration {
    /// The generation.
    pub generation: Generation,
    /// Registered objects.
    pub count: u64,
}

/// The thread that runs finalizers.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct FinalizerThread {
    /// Its managed id.
    pub managed_id: Option<u32>,
    /// Its id of the operating system.
    pub os_id: Option<u64>,
    /// Address of the runtime's `Thread`.
    pub address: Addr,
}

/// Objects of one type in the queues.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct FinalizerType {
    /// Name of the type, the method table's address where nothing is known; `null` where the objects are not in the dump.
    #[serde(rename = "type")]
    pub type_name: Option<String>,
    /// Its method table; `null` where the objects are not in the dump.
    pub method_table: Option<Addr>,
    /// Objects registered.
    pub registered: u64,
    /// Objects whose finalizer is due.
    pub ready: u64,
    /// Objects whose critical finalizer is due.
    pub critical: u64,
}

/// An object in a queue.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct FinalizerObject {
    /// The object.
    pub object: Addr,
    /// Name of its type; `null` where the object is not in the dump.
    #[serde(rename = "type")]
    pub type_name: Option<String>,
    /// Its method table; `null` where the object is not in the dump.
    pub method_table: Option<Addr>,
    /// Registered, ready or critical.
    pub state: FinalizerState,
    /// Registered ones: the generation that the queue keeps it under.
    pub generation: Option<Generation>,
    /// Number of the heap whose queue it is.
    pub heap: u64,
}
