//! Roots: kinds, flags, and how much of each kind was read.

use serde::Serialize;

use crate::base::{Addr, Name, named_enum};

named_enum! {
    /// Kinds of roots.
    pub enum RootKind {
        /// A strong GC handle.
        StrongHandle = "strong-handle" | "strong",
        /// A pinned GC handle.
        PinnedHandle = "pinned-handle" | "pinned",
        /// A handle that is strong because a COM or ComWrappers reference count is not zero. With a count of zero, it is a weak handle.
        RefCountedHandle = "ref-counted-handle" | "ref-counted",
        /// A handle of the Java bridge. The collector of the other runtime decides whether the handle keeps its object alive.
        CrossReferenceHandle = "cross-reference-handle" | "cross-reference",
        /// A handle of overlapped I/O; not used since .NET 8.
        AsyncPinnedHandle = "async-pinned-handle" | "async-pinned",
        /// A strong handle that measures the size of the objects it holds; not used since .NET 9.
        SizedRefHandle = "sized-ref-handle" | "sized-ref",
        /// A handle of unknown kind, in a table of a GC whose structures are not known: it may be weak.
        UnknownHandle = "unknown-handle" | "unknown",
        /// A handle to an exception in flight on a thread.
        Exception = "exception",
        /// The finalization queue, for objects ready for finalization.
        FinalizerReady = "finalizer-ready",
        /// A static field.
        Static = "static",
        /// A static field of one thread.
        ThreadStatic = "thread-static",
        /// Memory outside of the heap that has references and is registered with the runtime (.NET 11). Only its existence is known; its
        /// contents are not read.
        ExternalMemory = "external-memory",
        /// A reference on a thread stack. In frames that are not known, any word that points to an object; it may be stale.
        Stack = "stack",
        /// A reference in a thread's register. In frames that are not known, any value that points to an object; it may be stale.
        Register = "register",
        /// A weak handle, or a ref-counted one with a count of zero. It is not a root and listed only on request.
        WeakHandle = "weak-handle" | "weak",
    }
}

impl RootKind {
    /// Whether roots of this kind are on stacks or in registers.
    pub const fn is_of_stacks(self) -> bool {
        matches!(self, RootKind::Stack | RootKind::Register)
    }
}

named_enum! {
    /// Coverage of a kind of root.
    pub enum CoverageKind {
        /// All roots and nothing else.
        Complete = "complete",
        /// All roots and possibly false ones: every value that looks like a root is treated as one.
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
        /// The root does not keep the object alive.
        Weak = "weak",
        /// An interior pointer.
        Interior = "interior",
        /// A root that may not keep the object alive: a reference count or another collector decides, and the decision is unknown.
        RefCounted = "ref-counted",
        /// A word that points to an object and may be stale.
        Conservative = "conservative",
    }
}

named_enum! {
    /// Stack and register values that are treated as roots. In retained sizes they hold only objects that no handle, static field or
    /// finalization queue holds.
    #[derive(Default)]
    pub enum Stacks {
        /// References in frames according to the methods' GC info. In frames without known GC info, values that point to an object.
        #[default]
        Precise = "precise",
        /// Every value that points to an object, even if it may be stale.
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
    /// Why the coverage is not complete; `null` if it is.
    pub reason: Option<String>,
}

impl RootCoverageModel {
    /// Returns the first kind of `all` that holds much of most heaps and of which the dump shows no root. Without it, objects that are in use look like
    /// garbage.
    pub(crate) fn unknown(all: &[RootCoverageModel]) -> Option<&RootCoverageModel> {
        let main = |kind: RootKind| kind.is_of_stacks() || matches!(kind, RootKind::StrongHandle | RootKind::Static);
        all.iter().find(|c| main(c.kind) && c.coverage == CoverageKind::Unavailable)
    }
}

/// A root.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct RootModel {
    /// Kind.
    pub kind: RootKind,
    /// Address of the reference; `null` for registers.
    pub address: Option<Addr>,
    /// The object.
    pub object: Addr,
    /// Type name of the object; `null` if the object is not in the dump.
    #[serde(rename = "type")]
    pub type_name: Option<Name>,
    /// Method table; `null` if the object is not in the dump.
    pub method_table: Option<Addr>,
    /// Properties.
    pub flags: Vec<RootFlag>,
    /// Description: kind of handle, name of the static field, or method, thread and slot of the frame.
    pub label: String,
    /// Managed id of the root's thread, as in [`Thread::managed_id`](crate::Thread::managed_id).
    pub thread: Option<u32>,
}

impl RootModel {
    /// Whether the description is a name that belongs to this root: of a static field, a method or a thread. Roots of other kinds all have the same.
    pub(crate) fn has_name(&self) -> bool {
        self.kind.is_of_stacks() || matches!(self.kind, RootKind::Static | RootKind::ThreadStatic | RootKind::Exception)
    }

    /// The method whose frame holds the object; `None` for roots that are not on stacks, and for words without a frame.
    pub(crate) fn method(&self) -> Option<&str> {
        let (method, _) = self.label.split_once(" thread ").filter(|_| self.kind.is_of_stacks())?;
        Some(method)
    }
}
