//! The roots of a heap, with raw addresses. `session/roots` collects them.

use std::sync::Arc;

use crate::base::{Addr, Arch, Collector, IndexVec, NoteKind, Notes, index_type, len64, plural};
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
    /// The object is not kept alive.
    pub const WEAK: RootFlags = RootFlags(2);
    /// An interior pointer.
    pub const INTERIOR: RootFlags = RootFlags(4);
    /// Whether a reference count, or another collector, keeps the object alive is unknown.
    pub const REF_COUNTED: RootFlags = RootFlags(8);
    /// A word that points to an object; may be stale.
    pub const CONSERVATIVE: RootFlags = RootFlags(16);
    /// Found by scanning stacks as a whole: a root with `--stacks conservative` only. Has no name.
    pub(crate) const SCANNED: RootFlags = RootFlags(32);
    /// A word in a part of a stack whose references are not known: it may be stale. Has no name; such a root is conservative as well.
    pub(crate) const DOUBTFUL: RootFlags = RootFlags(64);

    const NAMES: [(RootFlags, RootFlag); 5] = [
        (RootFlags::PINNED, RootFlag::Pinned),
        (RootFlags::WEAK, RootFlag::Weak),
        (RootFlags::INTERIOR, RootFlag::Interior),
        (RootFlags::REF_COUNTED, RootFlag::RefCounted),
        (RootFlags::CONSERVATIVE, RootFlag::Conservative),
    ];

    /// The union.
    pub const fn with(self, other: RootFlags) -> RootFlags {
        RootFlags(self.0 | other.0)
    }

    /// These without those of `other`.
    pub(crate) const fn without(self, other: RootFlags) -> RootFlags {
        RootFlags(self.0 & !other.0)
    }

    /// Whether all flags of `other` are set.
    pub const fn has(self, other: RootFlags) -> bool {
        self.0 & other.0 == other.0
    }

    /// Their names, as in JSON.
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

/// Origin of a root, used for its label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A handle.
    Handle(HandleKind),
    /// A strong handle that the runtime or its library made for itself.
    HandleFor(HandleUse),
    /// The finalization queue.
    Finalizer(FinalizerState),
    /// A reference of a frame, which is where.
    Slot(FrameIndex, Place),
    /// The code of a frame: the loader allocator of a collectible method.
    Code(FrameIndex),
    /// A stack word.
    Stack(ThreadIndex),
    /// A register, by its name.
    Register(ThreadIndex, StaticIndex),
    /// The handle of an exception in flight.
    Exception(ThreadIndex),
    /// The handle of the last exception thrown by a thread.
    LastThrown(ThreadIndex),
    /// A static field, with its thread for thread statics.
    Static(StaticIndex, Option<ThreadIndex>),
    /// A group of roots in a snapshot, by its name.
    Group(StaticIndex),
}

/// A root with raw addresses, without names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawRoot {
    /// Its kind.
    pub kind: RootKind,
    /// Address of the reference; `None` for registers and code.
    pub address: Option<Addr>,
    /// Start of the object, even for interior pointers.
    pub object: Addr,
    /// Its properties.
    pub flags: RootFlags,
    /// Its origin.
    pub origin: Origin,
}

/// A managed thread with roots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RootThread {
    /// Its managed id.
    pub managed_id: Option<u32>,
    /// Its OS thread id.
    pub os_id: Option<u64>,
}

/// A frame with roots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RootFrame {
    /// Its thread.
    pub thread: ThreadIndex,
    /// Its method, or the type of a frame of the runtime.
    pub method: Arc<str>,
    /// Number of the register that its slots count from.
    pub register: Option<u8>,
}

/// How completely the roots on stacks and in registers are known.
#[derive(Clone, Debug, Default)]
pub struct StackRoots {
    /// By kind.
    pub coverage: Vec<RootCoverageModel>,
    /// Notes of the answers that count them.
    pub notes: Notes,
    /// Why words count that may be stale: of the answers that these make a difference to.
    pub(crate) doubts: Notes,
}

/// The roots of a process.
#[derive(Clone, Debug, Default)]
pub struct Roots {
    /// Ordered by kind, then by table, queue, thread and address. Weak ones only on request.
    pub roots: Vec<RawRoot>,
    /// Coverage of each requested kind that is not of stacks: see [`Roots::coverage`].
    pub(crate) exact: Vec<RootCoverageModel>,
    /// Dependent handles: primary and secondary object, both non-null. Edges, not roots.
    pub dependents: Vec<(Addr, Addr)>,
    /// The threads.
    pub threads: IndexVec<ThreadIndex, RootThread>,
    /// Names of static fields.
    pub names: IndexVec<StaticIndex, String>,
    /// Frames with roots.
    pub frames: IndexVec<FrameIndex, RootFrame>,
    /// What frames hold.
    pub(crate) framed: StackRoots,
    /// What a scan of whole stacks finds.
    pub(crate) scanned: StackRoots,
    /// Processor architecture, for names of registers.
    pub(crate) arch: Option<Arch>,
}

impl Roots {
    /// The label of a root.
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

    /// A description of the root that holds for other dumps as well: without addresses, and threads by their managed ids.
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

    /// The thread of the root.
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

    /// How completely the dump shows each requested kind. Kinds that `stacks` leaves out are unavailable.
    pub fn coverage(&self, stacks: Stacks) -> Vec<RootCoverageModel> {
        let order = |kind: RootKind| RootKind::ALL.iter().position(|k| *k == kind);
        let mut all = self.exact.clone();
        match stacks {
            Stacks::Precise => all.extend(self.framed.coverage.iter().cloned()),
            Stacks::Conservative => all.extend(self.scanned.coverage.iter().cloned()),
            Stacks::None => all.extend(self.framed.coverage.iter().map(|c| RootCoverageModel {
                kind: c.kind,
                coverage: CoverageKind::Unavailable,
                reason: Some("left out by --stacks none".into()),
            })),
        }
        all.sort_by_key(|c| order(c.kind));
        all
    }

    /// Whether words are among them that may be stale.
    pub(crate) fn has_doubts(&self, stacks: Stacks) -> bool {
        stacks == Stacks::Precise && !self.framed.doubts.is_empty()
    }

    /// Notes that `what` is not certain, and why words count that may be stale. Nothing where none do.
    pub(crate) fn note_doubts(&self, stacks: Stacks, what: &str, notes: &Collector) {
        let mut reasons = self.framed.doubts.iter().filter(|_| self.has_doubts(stacks));
        let Some(first) = reasons.next() else { return };
        let more = match reasons.count() {
            0 => String::new(),
            n => format!("; and for {}", plural(len64(n), "other reason")),
        };
        notes.add(NoteKind::Missing, first.address, format!("{what}: {}{more}", first.message));
    }

    /// What could not be read of the roots on stacks, for answers that count them.
    pub fn stack_notes(&self, stacks: Stacks) -> Option<&Notes> {
        match stacks {
            Stacks::Precise => Some(&self.framed.notes),
            Stacks::Conservative => Some(&self.scanned.notes),
            Stacks::None => None,
        }
    }
}
