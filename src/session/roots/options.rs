//! The roots to collect, and their memory costs.

use crate::base::Indices;
use crate::clr::threads::Thread;
use crate::heapgraph::{RawRoot, RootFrame, ThreadIndex};
use crate::model::{RootKind, Stacks};

/// Size in bytes of a root, and of a frame with roots.
pub(super) const ROOT_BYTES: u64 = 48;
const _: () = assert!(size_of::<RawRoot>() <= 48 && size_of::<RootFrame>() <= 48);

/// Kinds of roots to collect.
#[derive(Clone, Debug, Default)]
pub struct RootOptions {
    /// The kinds. An empty list selects all kinds except weak handles.
    pub kinds: Vec<RootKind>,
    /// Whether weak handles are collected too.
    pub weak: bool,
    /// Which stack and register values to collect.
    pub stacks: Stacks,
    /// Whether the values for every choice of `stacks` are collected, so that the choice can be made later.
    pub any_stacks: bool,
}

impl RootOptions {
    /// Whether roots of this kind are wanted.
    pub fn wants(&self, kind: RootKind) -> bool {
        if kind.is_of_stacks() && self.stacks == Stacks::None && !self.any_stacks {
            return false;
        }
        let weak = kind == RootKind::WeakHandle;
        weak && self.weak || self.kinds.contains(&kind) || self.kinds.is_empty() && !weak
    }

    /// Whether interior addresses must be resolved, which requires a walk.
    pub fn needs_index(&self) -> bool {
        self.wants(RootKind::Stack) || self.wants(RootKind::Register)
    }
}

/// The threads with their indices in [`Roots::threads`].
pub(super) fn enumerated(threads: &[Thread]) -> impl Iterator<Item = (&Thread, ThreadIndex)> {
    threads.iter().zip(Indices::up_to(u32::MAX))
}
