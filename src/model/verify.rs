use serde::Serialize;

use super::walk::CoverageModel;
use crate::base::{Addr, named_enum};

named_enum! {
    /// How much a finding weighs.
    pub enum Severity {
        /// Something is broken.
        Error = "error",
        /// Something should not be so, but need not mean damage.
        Suspicious = "suspicious",
    }
}

named_enum! {
    /// What can be found. Each is explained in docs/findings.md.
    pub enum FindingId {
        /// An object's first word leads to no method table.
        ObjectBadMethodTable = "object-bad-method-table",
        /// An object's length does not fit what lies behind it.
        ObjectBadSize = "object-bad-size",
        /// What says where the objects of a type hold references makes no sense.
        TypeBadReferences = "type-bad-references",
        /// A reference is no multiple of the pointer size.
        ReferenceUnaligned = "reference-unaligned",
        /// A reference leads to no segment of the heap.
        ReferenceOutsideHeap = "reference-outside-heap",
        /// A reference leads into an object, not to its start.
        ReferenceToMiddle = "reference-to-middle",
        /// A reference leads to free space.
        ReferenceToFree = "reference-to-free",
        /// A reference leads to memory that a thread has not yet filled with objects.
        ReferenceToUnused = "reference-to-unused",
        /// A header has a number beyond the sync table.
        SyncBlockBadIndex = "sync-block-bad-index",
        /// The sync block of a header belongs to another object.
        SyncBlockWrongObject = "sync-block-wrong-object",
        /// A sync block belongs to something that is no object.
        SyncBlockBadObject = "sync-block-bad-object",
        /// A sync block belongs to an object whose header does not know of it.
        SyncBlockNotInHeader = "sync-block-not-in-header",
        /// A lock is held by a thread that there is not.
        ThinLockNoThread = "thin-lock-no-thread",
        /// A handle leads to no object.
        HandleBadObject = "handle-bad-object",
        /// A dependent handle's secondary leads to no object.
        HandleBadSecondary = "handle-bad-secondary",
        /// An entry of a finalization queue leads to no object.
        FinalizerBadObject = "finalizer-bad-object",
        /// Start, end, committed and reserved end of a segment are out of order.
        SegmentBadBounds = "segment-bad-bounds",
        /// A list of segments leads to something that is no segment, or in a circle.
        SegmentBadLink = "segment-bad-link",
        /// The segment that is being allocated from is on no list.
        SegmentNotListed = "segment-not-listed",
        /// Two segments share memory.
        SegmentOverlap = "segment-overlap",
        /// A segment says that it belongs to another heap.
        SegmentWrongHeap = "segment-wrong-heap",
        /// Generations inside the ephemeral segment are out of order.
        GenerationBadStart = "generation-bad-start",
        /// An allocation context ends before it begins, or beyond its segment.
        ContextBadBounds = "context-bad-bounds",
        /// An allocation context does not lie in generation 0.
        ContextOutsideGen0 = "context-outside-gen0",
        /// Two allocation contexts share memory.
        ContextOverlap = "context-overlap",
        /// An old object refers to a younger one, and its card is clear.
        CardClear = "card-clear",
    }
}

impl FindingId {
    /// How much it weighs.
    pub const fn severity(self) -> Severity {
        match self {
            FindingId::ThinLockNoThread | FindingId::CardClear => Severity::Suspicious,
            _ => Severity::Error,
        }
    }
}

/// `verify`: what is wrong with the heap.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct VerifyReport {
    /// With `--object`: the object that the findings are about.
    pub object: Option<Addr>,
    /// Findings by address, errors first; at most as many as asked for.
    pub findings: Vec<FindingModel>,
    /// Number of findings by kind, over all of them.
    pub summary: Vec<FindingCount>,
    /// Sums over all findings, and what was looked at.
    pub totals: VerifyTotals,
    /// Checks that could not be made, or not in full, and why.
    pub unavailable: Vec<UnavailableCheck>,
    /// How much of the heap was walked.
    pub coverage: CoverageModel,
}

/// One thing that is wrong.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct FindingModel {
    /// What it is.
    pub id: FindingId,
    /// How much it weighs.
    pub severity: Severity,
    /// Where it is: the place of the reference, the object, the handle, the segment.
    pub address: Addr,
    /// The object that it is in, or that it is about; `null` where it is not about one.
    pub object: Option<Addr>,
    /// Type of that object.
    #[serde(rename = "type")]
    pub type_name: Option<String>,
    /// The value that is wrong, or the other one of two that contradict each other.
    pub related: Option<Addr>,
    /// References and entries elsewhere that lead into the same damage. They are not listed on their own.
    pub also: u64,
    /// One sentence for a person.
    pub message: String,
}

/// Findings of one kind.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct FindingCount {
    /// Kind.
    pub id: FindingId,
    /// How much it weighs.
    pub severity: Severity,
    /// Findings.
    pub count: u64,
}

/// Sums of `verify`.
#[derive(Clone, Debug, Default, Serialize, schemars::JsonSchema)]
pub struct VerifyTotals {
    /// Findings that say that something is broken.
    pub errors: u64,
    /// Findings that need not.
    pub suspicious: u64,
    /// Objects checked, free space not counted.
    pub objects: u64,
    /// Objects that a background collection has found dead and not yet swept: their references were not checked.
    pub dead_objects: u64,
    /// References checked, null ones not counted.
    pub references: u64,
    /// References whose target is not in the dump or in a part of the heap that could not be read.
    pub unknown_references: u64,
    /// Object headers checked.
    pub headers: u64,
    /// Sync blocks checked.
    pub sync_blocks: u64,
    /// Handles checked.
    pub handles: u64,
    /// Entries of finalization queues checked.
    pub finalizers: u64,
    /// Segments or regions checked.
    pub segments: u64,
    /// Allocation contexts checked.
    pub contexts: u64,
    /// References to younger generations whose card was checked.
    pub cards: u64,
}

named_enum! {
    /// What `verify` checks.
    pub enum VerifyCheck {
        /// Objects: their method tables and lengths.
        Objects = "objects",
        /// References between objects.
        References = "references",
        /// Sync blocks, and the headers that name them.
        SyncBlocks = "sync-blocks",
        /// Threads that hold thin locks.
        ThinLocks = "thin-locks",
        /// GC handles.
        Handles = "handles",
        /// Finalization queues.
        Finalizers = "finalizers",
        /// Allocation contexts.
        Contexts = "contexts",
        /// The card table.
        Cards = "cards",
        /// The marks of a background collection, which tell dead objects.
        Sweep = "sweep",
    }
}

/// A check that could not be made, or not in full.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct UnavailableCheck {
    /// Which.
    pub check: VerifyCheck,
    /// Why, for a person.
    pub reason: String,
}
