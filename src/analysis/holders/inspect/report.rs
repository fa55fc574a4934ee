//! The report of `inspect`.

use serde::Serialize;

use crate::base::{Addr, Name, named_enum};

named_enum! {
    /// Inspections: objects that are often wasted, or held by mistake.
    pub enum InspectionId {
        /// Strings with equal text.
        EqualStrings = "equal-strings",
        /// Arrays of plain values with equal contents.
        EqualArrays = "equal-arrays",
        /// Arrays of at least a kilobyte of zeros.
        ZeroArrays = "zero-arrays",
        /// Arrays of at least a kilobyte that end in zeros, more than half of the array.
        ZeroTails = "zero-tails",
        /// Arrays of at least 100 references of which less than a quarter are not null.
        SparseArrays = "sparse-arrays",
        /// Empty collections.
        EmptyCollections = "empty-collections",
        /// Collections with a capacity of at least 100 elements of which less than a quarter is used.
        OversizedCollections = "oversized-collections",
        /// Boxed values.
        BoxedValues = "boxed-values",
        /// Events with many handlers whose targets only the event holds.
        EventLeaks = "event-leaks",
        /// Objects with a finalizer that were not disposed.
        Undisposed = "undisposed",
        /// Open handles of the operating system.
        OpenHandles = "open-handles",
        /// Exceptions of tasks that were not observed.
        UnobservedExceptions = "unobserved-exceptions",
        /// Load contexts that were asked to unload and are still alive, with the objects that hold them.
        LoadContexts = "load-contexts",
        /// Cancellation sources with many registrations.
        Registrations = "registrations",
    }
}

/// `inspect`: objects that are wasted or may be held by mistake.
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
    /// The inspection.
    pub id: InspectionId,
    /// Rule: the objects that the inspection looks for, and exceptions.
    pub rule: &'static str,
    /// Number of found objects.
    pub found: u64,
    /// Number of bytes that could be saved; `null` if the inspection is not about bytes.
    pub wasted_bytes: Option<u64>,
    /// Number of rows.
    pub total: u64,
    /// The rows, worst first.
    pub rows: Vec<InspectionRow>,
    /// Why this inspection is partial, if that does not concern the others. The notes have this reason, too.
    #[serde(skip)]
    pub partial: Option<String>,
}

/// A finding, or a group of equal ones.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct InspectionRow {
    /// The object, or the first of the group.
    pub object: Option<Addr>,
    /// Type name of the object.
    #[serde(rename = "type")]
    pub type_name: Option<Name>,
    /// Number of objects.
    pub count: u64,
    /// Number of bytes that could be saved, or the size of the objects. For event leaks, the size of the targets that only the event holds,
    /// without the objects that they retain; for registrations, the size of their nodes.
    pub bytes: u64,
    /// Details.
    pub detail: Option<String>,
    /// For event leaks, the number of targets that only the event holds. Other analyses use it; for users it is part of `detail`.
    #[serde(skip)]
    pub held_here: Option<u64>,
    /// For event leaks, these targets, each once. Other analyses use them.
    #[serde(skip)]
    pub held: Vec<Addr>,
}
