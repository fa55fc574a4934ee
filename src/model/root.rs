use serde::Serialize;

use crate::base::{Addr, named_enum};

named_enum! {
    /// What holds a root.
    pub enum RootKind {
        /// A strong GC handle.
        StrongHandle = "strong-handle" | "strong",
        /// A GC handle that also pins its object.
        PinnedHandle = "pinned-handle" | "pinned",
        /// A handle that is strong while a COM or ComWrappers reference count says so; the dump does not tell whether it is.
        RefCountedHandle = "ref-counted-handle" | "ref-counted",
        /// A handle of overlapped I/O; not used since .NET 8.
        AsyncPinnedHandle = "async-pinned-handle" | "async-pinned",
        /// A strong handle that measures what it holds; not used since .NET 9.
        SizedRefHandle = "sized-ref-handle" | "sized-ref",
        /// A handle to an exception in flight on a thread.
        Exception = "exception",
        /// The finalization queue, for objects whose finalizer is due.
        FinalizerReady = "finalizer-ready",
        /// A static field.
        Static = "static",
        /// A static field of one thread.
        ThreadStatic = "thread-static",
        /// A word on a thread's stack that leads to an object: not necessarily still in use.
        Stack = "stack",
        /// A thread's register that leads to an object: not necessarily still in use.
        Register = "register",
        /// A weak handle: no root. Only listed on request.
        WeakHandle = "weak-handle" | "weak",
    }
}

named_enum! {
    /// How well a dump answers for one kind of roots.
    pub enum CoverageKind {
        /// All of them, and nothing else.
        Complete = "complete",
        /// All of them, and some that are none: what looks like a root is taken for one.
        Conservative = "conservative",
        /// Only some of them.
        Partial = "partial",
        /// None of them.
        Unavailable = "unavailable",
    }
}

named_enum! {
    /// What is special about a root.
    pub enum RootFlag {
        /// The object must not move.
        Pinned = "pinned",
        /// The object is not kept alive.
        Weak = "weak",
        /// The reference leads into the object, not to its start.
        Interior = "interior",
        /// It counts only while a reference count, or another collector, says so.
        RefCounted = "ref-counted",
        /// A word that leads to an object; whether the program still uses it is not known.
        Conservative = "conservative",
    }
}

/// How well this dump answers for one kind of roots.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct RootCoverageModel {
    /// The kind.
    pub kind: RootKind,
    /// How well.
    pub coverage: CoverageKind,
    /// Why not better; `null` where it is complete.
    pub reason: Option<String>,
}

/// A root.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct RootModel {
    /// What holds it.
    pub kind: RootKind,
    /// Where the reference is stored; `null` for registers.
    pub address: Option<Addr>,
    /// The object.
    pub object: Addr,
    /// Name of its type; `null` where the object is not in the dump.
    #[serde(rename = "type")]
    pub type_name: Option<String>,
    /// Its method table; `null` where the object is not in the dump.
    pub method_table: Option<Addr>,
    /// What is special about it.
    pub flags: Vec<RootFlag>,
    /// What it is, in words.
    pub label: String,
    /// Managed id of the thread whose root it is.
    pub thread: Option<u32>,
}

/// Roots of one kind.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct RootCount {
    /// The kind.
    pub kind: RootKind,
    /// Roots.
    pub count: u64,
    /// Different objects that they lead to.
    pub objects: u64,
}

/// Roots that lead to objects of one type.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct RootType {
    /// Name of the type, the method table's address where nothing is known; `null` where the objects are not in the dump.
    #[serde(rename = "type")]
    pub type_name: Option<String>,
    /// Its method table; `null` where the objects are not in the dump.
    pub method_table: Option<Addr>,
    /// Roots.
    pub count: u64,
    /// Different objects that they lead to.
    pub objects: u64,
}

/// A dependent handle: as long as the primary object lives, so does the secondary one.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct DependentModel {
    /// The object that decides.
    pub primary: Addr,
    /// Name of its type; `null` where the object is not in the dump.
    pub primary_type: Option<String>,
    /// The object that is kept alive.
    pub secondary: Addr,
    /// Name of its type; `null` where the object is not in the dump.
    pub secondary_type: Option<String>,
}

/// `roots`: what keeps objects alive from outside of the heap.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct RootsReport {
    /// Roots found, of the kinds and types asked for.
    pub total: u64,
    /// By kind.
    pub counts: Vec<RootCount>,
    /// How well this dump answers for each kind asked for.
    pub coverage: Vec<RootCoverageModel>,
    /// The roots, in the order of kinds and places; `null` with `--stat`.
    pub roots: Option<Vec<RootModel>>,
    /// With `--stat`: by type of the object, the most frequent first.
    pub types: Option<Vec<RootType>>,
    /// Rows listed, where `--top` cut the list; `null` where all are.
    pub shown: Option<u64>,
    /// Dependent handles: no roots by themselves. `null` with `--stat`, or where neither they nor all kinds are asked for.
    pub dependents: Option<Vec<DependentModel>>,
}
