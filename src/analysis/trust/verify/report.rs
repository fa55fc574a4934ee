//! The report of `verify`.

use serde::Serialize;

use crate::base::{Addr, Name, named_enum};
use crate::model::CoverageModel;

named_enum! {
    /// Severity of a finding.
    pub enum Severity {
        /// Corruption.
        Error = "error",
        /// Unexpected, but not necessarily corruption.
        Suspicious = "suspicious",
    }
}

named_enum! {
    /// Kinds of findings. docs/findings.md explains them.
    pub enum FindingId {
        /// An object has no valid method table.
        ObjectBadMethodTable = "object-bad-method-table",
        /// The size of an object does not match what follows it.
        ObjectBadSize = "object-bad-size",
        /// The GCDesc of a type is invalid.
        TypeBadReferences = "type-bad-references",
        /// A reference is not pointer-aligned.
        ReferenceUnaligned = "reference-unaligned",
        /// A reference points outside the heap.
        ReferenceOutsideHeap = "reference-outside-heap",
        /// A reference points into an object rather than to its start.
        ReferenceToMiddle = "reference-to-middle",
        /// A reference points to free space.
        ReferenceToFree = "reference-to-free",
        /// A reference points into the unused part of an allocation context.
        ReferenceToUnused = "reference-to-unused",
        /// A header has an index beyond the sync table.
        SyncBlockBadIndex = "sync-block-bad-index",
        /// The sync block of a header belongs to another object.
        SyncBlockWrongObject = "sync-block-wrong-object",
        /// A sync block belongs to an invalid object.
        SyncBlockBadObject = "sync-block-bad-object",
        /// A sync block belongs to an object whose header does not refer to it.
        SyncBlockNotInHeader = "sync-block-not-in-header",
        /// A lock is held by a nonexistent thread.
        ThinLockNoThread = "thin-lock-no-thread",
        /// A handle does not point to an object.
        HandleBadObject = "handle-bad-object",
        /// The secondary of a dependent handle is not an object.
        HandleBadSecondary = "handle-bad-secondary",
        /// An entry of a finalization queue does not point to an object.
        FinalizerBadObject = "finalizer-bad-object",
        /// The bounds of a segment are out of order.
        SegmentBadBounds = "segment-bad-bounds",
        /// A segment list has a cycle, or a link that does not lead to a segment.
        SegmentBadLink = "segment-bad-link",
        /// The current allocation segment is not in any list.
        SegmentNotListed = "segment-not-listed",
        /// Two segments overlap.
        SegmentOverlap = "segment-overlap",
        /// A segment names another heap as its owner.
        SegmentWrongHeap = "segment-wrong-heap",
        /// Generations are out of order in the ephemeral segment.
        GenerationBadStart = "generation-bad-start",
        /// An allocation context has bounds out of order, or extends beyond its segment.
        ContextBadBounds = "context-bad-bounds",
        /// An allocation context is outside generation 0.
        ContextOutsideGen0 = "context-outside-gen0",
        /// Two allocation contexts overlap.
        ContextOverlap = "context-overlap",
        /// An old object refers to a younger one, but its card is clear.
        CardClear = "card-clear",
    }
}

impl FindingId {
    /// Returns the severity of the finding in a heap that was not carved.
    pub const fn severity(self) -> Severity {
        match self {
            FindingId::ThinLockNoThread | FindingId::CardClear => Severity::Suspicious,
            _ => Severity::Error,
        }
    }
}

/// `verify`: heap corruption.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct VerifyReport {
    /// The object that was checked; `null` if the whole heap was.
    pub object: Option<Addr>,
    /// Findings, errors first, then by address; limited by `top`.
    pub findings: Vec<FindingModel>,
    /// Number of all findings by kind.
    pub summary: Vec<FindingCount>,
    /// Numbers of findings and of checked objects.
    pub totals: VerifyTotals,
    /// Checks that were not made, or only partially, with reasons.
    pub unavailable: Vec<UnavailableCheck>,
    /// Coverage of the heap walk.
    pub coverage: CoverageModel,
}

/// A finding.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct FindingModel {
    /// Kind.
    pub id: FindingId,
    /// Severity.
    pub severity: Severity,
    /// Address of the reference, object, handle, or segment.
    pub address: Addr,
    /// The affected object, if any.
    pub object: Option<Addr>,
    /// Type name of that object.
    #[serde(rename = "type")]
    pub type_name: Option<Name>,
    /// The invalid value, or the second of two contradictory ones.
    pub related: Option<Addr>,
    /// Number of other references and entries that point into the same corruption. They are not listed separately.
    pub also: u64,
    /// Description.
    pub message: String,
}

/// Findings of one kind.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct FindingCount {
    /// Kind.
    pub id: FindingId,
    /// Severity.
    pub severity: Severity,
    /// Number of findings.
    pub count: u64,
}

/// Totals of `verify`.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct VerifyTotals {
    /// Number of errors.
    pub errors: u64,
    /// Number of suspicious findings.
    pub suspicious: u64,
    /// Objects checked, free space excluded.
    pub objects: u64,
    /// Dead objects that a background collection has not yet swept. Their references were not checked.
    pub dead_objects: u64,
    /// Non-null references checked.
    pub references: u64,
    /// References to memory that is not in the dump or could not be walked.
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
    /// Checks of `verify`.
    pub enum VerifyCheck {
        /// Method tables and sizes of objects.
        Objects = "objects",
        /// References between objects.
        References = "references",
        /// Sync blocks, and headers that refer to them.
        SyncBlocks = "sync-blocks",
        /// Owners of thin locks.
        ThinLocks = "thin-locks",
        /// GC handles.
        Handles = "handles",
        /// Finalization queues.
        Finalizers = "finalizers",
        /// Allocation contexts.
        Contexts = "contexts",
        /// The card table.
        Cards = "cards",
        /// The mark array of a background collection.
        Sweep = "sweep",
    }
}

/// A check that was not made, or only partially.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct UnavailableCheck {
    /// The check.
    pub check: VerifyCheck,
    /// The reason.
    pub reason: String,
}
