use serde::Serialize;

use crate::base::{Addr, Name, named_enum};

named_enum! {
    /// Inspections: what is often wasted, or held by mistake.
    pub enum InspectionId {
        /// Strings with equal text: one would do.
        EqualStrings = "equal-strings",
        /// Arrays of plain values with equal contents.
        EqualArrays = "equal-arrays",
        /// Arrays of at least a kilobyte of zeros.
        ZeroArrays = "zero-arrays",
        /// Arrays of at least a kilobyte of which more than half, from the end, is zero.
        ZeroTails = "zero-tails",
        /// Arrays of at least 100 references, less than a quarter of them set.
        SparseArrays = "sparse-arrays",
        /// Collections without an element.
        EmptyCollections = "empty-collections",
        /// Collections with room for at least 100 elements, less than a quarter of it used.
        OversizedCollections = "oversized-collections",
        /// Values in objects of their own.
        BoxedValues = "boxed-values",
        /// Events with many handlers whose targets nothing else holds.
        EventLeaks = "event-leaks",
        /// Objects with a finalizer that nobody has disposed of.
        Undisposed = "undisposed",
        /// Handles of the operating system that are open.
        OpenHandles = "open-handles",
        /// Exceptions of tasks that nobody has looked at.
        UnobservedExceptions = "unobserved-exceptions",
        /// Load contexts that were asked to unload and are still there, with the objects that hold them.
        LoadContexts = "load-contexts",
        /// Cancellation sources with many registrations.
        Registrations = "registrations",
    }
}

/// `inspect`: what the heap wastes, and what is held by mistake.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct InspectReport {
    /// The inspections, in a fixed order.
    pub inspections: Vec<InspectionModel>,
}

/// An inspection.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct InspectionModel {
    /// Which.
    pub id: InspectionId,
    /// What it looks for, and what it leaves out.
    pub rule: &'static str,
    /// Number of objects found.
    pub found: u64,
    /// Bytes that could be saved; `null` where the inspection is not about bytes.
    pub wasted_bytes: Option<u64>,
    /// Number of rows.
    pub total: u64,
    /// The rows, the worst first.
    pub rows: Vec<InspectionRow>,
}

/// A finding, or a group of equal ones.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct InspectionRow {
    /// The object, or the first of the group.
    pub object: Option<Addr>,
    /// Name of its type.
    #[serde(rename = "type")]
    pub type_name: Option<Name>,
    /// Number of objects.
    pub count: u64,
    /// Bytes that could be saved, or that the objects take. Of event leaks, those of the targets that nothing else holds, without what
    /// they retain.
    pub bytes: u64,
    /// More about it.
    pub detail: Option<String>,
    /// Of event leaks, how many targets nothing else holds: a number of `detail`, for other analyses.
    #[serde(skip)]
    pub held_here: Option<u64>,
}
