use serde::Serialize;

use crate::base::{Addr, Name, named_enum};

named_enum! {
    /// Kinds of roots.
    pub enum RootKind {
        /// A strong GC handle.
        StrongHandle = "strong-handle" | "strong",
        /// A pinned GC handle.
        PinnedHandle = "pinned-handle" | "pinned",
        /// A handle that is strong while a COM or ComWrappers reference count is not zero. One whose count is known to be zero is a weak handle.
        RefCountedHandle = "ref-counted-handle" | "ref-counted",
        /// A handle of the Java bridge: the collector of the other runtime decides whether it keeps its object alive.
        CrossReferenceHandle = "cross-reference-handle" | "cross-reference",
        /// A handle of overlapped I/O; not used since .NET 8.
        AsyncPinnedHandle = "async-pinned-handle" | "async-pinned",
        /// A strong handle that measures the size of what it holds; not used since .NET 9.
        SizedRefHandle = "sized-ref-handle" | "sized-ref",
        /// A handle to an exception in flight on a thread.
        Exception = "exception",
        /// The finalization queue, for objects ready for finalization.
        FinalizerReady = "finalizer-ready",
        /// A static field.
        Static = "static",
        /// A static field of one thread.
        ThreadStatic = "thread-static",
        /// Memory outside of the heap that the runtime registered as holding references (.NET 11). Not read: only whether there is any.
        ExternalMemory = "external-memory",
        /// A reference on a thread stack; where frames are not known, a word that points to an object, which may be stale.
        Stack = "stack",
        /// A reference in a thread's register; where frames are not known, a value that points to an object, which may be stale.
        Register = "register",
        /// A weak handle, or a ref-counted one without references: not a root, listed on request only.
        WeakHandle = "weak-handle" | "weak",
    }
}

impl RootKind {
    /// Whether roots of this kind are values of stacks and registers.
    pub const fn is_of_stacks(self) -> bool {
        matches!(self, RootKind::Stack | RootKind::Register)
    }
}

named_enum! {
    /// Coverage of a kind of root.
    pub enum CoverageKind {
        /// Exactly the roots.
        Complete = "complete",
        /// All roots, possibly with false ones: anything that looks like a root counts.
        Conservative = "conservative",
        /// Some of the roots.
        Partial = "partial",
        /// None of the roots.
        Unavailable = "unavailable",
    }
}

named_enum! {
    /// Properties of a root.
    pub enum RootFlag {
        /// The object is pinned.
        Pinned = "pinned",
        /// The object is not kept alive.
        Weak = "weak",
        /// An interior pointer.
        Interior = "interior",
        /// Whether a reference count, or another collector, keeps the object alive is unknown.
        RefCounted = "ref-counted",
        /// A word that points to an object; may be stale.
        Conservative = "conservative",
    }
}

named_enum! {
    /// Which values of stacks and registers count as roots. For retained sizes,
    /// roots that last (handles, statics, finalization queues) come first: a stack value counts only for what none of them holds,
    /// since a method that returns soon, or a stale value, must not mask the real holder.
    #[derive(Default)]
    pub enum Stacks {
        /// What frames hold, as the methods' GC info tells. Where that is not known, values that point to an object.
        #[default]
        Precise = "precise",
        /// Every value that points to an object; some may be stale.
        Conservative = "conservative" | "fallback" | "all",
        /// None.
        None = "none",
    }
}

/// Coverage of a kind of root.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct RootCoverageModel {
    /// The kind.
    pub kind: RootKind,
    /// Coverage.
    pub coverage: CoverageKind,
    /// Why it is not complete; `null` if it is.
    pub reason: Option<String>,
}

/// A root.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct RootModel {
    /// Its kind.
    pub kind: RootKind,
    /// Address of the reference; `null` for registers.
    pub address: Option<Addr>,
    /// The object.
    pub object: Addr,
    /// Name of its type; `null` if the object is not in the dump.
    #[serde(rename = "type")]
    pub type_name: Option<Name>,
    /// Its method table; `null` if the object is not in the dump.
    pub method_table: Option<Addr>,
    /// Its properties.
    pub flags: Vec<RootFlag>,
    /// Description.
    pub label: String,
    /// Managed id of its thread.
    pub thread: Option<u32>,
}

/// Roots of one kind.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct RootCount {
    /// The kind.
    pub kind: RootKind,
    /// Number of roots.
    pub count: u64,
    /// Number of distinct objects.
    pub objects: u64,
}

/// Roots of objects of one type.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct RootType {
    /// Name of the type, or its method table address if unknown; `null` if the objects are not in the dump.
    #[serde(rename = "type")]
    pub type_name: Option<Name>,
    /// Its method table; `null` if the objects are not in the dump.
    pub method_table: Option<Addr>,
    /// Number of roots.
    pub count: u64,
    /// Number of distinct objects.
    pub objects: u64,
}

/// A dependent handle: keeps the secondary object alive as long as the primary one is.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct DependentModel {
    /// The primary object.
    pub primary: Addr,
    /// Name of its type; `null` if the object is not in the dump.
    pub primary_type: Option<Name>,
    /// The secondary object.
    pub secondary: Addr,
    /// Name of its type; `null` if the object is not in the dump.
    pub secondary_type: Option<Name>,
}

/// `roots`: the GC roots.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct RootsReport {
    /// Number of roots of the requested kinds and types.
    pub total: u64,
    /// By kind.
    pub counts: Vec<RootCount>,
    /// Coverage of each requested kind.
    pub coverage: Vec<RootCoverageModel>,
    /// The roots, ordered by kind and address; `null` with `--stat`.
    pub roots: Option<Vec<RootModel>>,
    /// With `--stat`: by object type, most frequent first.
    pub types: Option<Vec<RootType>>,
    /// Which stack and register values count as roots.
    pub stacks: Stacks,
    /// Number of rows listed, if cut by `--top`; `null` if complete.
    pub shown: Option<u64>,
    /// Dependent handles, which are not roots themselves. `null` with `--stat`, or if not requested.
    pub dependents: Option<Vec<DependentModel>>,
}
