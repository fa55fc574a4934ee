//! The roots of a heap, with raw addresses. `session/roots` collects them.

use std::sync::Arc;

use crate::base::{Addr, Arch, Collector, IndexVec, Notes, index_type, len64, plural};
use crate::model::{CoverageKind, FinalizerState, HandleKind, HandleUse, RootCoverageModel, RootFlag, RootKind, Stacks};
use crate::stack::gc_info::Place;

/// Properties of a root.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RootFlags(u8);

impl RootFlags {
    /// None.
    pub const NONE: RootFlags = RootFlags(0);
    /// The object must not move.
    pub const PINNED: RootFlags = RootFlags(1);
    /// The root does not keep the object alive.
    pub const WEAK: RootFlags = RootFlags(2);
    /// An interior pointer.
    pub const INTERIOR: RootFlags = RootFlags(4);
    /// A reference count or another collector decides whether the object is kept alive, and the decision is unknown.
    pub const REF_COUNTED: RootFlags = RootFlags(8);
    /// The root is a word that points to an object and that may be stale.
    pub const CONSERVATIVE: RootFlags = RootFlags(16);
    /// The word was found by scanning whole stacks, and is a root only with `--stacks conservative`. JSON does not show this flag.
    pub(crate) const SCANNED: RootFlags = RootFlags(32);
    /// The word is in a part of a stack that was scanned conservatively because precise data is missing, so it may be stale. `CONSERVATIVE` is set as
    /// well, and JSON does not show this flag.
    pub(crate) const DOUBTFUL: RootFlags = RootFlags(64);

    const NAMES: [(RootFlags, RootFlag); 5] = [
        (RootFlags::PINNED, RootFlag::Pinned),
        (RootFlags::WEAK, RootFlag::Weak),
        (RootFlags::INTERIOR, RootFlag::Interior),
        (RootFlags::REF_COUNTED, RootFlag::RefCounted),
        (RootFlags::CONSERVATIVE, RootFlag::Conservative),
    ];

    /// Returns the union of both.
    pub const fn with(self, other: RootFlags) -> RootFlags {
        RootFlags(self.0 | other.0)
    }

    /// Returns these flags except the ones in `other`.
    pub(crate) const fn without(self, other: RootFlags) -> RootFlags {
        RootFlags(self.0 & !other.0)
    }

    /// Whether all flags of `other` are set.
    pub const fn has(self, other: RootFlags) -> bool {
        self.0 & other.0 == other.0
    }

    /// Returns the names of the flags, as in JSON.
    pub fn names(self) -> Vec<RootFlag> {
        Self::NAMES.into_iter().filter(|(flag, _)| self.has(*flag)).map(|(_, name)| name).collect()
    }
}

index_type! {
    /// A thread of [`Roots::threads`].
    pub struct ThreadIndex;
}

index_type! {
    /// A frame of [`Roots::frames`].
    pub struct FrameIndex;
}

index_type! {
    /// A name of [`Roots::names`]: of a static field, a register or a group.
    pub struct StaticIndex;
}

/// Origin of a root. It determines the root's label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A handle.
    Handle(HandleKind),
    /// A strong handle that the runtime or its class library created for itself, with its purpose.
    HandleFor(HandleUse),
    /// The finalization queue.
    Finalizer(FinalizerState),
    /// A reference in a frame, with its location.
    Slot(FrameIndex, Place),
    /// The code of a frame: a frame of a collectible method keeps the method's loader allocator alive.
    Code(FrameIndex),
    /// A stack word.
    Stack(ThreadIndex),
    /// A register, with its name.
    Register(ThreadIndex, StaticIndex),
    /// The handle of an exception in flight.
    Exception(ThreadIndex),
    /// The handle of the last exception thrown by a thread.
    LastThrown(ThreadIndex),
    /// A static field, with its thread for thread statics.
    Static(StaticIndex, Option<ThreadIndex>),
    /// A group of roots in a snapshot, with its name.
    Group(StaticIndex),
}

/// A root as addresses. [`Roots::label`] returns its label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawRoot {
    /// Kind.
    pub kind: RootKind,
    /// Address of the reference; `None` for registers and code.
    pub address: Option<Addr>,
    /// Start of the object, even for interior pointers.
    pub object: Addr,
    /// Properties.
    pub flags: RootFlags,
    /// Origin.
    pub origin: Origin,
}

/// A managed thread with roots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RootThread {
    /// Managed id.
    pub managed_id: Option<u32>,
    /// OS thread id.
    pub os_id: Option<u64>,
}

/// A frame with roots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RootFrame {
    /// Thread of the frame.
    pub thread: ThreadIndex,
    /// The method, or the type of a runtime frame.
    pub method: Arc<str>,
    /// Number of the base register that slot offsets are relative to.
    pub register: Option<u8>,
}

/// Roots on stacks and in registers, and how completely they are known.
#[derive(Clone, Debug, Default)]
pub struct StackRoots {
    /// Coverage by kind.
    pub coverage: Vec<RootCoverageModel>,
    /// Notes for answers that use these roots.
    pub notes: Notes,
    /// Reasons why parts of stacks were scanned conservatively, for answers that depend on the words found there.
    pub(crate) doubts: Notes,
}

/// The roots of a process.
#[derive(Clone, Debug, Default)]
pub struct Roots {
    /// Roots ordered by kind, then by table, queue, thread and address. Weak ones are included only on request.
    pub roots: Vec<RawRoot>,
    /// Coverage of each requested kind of root outside of stacks. [`Roots::coverage`] adds the other kinds.
    pub(crate) exact: Vec<RootCoverageModel>,
    /// Primary and secondary object of each dependent handle, both non-null. The graph treats them as edges, not as roots.
    pub dependents: Vec<(Addr, Addr)>,
    /// The threads.
    pub threads: IndexVec<ThreadIndex, RootThread>,
    /// Names of static fields, registers and groups.
    pub names: IndexVec<StaticIndex, String>,
    /// Frames with roots.
    pub frames: IndexVec<FrameIndex, RootFrame>,
    /// References found by walking frames.
    pub(crate) framed: StackRoots,
    /// References found by scanning whole stacks.
    pub(crate) scanned: StackRoots,
    /// Processor architecture, for names of registers.
    pub(crate) arch: Option<Arch>,
}

impl Roots {
    /// Returns the label of a root.
    pub fn label(&self, root: &RawRoot) -> String {
        let name = |i: StaticIndex| self.names.get(i).map_or("?", String::as_str);
        match root.origin {
            Origin::Handle(HandleKind::CrossReference) => "cross-reference handle, kept by the other runtime".into(),
            Origin::Handle(HandleKind::RefCounted) if root.flags.has(RootFlags::WEAK) => "ref-counted handle without references".into(),
            Origin::Handle(kind) => format!("{kind} handle"),
            Origin::HandleFor(used_for) => format!("strong handle, {}", used_for.words()),
            Origin::Finalizer(FinalizerState::Critical) => "finalizer queue, critical, ready".into(),
            Origin::Finalizer(state) => format!("finalizer queue, {state}"),
            Origin::Slot(at, place) => {
                let Some(frame) = self.frames.get(at) else { return "a frame".into() };
                let place = place.text(self.arch.unwrap_or(Arch::X64), frame.register, root.address);
                format!("{} {} {place}", frame.method, self.thread(frame.thread, false))
            }
            Origin::Code(at) => match self.frames.get(at) {
                Some(frame) => format!("code of {} {}", frame.method, self.thread(frame.thread, false)),
                None => "code of a frame".into(),
            },
            Origin::Stack(t) => match root.address {
                Some(at) => format!("stack of {} at {at}", self.thread(t, true)),
                None => format!("stack of {}", self.thread(t, true)),
            },
            Origin::Register(t, register) => format!("register {} of {}", name(register), self.thread(t, false)),
            Origin::Exception(t) => format!("exception in flight on {}", self.thread(t, false)),
            Origin::LastThrown(t) => format!("last exception thrown on {}", self.thread(t, false)),
            Origin::Static(i, None) | Origin::Group(i) => name(i).to_string(),
            Origin::Static(i, Some(t)) => format!("{} of {}", name(i), self.thread(t, false)),
        }
    }

    /// Returns a description of the root that can be compared between dumps of a process: it has no addresses, and names threads by managed id.
    pub fn group(&self, root: &RawRoot) -> String {
        let name = |i: StaticIndex| self.names.get(i).map_or("?", String::as_str);
        match root.origin {
            Origin::Slot(at, _) | Origin::Code(at) if root.kind == RootKind::Stack => match self.frames.get(at) {
                Some(frame) => format!("stack of {}", self.thread(frame.thread, false)),
                None => "a stack".into(),
            },
            Origin::Slot(at, _) => match self.frames.get(at) {
                Some(frame) => format!("registers of {}", self.thread(frame.thread, false)),
                None => "registers".into(),
            },
            Origin::Stack(t) => format!("stack of {}", self.thread(t, false)),
            Origin::Register(t, _) => format!("registers of {}", self.thread(t, false)),
            Origin::Static(i, Some(_)) => format!("{} of a thread", name(i)),
            _ => self.label(root),
        }
    }

    /// Returns a description of the root that can be compared between a dump and a snapshot, which does not know as much about roots.
    pub fn group_in_snapshots(&self, root: &RawRoot) -> String {
        let label = self.label(root);
        match root.kind {
            RootKind::Static | RootKind::ThreadStatic => match label.rsplit_once(" of thread ") {
                Some((field, thread)) if thread.bytes().all(|b| b.is_ascii_digit()) => field.into(),
                _ => label.strip_suffix(" of a thread").unwrap_or(&label).into(),
            },
            RootKind::Stack | RootKind::Register => "local variables".into(),
            RootKind::StrongHandle if label.starts_with("strong handle") => "strong handle".into(),
            RootKind::PinnedHandle | RootKind::AsyncPinnedHandle => "pinned handle".into(),
            RootKind::FinalizerReady => "finalizer queue".into(),
            RootKind::RefCountedHandle => "ref-counted handle".into(),
            _ => "other root".into(),
        }
    }

    /// Returns the thread of the root.
    pub fn thread_of(&self, root: &RawRoot) -> Option<RootThread> {
        if let Origin::Slot(at, _) | Origin::Code(at) = root.origin {
            return self.threads.get(self.frames.get(at)?.thread).copied();
        }
        let (Origin::Stack(t) | Origin::Register(t, _) | Origin::Exception(t) | Origin::LastThrown(t) | Origin::Static(_, Some(t))) =
            root.origin
        else {
            return None;
        };
        self.threads.get(t).copied()
    }

    fn thread(&self, index: ThreadIndex, with_os_id: bool) -> String {
        let thread = self.threads.get(index);
        let (managed, os) = thread.map_or((None, None), |t| (t.managed_id, t.os_id));
        let managed = managed.map_or_else(|| "a thread".to_string(), |id| format!("thread {id}"));
        match os.filter(|_| with_os_id) {
            Some(os) => format!("{managed} (os {os})"),
            None => managed,
        }
    }

    pub(crate) fn cover(&mut self, kind: RootKind, coverage: CoverageKind, reason: Option<String>) {
        self.exact.push(RootCoverageModel { kind, coverage, reason });
    }

    /// Returns how completely the dump shows each requested kind. Kinds excluded by `stacks` are unavailable.
    pub fn coverage(&self, stacks: Stacks) -> Vec<RootCoverageModel> {
        let order = |kind: RootKind| RootKind::ALL.iter().position(|k| *k == kind);
        let mut all = self.exact.clone();
        match stacks {
            Stacks::Precise => all.extend(self.framed.coverage.iter().cloned()),
            Stacks::Conservative => all.extend(self.scanned.coverage.iter().cloned()),
            Stacks::None => all.extend(self.framed.coverage.iter().map(|c| RootCoverageModel {
                kind: c.kind,
                coverage: CoverageKind::Unavailable,
                reason: Some("roots on stacks were not requested".into()),
            })),
        }
        all.sort_by_key(|c| order(c.kind));
        all
    }

    /// Whether precise stack roots were requested, but parts of stacks had to be scanned for words that may be stale.
    pub(crate) fn has_doubts(&self, stacks: Stacks) -> bool {
        stacks == Stacks::Precise && !self.framed.doubts.is_empty()
    }

    /// Adds a note that begins with `what` and gives the first reason for a conservative scan and the number of other reasons. Adds nothing
    /// without [doubts](Roots::has_doubts).
    pub(crate) fn note_doubts(&self, stacks: Stacks, what: &str, notes: &Collector) {
        let mut reasons = self.framed.doubts.iter().filter(|_| self.has_doubts(stacks));
        let Some(first) = reasons.next() else { return };
        let more = match reasons.count() {
            0 => String::new(),
            n => format!("; and for {}", plural(len64(n), "other reason")),
        };
        notes.add(first.reason(), first.address, format!("{what}: {}{more}", first.message));
    }

    /// Returns the notes about failed reads of roots on stacks, for answers that use these roots; `None` if `stacks` excludes the roots.
    pub fn stack_notes(&self, stacks: Stacks) -> Option<&Notes> {
        match stacks {
            Stacks::Precise => Some(&self.framed.notes),
            Stacks::Conservative => Some(&self.scanned.notes),
            Stacks::None => None,
        }
    }
}
